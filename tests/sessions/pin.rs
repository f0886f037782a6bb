use serde_json::Value;

use crate::common::{Project, rule_of};

fn now(project: &Project) -> Value {
    project.ctx(&["inspect", "s", "--json"]).json()
}

#[test]
fn a_pin_brings_back_what_was_covered() {
    let project = Project::with_session("s");
    assert_eq!(rule_of(&now(&project), "e17"), "summarised");
    assert_eq!(
        project.ctx(&["sessions", "pin", "s", "e17"]).success(),
        "pinned: e17\n"
    );
    let pinned = now(&project);
    assert_eq!(rule_of(&pinned, "e17"), "pinned");
    let said = &project.entries("s");
    let entry = said.iter().find(|entry| entry["id"] == "e17").unwrap();
    let messages = pinned["modelMessages"].as_array().unwrap();
    let content = &entry["payload"]["message"]["content"];
    assert!(
        messages
            .iter()
            .any(|message| message["content"] == *content),
        "it is not there verbatim"
    );
    let last = project.entries("s").pop().unwrap();
    assert_eq!(last["type"], "pin");
    assert_eq!(last["payload"]["entryId"], "e17");
    assert_eq!(
        project.ctx(&["sessions", "unpin", "s", "e17"]).success(),
        "no longer pinned: e17\n"
    );
    assert_eq!(rule_of(&now(&project), "e17"), "summarised");
}

#[test]
fn json_names_the_entry_and_what_it_is_about() {
    let project = Project::with_session("s");
    for command in ["pin", "unpin"] {
        let done = project
            .ctx(&["sessions", command, "s", "e17", "--json"])
            .json();
        let last = project.entries("s").pop().unwrap();
        assert_eq!(last["type"], command);
        assert_eq!(done["id"], last["id"]);
        assert_eq!(done["entryId"], "e17");
    }
}

#[test]
fn what_is_not_there_cannot_be_pinned() {
    let project = Project::with_session("s");
    let before = std::fs::read(project.log("s")).unwrap();
    for command in ["pin", "unpin"] {
        project
            .ctx(&["sessions", command, "s", "e1"])
            .failure(3, "it could be ");
        project
            .ctx(&["sessions", command, "s", "nope"])
            .failure(3, "session `s` has no entry `nope`");
        project.ctx(&["sessions", command, "s"]).failure(2, "ENTRY");
    }
    assert_eq!(std::fs::read(project.log("s")).unwrap(), before);
}

/// A pin holds through a later compaction, or the build says that it cannot.
#[test]
fn what_is_pinned_outlives_a_compaction() {
    let project = Project::new();
    let session = crate::common::SESSION;
    project
        .ctx(&["sessions", "import", "s", session, "--no-requests"])
        .success();
    project.ctx(&["sessions", "pin", "s", "e09"]).success();
    let built = project
        .ctx(&["inspect", "s", "--budget", "4k", "--json"])
        .json();
    assert_eq!(built["compacted"], true);
    assert_eq!(rule_of(&built, "e09"), "pinned");
    project
        .ctx(&["inspect", "s", "--budget", "600"])
        .failure(4, "pinned");
}
