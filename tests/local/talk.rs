use serde_json::{Value, json};

use crate::local::Machine;

// needs: model
#[test]
fn it_answers_with_no_key_and_no_network_in_few_tokens() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let done = machine.run("s", &["What is the capital of France?"]);
    assert_eq!(done["ended"], "answered", "{done}");
    assert!(done["text"].as_str().unwrap().contains("Paris"), "{done}");
    let read = done["usage"]["inputTokens"].as_u64().unwrap();
    assert!(read < 400, "{read}: what a small model is told stays short");
    let receipt: Value = machine.ctx(&["inspect", "s", "--at", "0", "--json"]).json();
    let receipt = &receipt["receipt"];
    assert_eq!(
        receipt["tokenizer"],
        json!({"name": "local:smollm2", "exact": true})
    );
    assert_eq!(
        receipt["budget"]["used"], read,
        "the receipt counts what was read"
    );
    assert_eq!(
        receipt["budget"]["maxInputTokens"], 8192,
        "its window is the budget"
    );
    assert!(
        receipt.get("tools").is_none(),
        "a small model has no tools that nobody named"
    );
    let verified = machine.ctx(&["replay", "s", "--verify"]).success();
    assert!(verified.contains("1 request"), "{verified}");
}

// needs: model
#[test]
fn a_chat_reads_what_is_new_and_the_meter_says_so() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let said = machine
        .ctx(&["chat", "--session", "c"])
        .input("My name is Ada. Say hello.\nWhat is my name?\n/quit\n")
        .run();
    let told = String::from_utf8(said.stderr).unwrap() + &String::from_utf8(said.stdout).unwrap();
    let entries = machine.project.entries("c");
    let requests: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry["type"] == "request")
        .collect();
    assert_eq!(requests.len(), 2, "{told}");
    let usage = |n: usize| &requests[n]["payload"]["usage"];
    assert_eq!(usage(0)["prompt_tokens_details"]["cached_tokens"], 0);
    let cached = usage(1)["prompt_tokens_details"]["cached_tokens"]
        .as_u64()
        .unwrap();
    let first = usage(0)["prompt_tokens"].as_u64().unwrap();
    assert!(
        cached > first - 8,
        "{cached} of {first}: the first request was still there"
    );
    let steps = machine
        .ctx(&["replay", "c", "--verify", "--json"])
        .success();
    let second: Value = serde_json::from_str(steps.lines().nth(1).unwrap()).unwrap();
    assert_eq!(
        second["sharedPrefixTokens"], cached,
        "as the log alone predicts: {steps}"
    );
}

// needs: model
#[test]
fn it_calls_a_tool_that_was_named() {
    let Some(machine) = Machine::new() else {
        return;
    };
    // That it decides to is luck with a model of this size; that the call is well-formed is not.
    let body = json!({
        "messages": [{"role": "user", "content": "Send the user a greeting."}],
        "tools": [{"type": "function", "function": {"name": "chat_send", "description": "Says something.",
            "parameters": {"type": "object", "properties": {"text": {"type": "string", "maxLength": 40}}, "required": ["text"]}}}],
    });
    let counted = machine
        .ctx(&["tokens", "-", "--model", "local:smollm2", "--json"])
        .input(body.to_string());
    let counted: Value = counted.json();
    assert_eq!(counted["tokenizer"]["exact"], true, "{counted}");
    let done = machine.run("t", &["--allow", "chat_send", "Send me a greeting."]);
    let receipt: Value = machine.ctx(&["inspect", "t", "--at", "0", "--json"]).json();
    let tools = receipt["receipt"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1, "{receipt}");
    assert_eq!(tools[0]["origin"], "tool:chat_send");
    assert!(
        done["usage"]["inputTokens"].as_u64().unwrap() < 400,
        "{done}"
    );
}

// needs: model
#[test]
fn its_summaries_are_bounded_and_the_deterministic_one_stands_behind_it() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let texts: Vec<String> = (0..8)
        .map(|n| format!("{n}. The harbour was full of boats, and the tide was at {n} metres."))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    machine.project.say("long", &texts);
    let done = machine.run("long", &["--budget", "300", "--reserve", "32", "Say yes."]);
    let entries = machine.project.entries("long");
    let summary = entries
        .iter()
        .find(|entry| entry["type"] == "compaction_summary");
    let summary = summary.unwrap_or_else(|| panic!("{done}"));
    // By the model, or, where its words would not do, by the one that needs none; the log says which.
    let by = &summary["payload"]["strategy"];
    assert!(
        ["model", "extract"].contains(&by.as_str().unwrap_or_default()),
        "{summary}"
    );
    let asked = entries
        .iter()
        .find(|entry| entry["payload"]["kind"] == "summary_request");
    assert!(asked.is_some(), "the model was asked: {entries:?}");
    machine.ctx(&["replay", "long", "--verify"]).success();
}
