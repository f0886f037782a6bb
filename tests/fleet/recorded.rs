//! The record of agents' work: the entries that their sessions have of it.

use serde_json::{Value, json};

use crate::fleet::scene::Daemon;

/// The messages of the agent's session.
fn messages(daemon: &Daemon) -> Vec<Value> {
    let session = daemon.show("bot")["sessionId"].as_str().unwrap().to_owned();
    let entries = daemon.project.entries(&session);
    let messages = entries.iter().filter(|entry| entry["type"] == "message");
    messages
        .map(|entry| entry["payload"]["message"].clone())
        .collect()
}

#[test]
fn what_commands_printed_is_in_the_log_whoever_ran_them() {
    let daemon = Daemon::start();
    daemon.agent("bot", "service");
    assert_eq!(
        daemon.prompt("bot", "work printf 'a b\\nc\\n'; exit 3"),
        "worked"
    );
    let messages = messages(&daemon);
    let results: Vec<(&Value, &Value)> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| (&message["tool_call_id"], &message["content"]))
        .collect();
    let (ours, theirs) = (json!("a b\nc"), json!("one\ntwo"));
    assert_eq!(results, [(&json!("w1"), &ours), (&json!("w2"), &theirs)]);
    let calls = messages
        .iter()
        .filter_map(|message| message["tool_calls"].as_array());
    let names: Vec<&str> = calls
        .flatten()
        .map(|call| call["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["shell", "mcp__shop__list__orders"]);
}

/// A turn that was called off is cancelled, whatever the agent says of it.
#[test]
fn a_turn_that_was_called_off_is_cancelled() {
    let daemon = Daemon::start();
    daemon.agent("bot", "service");
    for (n, reason) in ["end_turn", "refusal", "error"].into_iter().enumerate() {
        let waiting = daemon.ctx(&[
            "agent",
            "prompt",
            "bot",
            &format!("wait {reason}"),
            "--json",
        ]);
        let waiting = waiting.command().spawn().unwrap();
        daemon.logged("agent:prompted", n + 1);
        daemon.ctx(&["agent", "cancel", "bot"]).success();
        let output = waiting.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.contains(r#""stopReason":"cancelled""#),
            "{reason}: {text}"
        );
        assert_eq!(
            daemon.logged("agent:answered", n + 1)[n]["stopReason"],
            "cancelled"
        );
    }
    let session = daemon.show("bot")["sessionId"].as_str().unwrap().to_owned();
    let entries = daemon.project.entries(&session);
    let turns = entries
        .iter()
        .filter(|entry| entry["payload"]["kind"] == "acp_turn");
    let reasons: Vec<&Value> = turns.map(|entry| &entry["payload"]["stopReason"]).collect();
    assert_eq!(
        reasons,
        [
            &json!("cancelled"),
            &json!("cancelled"),
            &json!("cancelled")
        ]
    );
}
