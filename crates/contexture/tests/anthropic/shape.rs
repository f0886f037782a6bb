//! A body as one line a block; `*` stands for a mark for the cache.

use std::fmt::Write;

use serde_json::Value;

pub fn shape(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap();
    let mut out = String::new();
    for block in list(&body["system"]) {
        writeln!(out, "system: {}", line(block)).unwrap();
    }
    for turn in list(&body["messages"]) {
        let role = turn["role"].as_str().unwrap();
        for (at, block) in list(&turn["content"]).iter().enumerate() {
            let who = if at == 0 {
                format!("{role}:")
            } else {
                " ".repeat(role.len() + 1)
            };
            writeln!(out, "{who} {}", line(block)).unwrap();
        }
    }
    out
}

fn line(block: &Value) -> String {
    let what = match block["type"].as_str().unwrap() {
        "text" => block["text"].to_string(),
        "thinking" => format!("thinking {} {}", block["thinking"], block["signature"]),
        "redacted_thinking" => format!("redacted {}", block["data"]),
        "tool_use" => format!(
            "{}({}) {}",
            block["name"].as_str().unwrap(),
            block["id"].as_str().unwrap(),
            block["input"]
        ),
        "tool_result" => {
            let id = block["tool_use_id"].as_str().unwrap();
            let failed = if block["is_error"] == true {
                "failed "
            } else {
                ""
            };
            match block.get("content") {
                None => format!("tool_result({id})"),
                Some(Value::Array(blocks)) => {
                    let inner: Vec<_> = blocks.iter().map(line).collect();
                    format!("tool_result({id}) [{}]", inner.join(", "))
                }
                Some(text) => format!("tool_result({id}) {failed}{text}"),
            }
        }
        "document" => format!("document {} {}", block["title"], block["source"]),
        tag => format!("{tag} {}", block["source"]),
    };
    let mark = if block.get("cache_control").is_some() {
        " *"
    } else {
        ""
    };
    what + mark
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
