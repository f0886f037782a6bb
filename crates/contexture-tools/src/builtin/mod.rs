//! The tools that every agent has. One table gives each its name, what the model reads of it, its
//! schema, its category, what it does to the world, and the function that does it.
//!
//! All of them work for the run that they are called in ([`RunContext::current`]) and for its chat:
//! no argument names another.

mod arguments;
mod history;
mod inject;
mod memory;
mod recall;
mod skills;

use std::sync::Arc;
use std::time::Duration;

use contexture_store::{Memories, Transcripts};
use serde_json::{Map, Value, json};

use self::arguments::{COUNT, OFFSET, object};
pub(crate) use self::inject::fingerprint;
use crate::skills::Skills;
use crate::{Calling, Effect, Outcome, RunContext, Tool, ToolSpec};

/// Where the tools look things up.
#[derive(Clone)]
pub struct Stores {
    /// What was said in the project's chats.
    pub transcripts: Transcripts,
    /// What was done in them.
    pub memories: Memories,
    /// What can be loaded for a task.
    pub skills: Arc<Skills>,
}

/// The tool that reads the session's log. Whoever runs it gives the log to its run first
/// ([`RunContext::set_log`](crate::RunContext::set_log)).
pub const LOOKS_BACK: &str = "context_recall";

/// The built-in tools, in a fixed order.
pub fn tools(stores: Stores) -> Vec<Arc<dyn Tool>> {
    let stores = Arc::new(stores);
    let tool = |row: Row| {
        Arc::new(Builtin {
            spec: row.spec(),
            work: row.work,
            stores: Arc::clone(&stores),
        }) as Arc<dyn Tool>
    };
    table().into_iter().map(tool).collect()
}

/// What a tool does. It may wait for a disk or a database, and runs where that is no harm.
type Work = fn(&Stores, &RunContext, &Map<String, Value>) -> Result<Outcome, String>;

struct Row {
    name: &'static str,
    category: &'static str,
    effect: Effect,
    description: &'static str,
    parameters: Value,
    work: Work,
}

fn table() -> Vec<Row> {
    vec![
        Row {
            name: "chat_send",
            category: "chat",
            effect: Effect::Tells,
            description: "Say something to the user now, while you go on working. \
                For news that should not wait: what you are about to do, what you found, what you need. \
                Your final answer needs no tool.",
            parameters: object(
                &json!({ "text": {
                    "type": "string", "minLength": 1, "maxLength": MOST_SAID,
                    "description": "What to say, in plain words or Markdown; never raw JSON.",
                } }),
                &["text"],
            ),
            work: send,
        },
        Row {
            name: "chat_load_history",
            category: "chat",
            effect: Effect::Tells,
            description: "Load earlier lines of this chat from its transcript into the conversation, as one message \
                before the user's. Use it when the user refers to something that you cannot see.",
            parameters: object(
                &json!({
                    "count": COUNT.schema("How many lines."),
                    "offset": OFFSET.schema("How many of the newest lines to pass over."),
                    "keyword": {
                        "type": "string", "maxLength": history::LONGEST_KEYWORD,
                        "description": "Only lines that match it: a regular expression, in any case; what is none is looked for as it is.",
                    },
                }),
                &[],
            ),
            work: history::load,
        },
        Row {
            name: "agent_load_context",
            category: "context",
            effect: Effect::Tells,
            description: "Load the record of earlier runs in this chat into the conversation: what was asked, what came \
                out, which tools ran and which failed. Use it before you continue work that you cannot see.",
            parameters: object(
                &json!({
                    "count": COUNT.schema("How many runs."),
                    "offset": OFFSET.schema("How many of the newest runs to pass over."),
                }),
                &[],
            ),
            work: memory::load,
        },
        Row {
            name: "skills_list",
            category: "skills",
            effect: Effect::Reads,
            description: "List all skills, a line each: its name, and what it is for.",
            parameters: object(&json!({}), &[]),
            work: skills::list,
        },
        Row {
            name: "skills_load",
            category: "skills",
            effect: Effect::Tells,
            description: "Load a skill's instructions into the conversation. Do it before you begin a task that the \
                skill is for; once is enough.",
            parameters: object(
                &json!({ "name": {
                    "type": "string", "minLength": 1, "maxLength": skills::LONGEST_NAME,
                    "description": "The skill's name, or a part of it that no other has.",
                } }),
                &["name"],
            ),
            work: skills::load,
        },
        Row {
            name: LOOKS_BACK,
            category: "context",
            effect: Effect::Reads,
            description: "Read again what was summarised, masked or dropped from this conversation to save room. \
                With entryId: that entry, whole, a page at a time. With words: entries that hold all of them, newest first. \
                With neither: a list of what is not shown. Do this before you guess at a detail that a summary left out.",
            parameters: object(
                &json!({
                    "entryId": {
                        "type": "string", "minLength": 1, "maxLength": 200,
                        "description": "The entry, as a mark, a summary or a search names it; the beginning of its id is enough.",
                    },
                    "words": {
                        "type": "string", "maxLength": recall::LONGEST_QUERY,
                        "description": "Words to look for, in any case.",
                    },
                    "offset": recall::OFFSET.schema("Where to go on: a character of the entry, or a hit of the search."),
                    "limit": recall::LIMIT.schema("The most characters of the entry, or the most hits of the search (10)."),
                }),
                &[],
            ),
            work: recall::recall,
        },
    ]
}

impl Row {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            parameters: self.parameters.clone(),
            category: self.category.to_owned(),
            effect: self.effect,
        }
    }
}

struct Builtin {
    spec: ToolSpec,
    work: Work,
    stores: Arc<Stores>,
}

impl Tool for Builtin {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: &'a Map<String, Value>) -> Calling<'a> {
        Box::pin(async move {
            let Some(run) = RunContext::current() else {
                let name = &self.spec.name;
                return Outcome::failed(format!(
                    "{name} works only inside a run, and there is none"
                ));
            };
            let (stores, arguments, work) =
                (Arc::clone(&self.stores), arguments.clone(), self.work);
            let working = tokio::task::spawn_blocking(move || work(&stores, &run, &arguments));
            match tokio::time::timeout(PATIENCE, working).await {
                Ok(Ok(done)) => done.unwrap_or_else(Outcome::failed),
                Ok(Err(_)) => Outcome::failed(format!("{} broke off", self.spec.name)),
                Err(_) => Outcome::failed(format!(
                    "{} got no answer from the store in {} s",
                    self.spec.name,
                    PATIENCE.as_secs()
                )),
            }
        })
    }
}

/// How long the store may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most characters of what is said at once.
const MOST_SAID: usize = 100_000;

fn send(_: &Stores, run: &RunContext, arguments: &Map<String, Value>) -> Result<Outcome, String> {
    let text = arguments::text(arguments, "text", MOST_SAID)?.unwrap_or_default();
    if text.trim().is_empty() {
        return Err("there is nothing to say: `text` is empty".to_owned());
    }
    run.tell(text);
    Ok(Outcome::done("Sent: the user sees it now.").saying("told the user"))
}
