//! The forms of other models' templates: Llama's, Mistral's, Gemma's and that of Hermes. The weights are those of the small
//! model, whose answers make no sense in them; what is counted, read and called does.

use std::path::PathBuf;

use contexture::tokens::count;
use contexture::{Message, ToolCall};
use contexture_model::local::{LocalModel, LocalOptions};
use contexture_model::{Model, Stop};
use serde_json::{Value, json};

use crate::local::{OPTIONS, ask};
use crate::small_model::weights;

/// Templates in words of our own, each with the form of a model's.
const FORMS: [(&str, &str); 6] = [
    ("qwen", include_str!("templates/qwen.jinja")),
    ("hermes", include_str!("templates/hermes.jinja")),
    ("llama", include_str!("templates/llama.jinja")),
    ("mistral", include_str!("templates/mistral.jinja")),
    (
        "mistral-named",
        include_str!("templates/mistral-named.jinja"),
    ),
    ("gemma", include_str!("templates/gemma.jinja")),
];

/// The small model's file with another template.
fn file_with(template: &str, folder: &tempfile::TempDir) -> Option<PathBuf> {
    let whole = std::fs::read(weights()?).unwrap();
    let key = b"tokenizer.chat_template";
    let at = whole.windows(key.len()).position(|w| w == key).unwrap() + key.len() + 4;
    let length = u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()) as usize;
    let end = at + 8 + length;
    // Blanks in a comment keep the weights at a multiple of 32 bytes.
    let pad = (length + 64 - (template.len() + 4) % 32) % 32;
    let text = format!("{template}{{#{}#}}", " ".repeat(pad));
    let mut made = whole[..at].to_vec();
    made.extend((text.len() as u64).to_le_bytes());
    made.extend(text.as_bytes());
    made.extend(&whole[end..]);
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, made).unwrap();
    Some(path)
}

fn tools() -> Value {
    let tool = |name: &str, schema: Value| json!({"type": "function", "function": {"name": name, "description": format!("Does {name}.\n"), "parameters": schema}});
    let at = json!({"type": "object", "properties": {"at": {"type": "integer", "minimum": 0, "maximum": 9}},
        "required": ["at"], "additionalProperties": false});
    let text = json!({"type": "object", "properties": {"text": {"enum": ["yes", "no"]}},
        "required": ["text"], "additionalProperties": false});
    json!([tool("look", at), tool("say", text)])
}

fn call(id: &str, at: u8) -> ToolCall {
    ToolCall::new(id, "look", format!("{{\"at\":{at}}}"))
}

/// Conversations with tools, calls and results, of every kind that a log has.
fn conversations() -> Vec<Vec<Message>> {
    let (user, reply) = (Message::user, Message::assistant);
    let said = |text: &str| {
        let mut message = Message::calls([call("call_12_0", 7)]);
        message.content = contexture::Content::Text(text.to_owned());
        message
    };
    let result = Message::tool_result;
    vec![
        vec![Message::system("Be brief.\n"), user("\nWhat is there?\n\n")],
        vec![
            Message::system("One."),
            Message::system("Two."),
            user("Go."),
            reply("Yes."),
            user("On."),
        ],
        vec![
            Message::system("Be brief."),
            user("Look twice."),
            Message::calls([call("call_12_0", 7), call("call_12_1", 8)]),
            result("call_12_0", "A cat."),
            result("call_12_1", "\n\nA dog."),
            reply(" Both. "),
            user("Again"),
            said("I look."),
            result("call_12_0", "{\"cat\": true}"),
        ],
        vec![
            user("Look."),
            Message::calls([call("toolu_01AbCdEfGhIjKlMn", 7)]),
            result("toolu_01AbCdEfGhIjKlMn", ""),
            reply(""),
            Message::system("A note."),
            user("And?"),
        ],
    ]
}

// needs: model
#[test]
fn every_form_is_counted_as_it_is_read_and_called_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for (form, template) in FORMS {
        let Some(path) = file_with(template, &folder) else {
            return;
        };
        let options = LocalOptions {
            window: Some(2_048),
            ..OPTIONS
        };
        let model = LocalModel::open(form, &path, options).unwrap();
        counts(form, &model);
        calls(form, &model);
    }
}

/// The count of a request is what the engine reads, with tools and without.
fn counts(form: &str, model: &LocalModel) {
    let tokenizer = model.tokenizer().unwrap();
    assert!(tokenizer.exact(), "{}", form);
    for messages in conversations() {
        let tools = tools();
        let specs = tools.as_array().unwrap();
        let counted = count::request(tokenizer.as_ref(), &messages, specs);
        let body = json!({"messages": messages, "tools": tools, "tool_choice": "none",
            "temperature": 0, "max_tokens": 1});
        let (reply, _) = ask(model, &body);
        let reply = reply.unwrap_or_else(|error| panic!("{form}: {error}: {messages:?}"));
        let (read, _) = crate::local::read(&reply);
        assert_eq!(counted as u64, read, "{form}: {messages:?}");
        let sum: usize = messages.iter().map(|m| tokenizer.message(m)).sum();
        let parts = sum + tokenizer.tools(specs) + tokenizer.frame(messages.first());
        assert!(
            parts.abs_diff(counted) <= counted / 4 + 8,
            "{form}: parts of {parts}, {counted} together: {messages:?}"
        );
    }
}

/// A call that must come is valid, and what was called goes on in the cache.
fn calls(form: &str, model: &LocalModel) {
    let question = json!({"role": "user", "content": "Look there."});
    let mut body = json!({"messages": [question], "temperature": 0, "max_tokens": 60, "tools": tools(),
        "tool_choice": {"type": "function", "function": {"name": "look"}}});
    let (reply, shown) = ask(model, &body);
    let reply = reply.unwrap();
    assert_eq!(reply.stop, Stop::Tools, "{form}: {reply:?}");
    assert_eq!(shown, "", "{form}");
    let [call] = reply.message.tool_calls.as_slice() else {
        panic!("{form}: {reply:?}")
    };
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
    assert!(
        arguments["at"].as_u64().is_some_and(|at| at < 10),
        "{form}: {call:?}"
    );
    let (before, _) = crate::local::read(&reply);
    body["tool_choice"] = json!("none");
    body["max_tokens"] = json!(1);
    body["messages"] = json!([question, reply.message,
        {"role": "tool", "tool_call_id": call.id, "content": "A cat."}]);
    let (next, _) = ask(model, &body);
    let (_, cached) = crate::local::read(&next.unwrap());
    assert!(cached > before, "{form}: {cached} of {before} and the call");
}
