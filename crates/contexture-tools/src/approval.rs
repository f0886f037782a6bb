//! Who may let a tool act, and for how long that holds.
//!
//! An approval is of one tool as it described itself, and of one list of arguments, to the byte. So
//! nothing that was approved can become something else: not by other arguments, not by a tool that
//! changes what it says it does.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::ToolSpec;

/// Somebody who can be asked.
pub trait Approver: Send + Sync {
    /// Asks. Who does not answer within [`Approvals`]' patience has said no.
    fn ask<'a>(&'a self, question: &'a Question<'a>) -> Asking<'a>;
}

/// A question under way.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// What is asked.
#[derive(Debug)]
pub struct Question<'a> {
    /// Which tool.
    pub tool: &'a ToolSpec,
    /// With exactly these arguments.
    pub arguments: &'a Map<String, Value>,
    /// Whether the tool was allowed before and has since changed what it says of itself.
    pub changed: bool,
}

/// What was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// This call.
    Once,
    /// This call, and each that is equal to it, as long as the session lasts.
    Always,
    /// Not this time.
    No,
    /// Not this call, nor any that is equal to it.
    Never,
}

/// Whether a call may go ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may.
    Allowed,
    /// It may not, and this is what the model is told.
    Denied(String),
}

/// What is allowed without a question, whom to ask for the rest, and what was answered.
pub struct Approvals {
    standing: Standing,
    approver: Option<Arc<dyn Approver>>,
    patience: Duration,
    state: Mutex<State>,
}

/// What is allowed from the start.
#[derive(Default)]
pub struct Standing {
    /// Everything.
    pub all: bool,
    /// These tools: a name, or `server:*` for all of a server's.
    pub tools: Vec<String>,
    /// Calls of which this says so, such as commands from a list.
    pub calls: Option<Rule>,
}

/// Says whether a call is allowed from the start.
pub type Rule = Box<dyn Fn(&ToolSpec, &Map<String, Value>) -> bool + Send + Sync>;

#[derive(Default)]
struct State {
    answers: HashMap<String, Answer>,
    /// What each tool that was allowed said of itself then.
    digests: HashMap<String, String>,
}

/// How long a person has to answer.
const PATIENCE: Duration = Duration::from_secs(300);

impl Approvals {
    /// With nobody to ask: what is not allowed from the start is denied.
    pub fn new(standing: Standing) -> Self {
        Self {
            standing,
            approver: None,
            patience: PATIENCE,
            state: Mutex::default(),
        }
    }

    /// With somebody to ask, for so long.
    pub fn asking(self, approver: Arc<dyn Approver>, patience: Duration) -> Self {
        Self {
            approver: Some(approver),
            patience,
            ..self
        }
    }

    /// Whether this call may go ahead; asks where nothing else decides.
    pub async fn decide(&self, tool: &ToolSpec, arguments: &Map<String, Value>) -> Decision {
        let digest = tool.digest();
        let changed = match self.state().digests.get(&tool.name) {
            Some(known) => *known != digest,
            None => false,
        };
        if !changed && self.stands(tool, arguments) {
            self.note(tool, &digest);
            return Decision::Allowed;
        }
        let call = call_digest(&digest, arguments);
        let known = self.state().answers.get(&call).copied();
        let answer = match (known, &self.approver) {
            (Some(answer), _) => answer,
            (None, Some(approver)) => {
                let question = Question {
                    tool,
                    arguments,
                    changed,
                };
                let asked = tokio::time::timeout(self.patience, approver.ask(&question)).await;
                asked.unwrap_or(Answer::No)
            }
            (None, None) => return Decision::Denied(nobody(tool, changed)),
        };
        match answer {
            Answer::Once => self.note(tool, &digest),
            Answer::Always => {
                self.note(tool, &digest);
                self.state().answers.insert(call, answer);
            }
            Answer::Never => drop(self.state().answers.insert(call, answer)),
            Answer::No => {}
        }
        match answer {
            Answer::Once | Answer::Always => Decision::Allowed,
            Answer::No | Answer::Never => Decision::Denied(format!(
                "The user did not allow this call of {}. Do not try it again in another way; ask the \
                 user, or go on without it.",
                tool.name
            )),
        }
    }

    fn stands(&self, tool: &ToolSpec, arguments: &Map<String, Value>) -> bool {
        let named = |pattern: &String| match pattern.strip_suffix(":*") {
            Some(server) => tool
                .name
                .strip_prefix(server)
                .is_some_and(|rest| rest.starts_with(':')),
            None => *pattern == tool.name,
        };
        self.standing.all
            || self.standing.tools.iter().any(named)
            || self
                .standing
                .calls
                .as_ref()
                .is_some_and(|allows| allows(tool, arguments))
    }

    fn note(&self, tool: &ToolSpec, digest: &str) {
        self.state()
            .digests
            .insert(tool.name.clone(), digest.to_owned());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The identity of a call: the tool as it describes itself, and every byte of its arguments.
fn call_digest(tool: &str, arguments: &Map<String, Value>) -> String {
    let exact = serde_json::to_string(arguments).unwrap_or_default();
    let mut hasher = blake3::Hasher::new();
    hasher.update(tool.as_bytes());
    hasher.update(exact.as_bytes());
    hasher.finalize().to_hex().to_string()
}

fn nobody(tool: &ToolSpec, changed: bool) -> String {
    let name = &tool.name;
    let why = match changed {
        true => "has changed its description since it was allowed, and ",
        false => "",
    };
    format!(
        "{name} {why}needs the user's permission, and nobody is there to give it. Go on without it, or say \
         that it has to be allowed (--allow {name})."
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;
    use crate::Effect;

    struct Says(Answer, AtomicUsize);

    impl Approver for Says {
        fn ask<'a>(&'a self, _: &'a Question<'a>) -> Asking<'a> {
            self.1.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { self.0 })
        }
    }

    fn tool(description: &str) -> ToolSpec {
        ToolSpec {
            name: "files:write".into(),
            description: description.into(),
            parameters: json!({"type": "object"}),
            category: "mcp".into(),
            effect: Effect::Acts,
        }
    }

    fn arguments(path: &str) -> Map<String, Value> {
        Map::from_iter([("path".to_owned(), json!(path))])
    }

    fn says(answer: Answer) -> (Approvals, Arc<Says>) {
        let person = Arc::new(Says(answer, AtomicUsize::new(0)));
        let approvals =
            Approvals::new(Standing::default()).asking(person.clone(), Duration::from_secs(5));
        (approvals, person)
    }

    async fn allowed(approvals: &Approvals, tool: &ToolSpec, path: &str) -> bool {
        approvals.decide(tool, &arguments(path)).await == Decision::Allowed
    }

    #[tokio::test]
    async fn always_is_for_the_same_arguments_only() {
        let (approvals, person) = says(Answer::Always);
        assert!(allowed(&approvals, &tool("writes"), "a").await);
        assert!(allowed(&approvals, &tool("writes"), "a").await);
        assert_eq!(person.1.load(Ordering::SeqCst), 1);
        assert!(allowed(&approvals, &tool("writes"), "b").await);
        assert_eq!(person.1.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn once_is_once_and_never_is_never() {
        let (approvals, person) = says(Answer::Once);
        for _ in 0..2 {
            assert!(allowed(&approvals, &tool("writes"), "a").await);
        }
        assert_eq!(person.1.load(Ordering::SeqCst), 2);
        let (approvals, person) = says(Answer::Never);
        for _ in 0..2 {
            assert!(!allowed(&approvals, &tool("writes"), "a").await);
        }
        assert_eq!(person.1.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_tool_that_changes_is_asked_about_again() {
        let (approvals, person) = says(Answer::Always);
        assert!(allowed(&approvals, &tool("writes"), "a").await);
        assert!(allowed(&approvals, &tool("writes, and mails it"), "a").await);
        assert_eq!(person.1.load(Ordering::SeqCst), 2);

        let standing = Standing {
            tools: vec!["files:*".into()],
            ..Standing::default()
        };
        let approvals = Approvals::new(standing);
        assert!(allowed(&approvals, &tool("writes"), "a").await);
        let denied = approvals.decide(&tool("mails"), &arguments("a")).await;
        assert!(matches!(denied, Decision::Denied(why) if why.contains("changed")));
    }

    #[tokio::test]
    async fn nobody_there_is_a_no_and_so_is_silence() {
        let approvals = Approvals::new(Standing::default());
        assert!(!allowed(&approvals, &tool("writes"), "a").await);

        struct Silent;
        impl Approver for Silent {
            fn ask<'a>(&'a self, _: &'a Question<'a>) -> Asking<'a> {
                Box::pin(std::future::pending())
            }
        }
        let approvals =
            Approvals::new(Standing::default()).asking(Arc::new(Silent), Duration::from_millis(10));
        assert!(!allowed(&approvals, &tool("writes"), "a").await);
    }

    #[tokio::test]
    async fn a_pattern_names_a_server_and_no_other() {
        let standing = Standing {
            tools: vec!["file:*".into(), "files:writ".into()],
            ..Standing::default()
        };
        let approvals = Approvals::new(standing);
        assert!(!allowed(&approvals, &tool("writes"), "a").await);
    }
}
