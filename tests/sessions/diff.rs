use serde_json::{Value, json};

use crate::common::{Project, id, message};

fn diff(project: &Project, a: &str, b: &str) -> Value {
    project.ctx(&["diff", "s", a, b, "--json"]).json()
}

#[test]
fn a_compaction_is_named_with_what_it_cost() {
    let project = Project::with_session("s");
    let compaction = id(&project.entry_of("s", "compaction_summary"));
    let found = diff(&project, "13", "14");
    let broken = &found["prefix"]["brokenBy"];
    assert_eq!(broken["component"], "compaction_summary");
    assert_eq!(broken["cause"], compaction);
    assert_eq!(broken["origin"], "entry:e06");
    assert_eq!(found["added"][0]["origin"], format!("entry:{compaction}"));
    assert_eq!(found["removed"][0]["origin"], "entry:e06");
    let number = |value: &Value| value.as_u64().unwrap();
    assert!(number(&found["rebilledTokens"]) > 0);
    assert_eq!(
        number(&found["prefix"]["sharedTokens"])
            + number(&found["rebilledTokens"])
            + number(&found["newTokens"]),
        number(&found["b"]["inputTokens"])
    );
    let text = project.ctx(&["diff", "s", "13", "14"]).success();
    let rebilled = format!("billed again {}", found["rebilledTokens"]);
    for needle in [
        "request 13",
        "request 14",
        "the prefix broke",
        &compaction,
        &rebilled,
    ] {
        assert!(text.contains(needle), "{needle} is not in {text}");
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
}

#[test]
fn a_turn_only_adds() {
    let project = Project::with_session("s");
    let found = diff(&project, "3", "4");
    assert_eq!(found["removed"], json!([]));
    assert_eq!(found["changed"], json!([]));
    assert_eq!(found["rebilledTokens"], 0);
    assert_eq!(found["prefix"]["brokenBy"], json!(null));
    assert_eq!(found["prefix"]["sharedTokens"], found["a"]["inputTokens"]);
    let text = project.ctx(&["diff", "s", "3", "4"]).success();
    assert!(
        text.contains("the prefix held: only the end grew"),
        "{text}"
    );
    // Backwards, what was added is what is gone.
    let back = diff(&project, "4", "3");
    assert_eq!(back["removed"], found["added"]);
    assert_eq!(back["a"], found["b"]);
    assert_eq!(back["b"], found["a"]);
    let same = diff(&project, "4", "4");
    for list in ["added", "removed", "changed"] {
        assert_eq!(same[list], json!([]), "{list}");
    }
    assert_eq!(same["newTokens"], 0);
}

#[test]
fn entries_and_numbers_name_the_same() {
    let project = Project::with_session("s");
    let entries = project.entries("s");
    let requests: Vec<String> = entries
        .iter()
        .filter(|entry| entry["type"] == "request")
        .map(id)
        .collect();
    assert_eq!(
        diff(&project, "2", "9"),
        diff(&project, &requests[2], &requests[9][..7])
    );
    // What stands at an entry that is no request is what would be made there.
    let found = diff(&project, "e05", "e10");
    let origins: Vec<&Value> = found["added"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["origin"])
        .collect();
    assert_eq!(
        origins,
        [
            "entry:e06",
            "entry:e07",
            "entry:e08",
            "entry:e09",
            "entry:e10"
        ]
    );
}

#[test]
fn an_unknown_number_says_which_there_are() {
    let project = Project::with_session("s");
    for (a, b) in [("0", "16"), ("16", "0")] {
        let error = project
            .ctx(&["diff", "s", a, b])
            .failure_json(2, "has neither a request nor an entry `16`");
        assert_eq!(error["hint"], "its requests are 0 to 15");
    }
    project
        .ctx(&["diff", "s", "0", "e1"])
        .failure(3, "it could be ");
    project.ctx(&["diff", "s", "0"]).failure(2, "<B>");
}

#[test]
fn an_undone_compaction_is_named_as_well() {
    let project = Project::with_session("s");
    let before = id(project.entries("s").last().unwrap());
    project.ctx(&["sessions", "undo", "s"]).success();
    let revert = id(project.entries("s").last().unwrap());
    let found = diff(&project, &before, &revert);
    assert_eq!(found["prefix"]["brokenBy"]["component"], "revert");
    assert_eq!(found["prefix"]["brokenBy"]["cause"], revert);
}

#[test]
fn a_session_without_records_has_those_that_would_have_been_made() {
    let project = Project::new();
    project.say("s", &["one", "two", "three", "four"]);
    let found = diff(&project, "0", "1");
    assert_eq!(found["a"]["messageCount"], 1);
    assert_eq!(found["b"]["messageCount"], 3);
    project
        .ctx(&["sessions", "append", "empty"])
        .input(message("user", "hi").to_string())
        .success();
    project
        .ctx(&["diff", "empty", "0", "1"])
        .failure(2, "it has no requests yet");
}
