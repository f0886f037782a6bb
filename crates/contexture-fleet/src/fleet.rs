//! A fleet: everything behind the door.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use contexture::inject::{
    AgentInstanceMeta, CanvasProvider, ContextProvider, CoreProvider, EnvVariable, McpServerStdio,
    RESERVED, TOKEN_VARIABLE, ToolDefinition,
};
use contexture::{Payload, Settings, entry};
use contexture_agent::clock;
use contexture_store::{Key, Log, Sessions, StoreError};
use contexture_tools::Secrets;
use contexture_tools::secrets::mask::Mask;
use serde_json::{Value, json};

use crate::agents::Agents;
use crate::canvas::Canvases;
use crate::journal::{self, Hook};
use crate::live::{Changed, Live, ToolDelta};
use crate::methods::hub::Pending;
use crate::methods::{self, Entry};
use crate::prepare::{PrepareError, Prepared, SessionInjector};
use crate::tokens::{TokenError, Tokens, hex, random};
use crate::work::{Dispatcher, WorkOptions};
use crate::{Answering, Bus, Call, Caller, Event, Method, RpcError, Service, Subscription, Why};

/// The variable that says where the daemon is.
pub const URL_VARIABLE: &str = "CONTEXTURE_URL";

/// Whether a folder may be trusted for the user, by a program that obeys the files of these names in it or above it.
pub type Trusts = Arc<dyn Fn(&Path, &[&str]) -> bool + Send + Sync>;

/// What a fleet is made of.
pub struct Options {
    /// The project's folder.
    pub root: PathBuf,
    /// Where it keeps its things: agents' own folders are below it.
    pub data: PathBuf,
    /// The log.
    pub log: Arc<dyn Log>,
    /// How requests are built for whoever asks for that alone.
    pub settings: Settings,
    /// How long a session's token counts.
    pub token_life: Duration,
    /// How long a person has to answer a question.
    pub patience: Duration,
    /// Our own program, which agents start as an MCP server, and which is the `native` backend.
    pub program: PathBuf,
    /// The command that ends what an agent started when we are killed (`contexture_tools::supervise`).
    pub supervisor: Option<Vec<OsString>>,
    /// How long to wait before an agent that crashed is started again; longer each time.
    pub first_wait: Duration,
    /// Whether an agent may trust what is in the folder that it works in.
    pub trusts: Trusts,
    /// How long a provider may take.
    pub provider_patience: Duration,
    /// Providers beside the built-in ones, in order.
    pub providers: Vec<Arc<dyn ContextProvider>>,
    /// Commands that are told of events.
    pub hooks: Vec<Hook>,
    /// How tasks are handed out.
    pub work: WorkOptions,
}

/// A fleet.
pub struct Fleet {
    pub(crate) root: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) bus: Arc<Bus>,
    pub(crate) tokens: Arc<Tokens>,
    /// Recognises the secrets that an agent could say: tokens, the owner's secret, keys.
    pub(crate) mask: Arc<dyn Mask>,
    pub(crate) injector: SessionInjector,
    pub(crate) live: Live,
    pub(crate) canvases: Canvases,
    pub(crate) agents: Agents,
    pub(crate) sessions: Sessions,
    pub(crate) settings: Settings,
    pub(crate) patience: Duration,
    pub(crate) program: PathBuf,
    pub(crate) supervisor: Option<Vec<OsString>>,
    pub(crate) first_wait: Duration,
    pub(crate) trusts: Trusts,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) pending: Mutex<Pending>,
    pub(crate) closing: AtomicBool,
    url: OnceLock<String>,
    owner: (String, [u8; 32]),
    key: [u8; 32],
    table: Vec<Entry>,
    methods: Vec<Method>,
}

/// Why there is no fleet.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The log cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There are no random numbers.
    #[error(transparent)]
    Token(#[from] TokenError),
}

impl Fleet {
    /// Opens a fleet, and begins to write what happens to the log. To be called inside a runtime.
    pub fn open(options: Options) -> Result<Arc<Self>, FleetError> {
        let tokens = Arc::new(Tokens::new(options.token_life)?);
        let mask: Arc<dyn Mask> = Arc::new((Arc::clone(&tokens), Secrets::from_env()));
        let bus = Arc::new(Bus::new(Arc::clone(&mask)));
        let tokenizer = Arc::clone(&options.settings.tokenizer);
        let injector = SessionInjector::new(Some(Arc::clone(&tokens)), Arc::clone(&bus), tokenizer)
            .patience(options.provider_patience);
        injector.register(Arc::new(CoreProvider));
        injector.register(Arc::new(CanvasProvider));
        for provider in options.providers {
            injector.register(provider);
        }
        let process = hex(&random()?[..4]);
        let writing = journal::write(bus.subscribe(None), Arc::clone(&options.log), process);
        tokio::spawn(writing);
        if !options.hooks.is_empty() {
            let folder = options.root.clone();
            let hooks =
                journal::hooks(bus.subscribe(None), options.hooks, folder, Arc::clone(&bus));
            tokio::spawn(hooks);
        }
        let key = random()?;
        let secret = hex(&random()?);
        tokens.mask_too(&secret);
        tokens.mask_too(&options.work.key.digits());
        let hash = *blake3::keyed_hash(&key, secret.as_bytes()).as_bytes();
        let table = methods::table();
        Ok(Arc::new(Self {
            canvases: Canvases::open(Arc::clone(&options.log))?,
            agents: Agents::open(Arc::clone(&options.log))?,
            sessions: Sessions::new(options.log),
            root: options.root,
            data: options.data,
            settings: options.settings,
            patience: options.patience,
            program: options.program,
            supervisor: options.supervisor,
            first_wait: options.first_wait,
            trusts: options.trusts,
            dispatcher: Dispatcher::new(options.work, Arc::clone(&bus))?,
            pending: Mutex::default(),
            closing: AtomicBool::new(false),
            live: Live::default(),
            url: OnceLock::new(),
            owner: (secret, hash),
            methods: table.iter().map(|entry| entry.method.clone()).collect(),
            bus,
            tokens,
            mask,
            injector,
            key,
            table,
        }))
    }

    /// The owner's secret, for whoever may read the owner's files.
    pub fn owner_secret(&self) -> &str {
        &self.owner.0
    }

    /// The fleet can be reached here: agents are told so.
    pub fn reachable_at(&self, url: &str) {
        let _ = self.url.set(url.to_owned());
    }

    /// What happens.
    pub fn bus(&self) -> &Arc<Bus> {
        &self.bus
    }

    /// What hands out tasks.
    pub fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.dispatcher
    }

    /// The providers.
    pub fn injector(&self) -> &SessionInjector {
        &self.injector
    }

    /// Makes a session's context, and opens the session to its token.
    pub async fn prepare(
        &self,
        meta: &AgentInstanceMeta,
        session_id: Option<String>,
    ) -> Result<Prepared, PrepareError> {
        let prepared = self.injector.prepare(meta, session_id).await?;
        if let Some(grant) = &prepared.grant {
            let tools = prepared.context.tools.clone();
            let counts = |agent: &str, session: &str| self.tokens.counts(agent, session);
            self.live.begin(grant, tools, counts);
        }
        Ok(prepared)
    }

    /// Closes all sessions of an agent: its tokens count no more. How many there were.
    pub fn close_sessions(&self, agent: &str) -> usize {
        self.live.end(agent);
        self.injector.revoke_tokens(agent)
    }

    /// Changes the tools of a session that is under way: in its log, then for its token.
    pub(crate) fn change_tools(
        &self,
        agent: &str,
        session_id: &str,
        delta: &ToolDelta,
    ) -> Result<Changed, RpcError> {
        let changed = self.live.change(agent, session_id, delta)?;
        let key = Key::new(session_id)?;
        // A session whose agent keeps its own log has none here.
        if self.sessions.exists(&key)? {
            let add = delta.add.iter().map(spec_of).collect();
            let mut log = self.sessions.open(&key)?;
            log.say(
                &clock::now(),
                Payload::Tools(entry::ToolDelta {
                    add,
                    remove: changed.remove.clone(),
                    reason: Some(delta.reason.clone()),
                    deferred: None,
                }),
            )?;
        }
        self.tell(Event::ToolsChanged {
            agent: agent.to_owned(),
            session_id: session_id.to_owned(),
            add: changed.add.clone(),
            remove: changed.remove.clone(),
            reason: delta.reason.clone(),
        });
        Ok(changed)
    }

    /// The MCP server that carries a session's tools to any agent: ourselves.
    pub(crate) fn own_server(&self, prepared: &Prepared) -> Option<McpServerStdio> {
        let url = self.url.get()?;
        if prepared.context.tools.is_empty() || prepared.context.token.is_empty() {
            return None;
        }
        let variable = |name: &str, value: &str| EnvVariable {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        Some(McpServerStdio {
            name: RESERVED.to_owned(),
            command: self.program.display().to_string(),
            args: vec!["mcp".to_owned(), "serve".to_owned()],
            env: vec![
                variable(URL_VARIABLE, url),
                variable(TOKEN_VARIABLE, &prepared.context.token),
            ],
        })
    }

    pub(crate) fn tell(&self, event: Event) {
        self.bus.tell(event);
    }
}

impl Service for Fleet {
    fn authenticate(&self, secret: &str) -> Option<Caller> {
        // Both are always looked at. `blake3::Hash` compares in constant time.
        let hash = blake3::keyed_hash(&self.key, secret.as_bytes());
        let is_owner = hash == blake3::Hash::from_bytes(self.owner.1);
        let grant = self.tokens.check(secret);
        match is_owner {
            true => Some(Caller::Owner),
            false => grant.map(Caller::Session),
        }
    }

    fn is_current(&self, caller: &Caller) -> bool {
        match caller {
            Caller::Owner => true,
            Caller::Session(grant) => grant.is_current(),
        }
    }

    fn methods(&self) -> &[Method] {
        &self.methods
    }

    fn call(self: Arc<Self>, call: Call) -> Answering {
        Box::pin(async move {
            let entry = self
                .table
                .iter()
                .find(|entry| entry.method.name == call.method);
            let run = match entry {
                Some(entry) if entry.method.who.allows(&call.caller) => entry.run,
                // To a session, what it may not call and what does not exist are the same.
                Some(_) => return Err(not_yours(&call.method)),
                None if matches!(call.caller, Caller::Session(_)) => {
                    return Err(not_yours(&call.method));
                }
                None => return Err(unknown(&self.methods, &call.method)),
            };
            run(Arc::clone(&self), call).await
        })
    }

    fn subscribe(&self, after: Option<u64>) -> Subscription {
        self.bus.subscribe(after)
    }
}

/// A tool as a model is told of it.
pub(crate) fn spec_of(tool: &ToolDefinition) -> Value {
    json!({"type": "function", "function": {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }})
}

fn not_yours(method: &str) -> RpcError {
    let what = format!(
        "this session may not call `{}`",
        crate::live::clipped(method)
    );
    RpcError::new(Why::NotAllowed, what)
}

fn unknown(methods: &[Method], wanted: &str) -> RpcError {
    let names: Vec<&str> = methods.iter().map(|method| method.name).collect();
    let what = format!("there is no method `{}`", crate::live::clipped(wanted));
    let error = RpcError::new(Why::NoMethod, what);
    match contexture::text::nearest(wanted, &names) {
        Some(name) => error.hint(format!("did you mean `{name}`?")),
        None => error.hint("/openapi.json has all of them"),
    }
}
