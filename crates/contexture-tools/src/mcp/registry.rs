//! What is registered now: servers, their states, their tools, and what the user should know of them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::link::{Line, Link};
use super::tool::McpTool;
use crate::{Tool, ToolSpec};

/// The most notices that wait to be taken.
const MOST_NOTICES: usize = 256;

/// The most names of tools that are remembered: a server may make up new ones for ever.
const MOST_SEEN: usize = 50_000;

/// How a server does.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum State {
    /// It is left alone.
    Disabled,
    /// It has not answered yet.
    Starting,
    /// It answers.
    Ready {
        /// How many of its tools are registered.
        tools: usize,
    },
    /// It ended, or did not start, and is started again. Its tools stay: they wait for it for a while.
    Restarting {
        /// Why it ended.
        why: String,
        /// How long it is waited before.
        after: Duration,
    },
    /// It is not tried again.
    Failed {
        /// Why.
        why: String,
    },
}

/// A server and how it does.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// `stdio` or `http`.
    pub transport: &'static str,
    /// The program or the address, without secrets.
    pub address: String,
    /// How it does.
    pub state: State,
}

/// Something that the user should know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A tool says other things of itself than when it was first seen: what was approved of it no
    /// longer holds.
    Changed {
        /// Its name.
        tool: String,
    },
    /// A tool was not registered.
    Refused {
        /// Its name.
        tool: String,
        /// Why.
        why: String,
    },
    /// A tool's schema cannot be used, so that its arguments are not checked.
    Unchecked {
        /// Its name.
        tool: String,
        /// What is wrong with the schema.
        why: String,
    },
    /// A server has more tools than are registered.
    TooMany {
        /// Its name.
        server: String,
        /// How many are registered.
        kept: usize,
    },
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Changed { tool } => {
                write!(
                    f,
                    "{tool} has changed its description: what was allowed of it no longer is"
                )
            }
            Self::Refused { tool, why } => write!(f, "{tool} is not offered: {why}"),
            Self::Unchecked { tool, why } => {
                write!(
                    f,
                    "the arguments of {tool} are not checked, its schema cannot be used: {why}"
                )
            }
            Self::TooMany { server, kept } => {
                write!(
                    f,
                    "the server {server} has more than {kept} tools: the rest is left out"
                )
            }
        }
    }
}

pub(super) struct Registry {
    pub entries: Vec<Entry>,
    /// Who has each wire name, by the tool's name; `None` for what no server may have.
    wires: HashMap<String, Option<String>>,
    /// The digest of each tool as it was last seen.
    seen: HashMap<String, String>,
    notices: VecDeque<Notice>,
}

pub(super) struct Entry {
    pub status: Status,
    pub link: Arc<Link>,
    pub tools: Vec<Arc<McpTool>>,
    pub resources: bool,
    pub prompts: bool,
    /// What it says of its use.
    pub instructions: Option<String>,
    /// Whether it was ready, or failed, at least once.
    pub settled: bool,
}

impl Registry {
    pub fn new(entries: Vec<Entry>, reserved: &[String]) -> Self {
        Self {
            entries,
            wires: reserved.iter().map(|name| (name.clone(), None)).collect(),
            seen: HashMap::new(),
            notices: VecDeque::new(),
        }
    }

    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.notices.drain(..).collect()
    }

    /// The tools of a server are these from now on. The first to have a name keeps it.
    pub fn set_tools(&mut self, server: usize, tools: Vec<Arc<McpTool>>, notices: Vec<Notice>) {
        let prefix = format!("{}:", self.entries[server].status.name);
        let theirs =
            |name: &Option<String>| name.as_ref().is_some_and(|name| name.starts_with(&prefix));
        self.wires.retain(|_, name| !theirs(name));
        notices.into_iter().for_each(|notice| self.notice(notice));
        let mut kept = Vec::new();
        for tool in tools {
            let spec = tool.spec();
            if let Some(holder) = self.wires.get(&spec.wire_name()) {
                let notice = Notice::Refused {
                    tool: spec.name.clone(),
                    why: format!(
                        "`{}` has its name, `{}`, already",
                        holder.as_deref().unwrap_or("a built-in tool"),
                        spec.wire_name()
                    ),
                };
                self.notice(notice);
                continue;
            }
            // Without what was seen, a change would go unseen.
            if self.seen.len() >= MOST_SEEN && !self.seen.contains_key(&spec.name) {
                let tool = spec.name.clone();
                let why = "too many names have been seen".to_owned();
                self.notice(Notice::Refused { tool, why });
                continue;
            }
            self.wires.insert(spec.wire_name(), Some(spec.name.clone()));
            self.see(spec);
            kept.push(tool);
        }
        let entry = &mut self.entries[server];
        entry.status.state = State::Ready { tools: kept.len() };
        entry.tools = kept;
        entry.settled = true;
    }

    /// A server is down.
    pub fn set_down(&mut self, server: usize, state: State) {
        let entry = &mut self.entries[server];
        entry.settled = true;
        match &state {
            State::Failed { why } => {
                entry.link.set(Line::Gone(why.clone()));
                entry.tools.clear();
                (entry.resources, entry.prompts) = (false, false);
                let prefix = format!("{}:", entry.status.name);
                let theirs = |name: &Option<String>| {
                    name.as_ref().is_some_and(|name| name.starts_with(&prefix))
                };
                self.wires.retain(|_, name| !theirs(name));
            }
            State::Restarting { why, .. } => entry.link.set(Line::Down(why.clone())),
            _ => {}
        }
        self.entries[server].status.state = state;
    }

    fn see(&mut self, spec: &ToolSpec) {
        let digest = spec.digest();
        let before = self.seen.insert(spec.name.clone(), digest.clone());
        if before.is_some_and(|before| before != digest) {
            let tool = spec.name.clone();
            self.notice(Notice::Changed { tool });
        }
    }

    /// A server that says the same again and again is heard once.
    fn notice(&mut self, notice: Notice) {
        if self.notices.len() < MOST_NOTICES && !self.notices.contains(&notice) {
            self.notices.push_back(notice);
        }
    }
}
