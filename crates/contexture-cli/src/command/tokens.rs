use std::path::Path;

use contexture::tokens::count;
use contexture::{Message, Payload};
use serde_json::json;

use super::{print, print_json, read};
use crate::args::Tokens;
use crate::error::CliError;
use crate::models::Reader;
use crate::output::note;
use crate::settings::{reader, tokenizer};
use crate::view::{safe, thousands};
use crate::{config, input};

/// `ctx tokens`.
pub fn tokens(options: &Tokens, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    if options.text {
        let bytes = input::read(&options.source)?;
        let text = String::from_utf8_lossy(&bytes);
        let tokenizer = tokenizer(&options.model, options.model.name.as_deref())?;
        let tokens = tokenizer.count(&text);
        if json {
            return print_json(&json!({
                "tokens": tokens,
                "tokenizer": { "name": tokenizer.name(), "exact": tokenizer.exact() },
            }));
        }
        return print(format!("{tokens}\n").as_bytes());
    }
    let input = read(&options.source)?;
    let model = options.model.name.as_deref().or(input.model.as_deref());
    let limits = config::load(dir)?.agent.local;
    let Reader { tokenizer, window } = reader(&options.model, model, limits)?;
    let logged = input
        .session_entries
        .iter()
        .filter_map(|entry| match &entry.payload {
            Payload::Message { message } => Some(message),
            _ => None,
        });
    let messages: Vec<&Message> = logged.chain(&input.turn.messages).collect();
    let tools = input.turn.tools.unwrap_or_default();
    let each: Vec<usize> = messages.iter().map(|m| tokenizer.message(m)).collect();
    let tool_tokens = tokenizer.tools(&tools);
    let total = count::request(tokenizer.as_ref(), messages.iter().copied(), &tools);
    let frame = total.saturating_sub(each.iter().sum::<usize>() + tool_tokens);
    if json {
        let rows: Vec<_> = messages
            .iter()
            .zip(&each)
            .enumerate()
            .map(|(i, (message, tokens))| json!({ "index": i, "role": message.role.as_str(), "tokens": tokens }))
            .collect();
        return print_json(&json!({
            "tokens": total,
            "tokenizer": { "name": tokenizer.name(), "exact": tokenizer.exact() },
            "messages": rows,
            "toolTokens": tool_tokens,
            "frameTokens": frame,
            "window": window,
        }));
    }
    let bound = if tokenizer.exact() { "" } else { "at most " };
    let of = match window {
        Some(window) => format!(" of a window of {}", thousands(window)),
        None => String::new(),
    };
    note!(
        "{bound}{} tokens{of} by {}",
        thousands(total),
        safe(tokenizer.name())
    );
    print(format!("{total}\n").as_bytes())
}
