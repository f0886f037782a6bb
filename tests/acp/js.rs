//! The official SDK for JavaScript as the host.

use serde_json::{Value, json};

use crate::acp::scene::{Scene, calls, counterparts, says};
use crate::common::ROOT;
use crate::model_server::{Answer, Piece};

// needs: sdks
#[test]
fn the_javascript_sdk_takes_all_that_we_say() {
    let Some(folder) = counterparts() else { return };
    let sdk = folder.join("node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js");
    if !sdk.is_file() {
        eprintln!("skipped: the SDK is not installed; ./test does that");
        return;
    }
    let scene = Scene::new([
        Answer::Says(vec![
            Piece::Thinking("They want a file."),
            Piece::Text("Making it."),
            Piece::Call("c1", "exec_shell", json!({"command": "echo hi > made.txt"})),
        ]),
        says("Made."),
        Answer::Stalls(vec![Piece::Text("A long story begins")], 2),
        calls("c2", "exec_shell", json!({"command": "cat made.txt"})),
        says("It says hi."),
    ]);
    let script = format!("{ROOT}/tests/counterparts/acp_host.mjs");
    let command = scene
        .ctx(&[
            "acp",
            "--model",
            "openai:m",
            "--base-url",
            &scene.server.url,
        ])
        .command();
    let mut node = std::process::Command::new("node");
    node.arg(script).arg(&sdk).arg(scene.project.path());
    node.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => node.env(name, value),
            None => node.env_remove(name),
        };
    }
    let output = node.current_dir(scene.project.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // The SDK checks each message against its schema, and says what it does not take.
    assert!(!said.to_lowercase().contains("invalid"), "{said}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["initialized"]["agentInfo"]["name"], "contexture");
    assert_eq!(
        seen["stopReasons"],
        json!(["end_turn", "cancelled", "end_turn"])
    );
    assert_eq!(seen["asked"], 2);
    let text = seen["text"].as_str().unwrap();
    assert!(text.starts_with("Making it.Made.A long"), "{text}");
    let loaded: Vec<&str> = seen["loaded"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kind| kind.as_str().unwrap())
        .collect();
    assert!(loaded.contains(&"user_message_chunk") && loaded.contains(&"tool_call_update"));
    assert!(scene.project.path().join("made.txt").is_file());
}
