//! A log that a newer program wrote: this one must not guess at it.

use serde_json::json;

use crate::common::{Project, message};

const COMMANDS: [&[&str]; 16] = [
    &["sessions", "show", "s"],
    &["sessions", "show", "s", "--json"],
    &["sessions", "fork", "s", "f"],
    &["sessions", "undo", "s"],
    &["sessions", "undo", "s", "m1"],
    &["sessions", "pin", "s", "m1"],
    &["sessions", "unpin", "s", "m1"],
    &["sessions", "export", "s"],
    &["sessions", "export", "s", "--format", "html"],
    &["sessions", "export", "s", "--format", "openai"],
    &["sessions", "export", "s", "--format", "jsonl"],
    &["inspect", "s"],
    &["inspect", "s", "--at", "0"],
    &["diff", "s", "0", "1"],
    &["replay", "s"],
    &["replay", "s", "--verify"],
];

fn project(version: u64, third: &str) -> Project {
    let project = Project::new();
    std::fs::create_dir_all(project.log("s").parent().unwrap()).unwrap();
    let entry = |id: &str, parent: &str, kind: &str, payload: serde_json::Value| json!({ "id": id, "parentId": parent, "type": kind, "timestamp": "2026-01-01T00:00:00Z", "payload": payload });
    let said = |role: &str| json!({ "message": message(role, "hi") });
    let header = json!({ "id": "h", "type": "session_header", "timestamp": "2026-01-01T00:00:00Z",
                         "payload": { "version": version, "chatKey": "s" } });
    let lines = [
        header,
        entry("m1", "h", "message", said("user")),
        entry("n", "m1", third, json!({})),
        entry("m2", "n", "message", said("assistant")),
        entry("m3", "m2", "message", said("user")),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(project.log("s"), text).unwrap();
    project
}

#[test]
fn a_newer_version_is_refused_by_every_command() {
    let project = project(99, "custom");
    let before = std::fs::read(project.log("s")).unwrap();
    for command in COMMANDS {
        project.ctx(command).failure(3, "newer `ctx`");
    }
    project
        .ctx(&["sessions", "append", "s"])
        .input(message("user", "more").to_string())
        .failure(3, "newer `ctx`");
    for command in [&["doctor"][..], &["doctor", "--fix"]] {
        let (found, said) = project.ctx(command).ends(1);
        assert!(found.contains("99"), "{found}");
        assert!(said.contains("these need a person"), "{said}");
    }
    assert_eq!(std::fs::read(project.log("s")).unwrap(), before);
    assert!(!project.log("f").exists());
}

/// An entry type that came later, in a log whose header is as old as we are. Appending looks at the
/// ends of a log only, so it is not refused; everything that reads the log is.
#[test]
fn a_newer_entry_is_refused_by_whatever_reads_it() {
    let project = project(1, "diary");
    let before = std::fs::read(project.log("s")).unwrap();
    for command in COMMANDS {
        let (_, said) = project.ctx(command).ends(3);
        assert!(said.contains("unknown entry type `diary`"), "{said}");
        assert!(said.contains("session `s`"), "{said}");
    }
    for command in [&["doctor"][..], &["doctor", "--fix"]] {
        let (found, _) = project.ctx(command).ends(1);
        assert!(found.contains("unknown entry type `diary`"), "{found}");
        assert!(found.contains("line 3"), "{found}");
    }
    assert_eq!(std::fs::read(project.log("s")).unwrap(), before);
}

/// Damage beside it is no reason to rewrite what is not understood.
#[test]
fn a_damaged_log_of_a_newer_version_is_left_alone() {
    for (version, third) in [(99, "custom"), (1, "diary")] {
        let project = project(version, third);
        let mut log = std::fs::read_to_string(project.log("s")).unwrap();
        log.insert_str(log.find("{\"id\":\"m3\"").unwrap(), "rubbish\n");
        std::fs::write(project.log("s"), &log).unwrap();
        project.ctx(&["doctor", "--fix"]).ends(1);
        assert_eq!(std::fs::read_to_string(project.log("s")).unwrap(), log);
        let beside = std::fs::read_dir(project.log("s").parent().unwrap()).unwrap();
        assert!(
            beside.into_iter().all(|file| {
                let name = file.unwrap().file_name();
                !name.to_string_lossy().contains("bak")
            }),
            "a backup of what was not repaired"
        );
    }
}

/// A sound session beside it is repaired and read as ever.
#[test]
fn the_others_are_none_the_worse() {
    let project = project(99, "custom");
    project.say("t", &["one", "two"]);
    assert_eq!(project.entries("t").len(), 3);
    let mut log = std::fs::read_to_string(project.log("t")).unwrap();
    log.push_str("rubbish\n");
    std::fs::write(project.log("t"), log).unwrap();
    let (fixed, _) = project.ctx(&["doctor", "--fix"]).ends(1);
    assert!(fixed.contains("repaired; as it was:"), "{fixed}");
    assert_eq!(project.entries("t").len(), 3);
}
