//! Servers' prompts: for people to choose, never for a model to take by itself.

use contexture::{Content, Message, Role};
use futures_util::future::join_all;
use rmcp::model::{GetPromptRequestParams, GetPromptResponse, PaginatedRequestParams};
use rmcp::service::ServiceError;
use serde_json::{Map, Value};

use super::servers::Shared;
use super::{McpError, bounded, result};

/// The most prompts of one server.
const MOST: usize = 200;
/// The most messages of a prompt.
const MOST_MESSAGES: usize = 100;

/// A prompt that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Its full name: `server:prompt`.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What it is to be given.
    pub arguments: Vec<PromptArgument>,
}

/// Something that a prompt is to be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Whether it has to be given.
    pub required: bool,
}

/// The prompts of all servers; of those that do not answer there are none.
pub(super) async fn all(shared: &Shared) -> Vec<Prompt> {
    let links = shared
        .links(None, "prompts", |entry| entry.prompts)
        .unwrap_or_default();
    let lists = links.iter().map(|link| async move {
        let listing = link.ask(|peer| async move {
            let mut found = Vec::new();
            let mut cursor = None;
            while found.len() < MOST {
                let page = PaginatedRequestParams::default().with_cursor(cursor);
                let page = peer.list_prompts(Some(page)).await?;
                let fresh = page.prompts.len();
                found.extend(page.prompts);
                cursor = page.next_cursor;
                if cursor.is_none() || fresh == 0 {
                    break;
                }
            }
            Ok::<_, ServiceError>(found)
        });
        let found = listing.await.unwrap_or_default();
        let own = |prompt| described(&link.server, prompt);
        found.into_iter().take(MOST).map(own).collect::<Vec<_>>()
    });
    join_all(lists).await.into_iter().flatten().collect()
}

fn described(server: &str, prompt: rmcp::model::Prompt) -> Prompt {
    let argument = |argument: rmcp::model::PromptArgument| PromptArgument {
        name: bounded(&argument.name, 128),
        description: bounded(&argument.description.unwrap_or_default(), 1_000),
        required: argument.required == Some(true),
    };
    Prompt {
        name: format!("{server}:{}", bounded(&prompt.name, 128)),
        description: bounded(
            &prompt.description.or(prompt.title).unwrap_or_default(),
            1_000,
        ),
        arguments: prompt
            .arguments
            .unwrap_or_default()
            .into_iter()
            .take(32)
            .map(argument)
            .collect(),
    }
}

/// The messages of one. They speak as the user or the assistant, never as the system.
pub(super) async fn one(
    shared: &Shared,
    name: &str,
    arguments: &Map<String, Value>,
) -> Result<Vec<Message>, McpError> {
    let (server, prompt) = name.split_once(':').unwrap_or((name, ""));
    let mut messages = Vec::new();
    for link in shared.links(Some(server), "prompts", |entry| entry.prompts)? {
        let mut params = GetPromptRequestParams::new(prompt);
        params.arguments = Some(arguments.clone());
        let ask =
            |peer: rmcp::Peer<rmcp::RoleClient>| async move { peer.get_prompt_once(params).await };
        let GetPromptResponse::Complete(answer) = link.ask(ask).await? else {
            return Err(McpError::Unsupported {
                server: link.server.clone(),
                what: "a question to the user",
            });
        };
        for message in answer.messages.into_iter().take(MOST_MESSAGES) {
            let role = match message.role {
                rmcp::model::Role::Assistant => Role::Assistant,
                _ => Role::User,
            };
            let content: Content = result::plain(message.content);
            let mut told = Message::new(role, "");
            told.content = content;
            messages.push(told);
        }
    }
    Ok(messages)
}
