//! An agent is told what the log says it was told, whenever it is new to its session.

use serde_json::{Value, json};

use crate::common::{Project, ROOT};
use crate::fleet::scene::Daemon;

/// The text that stood before a prompt, and what its session began with.
#[track_caller]
fn told(daemon: &Daemon) -> (String, Value) {
    let said = daemon.prompt("bot", "told");
    let said: Value = serde_json::from_str(&said).unwrap();
    let blocks = said["prompt"].as_array().unwrap();
    assert!(blocks.len() <= 1, "{said}");
    let block = blocks.first().and_then(Value::as_str).unwrap_or_default();
    (block.to_owned(), said["session"].clone())
}

fn again(daemon: &Daemon) {
    daemon.ctx(&["agent", "stop", "bot"]).success();
    daemon.ctx(&["agent", "start", "bot"]).success();
}

/// A daemon whose agents are told the rules in `rules.txt`, and an agent that loads its sessions.
fn with_rules(backend: &str) -> Daemon {
    let project = Project::new();
    project.write("rules.txt", "Rule one.");
    let providers = json!([{"name": "house", "command": ["cat", "rules.txt"]}]);
    project.write(
        "contexture.json",
        json!({"providers": providers}).to_string(),
    );
    project.ctx(&["trust", "--yes"]).success();
    let daemon = Daemon::over(project);
    let script = format!("{ROOT}/tests/fleet/agent.py");
    let create = [
        "agent",
        "create",
        "bot",
        "--archetype",
        "service",
        "--backend",
        backend,
    ];
    let command = ["--command", "python3", &script, "--load"];
    daemon.ctx(&[&create[..], &command].concat()).success();
    daemon.ctx(&["agent", "start", "bot"]).success();
    daemon
}

/// The entries of the agent's session, a word each; the sections that are said to be in the log, in order.
fn logged(daemon: &Daemon) -> (Vec<String>, Vec<Value>) {
    let session = daemon.show("bot")["sessionId"].as_str().unwrap().to_owned();
    let entries = daemon.project.entries(&session);
    let word = |entry: &Value| match entry["type"].as_str().unwrap() {
        "message" => entry["payload"]["message"]["role"]
            .as_str()
            .unwrap()
            .to_owned(),
        "custom" => entry["payload"]["kind"].as_str().unwrap().to_owned(),
        kind => kind.to_owned(),
    };
    let sections = entries.iter().filter(|entry| entry["type"] == "sections");
    (
        entries.iter().map(word).collect(),
        sections
            .map(|entry| entry["payload"]["sections"].clone())
            .collect(),
    )
}

#[test]
fn a_session_that_was_stopped_before_its_first_prompt_is_told_with_it() {
    let daemon = with_rules("scripted");
    again(&daemon);
    again(&daemon);
    // Nothing was told, and the log says so.
    assert_eq!(logged(&daemon).1, Vec::<Value>::new());
    let (block, _) = told(&daemon);
    assert!(
        block.contains("You are **bot**") && block.contains("Rule one."),
        "{block}"
    );
    assert!(block.contains("canvas_update"), "{block}");
    assert_eq!(told(&daemon).0, "", "it knows");
    again(&daemon);
    assert_eq!(told(&daemon).0, "", "its session was loaded, and knows");
    let (words, sections) = logged(&daemon);
    let of_turn = ["user", "assistant", "acp_turn"];
    let at = words.iter().position(|word| word == "sections").unwrap();
    assert_eq!(words[at + 1..at + 4], of_turn, "{words:?}");
    assert_eq!(sections.len(), 1);
}

#[test]
fn a_change_between_stop_and_start_is_told_and_logged_with_the_next_prompt() {
    let daemon = with_rules("scripted");
    assert!(told(&daemon).0.contains("Rule one."));
    daemon.project.write("rules.txt", "Rule two.");
    again(&daemon);
    assert_eq!(logged(&daemon).1.len(), 1, "it was not told yet");
    let (block, _) = told(&daemon);
    // The whole of it, which replaces what was said before.
    assert!(
        block.contains("Rule two.") && block.contains("You are **bot**"),
        "{block}"
    );
    let changed = &logged(&daemon).1[1];
    assert_eq!(changed.as_array().unwrap().len(), 1, "{changed}");
    assert_eq!(changed[0]["text"], "Rule two.");
    assert_eq!(told(&daemon).0, "");
    // What is gone is gone.
    daemon.project.write("rules.txt", "");
    again(&daemon);
    let (block, _) = told(&daemon);
    assert!(
        block.contains("You are **bot**") && !block.contains("Rule"),
        "{block}"
    );
    let gone = &logged(&daemon).1[2];
    assert_eq!(
        (&gone[0]["name"], &gone[0]["text"]),
        (&json!("house/system/0"), &json!(""))
    );
    let inspected = daemon.show("bot")["sessionId"].as_str().unwrap().to_owned();
    daemon.ctx(&["inspect", &inspected]).success();
}

/// A turn that failed or was called off counts as unheard: what it told may not have been taken in.
#[test]
fn a_turn_that_failed_told_nothing() {
    let daemon = with_rules("scripted");
    for (prompt, said) in [("fail", "it broke"), ("silent", "without an answer")] {
        let failed = daemon.ctx(&["agent", "prompt", "bot", prompt]);
        failed.failure(1, said);
        again(&daemon);
    }
    assert!(told(&daemon).0.contains("Rule one."));
    let (words, sections) = logged(&daemon);
    assert_eq!(sections.len(), 1, "the log says it once: {words:?}");
    assert_eq!(words.iter().filter(|word| *word == "acp_turn").count(), 3);
}

/// An agent that takes its context as its session begins has it from then on, also when the session is loaded.
#[test]
fn an_agent_that_is_told_at_the_beginning_is_told_there() {
    let daemon = with_rules("claude-code");
    assert_eq!(logged(&daemon).1.len(), 1);
    daemon.project.write("rules.txt", "Rule two.");
    again(&daemon);
    let (block, began) = told(&daemon);
    assert_eq!(block, "");
    let prompt = began["systemPrompt"]["append"].as_str().unwrap();
    assert!(
        prompt.contains("Rule two.") && prompt.contains("canvas_update"),
        "{prompt}"
    );
    assert_eq!(logged(&daemon).1[1][0]["text"], "Rule two.");
}

#[test]
fn tools_that_come_or_go_are_told_with_the_next_prompt() {
    let daemon = with_rules("scripted");
    told(&daemon);
    let session = daemon.show("bot")["sessionId"].clone();
    let look = json!({
        "name": "canvas_get", "description": "What is shown", "parameters": {"type": "object"},
        "rpcMethod": "internal.canvasGet", "scope": "service",
    });
    let change = json!({
        "agent": "bot", "sessionId": session, "reason": "a test", "add": [look], "remove": ["canvas_clear"],
    });
    daemon.call(&daemon.secret(), "session.changeTools", &change);
    let (block, _) = told(&daemon);
    assert!(
        block.contains("ctx tool call canvas_get") && !block.contains("canvas_clear"),
        "{block}"
    );
    let changed = &logged(&daemon).1[1];
    assert_eq!(changed.as_array().unwrap().len(), 1, "{changed}");
    assert!(changed[0]["text"].as_str().unwrap().contains("canvas_get"));
    assert_eq!(told(&daemon).0, "");
}
