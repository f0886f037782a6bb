//! The data flow of spec 001 as a user sees it: a run with a tool, and a second one that loads what the first said and
//! did.

use serde_json::{Value, json};

use crate::agent::scene::{Scene, calls, says};
use crate::model_server::{Answer, Piece};

#[test]
fn a_second_run_loads_what_the_first_said_and_did() {
    let scene = Scene::new([
        calls("c1", "exec_shell", json!({"command": "echo 4711"})),
        says("The number is 4711."),
        Answer::Says(vec![
            Piece::Call("c2", "chat_load_history", json!({"count": 10})),
            Piece::Call("c3", "agent_load_context", json!({"count": 5})),
        ]),
        says("Loaded."),
    ]);
    let first = ["find the number", "--json", "--allow", "exec_shell"];
    let steps = scene.run("openai:m", &first).lines();
    // People get a summary of a command, and the text of a step.
    let of = |kind: &str| {
        steps
            .iter()
            .find(|step| step["type"] == kind)
            .unwrap()
            .clone()
    };
    let summary = of("step_finish")["tools"][0].as_str().unwrap().to_owned();
    assert!(
        summary.starts_with("exec_shell: ") && summary.contains("4711"),
        "{summary}"
    );
    assert_eq!(of("assistant")["text"], "The number is 4711.");
    scene.run("openai:m", &["what was it?", "--json"]).success();

    let body: Value = serde_json::from_str(&scene.sent(3)).unwrap();
    let messages = body["messages"].as_array().unwrap();
    let text = |at: usize| messages[at]["content"].as_str().unwrap_or_default();
    let at = |role: &str, part: &str| {
        let found = messages
            .iter()
            .enumerate()
            .filter(|(n, message)| message["role"] == role && text(*n).contains(part));
        let found: Vec<usize> = found.map(|(n, _)| n).collect();
        assert_eq!(found.len(), 1, "{role} {part}: {found:?}");
        found[0]
    };
    // The user's words stay as they are; what was loaded stands before them, the system's first.
    let user = at("user", "what was it?");
    assert_eq!(text(user), "what was it?");
    let history = at("assistant", "find the number");
    let memory = at("system", "exec_shell worked");
    assert_eq!((memory, history), (user - 2, user - 1));
    assert!(text(history).contains("The number is 4711."));
    for loaded in [memory, history] {
        assert!(!text(loaded).contains("what was it?"), "{}", text(loaded));
    }
    let memory = scene
        .project
        .path()
        .join(".contexture/memory/agent-context/s.jsonl");
    let memory = std::fs::read_to_string(memory).unwrap();
    let runs: Vec<Value> = memory
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0]["userPreview"], "find the number");
    assert_eq!(runs[0]["outputPreview"], "The number is 4711.");
    assert_eq!(
        runs[0]["toolCalls"],
        json!([{"tool": "exec_shell", "success": true}])
    );
    scene.verify();
}
