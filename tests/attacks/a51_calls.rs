//! 51: more tool calls in one reply than anybody runs. The first 128 run, the next one is answered with an error
//! that speaks for the rest, and the rest is not kept.

use serde_json::{Value, json};

use crate::attacks::agent::{Scene, says};
use crate::model_server::{Answer, Piece};

const MAX_CALLS: usize = 128;

fn many(calls: usize) -> Answer {
    // Two calls that are the same in all are one call.
    let call = |n| Piece::Call("c", "memory_read", json!({ "n": n }));
    Answer::Says((0..calls).map(call).collect())
}

fn messages(scene: &Scene) -> Vec<Value> {
    let entries = scene.project.entries("s").into_iter();
    entries
        .filter(|entry| entry["type"] == "message")
        .map(|entry| entry["payload"]["message"].clone())
        .collect()
}

#[test]
fn thousands_of_calls_are_neither_run_nor_kept() {
    for (model, calls) in [
        ("openai:m", 20_000),
        ("anthropic:m", 2_000),
        ("openai-responses:m", 2_000),
    ] {
        let scene = Scene::new([many(calls), says("enough")]);
        let began = std::time::Instant::now();
        let lines = scene.run(model, &["go", "--json"]).lines();
        assert!(
            began.elapsed().as_secs() < 60,
            "{model}: {:?}",
            began.elapsed()
        );
        assert_eq!(lines.last().unwrap()["text"], "enough", "{model}");
        let finished = |line: &&Value| line["type"] == "tool" && line["status"] == "finished";
        assert_eq!(lines.iter().filter(finished).count(), MAX_CALLS, "{model}");
        let told = |line: &Value| {
            let text = line["text"].as_str().unwrap_or_default();
            line["type"] == "notice" && text.contains("more than 128 calls")
        };
        assert!(lines.iter().any(told), "{model}");
        let all = messages(&scene);
        let calls = all
            .iter()
            .find_map(|message| message["tool_calls"].as_array());
        assert_eq!(calls.map(Vec::len), Some(MAX_CALLS + 1), "{model}");
        let results: Vec<&Value> = all.iter().filter(|one| one["role"] == "tool").collect();
        assert_eq!(results.len(), MAX_CALLS + 1, "{model}");
        let refused = |one: &&&Value| {
            let text = one["content"].as_str().unwrap_or_default();
            one["isError"] == true && text.contains("at most 128 calls are run")
        };
        assert_eq!(results.iter().filter(refused).count(), 1, "{model}");
        // What was sent next is what a provider takes, and can be made again.
        let sent = scene.server.seen()[1].json();
        let text = sent.to_string();
        assert!(text.contains("at most 128 calls are run"), "{model}");
        scene.verify();
    }
}

#[test]
fn as_many_as_are_run_are_run() {
    let scene = Scene::new([many(MAX_CALLS), says("done")]);
    let lines = scene.run("openai:m", &["go", "--json"]).lines();
    let finished = |line: &&Value| line["type"] == "tool" && line["status"] == "finished";
    assert_eq!(lines.iter().filter(finished).count(), MAX_CALLS);
    assert!(!lines.iter().any(|line| line["type"] == "notice"));
}
