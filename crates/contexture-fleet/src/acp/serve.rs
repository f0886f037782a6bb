//! What the agent tells and asks, and who answers.

use std::collections::HashSet;
use std::future::ready;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use contexture::json::held;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::masked::Masked;
use super::sessions::{Session, Sessions};
use super::shorten::shortened;
use super::terminals::Terminals;
use super::wire::{Incoming, Reader, Refusal, Wire};
use super::{Policy, bounded, files};

/// The most requests of an agent's that are answered at the same time.
const MOST_AT_ONCE: usize = 64;
/// The most memory, in KiB, that requests take which are not answered yet. Beyond, nothing is read.
const MAX_ASKED_KIB: u32 = 32 << 10;
/// The most choices of a question.
const MOST_CHOICES: usize = 32;
/// The longest text that a request is known by.
const LONGEST_ID: usize = 256;

/// What answers for us while an agent works.
pub trait Host: Send + Sync + 'static {
    /// Something that a session of the agent's told: the `update` of `session/update`. They come in order,
    /// and all of a turn before the answer to its prompt.
    fn update(&self, session_id: &str, update: Value);

    /// The agent asks whether it may do something. Dropped when the turn is called off.
    fn permission(&self, ask: Ask) -> BoxFuture<'static, Answer>;

    /// Waited for behind each update, so that a host that cannot keep up slows the agent down.
    fn caught_up(&self) -> BoxFuture<'static, ()> {
        Box::pin(ready(()))
    }
}

/// A question of an agent's: may it do this?
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// Which session asks.
    pub session_id: String,
    /// What it wants to do, for people.
    pub title: String,
    /// The tool, where the agent names it.
    pub tool: Option<String>,
    /// Of what kind that is: `edit`, `execute`, …
    pub kind: Option<String>,
    /// The arguments that the tool would be called with, as far as the agent tells; else null.
    pub arguments: Value,
    /// All that it tells of the call.
    pub tool_call: Value,
    /// What can be answered.
    pub options: Vec<Choice>,
}

/// One answer of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its id.
    pub id: String,
    /// What people read.
    pub name: String,
    /// `allow_once`, `allow_always`, `reject_once` or `reject_always`; what else is there is no permission.
    pub kind: String,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// One of the choices, by its id. An id that is none of them is a denial.
    Selected(String),
    /// The turn is called off.
    Cancelled,
}

/// What the parts of a connection share.
pub(super) struct Shared {
    pub wire: Wire,
    pub sessions: Sessions,
    pub host: Arc<dyn Host>,
    pub masked: Masked,
    pub terminals: Terminals,
    pub policy: Policy,
    /// Without links.
    pub workspace: PathBuf,
    pub longest_ask: Duration,
    /// The requests that are not answered yet.
    pub asked: Mutex<HashSet<String>>,
}

/// What a request is answered with.
type Reply = Result<Value, Fault>;

/// An error that a request is answered with.
pub(super) struct Fault(i64, String);

impl Fault {
    /// The parameters are wrong, or name what may not be named.
    pub fn invalid(why: impl Into<String>) -> Self {
        Self(-32602, why.into())
    }

    /// It did not work.
    pub fn failed(why: impl Into<String>) -> Self {
        Self(-32603, why.into())
    }

    /// There is no such thing.
    pub fn missing(why: impl Into<String>) -> Self {
        Self(-32002, why.into())
    }
}

/// Reads all that the agent says. Gives why there is no more, and nothing where it closed its output.
pub(super) async fn serve(shared: Arc<Shared>, reader: Reader) -> Option<String> {
    let why = listen(&shared, reader).await;
    shared.say_rest().await;
    why.map(|why| shared.masked.text(why))
}

async fn listen(shared: &Arc<Shared>, mut reader: Reader) -> Option<String> {
    // Dropped with this: nothing is answered when nothing is read.
    let mut answering = JoinSet::new();
    let room = Arc::new(Semaphore::new(MAX_ASKED_KIB as usize));
    loop {
        let message = match reader.next().await {
            Ok(Some(message)) => message,
            Ok(None) => return None,
            Err(why) => return Some(why),
        };
        while answering.try_join_next().is_some() {}
        match message {
            Incoming::Answer(id, answer) => {
                // An answer may end a turn: all that was said in it comes before.
                shared.say_rest().await;
                let answer = match answer {
                    Ok(answer) => Ok(shared.masked.value(answer)),
                    Err(refusal) => Err(Refusal {
                        message: shared.masked.text(refusal.message),
                        ..refusal
                    }),
                };
                let open = |answer: &Value| {
                    let id = answer["sessionId"].as_str();
                    id.map(|id| shared.sessions.open(id));
                };
                if !shared.wire.answered(id, answer, open) {
                    tracing::debug!(id, "an agent answered what nobody asked");
                }
            }
            Incoming::Notice { method, mut params } if method == "session/update" => {
                let update = taken(&mut params, "update");
                let session = params["sessionId"].as_str();
                let known = session.and_then(|id| Some((id, shared.sessions.get(id)?)));
                if let (Some((session_id, session)), true) = (known, update.is_object()) {
                    let mut updates = shared.terminals.told(session_id, &update);
                    updates.push(update);
                    let masked = |update| shared.masked.update(session_id, update);
                    for update in updates.into_iter().flat_map(masked) {
                        session.calls().hear(&update);
                        shared.host.update(session_id, update);
                        shared.host.caught_up().await;
                    }
                }
            }
            // Not the protocol's, or of a part of it that we did not say that we know.
            Incoming::Notice { .. } | Incoming::Neither => {}
            Incoming::Request { id, method, params } => match shared.admit(&id, answering.len()) {
                Ok(key) => {
                    let shared = Arc::clone(shared);
                    let params = match method.as_str() {
                        "session/request_permission" => question(params),
                        _ => params,
                    };
                    let kib = u32::try_from(held(&params) >> 10).unwrap_or(MAX_ASKED_KIB);
                    let place = Arc::clone(&room)
                        .acquire_many_owned(kib.min(MAX_ASKED_KIB))
                        .await;
                    answering.spawn(async move {
                        let reply = shared.reply(&method, params).await;
                        drop(place);
                        shared.asked().remove(&key);
                        shared.wire.send(&response(&id, reply)).await;
                    });
                }
                Err(fault) => shared.wire.send(&response(&id, Err(fault))).await,
            },
        }
    }
}

fn response(id: &Value, reply: Reply) -> Value {
    match reply {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(Fault(code, message)) => {
            let error = json!({"code": code, "message": message});
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
    }
}

impl Shared {
    /// Tells what was held back of what the agent said.
    async fn say_rest(&self) {
        for (session_id, update) in self.masked.finish() {
            self.host.update(&session_id, update);
            self.host.caught_up().await;
        }
    }

    /// Whether a request is answered at all: not one that uses the id of another, and not any number of
    /// them.
    fn admit(&self, id: &Value, under_way: usize) -> Result<String, Fault> {
        let key = id.to_string();
        if !(id.is_string() || id.is_number()) || key.len() > LONGEST_ID {
            return Err(Fault(
                -32600,
                "the id is neither text nor number".to_owned(),
            ));
        }
        if under_way >= MOST_AT_ONCE {
            let many = format!("{MOST_AT_ONCE} requests are not answered yet");
            return Err(Fault(-32603, many));
        }
        match self.asked().insert(key.clone()) {
            true => Ok(key),
            false => Err(Fault(-32600, "the id is in use".to_owned())),
        }
    }

    fn asked(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn reply(&self, method: &str, params: Value) -> Reply {
        let session_id = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let can = self.policy;
        let known = match method {
            "session/request_permission" => true,
            "fs/read_text_file" => can.fs_read,
            "fs/write_text_file" => can.fs_write,
            "terminal/create"
            | "terminal/output"
            | "terminal/wait_for_exit"
            | "terminal/kill"
            | "terminal/release" => can.terminal,
            _ => false,
        };
        if !known {
            return Err(Fault(
                -32601,
                format!("there is no `{}` here", bounded(method, 80)),
            ));
        }
        let session = self.sessions.get(&session_id);
        let session = session.ok_or_else(|| Fault::invalid("there is no such session"))?;
        let root = self.workspace.clone();
        match method {
            "session/request_permission" => Ok(self.permission(session_id, &session, params).await),
            "fs/read_text_file" => blocking(move || files::read(&root, &params)).await,
            "fs/write_text_file" => blocking(move || files::write(&root, &params)).await,
            "terminal/create" => self.terminals.create(&session_id, &root, &params),
            _ => self.terminals.answer(method, &session_id, &params).await,
        }
    }

    /// Asks the host. Whatever is not clearly one of the choices is a denial.
    async fn permission(&self, session_id: String, session: &Session, mut params: Value) -> Value {
        let cancelled = json!({"outcome": {"outcome": "cancelled"}});
        let options = choices(&params["options"]);
        let called_off = session.until_called_off();
        if options.is_empty() || session.is_called_off() {
            return cancelled;
        }
        let tool_call = self.masked.value(taken(&mut params, "toolCall"));
        let shown = self.masked.choices(&options);
        let asked = session.calls().asked(&tool_call);
        let ask = Ask {
            session_id,
            title: asked.title.unwrap_or_else(|| "use a tool".to_owned()),
            tool: asked.tool,
            kind: asked.kind,
            arguments: asked.arguments,
            tool_call,
            options: shown.clone(),
        };
        let answer = tokio::select! {
            () = called_off => Ok(Answer::Cancelled),
            answer = timeout(self.longest_ask, self.host.permission(ask)) => answer,
        };
        let selected = match answer {
            Ok(Answer::Cancelled) => return cancelled,
            Ok(Answer::Selected(id)) => {
                let place = shown.iter().position(|choice| choice.id == id);
                place.map(|place| &options[place])
            }
            Err(_) => None,
        };
        let denial = || options.iter().find(|choice| choice.kind == "reject_once");
        match selected.or_else(denial) {
            Some(choice) => json!({"outcome": {"outcome": "selected", "optionId": choice.id}}),
            None => cancelled,
        }
    }
}

/// What is kept of a question while nobody has answered it.
fn question(mut params: Value) -> Value {
    let options = match taken(&mut params, "options") {
        Value::Array(mut all) => {
            all.truncate(2 * MOST_CHOICES);
            all.into_iter().map(shortened).collect()
        }
        _ => Value::Null,
    };
    let session = params["sessionId"]
        .as_str()
        .filter(|id| id.len() <= LONGEST_ID);
    json!({
        "sessionId": session,
        "toolCall": shortened(taken(&mut params, "toolCall")),
        "options": options,
    })
}

fn choices(options: &Value) -> Vec<Choice> {
    let choice = |value: &Value| {
        Some(Choice {
            id: value["optionId"].as_str()?.to_owned(),
            name: bounded(value["name"].as_str().unwrap_or_default(), 200),
            kind: bounded(value["kind"].as_str().unwrap_or_default(), 40),
        })
    };
    let all = options.as_array().into_iter().flatten();
    all.filter_map(choice)
        .filter(|choice| choice.id.len() <= LONGEST_ID)
        .take(MOST_CHOICES)
        .collect()
}

/// A field, taken out; nothing where there is none, whatever the value is.
fn taken(value: &mut Value, name: &str) -> Value {
    value.get_mut(name).map(Value::take).unwrap_or_default()
}

/// Work that waits for a disk.
async fn blocking(work: impl FnOnce() -> Reply + Send + 'static) -> Reply {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Fault::failed("it broke off")))
}
