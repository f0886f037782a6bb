use std::io::Write;

use serde_json::json;

use crate::common::Project;

#[test]
fn a_sound_log_is_told_in_a_line() {
    let project = Project::new();
    // What stands below is said of the machine.
    let first = || {
        let said = project.ctx(&["doctor"]).success();
        said.lines().next().unwrap().to_owned()
    };
    assert_eq!(
        first(),
        "0 sessions, 0 chats, 0 execution memories: 0 sound entries"
    );
    project.say("s", &["one", "two"]);
    assert_eq!(
        first(),
        "1 session, 0 chats, 0 execution memories: 3 sound entries"
    );
    let report = project.ctx(&["doctor", "--json"]).json();
    assert_eq!(
        (&report["streams"], &report["repaired"]),
        (
            &json!([{ "stream": { "kind": "session", "key": "s" }, "entries": 3, "findings": [] }]),
            &json!([])
        )
    );
}

#[test]
fn damage_is_told_repaired_and_kept() {
    let project = Project::with_session("s");
    let log = std::fs::read_to_string(project.log("s")).unwrap();
    let mut lines: Vec<&str> = log.lines().collect();
    lines.insert(7, "not a line of ours");
    let damaged = format!("{}\n", lines.join("\n"));
    std::fs::write(project.log("s"), &damaged).unwrap();

    let (found, said) = project.ctx(&["doctor"]).ends(1);
    assert!(found.contains("session `s`, line 8"), "{found}");
    assert!(found.contains("--fix: the line is taken out"), "{found}");
    assert!(said.contains("1 problem found"), "{said}");
    assert!(said.contains("`ctx doctor --fix` repairs them"), "{said}");
    let (found, said) = project.ctx(&["doctor", "--json"]).ends(1);
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["streams"][0]["findings"][0]["line"], 8);
    assert_eq!(
        found["streams"][0]["findings"][0]["remedy"],
        "the line is taken out"
    );
    let last: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "Unhealthy");
    assert_eq!(std::fs::read_to_string(project.log("s")).unwrap(), damaged);

    let fixed = project.ctx(&["doctor", "--fix", "--json"]).json();
    assert_eq!(fixed["streams"][0]["findings"], json!([]));
    assert_eq!(fixed["repaired"][0]["findings"][0]["line"], 8);
    let backup = fixed["repaired"][0]["backup"].as_str().unwrap();
    let backup = project.path().join(backup);
    assert_eq!(std::fs::read_to_string(backup).unwrap(), damaged);
    assert_eq!(std::fs::read_to_string(project.log("s")).unwrap(), log);
    project.ctx(&["replay", "s", "--verify"]).success();
}

/// A tail that was never acknowledged is no damage to the reader, and gone with the next append.
#[test]
fn a_cut_tail_is_healed_by_the_next_append() {
    let project = Project::new();
    project.say("s", &["one", "two"]);
    let mut log = std::fs::OpenOptions::new()
        .append(true)
        .open(project.log("s"))
        .unwrap();
    log.write_all(b"{\"id\":\"cut\",\"type\":\"cus").unwrap();
    assert_eq!(project.entries("s").len(), 3);
    let (_, said) = project
        .ctx(&["sessions", "append", "s"])
        .input("{\"role\":\"user\",\"content\":\"three\"}")
        .ends(0);
    assert!(said.contains("the last append was cut off"), "{said}");
    assert_eq!(project.entries("s").len(), 4);
    project.ctx(&["doctor"]).success();
}
