//! Which folders are skills, and which are refused (attack 38).

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use contexture::tokens::{Bpe, Tokenizer};
use contexture_tools::skills::{Places, Scope, Skills};
use tempfile::TempDir;

struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("project")).unwrap();
        Self { folder }
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside)
    }

    fn write(&self, inside: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(inside);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn skill(&self, folder: &str, description: &str) {
        let name = Path::new(folder).file_name().unwrap().to_str().unwrap();
        let text = format!("---\nname: {name}\ndescription: {description}\n---\nDo it.\n");
        self.write(&format!("{folder}/SKILL.md"), text);
    }

    fn skills(&self) -> Skills {
        let (config, home) = (self.path("config"), self.path("home"));
        let places = Places::of_user(Some(&config), Some(&home));
        Skills::discover(&places.and_project(self.path("project")))
    }

    /// The only skill is refused, and this is why.
    #[track_caller]
    fn refused(&self, why: &str) {
        let skills = self.skills();
        assert!(skills.used().is_empty(), "{:?}", skills.used());
        let [one] = skills.refused() else {
            panic!("{:?}", skills.refused())
        };
        let said = one.fault.to_string();
        assert!(said.contains(why), "`{why}` is not in: {said}");
        assert!(!one.fault.hint().is_empty());
    }
}

const HERE: &str = "project/.agents/skills/pdf/SKILL.md";

#[test]
fn all_fields_are_read() {
    let home = Home::new();
    let text = "\u{feff}---\r\nname: pdf\r\ndescription: >-\r\n  Fills forms.\r\n  Use it for PDF.\r\nlicense: MIT\r\n\
        compatibility: needs qpdf\r\nmetadata:\r\n  author: me\r\n  version: \"1.0\"\r\n\
        allowed-tools: Bash(qpdf:*) Read\r\nother-agents-key: [1]\r\n---\r\n\r\n# Forms\r\n\r\nsee [more](references/more.md)\r\n";
    home.write(HERE, text);
    let skills = home.skills();
    assert_eq!(skills.refused(), []);
    let [skill] = skills.used() else { panic!() };
    assert_eq!(skill.id(), "project/pdf");
    assert_eq!(skill.description, "Fills forms. Use it for PDF.");
    assert_eq!(skill.license.as_deref(), Some("MIT"));
    assert_eq!(skill.compatibility.as_deref(), Some("needs qpdf"));
    assert_eq!(skill.metadata["version"], "1.0");
    assert_eq!(skill.allowed_tools, ["Bash(qpdf:*)", "Read"]);
    assert!(skill.body.starts_with("# Forms"));
}

#[test]
fn a_description_with_a_colon_needs_no_quotes() {
    let home = Home::new();
    let said = r#"Use this when: the "user" asks: for PDF"#;
    home.write(HERE, format!("---\nname: pdf\ndescription: {said}\n---\n"));
    assert_eq!(home.skills().used()[0].description, said);
}

#[test]
fn front_matter_that_is_not_as_it_must_be_is_refused() {
    let long = format!("---\nname: pdf\ndescription: {}\n---\n", "x".repeat(1_025));
    let huge = format!(
        "---\nname: pdf\ndescription: d\n---\n{}",
        "x".repeat(256 << 10)
    );
    let bulky = format!(
        "---\nname: pdf\ndescription: d\nx: {}\n---\n",
        "x".repeat(16 << 10)
    );
    for (text, why) in [
        ("# PDF\n", "front matter"),
        ("---\nname: pdf\ndescription: d\n", "front matter"),
        ("", "front matter"),
        ("---\n- pdf\n---\n", "no map"),
        ("---\nname: [\n---\n", "front matter"),
        (
            "---\nname: pdf\nname: pdf\ndescription: d\n---\n",
            "front matter",
        ),
        (
            "---\nname: &a pdf\ndescription: *a\n---\n",
            "anchors and aliases are not allowed",
        ),
        (
            "---\nname: pdf\ndescription: &unused d\n---\n",
            "anchors and aliases are not allowed",
        ),
        (
            "---\nname: pdf\ndescription: d\nm: {<<: {a: 1}}\n---\n",
            "front matter is refused",
        ),
        ("---\ndescription: d\n---\n", "its name must be"),
        ("---\nname: PDF\ndescription: d\n---\n", "its name must be"),
        (
            "---\nname: ../pdf\ndescription: d\n---\n",
            "its name must be",
        ),
        (
            "---\nname: pdf2\ndescription: d\n---\n",
            "`pdf2`, which is not its folder's",
        ),
        ("---\nname: pdf\n---\n", "description: is missing"),
        (
            "---\nname: pdf\ndescription: \"  \"\n---\n",
            "description: is missing",
        ),
        (
            "---\nname: pdf\ndescription: 3\n---\n",
            "description: must be a text",
        ),
        (long.as_str(), "description: is too long"),
        (
            "---\nname: pdf\ndescription: d\nmetadata: 3\n---\n",
            "metadata",
        ),
        (
            "---\nname: pdf\ndescription: d\nallowed-tools: 3\n---\n",
            "allowed-tools",
        ),
        (bulky.as_str(), "longer than 16 KiB"),
        (huge.as_str(), "longer than 256 KiB"),
        (
            "---\nname: pdf\ndescription: d\n---\n[x](../../etc/passwd)\n",
            "refers to `../../etc/passwd`",
        ),
    ] {
        let home = Home::new();
        home.write(HERE, text);
        home.refused(why);
    }
    let home = Home::new();
    home.write(HERE, b"---\nname: pdf\ndescription: \xff\n---\n");
    home.refused("not UTF-8");
}

#[test]
fn yaml_that_multiplies_is_refused_at_once() {
    let mut text = String::from("---\nname: pdf\ndescription: d\na0: &a0 [x]\n");
    for n in 1..20 {
        let before = vec![format!("*a{}", n - 1); 9].join(", ");
        text.push_str(&format!("a{n}: &a{n} [{before}]\n"));
    }
    let home = Home::new();
    home.write(HERE, text + "---\n");
    home.refused("front matter is refused");
}

#[test]
fn links_that_lead_out_are_refused() {
    // The file itself.
    let home = Home::new();
    let secret = home.write("secret", "---\nname: pdf\ndescription: d\n---\nkey\n");
    std::fs::create_dir_all(home.path("project/.agents/skills/pdf")).unwrap();
    symlink(&secret, home.path(HERE)).unwrap();
    home.refused("symbolic link");

    // A file beside it, a link to nothing.
    for target in ["/etc/passwd", "/nowhere/at/all"] {
        let home = Home::new();
        home.skill("project/.agents/skills/pdf", "d");
        symlink(target, home.path("project/.agents/skills/pdf/notes.md")).unwrap();
        home.refused("symbolic link");
    }

    // The skill's folder.
    let home = Home::new();
    home.skill("elsewhere/pdf", "d");
    std::fs::create_dir_all(home.path("project/.agents/skills")).unwrap();
    symlink(
        home.path("elsewhere/pdf"),
        home.path("project/.agents/skills/pdf"),
    )
    .unwrap();
    home.refused("symbolic link");

    // The folder of skills, out of the project.
    let home = Home::new();
    home.skill("elsewhere/pdf", "d");
    std::fs::create_dir_all(home.path("project/.agents")).unwrap();
    symlink(home.path("elsewhere"), home.path("project/.agents/skills")).unwrap();
    home.refused("symbolic link");
}

#[test]
fn one_skill_linked_twice_is_one_skill() {
    let home = Home::new();
    home.skill("project/.agents/skills/pdf", "d");
    std::fs::create_dir_all(home.path("project/.claude")).unwrap();
    symlink("../.agents/skills", home.path("project/.claude/skills")).unwrap();
    let skills = home.skills();
    assert_eq!((skills.used().len(), skills.refused().len()), (1, 0));
    assert!(skills.shadowed().is_empty());
}

#[test]
fn odd_things_are_named_or_are_none() {
    let home = Home::new();
    home.write("project/.agents/skills/README.md", "not a skill");
    home.write("project/.agents/skills/.git/x", "nor this");
    home.write("project/.agents/skills/empty/notes.md", "x");
    home.refused("has no SKILL.md");

    // A pipe nobody writes to does not hold us up.
    let home = Home::new();
    std::fs::create_dir_all(home.path("project/.agents/skills/pdf")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(home.path(HERE))
        .status();
    assert!(made.unwrap().success());
    home.refused("no ordinary file");
}

#[test]
fn the_nearer_of_two_is_used_and_the_other_named() {
    let home = Home::new();
    home.skill("home/.claude/skills/pdf", "the user's");
    home.skill("home/.agents/skills/own", "the user's own");
    home.skill("config/contexture/skills/own", "ours");
    home.skill("project/.claude/skills/pdf", "the project's, second");
    home.skill("project/.agents/skills/pdf", "the project's");
    let skills = home.skills();
    let used: Vec<_> = skills
        .used()
        .iter()
        .map(|s| (s.id(), s.description.as_str()))
        .collect();
    assert_eq!(
        used,
        [
            ("user/own".into(), "ours"),
            ("project/pdf".into(), "the project's")
        ]
    );
    let shadowed: Vec<_> = skills
        .shadowed()
        .iter()
        .map(|s| s.description.as_str())
        .collect();
    assert_eq!(
        shadowed,
        ["the project's, second", "the user's own", "the user's"]
    );
    // What is shadowed can still be asked for.
    assert_eq!(skills.find("user/pdf").unwrap().description, "the user's");
    assert_eq!(skills.find("pdf").unwrap().scope, Scope::Project);
}

#[test]
fn without_trust_a_projects_skills_are_not_looked_at() {
    let home = Home::new();
    home.skill("project/.agents/skills/pdf", "the project's");
    home.skill("home/.agents/skills/pdf", "the user's");
    let places = Places::of_user(None, Some(&home.path("home")));
    let skills = Skills::discover(&places);
    assert_eq!(skills.used()[0].description, "the user's");
    assert!(skills.shadowed().is_empty());
}

#[test]
fn the_overview_keeps_to_its_price() {
    let home = Home::new();
    for n in 0..100 {
        home.skill(
            &format!("home/.agents/skills/s{n:03}"),
            "\"For {{token}} work,\u{200b} and\\nother things\"",
        );
    }
    let skills = home.skills();
    let text = |most| {
        let section = skills
            .overview(&Bpe::O200k, most, &loaders())
            .unwrap()
            .unwrap();
        assert_eq!(
            (section.name.as_str(), section.origin.as_str()),
            ("skills", "skills")
        );
        section.text
    };
    let all = text(10_000);
    assert_eq!(all.matches("\n- s").count(), 100);
    assert!(
        all.contains("\n- s000: For {{token}} work,⟨U+200B⟩ and other things\n"),
        "{all}"
    );
    for most in [100, 300, 1_000] {
        let some = text(most);
        assert!(Bpe::O200k.count(&some) <= most);
        let shown = some.matches("\n- s").count();
        assert!(shown < 100 && some.contains(&format!("{} more did not fit", 100 - shown)));
    }
    assert!(
        Skills::none()
            .overview(&Bpe::O200k, 100, &loaders())
            .unwrap()
            .is_none()
    );
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

    /// Whatever a file says, it is a skill or it is refused, and the rest is none the worse.
    #[test]
    fn any_text_is_a_skill_or_refused(front in ".{0,80}(\n.{0,40}){0,4}", body in "(?s).{0,120}") {
        let home = Home::new();
        home.skill("home/.agents/skills/good", "d");
        home.write(HERE, format!("---\nname: pdf\ndescription: {front}\n---\n{body}"));
        let skills = home.skills();
        proptest::prop_assert_eq!(skills.used().len() + skills.refused().len(), 2);
        proptest::prop_assert!(skills.find("good").is_ok());
        proptest::prop_assert!(skills.used().iter().all(|skill| skill.line().lines().count() == 1));
    }
}

/// The tools that the overview is for.
fn loaders() -> std::collections::BTreeSet<String> {
    ["skills_list", "skills_load"].map(str::to_owned).into()
}
