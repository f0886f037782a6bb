use std::path::{Path, PathBuf};

use contexture::message::openai;
use contexture::{Message, Role, ToolCall};
use serde_json::{Value, json};

use crate::note;

/// A long session: its document as a program would read it, and its messages.
pub struct Transcript {
    /// `{"messages":[…]}`.
    pub bytes: Vec<u8>,
    /// The same, read.
    pub messages: Vec<Message>,
}

/// The session of ten thousand messages, or one of our making where the data is absent.
pub fn long() -> Transcript {
    let bytes = match folder() {
        Some(folder) => std::fs::read(folder.join("long.json")).expect("long.json can be read"),
        None => {
            note("../shared/data is not here: a session of our making stands in for long.json");
            let messages: Vec<Value> = synthetic().iter().map(openai::shown).collect();
            json!({ "messages": messages }).to_string().into_bytes()
        }
    };
    let mut document: Value = serde_json::from_slice(&bytes).expect("it is JSON");
    let messages = read(document["messages"].take());
    Transcript { bytes, messages }
}

/// The texts of all transcripts, as a tokenizer would get them.
pub fn texts() -> Vec<String> {
    let Some(folder) = folder() else {
        return long().messages.iter().flat_map(strings).collect();
    };
    let mut texts = Vec::new();
    for file in ["sessions.jsonl", "dirty.jsonl", "long.json"] {
        let document = std::fs::read_to_string(folder.join(file)).expect("it can be read");
        for line in document.lines() {
            let mut session: Value = serde_json::from_str(line).expect("it is JSON");
            texts.extend(read(session["messages"].take()).iter().flat_map(strings));
        }
    }
    texts
}

/// Turns to append: an assistant's message with a call, its result, and a user's message; `many` of
/// them, all from the transcript, none the same as the one before.
pub fn turns(messages: &[Message], many: usize) -> Vec<[Message; 3]> {
    let called = messages.windows(2).filter(|pair| {
        let id = pair[0].tool_calls.first().map(|call| call.id.as_str());
        pair[0].tool_calls.len() == 1 && id == pair[1].tool_call_id.as_deref()
    });
    let said = messages
        .iter()
        .filter(|m| m.role == Role::User && !m.is_empty());
    called
        .cycle()
        .zip(said.cycle())
        .take(many)
        .map(|(pair, user)| [pair[0].clone(), pair[1].clone(), user.clone()])
        .collect()
}

/// Every text of a message that costs tokens.
pub fn strings(message: &Message) -> Vec<String> {
    let mut all = vec![message.text().into_owned()];
    all.extend(message.tool_call_id.clone());
    all.extend(message.name.clone());
    for call in &message.tool_calls {
        all.extend([call.id.clone(), call.name.clone(), call.arguments.clone()]);
    }
    all.retain(|text| !text.is_empty());
    all
}

fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let folder = std::env::var_os("CONTEXTURE_DATA").map_or(beside, PathBuf::from);
    folder.is_dir().then_some(folder)
}

fn read(messages: Value) -> Vec<Message> {
    serde_json::from_value(messages).expect("they are messages")
}

/// Ten thousand messages that look like an agent's work on a repository.
fn synthetic() -> Vec<Message> {
    let mut messages = vec![Message::system(
        "You are an agent that works on a repository with a shell.",
    )];
    let mut n = 0;
    while messages.len() < 10_000 {
        if n % 4 == 0 {
            messages.push(Message::user(format!(
                "The test `case_{n}` fails since the last commit; find out why and repair it."
            )));
        }
        let (id, path) = (format!("call_{n}"), format!("src/part_{}.rs", n % 97));
        let arguments = json!({ "path": path, "line": n }).to_string();
        messages.push(Message::calls([ToolCall::new(&id, "read_file", arguments)]));
        let lines: String = (0..8 + n % 9)
            .map(|line| format!("{line}: let value_{line} = compute({n}, {line})?; // {path}\n"))
            .collect();
        messages.push(Message::tool_result(id, lines));
        if n % 4 == 3 {
            messages.push(Message::assistant(format!(
                "`{path}` was wrong at line {n}."
            )));
        }
        n += 1;
    }
    messages.push(Message::user("And now the next one, please."));
    messages
}
