//! What can be asked of a fleet, whatever it is asked over.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::Subscription;
use crate::tokens::Grant;

/// A fleet, seen from its door.
pub trait Service: Send + Sync + 'static {
    /// Who has this secret: the owner's, or a session's token. Nobody, where it is neither, and it does
    /// not say why.
    fn authenticate(&self, secret: &str) -> Option<Caller>;

    /// Whether what the caller came with still counts: streams ask it again and again.
    fn is_current(&self, caller: &Caller) -> bool;

    /// All methods, for whoever describes them.
    fn methods(&self) -> &[Method];

    /// Does what is asked.
    fn call(self: Arc<Self>, call: Call) -> Answering;

    /// What happens from now on; with `after`, also what happened behind that one, as far as it is
    /// remembered.
    fn subscribe(&self, after: Option<u64>) -> Subscription;
}

/// An answer under way. Dropping it calls it off.
pub type Answering = Pin<Box<dyn Future<Output = Result<Value, RpcError>> + Send>>;

/// Who asks. Decided by the secret that came with the call and by nothing in the call itself.
#[derive(Debug, Clone)]
pub enum Caller {
    /// Whoever owns the fleet: may do everything.
    Owner,
    /// A session of an agent: may use the internal tools of its scope.
    Session(Arc<Grant>),
}

/// Something that is asked.
#[derive(Debug)]
pub struct Call {
    /// Who asks.
    pub caller: Caller,
    /// Which method.
    pub method: String,
    /// With what; an object.
    pub params: Value,
    /// Where news on the way go, from methods that have some.
    pub updates: Option<Updates>,
}

/// Takes what a method tells before its answer. When nobody listens any more, it is closed.
pub type Updates = mpsc::Sender<Value>;

/// A method.
#[derive(Debug, Clone)]
pub struct Method {
    /// Its name, as `agent.start`.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Who may call it.
    pub who: Who,
    /// Whether it tells something before its answer.
    pub streams: bool,
    /// True if programs ask it again and again: an answer is not worth a line of the log.
    pub polled: bool,
    /// The JSON Schema of its parameters.
    pub params: Value,
    /// The JSON Schema of its answer.
    pub result: Value,
}

/// Who may call a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The owner alone.
    Owner,
    /// A session alone, about itself.
    Session,
    /// Both.
    Either,
}

impl Who {
    /// Whether it allows this caller.
    pub fn allows(self, caller: &Caller) -> bool {
        match caller {
            Caller::Owner => self != Self::Session,
            Caller::Session(_) => self != Self::Owner,
        }
    }
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    /// Of what kind it is.
    pub why: Why,
    /// What a person reads.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Kinds of errors, with the codes that they have on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The method is unknown.
    NoMethod,
    /// The parameters are wrong.
    Invalid,
    /// The caller may not.
    NotAllowed,
    /// There is no such thing.
    NotFound,
    /// Not in this state: it is running, it exists already, it was called off.
    Conflict,
    /// It does not fit the budget.
    TooLarge,
    /// It failed: I/O, a model, a peer.
    Failed,
}

impl Why {
    /// The code in JSON-RPC.
    pub fn code(self) -> i64 {
        match self {
            Self::NoMethod => -32601,
            Self::Invalid => -32602,
            Self::Failed => -32000,
            Self::NotAllowed => -32001,
            Self::NotFound => -32002,
            Self::Conflict => -32003,
            Self::TooLarge => -32004,
        }
    }

    /// Its name, for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoMethod => "no_method",
            Self::Invalid => "invalid",
            Self::Failed => "failed",
            Self::NotAllowed => "not_allowed",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::TooLarge => "too_large",
        }
    }

    /// The kind of a code.
    pub fn of_code(code: i64) -> Self {
        let all = [
            Self::NoMethod,
            Self::Invalid,
            Self::NotAllowed,
            Self::NotFound,
            Self::Conflict,
            Self::TooLarge,
        ];
        let known = all.into_iter().find(|why| why.code() == code);
        known.unwrap_or(Self::Failed)
    }
}

impl RpcError {
    /// An error of this kind.
    pub fn new(why: Why, message: impl Into<String>) -> Self {
        Self {
            why,
            message: message.into(),
            hint: None,
        }
    }

    /// With what to do about it.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// As it stands in a JSON-RPC response.
    pub fn to_value(&self) -> Value {
        let mut data = json!({"kind": self.why.as_str()});
        if let Some(hint) = &self.hint {
            data["hint"] = json!(hint);
        }
        json!({"code": self.why.code(), "message": self.message, "data": data})
    }
}
