//! `ctx acp`: our agent for editors and other hosts, over the Agent Client Protocol.
//!
//! Standard output carries the protocol alone; what people should know goes to the host as updates.
//! Sessions are ordinary ones of the project that the host's folder is in.

mod ask;
mod begin;
mod call;
mod lines;
mod prompt;
mod replay;
mod result;
mod session;
mod tell;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, CloseSessionRequest, CloseSessionResponse,
    Error as Said, Implementation, InitializeRequest, InitializeResponse, LoadSessionRequest,
    LoadSessionResponse, McpCapabilities, NewSessionRequest, NewSessionResponse,
    PromptCapabilities, PromptRequest, ResumeSessionRequest, ResumeSessionResponse,
    SessionCapabilities, SessionCloseCapabilities, SessionId, SessionResumeCapabilities,
};
use agent_client_protocol::{Agent, Client, Error, ErrorCode, Lines};
use agent_client_protocol::{on_receive_notification, on_receive_request};
use contexture_model::Model;
use serde_json::json;
use tokio::io::BufReader;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use self::begin::Asked;
use self::session::Session;
use crate::agent;
use crate::args::AgentOptions;
use crate::command::run::runtime;
use crate::config::{self, Config};
use crate::error::{self, CliError};
use crate::output::JsonLines;

/// The most sessions at once: each may have servers of its own.
const MOST_SESSIONS: usize = 64;
/// How long runs may take to end when the host is gone.
const LEAVING: Duration = Duration::from_secs(10);

/// `ctx acp`.
pub fn acp(options: &AgentOptions, dir: Option<&Path>) -> Result<(), CliError> {
    if options.session.is_some() {
        return Err(CliError::Usage {
            what: "--session: the host begins sessions, and loads them".to_owned(),
            hint: "leave it out".to_owned(),
        });
    }
    let dir = dir.map(std::path::absolute).transpose()?;
    let server = Arc::new(Server {
        options: options.clone(),
        dir,
        notices: AtomicBool::new(false),
        models: tokio::sync::Mutex::default(),
        sessions: Mutex::default(),
        tasks: Mutex::default(),
    });
    let runtime = runtime()?;
    let served = runtime.block_on(serve(&server));
    // A read of standard input cannot be called back.
    runtime.shutdown_timeout(Duration::from_millis(200));
    served
}

/// Answers until the host is gone, or we are told to end; then everything ends, and the logs are whole.
async fn serve(server: &Arc<Server>) -> Result<(), CliError> {
    let mut told = signal(SignalKind::terminate())?;
    let over = tokio::select! {
        over = connection(server) => over,
        _ = tokio::signal::ctrl_c() => Ok(()),
        _ = told.recv() => Ok(()),
    };
    server.leave().await;
    over.map_err(|error| CliError::Io {
        place: "the connection with the host".to_owned(),
        error: std::io::Error::other(error.to_string()),
    })
}

async fn connection(server: &Arc<Server>) -> Result<(), Error> {
    let of = || Arc::clone(server);
    let (init, new, load) = (of(), of(), of());
    let (resume, prompt, cancel, close) = (of(), of(), of(), of());
    let host = Lines::new(
        lines::outgoing(JsonLines::new()),
        lines::incoming(BufReader::new(tokio::io::stdin())),
    );
    // What takes a while runs beside: the next message may be a cancellation.
    Agent
        .v1()
        .name("contexture")
        .on_receive_request(
            async move |request: InitializeRequest, responder, _| {
                responder.respond(init.initialize(&request))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionRequest, responder, cx| {
                let server = Arc::clone(&new);
                new.spawn(async move {
                    let _ = responder.respond_with_result(server.new_session(request, cx).await);
                });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSessionRequest, responder, cx| {
                let server = Arc::clone(&load);
                load.spawn(async move {
                    let _ = responder.respond_with_result(server.load_session(request, cx).await);
                });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ResumeSessionRequest, responder, cx| {
                let server = Arc::clone(&resume);
                resume.spawn(async move {
                    let _ = responder.respond_with_result(server.resume_session(request, cx).await);
                });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: CloseSessionRequest, responder, _| {
                responder.respond_with_result(close.close_session(&request.session_id))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, _| {
                // Begun here, so that a cancellation right behind it finds it.
                let begun = prompt.session(&request.session_id);
                let begun = begun.and_then(|session| Ok((session.starts()?, session)));
                let (cancel, session) = match begun {
                    Ok(begun) => begun,
                    Err(error) => return responder.respond_with_error(error),
                };
                prompt.spawn(async move {
                    let _ =
                        responder.respond_with_result(session.turn(request.prompt, &cancel).await);
                });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: CancelNotification, _| {
                if let Ok(session) = cancel.session(&notification.session_id) {
                    session.cancel();
                }
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(host)
        .await
}

/// Models by spec and address.
type Models = HashMap<(String, Option<String>), Arc<dyn Model>>;

/// What serves one host.
pub(super) struct Server {
    options: AgentOptions,
    dir: Option<PathBuf>,
    /// Whether the host takes notices as such.
    notices: AtomicBool,
    /// Models that were opened: sessions share them.
    models: tokio::sync::Mutex<Models>,
    sessions: Mutex<HashMap<SessionId, Arc<Session>>>,
    tasks: Mutex<JoinSet<()>>,
}

impl Server {
    fn initialize(&self, request: &InitializeRequest) -> InitializeResponse {
        let session = request.client_capabilities.session.as_ref();
        let notices = session.is_some_and(|session| session.notices.is_some());
        self.notices.store(notices, Ordering::Relaxed);
        let sees = match config::load(self.dir.as_deref()) {
            Ok(config) => !agent::chosen(&self.options, &config)
                .0
                .starts_with(agent::LOCAL),
            Err(_) => true,
        };
        let about = Implementation::new("contexture", env!("CARGO_PKG_VERSION"));
        let sessions = SessionCapabilities::new()
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new());
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_info(about.title("Contexture".to_owned()))
            .agent_capabilities(
                AgentCapabilities::new()
                    .load_session(true)
                    .prompt_capabilities(
                        PromptCapabilities::new().embedded_context(true).image(sees),
                    )
                    .mcp_capabilities(McpCapabilities::new().http(true))
                    .session_capabilities(sessions),
            )
    }

    async fn new_session(
        &self,
        request: NewSessionRequest,
        cx: ConnectionTo<Client>,
    ) -> Result<NewSessionResponse, Error> {
        self.room()?;
        let asked = Asked {
            cwd: request.cwd,
            servers: request.mcp_servers,
            meta: request.meta,
        };
        let (id, session) = self.fresh(asked, cx).await?;
        self.keep(id.clone(), session)?;
        Ok(NewSessionResponse::new(id))
    }

    async fn load_session(
        &self,
        request: LoadSessionRequest,
        cx: ConnectionTo<Client>,
    ) -> Result<LoadSessionResponse, Error> {
        let asked = Asked {
            cwd: request.cwd,
            servers: request.mcp_servers,
            meta: request.meta,
        };
        self.take_up(&request.session_id, asked, cx, true).await?;
        Ok(LoadSessionResponse::new())
    }

    async fn resume_session(
        &self,
        request: ResumeSessionRequest,
        cx: ConnectionTo<Client>,
    ) -> Result<ResumeSessionResponse, Error> {
        let asked = Asked {
            cwd: request.cwd,
            servers: request.mcp_servers,
            meta: request.meta,
        };
        self.take_up(&request.session_id, asked, cx, false).await?;
        Ok(ResumeSessionResponse::new())
    }

    /// Opens a session of the log. `replays`: and tells what was said in it.
    async fn take_up(
        &self,
        id: &SessionId,
        asked: Asked,
        cx: ConnectionTo<Client>,
        replays: bool,
    ) -> Result<(), Error> {
        self.room()?;
        self.free(id)?;
        let (session, updates) = self.again(id, asked, cx).await?;
        if replays {
            session.replay(updates);
        }
        self.keep(id.clone(), session)
    }

    /// Ends what is under way in a session, and what serves it. The log stays.
    fn close_session(&self, id: &SessionId) -> Result<CloseSessionResponse, Error> {
        let session = self.session(id)?;
        session.cancel();
        self.sessions().remove(id);
        Ok(CloseSessionResponse::new())
    }

    fn session(&self, id: &SessionId) -> Result<Arc<Session>, Error> {
        let found = self.sessions().get(id).cloned();
        found.ok_or_else(|| Said::session_not_found(id.clone()).into())
    }

    /// Refuses one session too many.
    fn room(&self) -> Result<(), Error> {
        match self.sessions().len() < MOST_SESSIONS {
            true => Ok(()),
            false => Err(refused(format!(
                "{MOST_SESSIONS} sessions are open: close one first"
            ))),
        }
    }

    /// Refuses a session in which a prompt is under way.
    fn free(&self, id: &SessionId) -> Result<(), Error> {
        match self.sessions().get(id) {
            Some(open) if open.is_busy() => Err(refused(
                "a prompt is under way in this session: wait for its end, or cancel it",
            )),
            _ => Ok(()),
        }
    }

    fn keep(&self, id: SessionId, session: Session) -> Result<(), Error> {
        // Somebody may have been faster.
        self.free(&id)?;
        let before = self.sessions().insert(id, Arc::new(session));
        drop(before);
        Ok(())
    }

    /// What answers in a project with this configuration.
    async fn model(&self, config: &Config) -> Result<Arc<dyn Model>, CliError> {
        let mut models = self.models.lock().await;
        let chosen = agent::chosen(&self.options, config);
        if let Some(known) = models.get(&chosen) {
            return Ok(Arc::clone(known));
        }
        let model = agent::model(&self.options, config).await?;
        models.insert(chosen, Arc::clone(&model));
        Ok(model)
    }

    fn takes_notices(&self) -> bool {
        self.notices.load(Ordering::Relaxed)
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    /// Stops every prompt, and waits until what was said is in the logs.
    async fn leave(&self) {
        for session in self.sessions().values() {
            session.cancel();
        }
        let mut tasks =
            std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let all = async { while tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(LEAVING, all).await;
        self.sessions().clear();
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a host asked for is not possible.
fn refused(why: impl Into<String>) -> Error {
    Error::new(ErrorCode::INVALID_PARAMS, why)
}

/// What went wrong and what to do, for the host.
fn failed(error: &CliError) -> Error {
    let (what, hint) = error::words(error);
    let message = match hint.is_empty() {
        true => what,
        false => format!("{what} ({hint})"),
    };
    Error::new(ErrorCode::INTERNAL_ERROR, message).data(json!({ "hint": hint }))
}
