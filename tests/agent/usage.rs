//! What is wrong is said, with the code that scripts rely on.

use crate::agent::scene::{Scene, says};
use crate::model_server::Answer;

#[test]
fn wrong_usage_names_the_remedy() {
    let scene = Scene::new([]);
    scene
        .ctx(&["run", "hello", "--model", "nobody:m"])
        .failure(2, "names no provider");
    scene
        .ctx(&["run", "  ", "--model", "openai:m"])
        .failure(2, "there is no task");
    scene
        .ctx(&[
            "run",
            "hello",
            "--model",
            "openai:m",
            "--base-url",
            "http://evil.example/v1",
        ])
        .failure(2, "http");
    scene
        .ctx(&[
            "run",
            "hello",
            "--session",
            "../../x",
            "--model",
            "openai:m",
        ])
        .failure(3, "cannot be a key");
}

#[test]
fn a_model_that_fails_is_said_without_the_key() {
    let body = r#"{"error":{"message":"Incorrect API key provided: sk-of-the-tests-1234567890","code":"invalid_api_key"}}"#;
    let scene = Scene::new([Answer::Status(401, vec![], body.to_owned())]);
    let (stdout, stderr) = scene.run("openai:m", &["hello", "--json"]).ends(1);
    assert!(
        !stdout.contains("sk-of-the-tests") && !stderr.contains("sk-of-the-tests"),
        "{stderr}"
    );
    let last: serde_json::Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
    assert!(
        last["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("key in the environment"),
        "{last}"
    );
    let done: serde_json::Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!(done["ended"], "failed");
    scene.verify();
}

#[test]
fn what_cannot_fit_is_exit_4_and_nothing_is_sent() {
    let scene = Scene::new([says("no")]);
    let long = "word ".repeat(5_000);
    scene
        .run("openai:m", &["-", "--budget", "2k"])
        .input(long)
        .failure(4, "");
    assert!(scene.server.seen().is_empty());
}

#[test]
fn the_answer_goes_to_standard_output_and_the_rest_does_not() {
    let scene = Scene::new([says("Forty-two.")]);
    let (stdout, stderr) = scene.run("openai:m", &["-"]).input("How much?").ends(0);
    assert_eq!(stdout, "Forty-two.\n");
    assert!(stderr.contains("ctx inspect s"), "{stderr}");
    assert!(scene.sent(0).contains("How much?"));
}

#[test]
fn the_step_limit_is_a_failure_that_says_how_to_go_on() {
    let scene = Scene::new([
        crate::agent::scene::calls("a", "context_recall", serde_json::json!({})),
        says("never"),
    ]);
    let (_, stderr) = scene.run("openai:m", &["go", "--max-steps", "1"]).ends(1);
    assert!(stderr.contains("--max-steps"), "{stderr}");
    assert_eq!(scene.server.seen().len(), 1);
}

#[test]
fn a_build_can_have_its_summary_written_by_a_model() {
    let text = "Questions on the harbour, its cranes and its ships (and other harbours): nothing moved, nothing is open.";
    let scene = Scene::new([says(text)]);
    let config = serde_json::json!({"baseUrl": scene.server.url});
    scene.project.write("contexture.json", config.to_string());
    let mut messages = Vec::new();
    for n in 0..40 {
        let user = format!("Question {n}: what of the harbour, its cranes and its ships?");
        let reply = format!("Answer {n}: they are as they were, and nothing moved.");
        messages.push(serde_json::json!({"role": "user", "content": user}));
        messages.push(serde_json::json!({"role": "assistant", "content": reply}));
    }
    messages.push(serde_json::json!({"role": "user", "content": "And now?"}));
    let input = serde_json::Value::Array(messages).to_string();
    let args = [
        "build",
        "--budget",
        "1500",
        "--compactor",
        "model",
        "--json",
    ];
    let build = |more: &[&str]| {
        let all = [args.as_slice(), more].concat();
        let run = scene.ctx(&all).env("CONTEXTURE_TRUST", "1");
        run.input(input.clone())
    };
    build(&[]).failure(2, "needs a model");
    let built = build(&["--model", "openai:gpt-4o"]).json();
    let made = &built["compactionSummaryEntry"]["payload"];
    assert_eq!(made["strategy"], "model", "{made}");
    assert!(made["summary"].as_str().unwrap().contains("harbours"));
    assert!(built["stats"]["inputTokens"].as_u64().unwrap() <= 1_500);
}
