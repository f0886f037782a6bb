//! What an earlier version kept in `.contexture` and makes us act: moved once where the user trusted the folder, else
//! ignored.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::common::{Project, message};

/// A project as an earlier version left it: agent, pool, hub key and session lie in `.contexture`, and nothing is known
/// of it in the state folder.
fn earlier() -> Project {
    let project = Project::new();
    let create = [
        "agent",
        "create",
        "bot",
        "--backend",
        "x",
        "--command",
        "true",
    ];
    project.ctx(&create).success();
    let add = ["pool", "add", "e", "--capability", "x", "--worker"];
    project.ctx(&add).success();
    project.ctx(&["pool", "key", "e"]).success();
    project.say("s", &["one", "two"]);
    let state = project.state();
    for name in ["agents", "pool", "hub.key"] {
        let old = project.path().join(".contexture").join(name);
        std::fs::rename(state.join(name), old).unwrap();
    }
    std::fs::remove_dir_all(state).unwrap();
    project
}

/// The record of trust, as the earlier version wrote it.
fn trusted(project: &Project) {
    let folder = project.home().join(".config/contexture");
    std::fs::create_dir_all(&folder).unwrap();
    let path = project.path().canonicalize().unwrap();
    let record = json!({"version": 1, "folders": [{"path": path, "at": "2026-01-01T00:00:00Z"}]});
    let file = folder.join("trusted.json");
    std::fs::write(&file, record.to_string()).unwrap();
    std::fs::set_permissions(file, PermissionsExt::from_mode(0o600)).unwrap();
}

fn agents(project: &Project) -> (usize, String) {
    let (printed, said) = project.ctx(&["agent", "list", "--json"]).ends(0);
    let all: serde_json::Value = serde_json::from_str(&printed).unwrap();
    (all.as_array().unwrap().len(), said)
}

#[test]
fn a_trusted_folder_is_taken_over_once() {
    let project = earlier();
    trusted(&project);
    let key = std::fs::read(project.path().join(".contexture/hub.key")).unwrap();
    let (there, said) = agents(&project);
    assert_eq!(there, 1, "{said}");
    assert_eq!(said.lines().count(), 1, "one line: {said}");
    assert!(said.contains("agents, tasks, hub.key of an earlier version moved to"));
    for name in ["agents", "pool", "hub.key"] {
        assert!(
            !project.path().join(".contexture").join(name).exists(),
            "{name}"
        );
    }
    assert_eq!(std::fs::read(project.state().join("hub.key")).unwrap(), key);
    let pool = project.ctx(&["pool", "list", "--json"]).json();
    assert_eq!(pool["resources"].as_array().unwrap().len(), 1);
    // Its data counts as the user's own.
    project.say("s", &["three"]);
    assert_eq!(agents(&project), (1, String::new()));
    // What comes later is no earlier version's.
    let planted = project.path().join(".contexture/agents");
    std::fs::create_dir(&planted).unwrap();
    let own = project.state().join("agents/bot.jsonl");
    std::fs::copy(own, planted.join("planted.jsonl")).unwrap();
    std::fs::create_dir_all(project.log("planted").parent().unwrap()).unwrap();
    std::fs::copy(project.log("s"), project.log("planted")).unwrap();
    let (there, said) = agents(&project);
    assert_eq!(there, 1);
    assert!(said.contains("agents in .contexture ignored"), "{said}");
    assert!(planted.join("planted.jsonl").exists());
    let append = project.ctx(&["sessions", "append", "planted"]);
    append
        .input(message("user", "x").to_string())
        .failure(5, "ctx trust");
}

#[test]
fn any_other_folder_is_left_as_it_is() {
    let project = earlier();
    for _ in 0..2 {
        let (there, said) = agents(&project);
        assert_eq!(there, 0);
        assert_eq!(said.lines().count(), 1, "one line: {said}");
        let note = "agents, tasks, hub.key in .contexture ignored: `ctx trust` shows them";
        assert!(said.contains(note), "{said}");
    }
    for name in ["agents/bot.jsonl", "pool/main.jsonl", "hub.key"] {
        assert!(
            project.path().join(".contexture").join(name).exists(),
            "{name}"
        );
    }
    // Trust that comes from now on is not that of an earlier version: it is `ctx trust` that shows and moves.
    trusted(&project);
    assert_eq!(agents(&project).0, 0);
    // Whoever only reads sessions hears nothing of it.
    let (_, said) = project.ctx(&["sessions", "list"]).ends(0);
    assert!(said.is_empty(), "{said}");
}

/// A folder that was trusted and had nothing is known from the first look: what it gets later is not taken over.
#[test]
fn an_empty_folder_is_not_taken_over_later() {
    let project = Project::new();
    trusted(&project);
    project.ctx(&["sessions", "list"]).success();
    let from = earlier();
    let agents_of = |project: &Project| project.path().join(".contexture/agents");
    std::fs::rename(agents_of(&from), agents_of(&project)).unwrap();
    assert_eq!(agents(&project).0, 0);
}

#[test]
fn the_doctor_looks_at_both_homes() {
    let project = Project::new();
    let create = [
        "agent",
        "create",
        "bot",
        "--backend",
        "x",
        "--command",
        "true",
    ];
    project.ctx(&create).success();
    project.say("s", &["one"]);
    project.ctx(&["doctor"]).success();
    let files = [project.log("s"), project.state().join("agents/bot.jsonl")];
    for file in &files {
        let sound = std::fs::read_to_string(file).unwrap();
        std::fs::write(file, format!("{sound}rubbish\n")).unwrap();
    }
    let (found, _) = project.ctx(&["doctor"]).ends(1);
    assert!(
        found.contains("session `s`") && found.contains("agent `bot`"),
        "{found}"
    );
    project.ctx(&["doctor", "--fix"]).success();
    assert_eq!(agents(&project).0, 1);
    project.say("s", &["two"]);
}
