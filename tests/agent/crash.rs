//! `kill -9` in the middle of a run: nothing is lost, and no tool runs twice.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::scene::{Scene, says};
use crate::model_server::{Answer, ModelServer, Piece};

/// A model that has a line appended to a file with every step, without end.
fn restless() -> ModelServer {
    let count = std::sync::atomic::AtomicUsize::new(0);
    ModelServer::answering(move |request| {
        let n = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let body = String::from_utf8_lossy(&request.body);
        if body.contains("now stop") {
            return says("I stopped.");
        }
        let id: &'static str = Box::leak(format!("call_{n}").into_boxed_str());
        let command = format!("echo {id} >> ran.txt");
        Answer::Says(vec![Piece::Call(
            id,
            "exec_shell",
            json!({ "command": command }),
        )])
    })
}

#[test]
fn a_killed_run_goes_on_and_no_call_is_run_twice() {
    let scene = Scene::with(restless());
    let ran = scene.project.path().join("ran.txt");
    let mut lines = 0;
    for round in 0..8u64 {
        let run = scene.run("openai:m", &["go on", "--allow-all"]);
        let mut child = run.command().spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let wanted = lines + 2;
        while lines < wanted && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(3 + 5 * round));
            lines = std::fs::read_to_string(&ran)
                .unwrap_or_default()
                .lines()
                .count();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(lines >= wanted, "round {round}: {lines} lines");
    }
    scene
        .run("openai:m", &["now stop", "--allow-all"])
        .success();
    let text = std::fs::read_to_string(&ran).unwrap();
    let mut ids: Vec<&str> = text.lines().collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "a call ran twice: {text}");
    // What ran is in the log, each as a call; and every request can be made again.
    let log = std::fs::read_to_string(scene.project.log("s")).unwrap();
    for id in ids {
        assert!(log.contains(id), "{id} ran and is not in the log");
    }
    scene.verify();
    scene.ctx(&["doctor"]).success();
}

/// The lines of a file of the project's.
fn lines(scene: &Scene, file: &str) -> Vec<Value> {
    let path = scene.project.path().join(".contexture").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_run_killed_inside_a_tool_is_remembered_as_its_log_has_it() {
    let call = |id, command: &str| Piece::Call(id, "exec_shell", json!({ "command": command }));
    let scene = Scene::new([
        Answer::Says(vec![Piece::Text("I look."), call("a", "echo one")]),
        Answer::Says(vec![call("b", "touch began; sleep 600")]),
    ]);
    let run = scene.run("openai:m", &["look twice", "--allow-all"]);
    let mut child = run.command().spawn().unwrap();
    let began = scene.project.path().join("began");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !began.exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(began.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    // The log: what was asked, said and called, and the one result that there is.
    let log = scene.project.entries("s");
    let messages = log.iter().filter(|entry| entry["type"] == "message");
    let messages: Vec<&Value> = messages.map(|entry| &entry["payload"]["message"]).collect();
    let roles: Vec<&str> = messages
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    let said: Vec<(String, String)> = lines(&scene, "chats/s/history.jsonl")
        .iter()
        .map(|line| {
            (
                line["role"].as_str().unwrap().to_owned(),
                line["text"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    let text = |n: usize| messages[n]["content"].as_str().unwrap().to_owned();
    assert_eq!(
        said,
        [
            ("user".to_owned(), text(0)),
            ("assistant".to_owned(), text(1))
        ]
    );
    let memory = lines(&scene, "memory/agent-context/s.jsonl");
    assert_eq!(memory.len(), 1);
    assert_eq!(memory[0]["requestId"], log.last().unwrap()["runId"]);
    assert_eq!(memory[0]["userPreview"], "look twice");
    assert_eq!(
        memory[0]["toolCalls"],
        json!([{"tool": "exec_shell", "success": true}, {"tool": "exec_shell"}])
    );
}
