//! `--model local:NAME` where requests are only built: its window, its own count, and an error for a name that there is
//! not.

use serde_json::Value;

use crate::common::SESSION;
use crate::local::Machine;

// needs: model
#[test]
fn commands_that_build_use_its_window_and_its_count() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let local = |args: &[&str]| machine.ctx(&[args, &["--model", "local:smollm2"]].concat());
    machine.ctx(&["sessions", "import", "s", SESSION]).success();
    let exact = |result: &Value| {
        let receipt = &result["receipt"];
        assert_eq!(receipt["tokenizer"]["name"], "local:smollm2");
        assert_eq!(receipt["tokenizer"]["exact"], true);
        assert_eq!(receipt["budget"]["maxInputTokens"], 8_192);
        receipt["budget"]["used"].as_u64().unwrap()
    };
    let built = exact(&local(&["build", SESSION, "--json"]).json());
    assert!(built <= 8_192);
    exact(&local(&["build", SESSION, "--json", "--budget", "100k"]).json());
    exact(&local(&["inspect", "s", "--json"]).json());
    let smaller = local(&["build", SESSION, "--json", "--budget", "3k"]).json();
    assert_eq!(smaller["receipt"]["budget"]["maxInputTokens"], 3_000);
    for what in ["s", SESSION] {
        for row in local(&["replay", what, "--json", "--budget", "100k"]).lines() {
            assert!(row["inputTokens"].as_u64() <= Some(8_192), "{row}");
        }
    }
    let short = "{\"role\":\"user\",\"content\":\"What is the capital of France?\"}\n";
    let count = local(&["tokens", "--json"]).input(short).json();
    assert_eq!(
        (&count["window"], &count["tokenizer"]["exact"]),
        (&8_192.into(), &true.into())
    );
    let one = local(&["build", "--json"]).input(short).json();
    assert_eq!(one["stats"]["inputTokens"], count["tokens"]);
}

#[test]
fn a_local_model_that_there_is_not_is_an_error() {
    let project = crate::common::Project::with_session("s");
    let models = project.path().join("models");
    for args in [
        &["build", SESSION][..],
        &["inspect", "s"],
        &["inspect", "s", "--at", "3"],
        &["diff", "s", "0", "1"],
        &["replay", "s"],
        &["replay", "s", "--verify"],
        &["replay", SESSION],
        &["tokens", SESSION],
        &["run", "hi"],
    ] {
        let ctx = |model| {
            let args = [args, &["--model", model]].concat();
            project
                .ctx(&args)
                .env("CONTEXTURE_MODELS", models.to_str().unwrap())
        };
        let error = ctx("local:smollm").failure_json(2, "there is no model `smollm`");
        assert!(
            error["hint"]
                .as_str()
                .unwrap()
                .contains("did you mean `smollm2`?"),
            "{error}"
        );
        if args[0] != "run" {
            let error = ctx("local:smollm2").failure_json(2, "there is no model `smollm2`");
            assert!(
                error["hint"]
                    .as_str()
                    .unwrap()
                    .contains("ctx model pull smollm2"),
                "{error}"
            );
        }
    }
}
