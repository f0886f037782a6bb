//! A body as one line an item.

use serde_json::Value;

pub fn shape(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap();
    let lines: Vec<_> = body["input"].as_array().unwrap().iter().map(line).collect();
    lines.join("\n")
}

fn line(item: &Value) -> String {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    match text("type") {
        "message" => format!("{}: {}", text("role"), words(&item["content"])),
        "reasoning" => format!(
            "reasoning({}) {} {}",
            text("id"),
            item["summary"],
            text("encrypted_content")
        ),
        "function_call" => format!(
            "{}({}) {}",
            text("name"),
            text("call_id"),
            text("arguments")
        ),
        "custom_tool_call" => {
            format!(
                "{}({}) custom {}",
                text("name"),
                text("call_id"),
                item["input"]
            )
        }
        tag => format!("{tag}({}) {}", text("call_id"), words(&item["output"])),
    }
}

fn words(content: &Value) -> String {
    let Some(parts) = content.as_array() else {
        return content.to_string();
    };
    let parts = parts.iter().map(|part| match part["type"].as_str() {
        Some("input_text") => part["text"].to_string(),
        _ => {
            let mut part = part.clone();
            let tag = part.as_object_mut().unwrap().shift_remove("type").unwrap();
            format!("{} {part}", tag.as_str().unwrap())
        }
    });
    format!("[{}]", parts.collect::<Vec<_>>().join(", "))
}
