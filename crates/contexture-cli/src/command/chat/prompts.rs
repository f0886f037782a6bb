//! Prompts of MCP servers: a person chooses one, and it is said as theirs.

use std::fmt::Write as _;

use contexture::{Message, Payload, Role};
use contexture_tools::mcp::Prompt;
use serde_json::{Map, Value, json};

use super::Flow;
use super::room::Room;
use crate::error::CliError;
use crate::view::{plural, safe};

/// Lists the prompts, or says one: `/prompt SERVER:NAME key=value …`.
pub fn prompt(room: &mut Room, rest: &str) -> Result<Flow, CliError> {
    let servers = std::sync::Arc::clone(&room.servers);
    let mut words = rest.split_whitespace();
    let Some(name) = words.next() else {
        let prompts = wait(async { servers.prompts().await });
        return list(room, &prompts).map(|()| Flow::Go);
    };
    let arguments = words.map(argument).collect::<Result<Map<_, _>, _>>()?;
    let found = wait(async { servers.prompt(name, &arguments).await });
    let mut messages = found.map_err(|error| CliError::Usage {
        what: error.to_string(),
        hint: error.hint(),
    })?;
    let last = messages.pop();
    let Some(Message {
        role: Role::User, ..
    }) = &last
    else {
        return Err(CliError::Usage {
            what: format!("the prompt {name} asks nothing"),
            hint: "/prompt lists those that there are".to_owned(),
        });
    };
    for message in messages {
        room.chat.say(Payload::Message { message })?;
    }
    let text = last.map(|message| message.text().into_owned());
    Ok(Flow::Say(text.unwrap_or_default()))
}

fn list(room: &Room, prompts: &[Prompt]) -> Result<(), CliError> {
    let paint = room.paint();
    let mut text = String::new();
    for prompt in prompts {
        let takes: Vec<String> = prompt
            .arguments
            .iter()
            .map(|argument| match argument.required {
                true => format!("{}=…", safe(&argument.name)),
                false => format!("[{}=…]", safe(&argument.name)),
            })
            .collect();
        let about = paint.dim(&safe(&prompt.description));
        let name = paint.bold(&safe(&prompt.name));
        let _ = writeln!(text, "  {name} {} {about}", takes.join(" "));
    }
    let all = plural(prompts.len(), "prompt");
    let _ = writeln!(text, "  {}", paint.dim(&format!("{all} of MCP servers")));
    room.print(&text)
}

fn argument(word: &str) -> Result<(String, Value), CliError> {
    match word.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), json!(value))),
        _ => Err(CliError::Usage {
            what: format!("`{word}` is no argument of a prompt"),
            hint: "arguments are written name=value".to_owned(),
        }),
    }
}

/// A command runs inside the chat's own task, and may wait there.
fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(work))
}
