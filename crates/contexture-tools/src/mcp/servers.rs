use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::link::{Line, Link};
use super::registry::{Entry, Notice, Registry, State, Status};
use super::{McpError, Prompt, ServerConfig, life, prompts, resources};
use crate::Tool;

/// How servers are kept.
#[derive(Debug, Clone)]
pub struct Options {
    /// The project's folder: where servers start, and what they are told when they ask for it.
    pub root: PathBuf,
    /// The command that [`crate::supervise`] runs in. Without one, servers that do not leave when their
    /// input ends stay behind when we are killed.
    pub supervisor: Option<Vec<OsString>>,
    /// Wire names that no server's tool may have.
    pub reserved: Vec<String>,
    /// How long a server may take to answer the handshake, and to list its tools.
    pub start: Duration,
    /// How often one that ends is started again, unless it was healthy for a while.
    pub restarts: u32,
    /// How long to wait before the first of these; twice as long before each next.
    pub pause: Duration,
    /// The longest such wait.
    pub longest_pause: Duration,
}

impl Options {
    /// The usual patience, for the project in this folder.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            supervisor: None,
            reserved: Vec::new(),
            start: Duration::from_secs(30),
            restarts: 5,
            pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(60),
        }
    }
}

/// MCP servers, each in the background. Dropping this ends them; [`Servers::stop`] lets them leave.
pub struct Servers {
    shared: Arc<Shared>,
    lives: Vec<JoinHandle<()>>,
    stop: watch::Sender<bool>,
}

impl Servers {
    /// Starts all that are not disabled, and returns at once. Needs a Tokio runtime.
    pub fn start(configs: Vec<ServerConfig>, options: Options) -> Self {
        let entry = |config: &ServerConfig| {
            let (state, line) = match config.disabled {
                true => (State::Disabled, Line::Gone("it is disabled".to_owned())),
                false => (
                    State::Starting,
                    Line::Down("it has not answered yet".to_owned()),
                ),
            };
            Entry {
                status: Status {
                    name: config.name.clone(),
                    transport: config.kind(),
                    address: config.shown(),
                    state,
                },
                link: Arc::new(Link::new(config, line)),
                tools: Vec::new(),
                resources: false,
                prompts: false,
                instructions: None,
                settled: config.disabled,
            }
        };
        let registry = Registry::new(configs.iter().map(entry).collect(), &options.reserved);
        let shared = Arc::new(Shared {
            registry: Mutex::new(registry),
            changed: watch::Sender::new(()),
            options,
        });
        let stop = watch::Sender::new(false);
        let enabled = configs
            .into_iter()
            .enumerate()
            .filter(|(_, config)| !config.disabled);
        let lives = enabled
            .map(|(at, config)| {
                tokio::spawn(life::live(
                    Arc::clone(&shared),
                    at,
                    config,
                    stop.subscribe(),
                ))
            })
            .collect();
        Self {
            shared,
            lives,
            stop,
        }
    }

    /// The tools that are registered now, in the order of the configuration.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut resourceful = false;
        let mut tools: Vec<Arc<dyn Tool>> = self.shared.look(|registry| {
            resourceful = registry.entries.iter().any(|entry| entry.resources);
            let tools = registry.entries.iter().flat_map(|entry| &entry.tools);
            tools
                .map(|tool| Arc::clone(tool) as Arc<dyn Tool>)
                .collect()
        });
        if resourceful {
            tools.extend(resources::tools(&self.shared));
        }
        tools
    }

    /// Each server and how it does now.
    pub fn states(&self) -> Vec<Status> {
        let status = |entry: &Entry| entry.status.clone();
        self.shared
            .look(|registry| registry.entries.iter().map(status).collect())
    }

    /// What each server that answered says of its use, by its name.
    pub fn instructions(&self) -> Vec<(String, String)> {
        let said = |entry: &Entry| Some((entry.status.name.clone(), entry.instructions.clone()?));
        self.shared
            .look(|registry| registry.entries.iter().filter_map(said).collect())
    }

    /// Waits until every server was ready, or failed, at least once, but no longer than `patience`; says
    /// whether that is so.
    pub async fn settled(&self, patience: Duration) -> bool {
        let all = || {
            self.shared
                .look(|registry| registry.entries.iter().all(|entry| entry.settled))
        };
        let mut changed = self.shared.changed.subscribe();
        let settled = changed.wait_for(|()| all());
        timeout(patience, settled).await.is_ok()
    }

    /// Waits until something changed: a state, a list of tools, a notice.
    pub async fn changed(&self) {
        let mut changed = self.shared.changed.subscribe();
        let _ = changed.changed().await;
    }

    /// What the user should know since this was last asked.
    pub fn take_notices(&self) -> Vec<Notice> {
        self.shared.change(Registry::take_notices)
    }

    /// The prompts of all servers that answer.
    pub async fn prompts(&self) -> Vec<Prompt> {
        prompts::all(&self.shared).await
    }

    /// The messages of a prompt, by its full name `server:prompt`.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Vec<contexture::Message>, McpError> {
        prompts::one(&self.shared, name, arguments).await
    }

    /// Lets every server leave, and ends those that do not.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        for mut life in std::mem::take(&mut self.lives) {
            if timeout(Duration::from_secs(10), &mut life).await.is_err() {
                life.abort();
            }
        }
    }
}

impl crate::Tools for Servers {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Self::tools(self)
    }

    fn news(&self) -> Vec<String> {
        let notices = self.take_notices();
        notices.iter().map(ToString::to_string).collect()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.lives.iter().for_each(JoinHandle::abort);
    }
}

/// What the lives of servers and their tools share.
pub(super) struct Shared {
    registry: Mutex<Registry>,
    changed: watch::Sender<()>,
    pub options: Options,
}

impl Shared {
    pub fn look<T>(&self, look: impl FnOnce(&Registry) -> T) -> T {
        look(&self.registry.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn change<T>(&self, change: impl FnOnce(&mut Registry) -> T) -> T {
        let changed = change(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.send_replace(());
        changed
    }

    /// The lines to the servers that `has` something; to the one of this name, if given.
    pub fn links(
        &self,
        name: Option<&str>,
        what: &'static str,
        has: impl Fn(&Entry) -> bool,
    ) -> Result<Vec<Arc<Link>>, McpError> {
        self.look(|registry| {
            let all = &registry.entries;
            let Some(name) = name else {
                let having = all.iter().filter(|entry| has(entry));
                return Ok(having.map(|entry| Arc::clone(&entry.link)).collect());
            };
            match all.iter().find(|entry| entry.status.name == name) {
                Some(entry) if has(entry) => Ok(vec![Arc::clone(&entry.link)]),
                Some(_) => Err(McpError::Lacks {
                    server: name.to_owned(),
                    what,
                }),
                None => Err(McpError::Unknown {
                    name: super::bounded(name, 64),
                    known: all.iter().map(|entry| entry.status.name.clone()).collect(),
                }),
            }
        })
    }
}
