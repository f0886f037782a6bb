//! The rules that every body obeys. Knows the API, and nothing of the code under test.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Holds a body against every rule but its size.
#[track_caller]
pub fn check_body(bytes: &[u8]) {
    let value: Value = serde_json::from_slice(bytes).unwrap();
    assert_eq!(value.to_string().len(), bytes.len(), "not compact");
    let body = value.as_object().unwrap();
    assert!(body.contains_key("store"));
    assert_eq!(body.keys().next_back().unwrap(), "input");
    if let Some(tools) = body.get("tools") {
        check_tools(tools.as_array().unwrap());
    } else {
        assert!(!body.contains_key("tool_choice"));
    }
    check_items(body["input"].as_array().unwrap());
}

fn check_tools(tools: &[Value]) {
    assert!(!tools.is_empty());
    let mut names = BTreeSet::new();
    for tool in tools {
        match tool["type"].as_str().unwrap() {
            "function" => {
                keys(
                    tool,
                    &["type", "name", "parameters", "strict"],
                    &["description"],
                );
                assert_eq!(tool["parameters"]["type"], "object");
                assert!(tool["parameters"]["properties"].is_object());
                assert!(tool["strict"].is_boolean());
            }
            "custom" => keys(tool, &["type", "name"], &["description", "format"]),
            _ => continue,
        }
        assert!(legal(&tool["name"]), "{tool}");
        assert!(names.insert(tool["name"].as_str().unwrap()), "{tool}");
    }
}

fn check_items(items: &[Value]) {
    assert!(!items.is_empty());
    let mut used = BTreeSet::new();
    let mut thoughts = BTreeSet::new();
    // The calls that wait, and what their results are called.
    let mut open = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        let tag = item["type"].as_str().unwrap();
        match tag {
            "message" => {
                keys(item, &["type", "role", "content"], &[]);
                let role = item["role"].as_str().unwrap();
                check_said(role, &item["content"]);
            }
            "reasoning" => {
                keys(item, &["type", "id", "summary", "encrypted_content"], &[]);
                assert!(!blank(&item["encrypted_content"]));
                let id = &item["id"];
                assert!(legal(id) && id.as_str().unwrap().starts_with("rs_"));
                assert!(thoughts.insert(id.as_str().unwrap()), "{id} again");
                for text in item["summary"].as_array().unwrap() {
                    keys(text, &["type", "text"], &[]);
                    assert_eq!(text["type"], "summary_text");
                }
                let next = items.get(at + 1).expect("a thought is the last");
                let made = matches!(
                    next["type"].as_str().unwrap(),
                    "reasoning" | "function_call" | "custom_tool_call"
                );
                assert!(made || next["role"] == "assistant", "{next}");
            }
            "function_call" | "custom_tool_call" => {
                if tag == "function_call" {
                    keys(item, &["type", "call_id", "name", "arguments"], &[]);
                    let arguments = item["arguments"].as_str().unwrap();
                    let read: Result<Map<String, Value>, _> = serde_json::from_str(arguments);
                    assert!(read.is_ok(), "{item}");
                } else {
                    keys(item, &["type", "call_id", "name", "input"], &[]);
                    assert!(item["input"].is_string());
                }
                assert!(legal(&item["name"]) && legal(&item["call_id"]), "{item}");
                let id = item["call_id"].as_str().unwrap();
                assert!(used.insert(id), "{id} again");
                open.insert(id, format!("{tag}_output"));
            }
            _ => {
                keys(item, &["type", "call_id", "output"], &[]);
                let call = open.remove(item["call_id"].as_str().unwrap());
                assert_eq!(call.as_deref(), Some(tag), "{item}");
                if !item["output"].is_string() {
                    check_parts(&item["output"]);
                }
            }
        }
    }
    assert!(open.is_empty(), "unanswered: {open:?}");
}

fn check_said(role: &str, content: &Value) {
    match role {
        // Parts of an assistant's are of another kind, and must have ids.
        "assistant" | "system" | "developer" => assert!(!blank(content), "{content}"),
        "user" if content.is_string() => assert!(!blank(content), "{content}"),
        "user" => check_parts(content),
        other => panic!("a role of {other}"),
    }
}

fn check_parts(parts: &Value) {
    let parts = parts.as_array().unwrap();
    assert!(!parts.is_empty());
    for part in parts {
        match part["type"].as_str().unwrap() {
            "input_text" => {
                keys(part, &["type", "text"], &[]);
                assert!(!blank(&part["text"]), "{part}");
            }
            "input_image" => {
                keys(part, &["type", "image_url", "detail"], &[]);
                let url = part["image_url"].as_str().unwrap();
                assert!(url.starts_with("http") || url.starts_with("data:image/"));
                assert!(["auto", "low", "high"].contains(&part["detail"].as_str().unwrap()));
            }
            "input_file" if part.get("file_id").is_some() => {
                keys(part, &["type", "file_id"], &[]);
                assert!(part["file_id"].as_str().unwrap().starts_with("file-"));
            }
            "input_file" => {
                keys(part, &["type", "filename", "file_data"], &[]);
                assert!(part["file_data"].as_str().unwrap().starts_with("data:"));
            }
            other => panic!("a part of type {other}"),
        }
    }
}

fn keys(value: &Value, must: &[&str], may: &[&str]) {
    let map = value.as_object().unwrap();
    for key in must {
        assert!(map.contains_key(*key), "no {key}: {value}");
    }
    for key in map.keys() {
        let known = must.contains(&key.as_str()) || may.contains(&key.as_str());
        assert!(known, "{key}: {value}");
    }
}

fn legal(name: &Value) -> bool {
    let name = name.as_str().unwrap();
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=64).contains(&name.len()) && name.chars().all(legal)
}

fn blank(text: &Value) -> bool {
    text.as_str().unwrap().trim().is_empty()
}
