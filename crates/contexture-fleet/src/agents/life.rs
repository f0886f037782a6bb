//! An agent's life: started with its context, watched, started again when it crashes, and ended with all
//! that it started.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use contexture::Payload;
use contexture::entry::{SessionHeader, ToolDelta};
use contexture::inject::{LaunchMode, WorkspacePolicy};
use contexture_agent::clock;
use contexture_store::{Key, SessionLog, StoreError};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::desk::Desk;
use super::{Agent, Record, State, workspace};
use crate::acp::{AcpError, Connection};
use crate::backends::{self, Plan, UnknownBackend, Wanted};
use crate::fleet::{Fleet, spec_of};
use crate::methods::blocking;
use crate::prepare::Prepared;
use crate::{Event, RpcError, Why};

/// How often an agent is started again in a row.
const MOST_RESTARTS: u32 = 5;
/// Who has run for so long begins to count anew.
const STEADY: Duration = Duration::from_secs(60);
/// The longest wait before it is started again.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// An agent under way.
pub(crate) struct Running {
    pub connection: Connection,
    pub desk: Arc<Desk>,
    pub session_id: String,
    pub own_session_id: String,
    /// System context for an agent that has no place for it: it goes before the first prompt.
    pub first: Mutex<Option<Value>>,
    /// One prompt at a time.
    pub busy: Arc<tokio::sync::Mutex<()>>,
    since: Instant,
}

impl Fleet {
    /// Starts an agent. One that runs goes on.
    pub(crate) async fn start_agent(
        self: &Arc<Self>,
        agent: &Arc<Agent>,
    ) -> Result<Record, RpcError> {
        let turn = agent.turn.lock().await;
        if agent.running().is_some() {
            return Ok(agent.record());
        }
        if agent.record().spec.launch_mode == LaunchMode::Direct {
            let what = format!(
                "somebody else starts `{}`: its launch mode is direct",
                agent.name()
            );
            let hint = "`ctx inject` gives it its context";
            return Err(RpcError::new(Why::Conflict, what).hint(hint));
        }
        self.note(agent, |record| {
            (record.wanted, record.restarts) = (true, 0);
        })
        .await?;
        match self.begin(agent).await {
            Ok(record) => Ok(record),
            Err(error) => {
                drop(turn);
                let why = error.message.clone();
                self.note(agent, move |record| {
                    record.wanted = false;
                    record.state = State::Failed;
                    record.why = Some(why);
                })
                .await?;
                Err(error)
            }
        }
    }

    /// Stops an agent, for good or until the daemon is back. Its tokens end first.
    pub(crate) async fn stop_agent(
        &self,
        agent: &Arc<Agent>,
        for_good: bool,
    ) -> Result<Record, RpcError> {
        agent.off.notify_waiters();
        let _turn = agent.turn.lock().await;
        if let Some(running) = agent.set_running(None) {
            self.close_sessions(agent.name());
            self.note(agent, |record| record.state = State::Stopping)
                .await?;
            running.desk.dismiss();
            running.connection.stop().await;
            let _ = running.desk.finish("it ended").await;
        }
        self.bus.forget_updates(agent.name());
        self.close_sessions(agent.name());
        let (key, spec, data) = (agent.key.clone(), agent.record().spec, self.data.clone());
        let cleared = blocking(move || Ok(workspace::clear(&data, &key, &spec))).await?;
        if let Err(error) = cleared {
            tracing::warn!(agent = agent.name(), %error, "a workspace could not be removed");
        }
        let state = agent.record().state;
        if !for_good && matches!(state, State::Created | State::Failed | State::Stopped) {
            return Ok(agent.record());
        }
        self.note(agent, move |record| {
            record.wanted &= !for_good;
            if record.state != State::Created {
                record.state = State::Stopped;
            }
            record.why = (!for_good).then(|| "the daemon stopped".to_owned());
        })
        .await
    }

    /// Starts those agents that were meant to run when the last daemon ended, however it did.
    pub async fn resume(self: &Arc<Self>) {
        let data = self.data.clone();
        let swept = blocking(move || Ok(workspace::sweep(&data))).await;
        if let Ok(Err(error)) = swept {
            tracing::warn!(%error, "workspaces of the last daemon could not be removed");
        }
        for agent in self.agents.list() {
            if agent.record().wanted {
                tokio::spawn(Arc::clone(self).supervise(agent, Duration::ZERO));
            }
        }
    }

    /// Stops all agents. Those that were meant to run will be started by the next daemon.
    pub async fn shut_down(&self) {
        self.closing.store(true, Ordering::Release);
        let agents = self.agents.list();
        let all = agents.iter().map(|agent| self.stop_agent(agent, false));
        futures_util::future::join_all(all).await;
    }

    /// Starts an agent again and again, with longer and longer pauses, until it runs or has failed too
    /// often, or nobody wants it any more.
    async fn supervise(self: Arc<Self>, agent: Arc<Agent>, first_wait: Duration) {
        let mut wait = first_wait;
        loop {
            tokio::time::sleep(wait).await;
            let turn = agent.turn.lock().await;
            let closing = self.closing.load(Ordering::Acquire);
            if closing || !agent.record().wanted || agent.running().is_some() {
                return;
            }
            let Err(error) = self.begin(&agent).await else {
                return;
            };
            drop(turn);
            match self.again(&agent, error.message).await {
                Some(next) => wait = next,
                None => return,
            }
        }
    }

    /// An agent ended by itself, or did not start. How long to wait before the next try; none where it is
    /// left as it is.
    async fn again(&self, agent: &Arc<Agent>, why: String) -> Option<Duration> {
        let first = self.first_wait;
        let noted = self.note(agent, move |record| {
            record.restarts += 1;
            record.state = match record.wanted {
                true if record.restarts > MOST_RESTARTS => State::Failed,
                true => State::Restarting,
                false => State::Crashed,
            };
            record.wanted &= record.state != State::Failed;
            record.why = Some(why);
        });
        let record = noted.await.ok()?;
        (record.state == State::Restarting).then(|| {
            let times = 1 << (record.restarts - 1).min(16);
            (first * times).min(LONGEST_WAIT)
        })
    }

    /// Begins: a folder, a process, a session with its context. To be called in the agent's turn.
    async fn begin(self: &Arc<Self>, agent: &Arc<Agent>) -> Result<Record, RpcError> {
        if self.closing.load(Ordering::Acquire) {
            return Err(RpcError::new(Why::Conflict, "the daemon stops"));
        }
        self.note(agent, |record| {
            (record.state, record.why) = (State::Starting, None);
        })
        .await?;
        let launched = tokio::select! {
            launched = self.launch(agent) => launched,
            () = agent.off.notified() => Err(RpcError::new(Why::Conflict, "it was stopped while it started")),
        };
        let running = match launched {
            Ok(running) => Arc::new(running),
            Err(error) => {
                // A token that was made for a session that does not begin.
                self.close_sessions(agent.name());
                return Err(error);
            }
        };
        agent.set_running(Some(Arc::clone(&running)));
        let (session, own) = (running.session_id.clone(), running.own_session_id.clone());
        let record = self
            .note(agent, |record| {
                record.state = State::Running;
                (record.session_id, record.own_session_id) = (Some(session), Some(own));
            })
            .await?;
        tokio::spawn(watch(Arc::downgrade(self), Arc::clone(agent), running));
        Ok(record)
    }

    async fn launch(self: &Arc<Self>, agent: &Arc<Agent>) -> Result<Running, RpcError> {
        let record = agent.record();
        let (spec, meta) = (record.spec.clone(), record.meta());
        let (root, data, key) = (self.root.clone(), self.data.clone(), agent.key.clone());
        let (sessions, last) = (self.sessions.clone(), record.session_id.clone());
        let folder = blocking(move || {
            // Before anything is started: a log that was put in the place of its own is not gone on with.
            if let Some(last) = last {
                sessions.check_own(&Key::new(last)?)?;
            }
            let made = workspace::make(&root, &data, &key, &spec);
            made.map_err(|error| {
                let place = workspace::place(&root, &data, &key, &spec);
                RpcError::new(Why::Failed, format!("{}: {error}", place.display()))
            })
        })
        .await?;
        let desk = Desk::new(self, agent.name(), record.spec.permissions);
        let mut plan = self.plan(&record, &folder, None)?;
        let not_begun = |error| not_begun(&record.spec.backend_type, &error);
        let connection = plan
            .connect(Arc::clone(&desk) as _)
            .await
            .map_err(not_begun)?;
        let facts = connection.agent().clone();
        if let (true, Some((session_id, own))) = (
            facts.load_session,
            record.session_id.clone().zip(record.own_session_id.clone()),
        ) {
            let prepared = self.prepare(&meta, Some(session_id)).await?;
            let plan = self.plan(&record, &folder, Some(&prepared))?;
            match connection.load_session(&own, plan.begin).await {
                Ok(()) => {
                    // It remembers what it was told first.
                    let parts = (connection, desk, None);
                    return self.settled(agent, parts, prepared, own, folder).await;
                }
                Err(error) => {
                    tracing::info!(agent = agent.name(), %error, "the last session could not be loaded");
                }
            }
        }
        let prepared = self.prepare(&meta, None).await?;
        let mut plan = self.plan(&record, &folder, Some(&prepared))?;
        plan.settle(&facts);
        let own = connection
            .new_session(plan.begin)
            .await
            .map_err(not_begun)?;
        let parts = (connection, desk, plan.first);
        self.settled(agent, parts, prepared, own, folder).await
    }

    /// How an agent is started and told: with what its session begins, once that is known.
    fn plan(
        &self,
        record: &Record,
        folder: &Path,
        prepared: Option<&Prepared>,
    ) -> Result<Plan, RpcError> {
        let spec = &record.spec;
        let context = prepared.map(|prepared| &prepared.context);
        let mut servers = context.map_or_else(Vec::new, |context| context.mcp_servers.clone());
        servers.extend(prepared.and_then(|prepared| self.own_server(prepared)));
        let known = backends::backend(&spec.backend_type);
        let trusted = known.is_some_and(|known| {
            // A folder that does not last begins empty.
            let is_new = spec.workspace_policy == WorkspacePolicy::Ephemeral;
            is_new || (self.trusts)(folder, known.obeys)
        });
        let wanted = Wanted {
            command: &spec.command,
            trusted,
            system_context: context.map_or(&[], |context| &context.system_context_additions),
            mcp_servers: &servers,
            inherits: &spec.env,
            own: Some(self.program.clone()),
            supervisor: self.supervisor.clone(),
            ..Wanted::new(&spec.backend_type, folder)
        };
        Ok(backends::plan(wanted)?.masked(&self.mask))
    }

    /// All that a beginning came to, with the session in the log.
    async fn settled(
        &self,
        agent: &Arc<Agent>,
        (connection, desk, first): (Connection, Arc<Desk>, Option<Value>),
        prepared: Prepared,
        own_session_id: String,
        folder: PathBuf,
    ) -> Result<Running, RpcError> {
        let (sessions, name) = (self.sessions.clone(), agent.name().to_owned());
        let session_id = prepared.session_id.clone();
        let log = blocking(move || {
            let header = SessionHeader {
                agent: Some(name),
                cwd: Some(folder.display().to_string()),
                ..SessionHeader::default()
            };
            Ok(note_beginning(&sessions, header, &prepared)?)
        })
        .await?;
        desk.open(&session_id, log).await;
        Ok(Running {
            connection,
            desk,
            session_id,
            own_session_id,
            first: Mutex::new(first),
            busy: Arc::default(),
            since: Instant::now(),
        })
    }

    /// Changes what is known of an agent, and tells everyone when its state is another.
    pub(crate) async fn note(
        &self,
        agent: &Arc<Agent>,
        change: impl FnOnce(&mut Record) + Send + 'static,
    ) -> Result<Record, RpcError> {
        let (before, changing) = (agent.record().state, Arc::clone(agent));
        let record = blocking(move || Ok(changing.change(change)?)).await?;
        if record.state != before {
            tracing::info!(
                agent = agent.name(),
                state = record.state.as_str(),
                why = record.why
            );
            self.tell(Event::AgentState {
                agent: agent.name().to_owned(),
                state: record.state.as_str().to_owned(),
                why: record.why.clone(),
            });
        }
        Ok(record)
    }
}

/// Waits for the end of an agent's process. One that nobody asked for is a crash.
///
/// Boxed: what it does may end in another beginning, which is watched again.
fn watch(fleet: Weak<Fleet>, agent: Arc<Agent>, running: Arc<Running>) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let how = running.connection.ended().await;
        let Some(fleet) = fleet.upgrade() else { return };
        let turn = agent.turn.lock().await;
        if !agent
            .running()
            .is_some_and(|now| Arc::ptr_eq(&now, &running))
        {
            return;
        }
        agent.set_running(None);
        fleet.close_sessions(agent.name());
        running.desk.dismiss();
        running.connection.stop().await;
        let _ = running.desk.finish("it ended").await;
        fleet.bus.forget_updates(agent.name());
        let steady = running.since.elapsed() > STEADY;
        let crashed = fleet.note(&agent, move |record| {
            record.state = State::Crashed;
            record.restarts *= u32::from(!steady);
        });
        let crashed = crashed.await;
        drop(turn);
        if crashed.is_ok()
            && let Some(wait) = fleet.again(&agent, how).await
        {
            fleet.supervise(agent, wait).await;
        }
    })
}

impl From<AcpError> for RpcError {
    fn from(error: AcpError) -> Self {
        RpcError::new(Why::Failed, error.to_string()).hint(error.hint())
    }
}

/// Why an agent does not begin, with what else there is to look at.
fn not_begun(backend: &str, error: &AcpError) -> RpcError {
    let advice = backends::backend(backend).and_then(|known| known.advice);
    let hint = match (advice, error) {
        (None, _) | (_, AcpError::NotInstalled { .. }) => error.hint(),
        (Some(advice), _) => format!("{}; {advice}", error.hint()),
    };
    RpcError::new(Why::Failed, error.to_string()).hint(hint)
}

impl From<UnknownBackend> for RpcError {
    fn from(error: UnknownBackend) -> Self {
        RpcError::new(Why::Invalid, error.to_string()).hint(error.hint())
    }
}

/// Writes down what a session begins with. Of a session that goes on, only what is new.
fn note_beginning(
    sessions: &contexture_store::Sessions,
    header: SessionHeader,
    prepared: &Prepared,
) -> Result<SessionLog, StoreError> {
    let key = Key::new(prepared.session_id.as_str())?;
    let now = clock::now();
    let exists = sessions.exists(&key)?;
    let mut log = match exists {
        true => sessions.open(&key)?,
        false => sessions.create(&key, header, &now)?,
    };
    let mut sections = prepared.receipt.sections(&prepared.context);
    if exists {
        let known = log.view()?.sections().to_vec();
        sections.retain(|section| !known.contains(section));
    }
    if !sections.is_empty() {
        log.say(&now, Payload::Sections { sections })?;
    }
    let tools = ToolDelta {
        add: prepared.context.tools.iter().map(spec_of).collect(),
        reason: Some("the session began".to_owned()),
        ..ToolDelta::default()
    };
    if !exists && !tools.add.is_empty() {
        log.say(&now, Payload::Tools(tools))?;
    }
    let receipt = Map::from_iter([
        ("kind".to_owned(), json!("injection-receipt")),
        ("receipt".to_owned(), json!(prepared.receipt)),
    ]);
    log.say(&now, Payload::Custom(receipt))?;
    log.release();
    Ok(log)
}
