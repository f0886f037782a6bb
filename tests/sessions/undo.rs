use serde_json::{Value, json};

use crate::common::{Project, id, origins, rule_of};

/// The request as it would be made now, with all the room in the world.
fn now(project: &Project, session: &str) -> Value {
    project.ctx(&["inspect", session, "--json"]).json()
}

#[test]
fn a_compaction_is_undone_and_what_it_covered_is_back() {
    let project = Project::with_session("s");
    let compaction = id(&project.entry_of("s", "compaction_summary"));
    let compacted = now(&project, "s");
    assert_eq!(rule_of(&compacted, &compaction), "summary");
    assert_eq!(rule_of(&compacted, "e09"), "summarised");
    assert_eq!(
        project.ctx(&["sessions", "undo", "s"]).success(),
        format!("undone: the compaction {compaction}\n")
    );
    let whole = now(&project, "s");
    assert_eq!(rule_of(&whole, "e09"), "kept");
    assert!(!origins(&whole, "items").contains(&format!("entry:{compaction}")));
    // Undoing is an entry, and can be undone by its name.
    let revert = id(project.entries("s").last().unwrap());
    assert_eq!(
        project.ctx(&["sessions", "undo", "s", &revert]).success(),
        format!("undone: the undoing {revert}\n")
    );
    let again = now(&project, "s");
    assert_eq!(again["receipt"]["digest"], compacted["receipt"]["digest"]);
    // It holds again, so it is what is undone when nothing is named.
    let undone = project.ctx(&["sessions", "undo", "s", "--json"]).json();
    assert_eq!(undone["entryId"], compaction);
    assert_eq!(undone["id"], project.entries("s").last().unwrap()["id"]);
    assert_eq!(
        now(&project, "s")["receipt"]["digest"],
        whole["receipt"]["digest"]
    );
    let error = project
        .ctx(&["sessions", "undo", "s"])
        .failure_json(2, "session `s` has no compaction or mask to undo");
    assert!(error["hint"].as_str().unwrap().contains("name a message"));
}

#[test]
fn a_mask_is_undone_before_the_compaction_behind_it() {
    let project = Project::with_session("s");
    let mask =
        json!({ "id": "m1", "type": "mask", "payload": { "entryIds": ["e44"], "reason": "long" } });
    project
        .ctx(&["sessions", "append", "s"])
        .input(mask.to_string())
        .success();
    assert_eq!(rule_of(&now(&project, "s"), "e44"), "masked");
    assert_eq!(
        project.ctx(&["sessions", "undo", "s"]).success(),
        "undone: the mask m1\n"
    );
    assert_eq!(rule_of(&now(&project, "s"), "e44"), "kept");
    let next = project.ctx(&["sessions", "undo", "s"]).success();
    assert!(next.starts_with("undone: the compaction"), "{next}");
}

#[test]
fn back_to_a_message_leaves_out_what_came_after() {
    let project = Project::with_session("s");
    let before: Vec<Value> = project.entries("s");
    let words = project.ctx(&["sessions", "undo", "s", "e17"]).success();
    assert_eq!(words, "undone: everything after e17\n");
    let back = now(&project, "s");
    // As it was when e17 was the last: the compaction came later.
    let then = project
        .ctx(&["inspect", "s", "--at", "e17", "--json"])
        .json();
    assert_eq!(back["receipt"]["digest"], then["receipt"]["digest"]);
    assert_eq!(rule_of(&back, "e09"), "kept");
    assert_eq!(rule_of(&back, "e18"), "reverted");
    // What was undone with the rest does not hold any more.
    project
        .ctx(&["sessions", "undo", "s"])
        .failure(2, "no compaction or mask to undo");
    // Nothing left the log.
    assert_eq!(project.entries("s")[..before.len()], before);
    assert_eq!(project.entries("s").len(), before.len() + 1);
}

#[test]
fn what_cannot_be_undone_is_refused_and_nothing_is_written() {
    let project = Project::with_session("s");
    let before = std::fs::read(project.log("s")).unwrap();
    project
        .ctx(&["sessions", "undo", "s", "e03"])
        .failure(3, "a tools cannot be reverted");
    project
        .ctx(&["sessions", "undo", "s", "e2"])
        .failure(3, "has no entry `e2`; it could be");
    project
        .ctx(&["sessions", "undo", "s", "zz"])
        .failure(3, "has no entry `zz`");
    assert_eq!(std::fs::read(project.log("s")).unwrap(), before);
}

#[test]
fn undo_in_a_fork_leaves_the_parent_as_it_is() {
    let project = Project::with_session("s");
    let before = now(&project, "s");
    project.ctx(&["sessions", "fork", "s", "f"]).success();
    project.ctx(&["sessions", "undo", "f"]).success();
    assert_eq!(rule_of(&now(&project, "f"), "e09"), "kept");
    assert_eq!(now(&project, "s"), before);
}
