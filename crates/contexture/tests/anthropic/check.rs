//! The rules that every body obeys. Knows the API, and nothing of the code under test.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// Holds a body against every rule but its size.
#[track_caller]
pub fn check_body(bytes: &[u8]) {
    let value: Value = serde_json::from_slice(bytes).unwrap();
    assert_eq!(value.to_string().len(), bytes.len(), "not compact");
    let body = value.as_object().unwrap();
    check_order(body);

    let mut marks = check_tools(body);
    if let Some(system) = body.get("system") {
        let system = system.as_array().unwrap();
        assert!(!system.is_empty());
        for block in system {
            assert_eq!(block["type"], "text");
            marks += check_block(block);
        }
    }
    marks += check_turns(body["messages"].as_array().unwrap());
    assert!(marks <= 4, "{marks} marks");
}

/// What changes least comes first; parameters stand behind the length of the answer.
fn check_order(body: &Map<String, Value>) {
    const FRAME: [&str; 5] = ["model", "max_tokens", "tools", "system", "messages"];
    const PARAMS: [&str; 12] = [
        "container",
        "inference_geo",
        "metadata",
        "output_config",
        "service_tier",
        "stop_sequences",
        "stream",
        "temperature",
        "thinking",
        "tool_choice",
        "top_k",
        "top_p",
    ];
    let there = |keys: &[&'static str]| -> Vec<&str> {
        let keys = keys.iter().copied();
        keys.filter(|key| body.contains_key(*key)).collect()
    };
    let keys: Vec<_> = body.keys().map(String::as_str).collect();
    let (params, frame): (Vec<_>, Vec<_>) =
        keys.iter().copied().partition(|key| PARAMS.contains(key));
    assert_eq!(frame, there(&FRAME));
    let before = there(&FRAME[..2]).len();
    assert_eq!(keys[before..before + params.len()], params);
}

fn check_tools(body: &Map<String, Value>) -> usize {
    let Some(tools) = body.get("tools") else {
        return 0;
    };
    let tools = tools.as_array().unwrap();
    assert!(!tools.is_empty());
    let mut names = BTreeSet::new();
    for tool in tools {
        assert!(legal(&tool["name"], 128), "{tool}");
        assert!(names.insert(tool["name"].as_str().unwrap()), "{tool}");
        if tool.get("type").is_none() {
            assert_eq!(tool["input_schema"]["type"], "object");
        }
    }
    let marked = tools.iter().filter(|tool| mark(tool)).count();
    assert!(marked == 1 && mark(tools.last().unwrap()));
    marked
}

fn check_turns(turns: &[Value]) -> usize {
    assert!(!turns.is_empty());
    let mut marks = 0;
    let mut used = BTreeSet::new();
    let mut open = BTreeSet::new();
    for (at, turn) in turns.iter().enumerate() {
        let role = ["user", "assistant"][at % 2];
        assert_eq!(turn["role"], role, "turn {at}");
        let blocks = turn["content"].as_array().unwrap();
        assert!(!blocks.is_empty(), "turn {at}");
        let mut talking = false;
        for block in blocks {
            marks += check_block(block);
            match block["type"].as_str().unwrap() {
                "tool_use" => {
                    assert_eq!(role, "assistant");
                    let id = block["id"].as_str().unwrap();
                    assert!(legal(&block["id"], 64) && used.insert(id), "{id}");
                    open.insert(id);
                }
                "tool_result" => {
                    assert!(role == "user" && !talking, "{turn}");
                    assert!(
                        open.remove(block["tool_use_id"].as_str().unwrap()),
                        "{turn}"
                    );
                }
                "thinking" | "redacted_thinking" => assert_eq!(role, "assistant"),
                "image" | "document" => assert_eq!(role, "user"),
                _ => {}
            }
            talking |= block["type"] != "tool_result";
        }
        match role {
            "user" => assert!(open.is_empty(), "unanswered: {open:?}"),
            _ => assert!(!is_thinking(blocks.last().unwrap()), "{turn}"),
        }
    }
    assert!(open.is_empty(), "unanswered: {open:?}");
    let last = turns.last().unwrap();
    if last["role"] == "assistant" {
        let text = last["content"].as_array().unwrap().last().unwrap()["text"]
            .as_str()
            .unwrap();
        assert_eq!(text, text.trim_end());
    }
    marks
}

/// Checks one block, and those inside it; gives the number of its marks.
fn check_block(block: &Value) -> usize {
    match block["type"].as_str().unwrap() {
        "text" => assert!(!blank(&block["text"]), "{block}"),
        "tool_use" => {
            assert!(legal(&block["name"], 128), "{block}");
            assert!(block["input"].is_object(), "{block}");
        }
        "tool_result" => match block.get("content") {
            _ if block.get("is_error").is_some() => {
                assert_eq!(block["is_error"], true);
                assert!(!blank(&block["content"]), "{block}");
            }
            None => assert!(!mark(block)),
            Some(Value::Array(inner)) => {
                assert!(inner.iter().any(|b| b["type"] != "text"), "{block}");
                assert_eq!(inner.iter().map(check_block).sum::<usize>(), 0);
            }
            Some(text) => assert!(!blank(text), "{block}"),
        },
        "thinking" => assert!(!blank(&block["signature"]) && !mark(block)),
        "redacted_thinking" => assert!(!blank(&block["data"]) && !mark(block)),
        "image" | "document" => assert!(block["source"].is_object()),
        other => panic!("a block of type {other}"),
    }
    mark(block).into()
}

fn is_thinking(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

fn mark(value: &Value) -> bool {
    value.get("cache_control").is_some_and(|mark| {
        assert_eq!(mark, &json!({"type": "ephemeral"}));
        true
    })
}

fn legal(name: &Value, max: usize) -> bool {
    let name = name.as_str().unwrap();
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=max).contains(&name.len()) && name.chars().all(legal)
}

fn blank(text: &Value) -> bool {
    text.as_str().unwrap().trim().is_empty()
}
