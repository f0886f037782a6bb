use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use contexture_tools::Secrets;
use contexture_tools::inherit::is_of_session;
use contexture_tools::process::{Process, Program};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::masked::Masked;
use super::serve::{Host, Shared, serve};
use super::sessions::{Session, Sessions};
use super::terminals::Terminals;
use super::wire::{Asking, Reader, Refusal, Unasked, Wire};
use super::{AcpError, AgentFacts, Begin, Launch, PROTOCOL_VERSION, bounded};

/// How long what an agent said before its end may take to be read.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The end of a turn that was called off.
const CANCELLED: &str = "cancelled";

/// What the protocol calls "sign in first". Some use the number for anything.
const AUTH_REQUIRED: i64 = -32000;

/// An agent's program under way. Dropping it ends it, and all that it started.
pub struct Connection {
    command: String,
    shared: Arc<Shared>,
    facts: AgentFacts,
    patience: Duration,
    sign_in: Vec<String>,
    stop: watch::Sender<bool>,
    ended: watch::Receiver<Option<String>>,
    keeper: JoinHandle<()>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// Why, in the agent's word: `end_turn`, `max_tokens`, `max_turn_requests` or `refusal`. A turn that was called
    /// off is `cancelled`, whatever the agent says of it.
    pub stop_reason: String,
    /// What it cost, where the agent tells.
    pub usage: Option<Value>,
}

impl Connection {
    /// Starts an agent, and agrees with it on the protocol.
    pub async fn launch(launch: Launch, host: Arc<dyn Host>) -> Result<Self, AcpError> {
        let mut connection = Self::start(launch, host)?;
        let can = connection.shared.policy;
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": {
                "fs": {"readTextFile": can.fs_read, "writeTextFile": can.fs_write},
                "terminal": can.terminal,
            },
            "clientInfo": {
                "name": "contexture", "title": "Contexture", "version": env!("CARGO_PKG_VERSION"),
            },
        });
        let begun = match connection.ask("initialize", params, false).await {
            Ok(answer) => match &answer["protocolVersion"] {
                version if *version == PROTOCOL_VERSION => Ok(AgentFacts::read(&answer)),
                version => Err(AcpError::Version {
                    command: connection.command.clone(),
                    theirs: bounded(&version.to_string(), 40),
                }),
            },
            Err(error) => Err(error),
        };
        match begun {
            Ok(facts) => {
                connection.facts = facts;
                Ok(connection)
            }
            Err(error) => {
                connection.stop().await;
                Err(error)
            }
        }
    }

    fn start(launch: Launch, host: Arc<dyn Host>) -> Result<Self, AcpError> {
        let command = launch.program;
        let not_started = |error: io::Error| AcpError::NotStarted {
            command: command.clone(),
            why: error.to_string(),
        };
        let workspace = launch.workspace.canonicalize().map_err(|error| {
            let place = launch.workspace.display();
            not_started(io::Error::new(
                error.kind(),
                format!("its workspace {place}: {error}"),
            ))
        })?;
        let program = Program::new(launch.kind, &command, &workspace)
            .args(&launch.args)
            .envs(launch.env.clone())
            .supervisor(launch.supervisor.as_deref());
        let started = Process::start(&program);
        let (process, output, input) = started.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => AcpError::NotInstalled {
                command: command.clone(),
                install: launch.install.clone(),
            },
            _ => not_started(error),
        })?;
        let (wire, writing) = Wire::new(input);
        let of_session = |name: &str| name == "PATH" || is_of_session(name);
        let session = launch.env.iter().filter(|(name, _)| of_session(name));
        let session = session
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let secrets = Secrets::of_variables(launch.env);
        let shared = Arc::new(Shared {
            wire,
            sessions: Sessions::default(),
            host,
            masked: Masked::new(Arc::new((Arc::clone(&launch.mask), secrets))),
            terminals: Terminals::new(launch.supervisor.clone(), session),
            policy: launch.policy,
            workspace,
            longest_ask: launch.longest_ask,
            asked: Default::default(),
        });
        let (stop, stopping) = watch::channel(false);
        let (tell, ended) = watch::channel(None);
        let keeping = keep(
            process,
            Tasks {
                reading: tokio::spawn(serve(Arc::clone(&shared), Reader::new(output))),
                writing: tokio::spawn(writing),
            },
            Arc::clone(&shared),
            stopping,
            tell,
        );
        Ok(Self {
            command,
            shared,
            facts: AgentFacts::default(),
            patience: launch.patience,
            sign_in: launch.sign_in,
            stop,
            ended,
            keeper: tokio::spawn(keeping),
        })
    }

    /// What the agent says of itself.
    pub fn agent(&self) -> &AgentFacts {
        &self.facts
    }

    /// Begins a session, and gives its id. Where the agent wants a sign-in that needs nobody, it gets it.
    pub async fn new_session(&self, begin: Begin) -> Result<String, AcpError> {
        const METHOD: &str = "session/new";
        let params = self.begin(begin);
        let answer = match self.ask(METHOD, params.clone(), true).await {
            Err(AcpError::SignIn { command, methods }) => {
                if !self.signed_in().await? {
                    return Err(AcpError::SignIn { command, methods });
                }
                self.ask(METHOD, params, true).await?
            }
            other => other?,
        };
        let id = answer["sessionId"].as_str();
        id.filter(|id| self.shared.sessions.get(id).is_some())
            .map(str::to_owned)
            .ok_or_else(|| AcpError::Malformed {
                command: self.command.clone(),
                method: METHOD,
                what: "the id of a session",
            })
    }

    /// Takes up an earlier session, where the agent can. What was said in it comes as updates first.
    pub async fn load_session(&self, id: &str, begin: Begin) -> Result<(), AcpError> {
        if !self.facts.load_session {
            return Err(AcpError::Lacks {
                command: self.command.clone(),
                what: "take up an earlier session",
            });
        }
        let mut params = self.begin(begin);
        params["sessionId"] = json!(id);
        let is_new = self.shared.sessions.get(id).is_none();
        if !self.shared.sessions.open(id) {
            return Err(self.no_session(id));
        }
        let loaded = self.ask("session/load", params, false).await;
        if loaded.is_err() && is_new {
            self.shared.sessions.close(id);
        }
        loaded.map(|_| ())
    }

    /// Gives a session something to do, and waits for the end of the turn, however long it takes. Dropping
    /// the future calls the turn off.
    pub async fn prompt(&self, session_id: &str, blocks: Vec<Value>) -> Result<Ended, AcpError> {
        const METHOD: &str = "session/prompt";
        let session = self.session(session_id)?;
        let turn = session.begin().await.ok_or_else(|| AcpError::Busy {
            command: self.command.clone(),
        })?;
        let params = json!({"sessionId": session_id, "prompt": blocks});
        let asking = Asking {
            turn: Some(turn),
            ..Asking::default()
        };
        let asked = self.shared.wire.ask(METHOD, &params, asking).await;
        let (_, told) = self.asked(METHOD, asked).await?;
        let mut call_off = CallOff {
            connection: Some(self),
            session_id,
        };
        let answer = told.await;
        call_off.connection = None;
        let is_called_off = session.is_called_off();
        let mut answer = match self.answer(METHOD, answer.ok()).await {
            // Some break off with an error.
            Err(AcpError::Refused { .. }) if is_called_off => Value::Null,
            answer => answer?,
        };
        let reason = match is_called_off {
            true => Some(CANCELLED),
            false => answer["stopReason"].as_str(),
        };
        let reason = reason.ok_or_else(|| AcpError::Malformed {
            command: self.command.clone(),
            method: METHOD,
            what: "the reason why it stopped",
        })?;
        Ok(Ended {
            stop_reason: bounded(reason, 80),
            usage: answer
                .get_mut("usage")
                .map(Value::take)
                .filter(Value::is_object),
        })
    }

    /// Calls a turn off. Its prompt is still to be answered; what the agent asks is answered at once.
    pub fn cancel(&self, session_id: &str) {
        if let Some(session) = self.shared.sessions.get(session_id) {
            session.call_off();
            let params = json!({"sessionId": session_id});
            let notice = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params});
            self.shared.wire.send_soon(&notice);
        }
    }

    /// Resolves when the agent is gone: how it ended, and what it said last.
    pub async fn ended(&self) -> String {
        let mut ended = self.ended.clone();
        let how = ended.wait_for(Option::is_some).await;
        let how = how.ok().and_then(|how| how.clone());
        how.unwrap_or_else(|| "it was ended".to_owned())
    }

    /// Whether the agent is gone.
    pub fn is_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Ends the agent, politely first, and all that it started.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        self.ended().await;
    }

    /// The folder that it works in, without links.
    pub fn workspace(&self) -> &Path {
        &self.shared.workspace
    }

    fn begin(&self, begin: Begin) -> Value {
        let server = |server: &contexture::inject::McpServerStdio| {
            // All four are demanded, also where there is nothing to say.
            json!({"name": server.name, "command": server.command, "args": server.args, "env": server.env})
        };
        let servers: Vec<Value> = begin.mcp_servers.iter().map(server).collect();
        let mut params = Map::new();
        params.insert("cwd".to_owned(), json!(self.shared.workspace));
        params.insert("mcpServers".to_owned(), json!(servers));
        if let Some(text) = begin.system_prompt.filter(|_| self.facts.system_prompt) {
            let content = json!([{"type": "text", "text": text}]);
            let prompt = json!({"mode": "append", "content": content});
            params.insert("systemPrompt".to_owned(), prompt);
        }
        if let Some(meta) = begin.meta {
            params.insert("_meta".to_owned(), Value::Object(meta));
        }
        Value::Object(params)
    }

    /// Tries the ways to sign in that need nobody and that the agent offers.
    async fn signed_in(&self) -> Result<bool, AcpError> {
        for id in &self.sign_in {
            if !self
                .facts
                .auth_methods
                .iter()
                .any(|method| method.id == *id)
            {
                continue;
            }
            let params = json!({ "methodId": id });
            match self.ask("authenticate", params, false).await {
                Ok(_) => return Ok(true),
                Err(AcpError::Refused { .. } | AcpError::SignIn { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    fn session(&self, id: &str) -> Result<Arc<Session>, AcpError> {
        self.shared
            .sessions
            .get(id)
            .ok_or_else(|| self.no_session(id))
    }

    fn no_session(&self, id: &str) -> AcpError {
        AcpError::NoSession {
            command: self.command.clone(),
            session_id: bounded(id, 80),
        }
    }

    /// Asks for something that comes within the time that the agent has to begin.
    async fn ask(
        &self,
        method: &'static str,
        params: Value,
        opens: bool,
    ) -> Result<Value, AcpError> {
        let asking = Asking { opens, turn: None };
        let waiting = async {
            let asked = self.shared.wire.ask(method, &params, asking).await;
            let (id, told) = self.asked(method, asked).await?;
            let _forget = Forget(&self.shared.wire, id);
            self.answer(method, told.await.ok()).await
        };
        let answer = timeout(self.patience, waiting).await;
        answer.unwrap_or_else(|_| {
            Err(AcpError::TimedOut {
                command: self.command.clone(),
                method,
                after: self.patience,
            })
        })
    }

    async fn asked<T>(
        &self,
        method: &'static str,
        asked: Result<T, Unasked>,
    ) -> Result<T, AcpError> {
        match asked {
            Ok(asked) => Ok(asked),
            Err(Unasked::Gone) => Err(self.gone(method).await),
            Err(Unasked::TooMany(many)) => Err(AcpError::TooMany {
                command: self.command.clone(),
                many,
            }),
        }
    }

    /// What an answer means; none comes from an agent that is gone.
    async fn answer(
        &self,
        method: &'static str,
        answer: Option<Result<Value, Refusal>>,
    ) -> Result<Value, AcpError> {
        let command = self.command.clone();
        let Refusal { code, message } = match answer {
            Some(Ok(answer)) => return Ok(answer),
            Some(Err(refusal)) => refusal,
            None => return Err(self.gone(method).await),
        };
        let methods = &self.facts.auth_methods;
        let says_so = message.to_lowercase().contains("auth");
        if code == AUTH_REQUIRED && (says_so || !methods.is_empty()) && method != "authenticate" {
            let methods = methods.iter().map(|method| method.name.clone()).collect();
            return Err(AcpError::SignIn { command, methods });
        }
        Err(AcpError::Refused {
            command,
            method,
            code,
            message,
        })
    }

    async fn gone(&self, method: &'static str) -> AcpError {
        AcpError::Ended {
            command: self.command.clone(),
            method,
            how: self.ended().await,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.keeper.abort();
        self.shared.wire.close();
        self.shared.terminals.drop_all();
    }
}

/// Calls a turn off that nobody waits for any more.
struct CallOff<'a> {
    connection: Option<&'a Connection>,
    session_id: &'a str,
}

impl Drop for CallOff<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection {
            connection.cancel(self.session_id);
        }
    }
}

/// Forgets what nobody waits for any more.
struct Forget<'a>(&'a Wire, u64);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.forget(self.1);
    }
}

/// What works for a connection.
struct Tasks {
    reading: JoinHandle<Option<String>>,
    writing: JoinHandle<()>,
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.reading.abort();
        self.writing.abort();
    }
}

async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Keeps an agent until it is gone or is to go. Tells how it ended.
async fn keep(
    mut process: Process,
    mut tasks: Tasks,
    shared: Arc<Shared>,
    mut stopping: watch::Receiver<bool>,
    tell: watch::Sender<Option<String>>,
) {
    let why = tokio::select! {
        read = &mut tasks.reading => Some(read.ok().flatten()),
        () = process.ended() => {
            // What it started may hold its output open, and is not waited for.
            let read = timeout(LAST_WORDS, &mut tasks.reading).await;
            Some(read.ok().and_then(Result::ok).flatten())
        }
        _ = &mut tasks.writing => Some(Some("it closed its input".to_owned())),
        () = told(&mut stopping) => None,
    };
    // With the writer goes its input, on which an agent leaves by itself.
    tasks.writing.abort();
    let how = match why {
        None => {
            process.end().await;
            "it was stopped".to_owned()
        }
        Some(None) => process.post_mortem().await,
        Some(Some(why)) => process.post_mortem_of(&why).await,
    };
    drop(tasks);
    shared.terminals.end().await;
    // What it said last may also quote a key that nobody knows.
    let how = Secrets::default().hide(&shared.masked.text(how));
    tell.send_replace(Some(how));
    shared.wire.close();
}
