//! `kill -9` in the middle of a run: nothing is lost, and no tool runs twice.

use std::time::{Duration, Instant};

use serde_json::json;

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
