//! `session.*`: what a session begins with, the tools that it has, and its log.

use std::sync::Arc;

use contexture::inject::AgentInstanceMeta;
use contexture::{Entry as LogEntry, Message, Payload};
use contexture_agent::clock;
use contexture_store::{Key, Record, StoreError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Entry, answer, any_object, blocking, list, method, object, params, text};
use crate::fleet::Fleet;
use crate::live::ToolDelta;
use crate::prepare::PrepareError;
use crate::{Answering, Call, RpcError, Who, Why};

pub(super) fn table() -> Vec<Entry> {
    vec![
        method(
            "session.prepare",
            "Makes the context of a session: MCP servers, tools, system context, token (spec 000)",
            Who::Owner,
            object(&[
                ("agent?", text("an agent of the fleet")),
                (
                    "meta?",
                    any_object("or what is known of another: an AgentInstanceMeta"),
                ),
                ("sessionId?", text("a new one where it is absent")),
            ]),
            any_object(
                "the SessionContext, with `sessionId`, a `receipt`, and a `tokenFile` for programs",
            ),
            prepare,
        ),
        method(
            "session.close",
            "Ends the tokens of an agent's sessions",
            Who::Owner,
            object(&[("agent", text("whose"))]),
            object(&[("revoked", json!({"type": "integer"}))]),
            close,
        ),
        method(
            "session.changeTools",
            "Adds and removes internal tools during a session",
            Who::Owner,
            object(&[
                ("agent", text("whose")),
                ("sessionId", text("which")),
                ("add?", list(&any_object("a tool's definition"))),
                ("remove?", list(&text("a tool's name"))),
                ("reason", text("why, for the log")),
            ]),
            object(&[
                ("add", list(&text("what came"))),
                ("remove", list(&text("what went"))),
            ]),
            change_tools,
        ),
        method(
            "session.list",
            "The sessions in the log",
            Who::Owner,
            object(&[]),
            object(&[("sessions", list(&any_object("a session")))]),
            list_sessions,
        ),
        method(
            "session.show",
            "The entries of a session",
            Who::Owner,
            object(&[
                ("session", text("its key")),
                (
                    "limit?",
                    json!({"type": "integer", "description": "the latest so many"}),
                ),
            ]),
            object(&[("entries", list(&any_object("an entry")))]),
            show,
        ),
        method(
            "session.append",
            "Appends messages to a session",
            Who::Owner,
            object(&[
                ("session", text("its key")),
                ("messages", list(&any_object("a chat message"))),
            ]),
            object(&[("ids", list(&text("the id of an entry")))]),
            append,
        ),
    ]
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Prepare {
    agent: Option<String>,
    meta: Option<Value>,
    session_id: Option<String>,
}

fn prepare(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Prepare {
            agent,
            meta,
            session_id,
        } = params(&mut call)?;
        let meta = match (agent, meta) {
            (Some(name), None) => fleet.agents.get(&name)?.meta(),
            (None, Some(meta)) => AgentInstanceMeta::read(meta)?,
            _ => {
                let what = "session.prepare takes one of `agent` and `meta`";
                return Err(RpcError::new(Why::Invalid, what));
            }
        };
        if let Some(session) = session_id.clone() {
            // One that goes on must be the owner's own.
            let sessions = fleet.sessions.clone();
            blocking(move || Ok(sessions.check_own(&Key::new(session)?)?)).await?;
        }
        answer(fleet.prepare(&meta, session_id).await?)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Close {
    agent: String,
}

fn close(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Close { agent } = params(&mut call)?;
        Ok(json!({"revoked": fleet.close_sessions(&agent)}))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChangeTools {
    agent: String,
    session_id: String,
    #[serde(flatten)]
    delta: ToolDelta,
}

fn change_tools(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let ChangeTools {
            agent,
            session_id,
            delta,
        } = params(&mut call)?;
        let changed = blocking(move || fleet.change_tools(&agent, &session_id, &delta)).await?;
        Ok(json!({"add": changed.add, "remove": changed.remove}))
    })
}

fn list_sessions(fleet: Arc<Fleet>, _: Call) -> Answering {
    Box::pin(blocking(move || {
        let all = fleet.sessions.list()?;
        let sessions: Vec<Value> = all
            .into_iter()
            .map(|info| {
                let changed = info.updated.map(clock::rfc3339);
                let own = fleet.sessions.log().is_own(&info.stream).unwrap_or(false);
                json!({"session": info.stream.key.as_str(), "bytes": info.bytes, "updated": changed,
                    "foreign": !own})
            })
            .collect();
        Ok(json!({"sessions": sessions}))
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Show {
    session: String,
    limit: Option<usize>,
}

fn show(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Show { session, limit } = params(&mut call)?;
        blocking(move || {
            let key = Key::new(session)?;
            let mut entries = Vec::new();
            for record in fleet.sessions.records(&key)? {
                entries.push(record?.value()?);
            }
            let first = entries.len().saturating_sub(limit.unwrap_or(usize::MAX));
            Ok(json!({"entries": entries.split_off(first)}))
        })
        .await
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Append {
    session: String,
    messages: Vec<Message>,
}

fn append(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Append { session, messages } = params(&mut call)?;
        blocking(move || {
            let mut log = fleet.sessions.open(&Key::new(session)?)?;
            let (mut records, mut ids) = (Vec::new(), Vec::new());
            let (now, mut last) = (clock::now(), log.tail().clone());
            for message in messages {
                let entry = LogEntry::derived(Some(&last), &now, Payload::Message { message });
                last = entry.id.clone();
                ids.push(entry.id.to_string());
                records.push(Record::try_from(&entry)?);
            }
            log.append(&records)?;
            Ok(json!({"ids": ids}))
        })
        .await
    })
}

impl From<StoreError> for RpcError {
    fn from(error: StoreError) -> Self {
        let why = match &error {
            StoreError::BadKey { .. } => Why::Invalid,
            StoreError::NoStream { .. } | StoreError::NoEntry { .. } => Why::NotFound,
            StoreError::Exists { .. } => Why::Conflict,
            StoreError::Foreign { .. } | StoreError::NotOurs { .. } => Why::NotAllowed,
            StoreError::State(error) if error.is_not_private() => Why::NotAllowed,
            StoreError::NoState => Why::Invalid,
            _ => Why::Failed,
        };
        RpcError::new(why, error.to_string()).hint(error.hint())
    }
}

impl From<PrepareError> for RpcError {
    fn from(error: PrepareError) -> Self {
        match error {
            PrepareError::Context(error) => error.into(),
            PrepareError::Key(error) => error.into(),
            PrepareError::Token(error) => RpcError::new(Why::Failed, error.to_string()),
            PrepareError::State(error) => StoreError::from(error).into(),
        }
    }
}
