//! A conversation in the words of a template: what it has no form for is said in words.

use contexture::prompt::signature;
use contexture::{Content, Message, Part, Role};
use serde_json::{Value, json};

use super::form::{one_call_each, short_id};
use super::template::{Spoken, Takes};

/// What a call begins and ends with, for models that have no form of their own.
const CALL: (&str, &str) = ("<tool_call>", "</tool_call>");
const RESULT: (&str, &str) = ("<tool_response>\n", "\n</tool_response>");
const NOTE: (&str, &str) = ("<system-note>\n", "\n</system-note>");

/// The longest description of a tool: a small model reads slowly.
const LINE: usize = 160;

/// The messages for the template. Tools that it cannot say stand in a system message of their own.
pub(super) fn conversation<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    tools: &[Value],
    takes: Takes,
) -> Vec<Spoken> {
    let mut out: Vec<Spoken> = messages
        .into_iter()
        .map(|message| spoken(message, takes))
        .collect();
    if !takes.several_calls {
        out = one_call_each(out);
    }
    if !tools.is_empty() && !takes.tools {
        let leading = out.iter().take_while(|m| m.role == "system").count();
        out.insert(leading, Spoken::new("system", instructions(tools)));
    }
    if !takes.systems {
        one_system(&mut out);
    }
    if !takes.system && out.first().is_some_and(|first| first.role == "system") {
        out[0].role = "user";
    }
    if !takes.repeats || !takes.system {
        out = alternating(out);
    }
    out
}

/// The text of a message, its other parts in words: these models read nothing else.
fn text(message: &Message) -> String {
    let Content::Parts(parts) = &message.content else {
        return message.text().into_owned();
    };
    let mut out = String::new();
    for part in parts {
        match part {
            Part::Text { text, .. } => out.push_str(text),
            Part::Image { .. } => out.push_str("[a picture, which this model cannot see]"),
            Part::File { .. } => out.push_str("[a file, which this model cannot read]"),
            Part::Other(_) => out.push_str("[something that this model cannot read]"),
            // Thoughts are the model's own and not part of what was said.
            Part::Thinking { .. } => {}
        }
    }
    out
}

fn spoken(message: &Message, takes: Takes) -> Spoken {
    let mut said = Spoken::new("user", text(message));
    let id = |id: &str| match takes.any_id {
        true => id.to_owned(),
        false => short_id(id),
    };
    match message.role {
        Role::System | Role::Developer => said.role = "system",
        Role::User => {}
        Role::Assistant => {
            said.role = "assistant";
            for call in &message.tool_calls {
                if takes.tools {
                    // Templates write the arguments themselves, so they want the object.
                    let arguments = call
                        .arguments_object()
                        .map_or_else(|| Value::String(call.arguments.clone()), Value::Object);
                    said.tool_calls.push(json!({
                        "id": id(&call.id),
                        "type": "function",
                        "function": {"name": call.name, "arguments": arguments},
                    }));
                } else {
                    said.content.push_str(&called(&call.name, &call.arguments));
                }
            }
        }
        Role::Tool if takes.tools => {
            said.role = "tool";
            said.tool_call_id = message.tool_call_id.as_deref().map(id);
            said.name.clone_from(&message.name);
        }
        Role::Tool => said.content = format!("{}{}{}", RESULT.0, said.content, RESULT.1),
    }
    said
}

/// A call, letter by letter as a constrained model writes it, so that reading it again finds the
/// same tokens.
fn called(name: &str, arguments: &str) -> String {
    let name = Value::from(name);
    format!(
        "{}{{\"name\": {name}, \"arguments\": {arguments}}}{}",
        CALL.0, CALL.1
    )
}

/// What the tools are and how to call one, in few words.
fn instructions(tools: &[Value]) -> String {
    let mut out = String::from(include_str!("../../templates/tools.md").trim_end());
    for tool in tools {
        out.push_str("\n- ");
        out.push_str(&line(tool));
    }
    out
}

/// A tool in one line: `read(path: string, from?: integer): Reads a file.`
pub(super) fn line(tool: &Value) -> String {
    let function = function(tool);
    let field = |name: &str| {
        function
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let parameters = function.get("parameters").unwrap_or(&Value::Null);
    let described = field("description").trim();
    let first = described
        .split_inclusive(['.', '\n'])
        .next()
        .unwrap_or_default();
    let short: String = first.trim().chars().take(LINE).collect();
    format!("{}: {short}", signature(field("name"), parameters))
}

/// The function in a tool's spec, with or without its wrapping.
pub(super) fn function(tool: &Value) -> &Value {
    tool.get("function").unwrap_or(tool)
}

/// For a template that knows one system message, at the beginning.
fn one_system(messages: &mut Vec<Spoken>) {
    let leading = messages.iter().take_while(|m| m.role == "system").count();
    if leading > 1 {
        let more: Vec<Spoken> = messages.drain(1..leading).collect();
        for message in more {
            join(&mut messages[0], &message);
        }
    }
    for message in messages.iter_mut().skip(1).filter(|m| m.role == "system") {
        message.role = "user";
        message.content = format!("{}{}{}", NOTE.0, message.content, NOTE.1);
    }
}

/// For a template that knows no two messages of one role in a row.
fn alternating(messages: Vec<Spoken>) -> Vec<Spoken> {
    let mut out: Vec<Spoken> = Vec::with_capacity(messages.len());
    for message in messages {
        match out.last_mut() {
            Some(last) if last.role == message.role && message.role != "tool" => {
                join(last, &message);
            }
            _ => out.push(message),
        }
    }
    out
}

fn join(to: &mut Spoken, more: &Spoken) {
    if !to.content.is_empty() && !more.content.is_empty() {
        to.content.push_str("\n\n");
    }
    to.content.push_str(&more.content);
    to.tool_calls.extend(more.tool_calls.iter().cloned());
}
