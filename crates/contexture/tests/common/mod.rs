//! An independent judge of requests: it knows the contract's formula and the provider's rules, and
//! nothing of the code under test but how to read a message.
#![allow(dead_code, reason = "each test file uses its own share")]

pub mod chatml;
pub mod scenario;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;

use contexture::Message;
use serde_json::Value;

/// A transcript, or the beginning of one.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    pub name: &'a str,
    pub messages: &'a [Message],
}

/// Transcripts as they were read.
pub struct Sessions(Vec<(String, Vec<Message>)>);

impl Sessions {
    pub fn iter(&self) -> impl Iterator<Item = Case<'_>> {
        self.0
            .iter()
            .map(|(name, messages)| Case { name, messages })
    }
}

/// The folder of real transcripts, where it is present.
pub fn data() -> Option<PathBuf> {
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    let path = std::env::var_os("CONTEXTURE_DATA").map_or(beside, PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: ../shared/data is not here");
    None
}

/// The transcripts of these files.
pub fn sessions(files: &[&str]) -> Option<Sessions> {
    let folder = data()?;
    let mut cases = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            let name = value["session_id"].as_str().unwrap_or(file).to_owned();
            cases.push((
                name,
                serde_json::from_value(value["messages"].clone()).unwrap(),
            ));
        }
    }
    Some(Sessions(cases))
}

/// Counts by encoding, not by the counter that the code under test uses. Remembered, because a
/// replay shows the same messages thousands of times.
fn enc(text: &str) -> usize {
    thread_local! {
        static SEEN: RefCell<HashMap<String, usize>> = RefCell::default();
    }
    SEEN.with_borrow_mut(|seen| {
        if let Some(&known) = seen.get(text) {
            return known;
        }
        let count = tiktoken::get_encoding("o200k_base")
            .unwrap()
            .encode(text)
            .len();
        seen.insert(text.to_owned(), count);
        count
    })
}

fn content_text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|p| p["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// The contract's formula for one message.
pub fn count_message(message: &Value) -> usize {
    let text = |key: &str| message[key].as_str().map_or(0, enc);
    let calls = message["tool_calls"].as_array().map_or(0, |calls| {
        calls
            .iter()
            .map(|call| {
                let function = &call["function"];
                4 + enc(call["id"].as_str().unwrap())
                    + enc(function["name"].as_str().unwrap())
                    + enc(function["arguments"].as_str().unwrap())
            })
            .sum()
    });
    4 + text("role") + enc(&content_text(message)) + text("name") + text("tool_call_id") + calls
}

pub fn count_body(body: &Value) -> usize {
    let messages = body["messages"].as_array().unwrap();
    let tools = body["tools"]
        .as_array()
        .map_or(0, |t| t.iter().map(|t| enc(&t.to_string())).sum());
    3 + messages.iter().map(count_message).sum::<usize>() + tools
}

fn wire(message: &Message) -> Value {
    serde_json::to_value(message).unwrap()
}

impl<'a> Case<'a> {
    /// What may never be left out or cut: the system side and the latest user message.
    pub fn floor(&self) -> usize {
        let system = self
            .messages
            .iter()
            .take_while(|m| m.role.as_str() == "system");
        let user = self.latest_user();
        // The end of the work can be cut down to marks, but has ids, names and frames.
        let marks: usize = self
            .final_group()
            .iter()
            .map(|m| {
                60 + 30 * m.tool_calls.len()
                    + m.tool_calls
                        .iter()
                        .map(|c| enc(&c.id) + enc(&c.name))
                        .sum::<usize>()
            })
            .sum();
        // So has a last message that is the model's.
        let last = self
            .messages
            .last()
            .filter(|m| m.role.as_str() == "assistant");
        let marks = marks + last.map_or(0, |m| count_message(&wire(m)).min(60));
        3 + system.map(|m| count_message(&wire(m))).sum::<usize>()
            + user.map_or(0, |m| count_message(&wire(m)))
            + marks
    }

    fn latest_user(&self) -> Option<&Message> {
        self.messages
            .iter()
            .rev()
            .find(|m| m.role.as_str() == "user" && !m.is_empty())
    }

    /// The last call message with the results that directly follow it.
    pub fn final_group(&self) -> &'a [Message] {
        let Some(start) = self.messages.iter().rposition(|m| !m.tool_calls.is_empty()) else {
            return &[];
        };
        let results = self.messages[start + 1..]
            .iter()
            .take_while(|m| m.role.as_str() == "tool");
        &self.messages[start..=start + results.count()]
    }

    /// The points at which a request was made: before an assistant message after a user or tool one.
    pub fn request_points(&self) -> Vec<usize> {
        (1..self.messages.len())
            .filter(|&k| {
                self.messages[k].role.as_str() == "assistant"
                    && matches!(self.messages[k - 1].role.as_str(), "user" | "tool")
            })
            .collect()
    }
}

/// All that must hold for the request that was built from a transcript.
#[track_caller]
pub fn check(case: Case<'_>, budget: usize, body: &[u8]) {
    let name = case.name;
    let body: Value = serde_json::from_slice(body).unwrap();
    let messages = body["messages"].as_array().unwrap();
    let tokens = count_body(&body);
    assert!(
        tokens <= budget,
        "{name}: {tokens} tokens in a budget of {budget}"
    );
    check_pairs(name, messages);
    // The system side, verbatim and in front.
    let system = case
        .messages
        .iter()
        .take_while(|m| m.role.as_str() == "system");
    for (i, message) in system.enumerate() {
        assert_eq!(
            messages[i]["content"],
            wire(message)["content"],
            "{name}: system side"
        );
    }
    if let Some(user) = case.latest_user() {
        let wanted = wire(user)["content"].clone();
        let found = messages
            .iter()
            .any(|m| m["role"] == "user" && m["content"] == wanted);
        assert!(found, "{name} at {budget}: latest user message is gone");
    }
    // The final tool group: its calls, in order, each with its answer.
    let group = case.final_group();
    if let Some(call) = group.first() {
        let ids: Vec<_> = call.tool_calls.iter().map(|c| c.id.as_str()).collect();
        let kept = messages.iter().any(|m| {
            m["tool_calls"].as_array().is_some_and(|calls| {
                calls
                    .iter()
                    .filter_map(|c| c["id"].as_str())
                    .eq(ids.iter().copied())
            })
        });
        assert!(kept, "{name} at {budget}: the final tool group is gone");
    }
}

/// The last message, and the group that it ends, as they were logged.
#[track_caller]
pub fn check_tail(case: Case<'_>, messages: &[Value]) {
    let last = wire(case.messages.last().unwrap());
    assert_eq!(
        messages.last().unwrap()["content"],
        last["content"],
        "{}: the tail",
        case.name
    );
}

/// Every result follows its call, every call is answered: by position, because ids repeat.
#[track_caller]
pub fn check_pairs(name: &str, messages: &[Value]) {
    let mut waiting: Vec<String> = Vec::new();
    for (i, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap();
        if role == "tool" {
            let id = message["tool_call_id"]
                .as_str()
                .expect("a result names its call");
            let at = waiting.iter().position(|w| w == id);
            let at = at.unwrap_or_else(|| panic!("{name}: message {i} answers no open call"));
            waiting.remove(at);
            continue;
        }
        assert!(
            waiting.is_empty(),
            "{name}: before message {i}, {waiting:?} got no answer"
        );
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            assert_eq!(role, "assistant");
            waiting.push(call["id"].as_str().unwrap().to_owned());
            if call["type"] == "custom" {
                assert!(call["custom"]["input"].is_string(), "{name}: input is text");
                continue;
            }
            let arguments = call["function"]["arguments"].as_str().unwrap();
            let parsed: Value = serde_json::from_str(arguments).expect("arguments are JSON");
            assert!(parsed.is_object(), "{name}: arguments are an object");
        }
        let empty = content_text(message).trim().is_empty() && message["tool_calls"].is_null();
        assert!(
            !empty || message["content"].is_array(),
            "{name}: message {i} is empty"
        );
    }
    assert!(
        waiting.is_empty(),
        "{name}: at the end, {waiting:?} got no answer"
    );
}
