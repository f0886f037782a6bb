//! The system side: which files, in which order, how much of them, and when not at all.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use contexture::prompt::{Section, Stability, Templates};
use contexture::tokens::{Bpe, Tokenizer};
use contexture_tools::skills::{Places, Skills};
use contexture_tools::system::{self, Instructions, Notice, Project};
use tempfile::TempDir;

struct Scene {
    folder: TempDir,
    small: bool,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("root/a/b")).unwrap();
        Self {
            folder,
            small: false,
        }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        std::fs::write(self.root().join(name), bytes).unwrap();
        self
    }

    fn sections(&self, cwd: &str) -> (Vec<Section>, Vec<Notice>) {
        self.with(cwd, &Skills::none())
    }

    fn with(&self, cwd: &str, skills: &Skills) -> (Vec<Section>, Vec<Notice>) {
        system::sections(&Project {
            instructions: &Instructions::read(&self.root(), &self.root().join(cwd)),
            skills,
            tokenizer: &Bpe::O200k,
            skills_tokens: system::SKILLS_TOKENS,
            small: self.small,
            offered: &offered(),
            templates: &Templates::default(),
        })
    }
}

fn offered() -> BTreeSet<String> {
    let all = ["chat_send", "context_recall", "skills_list", "skills_load"];
    all.map(str::to_owned).into()
}

fn names(sections: &[Section]) -> Vec<&str> {
    sections
        .iter()
        .map(|section| section.name.as_str())
        .collect()
}

fn text<'a>(sections: &'a [Section], name: &str) -> &'a str {
    &sections
        .iter()
        .find(|section| section.name == name)
        .unwrap()
        .text
}

#[test]
fn files_come_in_one_order_the_nearest_last() {
    let scene = Scene::new();
    scene
        .write("Agent.md", "You are Ada.\n")
        .write("AGENTS.md", "root\n")
        .write("a/AGENTS.md", "in a\n")
        .write("a/b/AGENTS.md", "in b\n");
    let (sections, notices) = scene.sections("a/b");
    assert_eq!(notices, []);
    assert_eq!(
        names(&sections),
        [
            "agent",
            "default",
            "agents:AGENTS.md",
            "agents:a/AGENTS.md",
            "agents:a/b/AGENTS.md"
        ]
    );
    assert!(
        sections
            .iter()
            .all(|section| section.stability == Stability::Stable)
    );
    assert_eq!(text(&sections, "agent"), "You are Ada.");
    assert_eq!(
        text(&sections, "agents:a/AGENTS.md"),
        "# Instructions from a/AGENTS.md\n\nin a"
    );
    assert_eq!(sections[3].origin, "a/AGENTS.md");
    assert_eq!(scene.sections("a/b"), (sections, notices));
    // Only the way down to where the agent works.
    let (sections, _) = scene.sections("a");
    assert_eq!(
        names(&sections),
        ["agent", "default", "agents:AGENTS.md", "agents:a/AGENTS.md"]
    );
    let (sections, _) = scene.sections("..");
    assert_eq!(names(&sections), ["agent", "default", "agents:AGENTS.md"]);
}

#[test]
fn a_digest_covers_what_is_not_used() {
    let scene = Scene::new();
    let digest = || {
        let read = Instructions::read(&scene.root(), &scene.root());
        read.files()[0].digest().unwrap().to_owned()
    };
    let long = "x".repeat(100_000);
    scene.write("AGENTS.md", &long);
    let before = digest();
    assert_eq!(digest(), before);
    scene.write("AGENTS.md", format!("{}y", &long[1..]));
    assert_ne!(digest(), before);
    scene.write("AGENTS.md", b"\xff");
    let read = Instructions::read(&scene.root(), &scene.root());
    assert_eq!(read.files()[0].digest(), None);
}

#[test]
fn what_is_cut_is_said_in_the_text_and_to_people() {
    let scene = Scene::new();
    scene.write("AGENTS.md", "é".repeat(20_000));
    let (sections, notices) = scene.sections(".");
    let said = text(&sections, "agents:AGENTS.md");
    assert_eq!(said.matches('é').count(), 16 << 10);
    assert!(
        said.ends_with("\n\n[AGENTS.md goes on here: 7232 bytes are left out]"),
        "{said}"
    );
    let [notice] = &notices[..] else {
        panic!("{notices:?}")
    };
    assert_eq!(
        notice.to_string(),
        "AGENTS.md: 7232 bytes at its end are left out"
    );
}

#[test]
fn the_nearest_files_get_room_first() {
    let scene = Scene::new();
    let full = "x".repeat(32 << 10);
    scene
        .write("Agent.md", "who I am")
        .write("AGENTS.md", "far")
        .write("a/AGENTS.md", &full)
        .write("a/b/AGENTS.md", &full);
    let (sections, notices) = scene.sections("a/b");
    assert_eq!(
        text(&sections, "agents:a/b/AGENTS.md").matches('x').count(),
        32 << 10
    );
    assert!(
        text(&sections, "agents:AGENTS.md")
            .ends_with("[AGENTS.md goes on here: 3 bytes are left out]")
    );
    assert_eq!(
        text(&sections, "agent"),
        "\n\n[Agent.md goes on here: 8 bytes are left out]"
    );
    let places: Vec<_> = notices.iter().map(|notice| notice.place.as_str()).collect();
    assert_eq!(places, ["Agent.md", "AGENTS.md"]);
}

#[test]
fn files_that_are_no_plain_text_in_the_project_are_refused() {
    let scene = Scene::new();
    std::fs::write(scene.folder.path().join("secret"), "key").unwrap();
    symlink("../secret", scene.root().join("AGENTS.md")).unwrap();
    scene.write("Agent.md", b"\xff\xfe");
    std::fs::create_dir(scene.root().join("a/AGENTS.md")).unwrap();
    let (sections, notices) = scene.sections("a");
    assert_eq!(names(&sections), ["default"]);
    let said: Vec<String> = notices.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].starts_with("Agent.md: left out: it is not UTF-8"));
    assert!(said[1].starts_with("AGENTS.md: left out: it is a link that leads out"));
    assert!(
        said[2].starts_with("a/AGENTS.md: left out: is no ordinary file"),
        "{said:?}"
    );
}

/// Attack 28: a file is no template.
#[test]
fn a_file_is_put_in_as_it_is() {
    let scene = Scene::new();
    scene.write("AGENTS.md", "{{token}} {{ env.KEY }} {% for x in y %}");
    let (sections, notices) = scene.sections(".");
    assert!(notices.is_empty());
    assert!(
        text(&sections, "agents:AGENTS.md").ends_with("{{token}} {{ env.KEY }} {% for x in y %}")
    );
}

#[test]
fn skills_come_last_and_refused_ones_are_counted() {
    let scene = Scene::new();
    for (name, front) in [("pdf", "name: pdf\ndescription: d"), ("bad", "name: x")] {
        let folder = scene.root().join(".agents/skills").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("SKILL.md"), format!("---\n{front}\n---\n")).unwrap();
    }
    let skills = Skills::discover(&Places::default().and_project(scene.root()));
    let (sections, notices) = scene.with(".", &skills);
    assert_eq!(names(&sections), ["default", "skills"]);
    assert!(text(&sections, "skills").ends_with("\n- pdf: d"));
    assert_eq!(notices[0].to_string(), "skills: 1 skill refused");
}

#[test]
fn the_default_rules_are_short() {
    let (sections, _) = Scene::new().sections(".");
    let tokens = Bpe::O200k.count(text(&sections, "default"));
    assert!((50..=260).contains(&tokens), "{tokens}");
}

#[test]
fn a_small_model_is_told_little() {
    let mut scene = Scene::new();
    scene.small = true;
    let folder = scene.root().join(".agents/skills/pdf");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("SKILL.md"),
        "---\nname: pdf\ndescription: d\n---\n",
    )
    .unwrap();
    let skills = Skills::discover(&Places::default().and_project(scene.root()));
    let (sections, _) = scene.with(".", &skills);
    assert_eq!(names(&sections), ["default"]);
    let tokens = Bpe::O200k.count(text(&sections, "default"));
    assert!((10..=80).contains(&tokens), "{tokens}");
}

/// A text of ours names a tool only where the agent is offered it, whatever that is.
#[test]
fn no_text_names_a_tool_that_is_not_offered() {
    let scene = Scene::new();
    let home = scene.root().join(".agents/skills");
    for n in 0..200 {
        let skill = home.join(format!("s{n:03}"));
        std::fs::create_dir_all(&skill).unwrap();
        let text = format!(
            "---\nname: s{n:03}\ndescription: For the task of number {n} and all that comes with it.\n---\nDo it.\n"
        );
        std::fs::write(skill.join("SKILL.md"), text).unwrap();
    }
    let skills = Skills::discover(&Places::default().and_project(scene.root()));
    let all: Vec<String> = offered().into_iter().collect();
    for chosen in 0..1 << all.len() {
        let held: BTreeSet<String> = (0..all.len())
            .filter(|n| chosen >> n & 1 == 1)
            .map(|n| all[n].clone())
            .collect();
        for small in [true, false] {
            let (sections, notices) = system::sections(&Project {
                instructions: &Instructions::default(),
                skills: &skills,
                tokenizer: &Bpe::O200k,
                skills_tokens: system::SKILLS_TOKENS,
                small,
                offered: &held,
                templates: &Templates::default(),
            });
            assert!(notices.is_empty(), "{notices:?}");
            let text: String = sections.into_iter().map(|section| section.text).collect();
            for tool in &all {
                let named = text.contains(&format!("`{tool}`"));
                // Loading is what the list of all is for.
                let useful = !small && (tool != "skills_list" || held.contains("skills_load"));
                assert_eq!(
                    named,
                    held.contains(tool) && useful,
                    "{tool} with {held:?}: {text}"
                );
            }
        }
    }
}
