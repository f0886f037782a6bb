use serde_json::Value;
use sha2::Digest;

use crate::common::{Project, SESSION, id, message};

fn requests(project: &Project, session: &str) -> Vec<Value> {
    let entries = project.entries(session).into_iter();
    entries.filter(|entry| entry["type"] == "request").collect()
}

#[test]
fn a_request_of_the_past_has_the_digest_it_had() {
    let project = Project::with_session("s");
    let requests = requests(&project, "s");
    assert_eq!(requests.len(), 16);
    for (number, request) in requests.iter().enumerate().step_by(5) {
        for at in [id(request), number.to_string()] {
            let shown = project.ctx(&["inspect", "s", "--at", &at, "--json"]).json();
            assert_eq!(
                shown["receipt"]["digest"], request["payload"]["digest"],
                "request {number} at {at}"
            );
            assert_eq!(
                shown["stats"]["inputTokens"],
                request["payload"]["inputTokens"]
            );
        }
        // The bytes themselves, too.
        let args = ["inspect", "s", "--at", &id(request), "--format", "openai"];
        let body = project.ctx(&args).run().stdout;
        let hash = sha2::Sha256::digest(&body);
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(request["payload"]["digest"], format!("sha256:{hex}"));
    }
}

#[test]
fn at_an_entry_it_is_what_would_have_been_sent_then() {
    let project = Project::with_session("s");
    let args = ["inspect", "s", "--at", "e09", "--json"];
    let then = project.ctx(&args).json();
    let log = project.ctx(&["sessions", "show", "s", "--json"]).success();
    let end = log.find("\"id\":\"e09\"").unwrap();
    let line_end = end + log[end..].find('\n').unwrap() + 1;
    let built = project
        .ctx(&["build", "-", "--json"])
        .input(&log[..line_end])
        .json();
    assert_eq!(then, built);
    project
        .ctx(&["inspect", "s", "--at", "e0"])
        .failure(3, "it could be ");
    project
        .ctx(&["inspect", "s", "--at", "nowhere"])
        .failure(3, "session `s` has no entry `nowhere`");
    let stderr = project
        .ctx(&["inspect", "s", "--at", "16"])
        .failure(2, "session `s` has neither a request nor an entry `16`");
    assert!(stderr.contains("its requests are 0 to 15"), "{stderr}");
}

#[test]
fn the_view_names_the_session_and_the_point() {
    let project = Project::with_session("s");
    let now = project.ctx(&["inspect", "s"]).success();
    let head = now.lines().next().unwrap();
    assert!(head.starts_with(" s ") && head.contains("exact"), "{head}");
    for needle in ["of 128,000 tokens", "summary", "left out", "summarised"] {
        assert!(now.contains(needle), "{needle} is not in {now}");
    }
    let then = project.ctx(&["inspect", "s", "--at", "e09"]).success();
    assert!(then.starts_with(" s at e09 "), "{then}");
    assert!(!then.contains("summarised"));
    assert!(
        now.lines()
            .chain(then.lines())
            .all(|line| line.chars().count() <= 100)
    );
    // Looking changes nothing.
    assert_eq!(project.entries("s").len(), 62);
}

#[test]
fn a_session_without_records_has_those_that_would_have_been_made() {
    let project = Project::with_session("with");
    project
        .ctx(&["sessions", "import", "without", SESSION, "--no-requests"])
        .success();
    let digest = |session: &str, at: &str| {
        let args = ["inspect", session, "--at", at, "--budget", "4k", "--json"];
        project.ctx(&args).json()["receipt"]["digest"].clone()
    };
    for number in ["0", "7", "15"] {
        assert_eq!(
            digest("with", number),
            digest("without", number),
            "{number}"
        );
    }
    let empty = Project::new();
    empty.say("s", &["hi"]);
    empty
        .ctx(&["inspect", "s", "--at", "0"])
        .failure(2, "it has no requests yet");
}

#[test]
fn flags_beat_the_project_and_the_wire_is_a_choice() {
    let project = Project::new();
    project
        .ctx(&["sessions", "append", "s"])
        .input(format!("{}\n", message("user", &"word ".repeat(3_000))))
        .success();
    project.write("contexture.json", r#"{"context":{"maxInputTokens":2000}}"#);
    project.ctx(&["inspect", "s"]).failure(4, "--budget");
    let shown = project
        .ctx(&["inspect", "s", "--budget", "9k", "--json"])
        .json();
    assert_eq!(shown["receipt"]["budget"]["maxInputTokens"], 9_000);
    let args = ["inspect", "s", "--budget", "9k", "--format", "anthropic"];
    let body = project.ctx(&args).json();
    assert_eq!(body["messages"][0]["content"][0]["type"], "text");
}
