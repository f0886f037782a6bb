//! A session that was left, as updates for a host that takes it up again.

use std::path::Path;

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, ImageContent, MessageId, SessionUpdate, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields,
};
use contexture::export::{Kind, Said, conversation};
use contexture::{ContextError, Message, Part, Role, View};

use super::call;
use super::result::{content, raw};

/// All that was said and done, in order. What was summarised or masked to make room is whole here; what
/// was undone or redacted is not.
pub fn updates(view: &View, cwd: &Path) -> Result<Vec<SessionUpdate>, ContextError> {
    let mut updates = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for said in conversation(view)?.said {
        if said.kind != Kind::Message {
            continue;
        }
        match said.message.role {
            Role::User => speak(&said, SessionUpdate::UserMessageChunk, &mut updates),
            Role::Assistant => {
                speak(&said, SessionUpdate::AgentMessageChunk, &mut updates);
                for called in &said.message.tool_calls {
                    // The log has the names that models use.
                    let tool = called.name.replacen("__", ":", 1);
                    let shown = call::recalled(called, &tool, None, cwd);
                    updates.push(SessionUpdate::ToolCall(shown));
                    open.push(called.id.clone());
                }
            }
            Role::Tool => {
                let id = said.message.tool_call_id.clone().unwrap_or_default();
                if let Some(at) = open.iter().position(|known| *known == id) {
                    open.remove(at);
                    updates.push(ended(id, &said.message));
                }
            }
            _ => {}
        }
    }
    let never = ToolCallUpdateFields::new().status(ToolCallStatus::Failed);
    let left = open
        .into_iter()
        .map(|id| SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, never.clone())));
    updates.extend(left);
    Ok(updates)
}

/// The parts of a message, each as a chunk.
fn speak(
    said: &Said<'_>,
    as_whom: fn(ContentChunk) -> SessionUpdate,
    updates: &mut Vec<SessionUpdate>,
) {
    let id = MessageId::new(said.entry.id.as_str());
    for part in said.message.parts() {
        let (block, as_whom): (ContentBlock, fn(ContentChunk) -> SessionUpdate) = match part {
            Part::Thinking { thinking, .. } => (thinking.into(), SessionUpdate::AgentThoughtChunk),
            Part::Text { text, .. } if !text.is_empty() => (text.into(), as_whom),
            Part::Image { image_url, .. } => {
                let url = image_url.get("url").and_then(|url| url.as_str());
                let data = url.and_then(|url| url.strip_prefix("data:")?.split_once(";base64,"));
                match data {
                    Some((kind, data)) => {
                        (ContentBlock::Image(ImageContent::new(data, kind)), as_whom)
                    }
                    None => continue,
                }
            }
            _ => continue,
        };
        let chunk = ContentChunk::new(block).message_id(id.clone());
        updates.push(as_whom(chunk));
    }
}

fn ended(id: String, message: &Message) -> SessionUpdate {
    let fields = ToolCallUpdateFields::new()
        .status(match message.failed() {
            true => ToolCallStatus::Failed,
            false => ToolCallStatus::Completed,
        })
        .content(content(message))
        .raw_output(raw(message));
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields))
}
