//! A host with the official crate: it starts `ctx acp`, keeps every update, and answers questions.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, InitializeRequest, LoadSessionRequest, McpServer,
    NewSessionRequest, PromptRequest, PromptResponse, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome, SessionId,
    SessionNotification, StopReason,
};
use agent_client_protocol::{Agent, ByteStreams, Client, Error};
use agent_client_protocol::{on_receive_notification, on_receive_request};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

use crate::acp::scene::Scene;

/// Longer than anything here takes; what hangs fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the host saw.
#[derive(Default)]
pub struct Seen {
    /// Session and update, in order.
    pub updates: Vec<(String, Value)>,
    /// Questions, as they came.
    pub asked: Vec<Value>,
}

/// A host with its agent.
#[derive(Clone)]
pub struct Host {
    pub cx: ConnectionTo<Agent>,
    seen: Arc<Mutex<Seen>>,
    changed: Arc<watch::Sender<()>>,
}

/// `ctx acp` of a scene, with this model.
pub fn agent(scene: &Scene, args: &[&str]) -> Child {
    let mut all = vec![
        "acp",
        "--model",
        "openai:m",
        "--base-url",
        &scene.server.url,
    ];
    all.extend(args);
    let mut command = Command::from(scene.ctx(&all).command());
    command.stderr(Stdio::inherit()).kill_on_drop(true);
    command.spawn().unwrap()
}

/// Does `work` as a host that gives this answer to every question: an option's id, or none at all.
pub async fn hosting<T>(
    mut agent: Child,
    answer: Option<&'static str>,
    work: impl AsyncFnOnce(Host) -> T,
) -> T {
    let (stdin, stdout) = (agent.stdin.take().unwrap(), agent.stdout.take().unwrap());
    let streams = ByteStreams::new(stdin.compat_write(), stdout.compat());
    let seen = Arc::new(Mutex::new(Seen::default()));
    let changed = Arc::new(watch::Sender::new(()));
    let (heard, noticed) = (Arc::clone(&seen), Arc::clone(&changed));
    let (questions, asked) = (Arc::clone(&seen), Arc::clone(&changed));
    let mut result = None;
    let serving = Client
        .v1()
        .on_receive_notification(
            async move |told: SessionNotification, _| {
                let update = serde_json::to_value(&told.update).unwrap();
                let session = told.session_id.to_string();
                heard.lock().unwrap().updates.push((session, update));
                noticed.send_replace(());
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                let question = serde_json::to_value(&request).unwrap();
                questions.lock().unwrap().asked.push(question);
                asked.send_replace(());
                let outcome = match answer {
                    Some(id) => {
                        RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(id))
                    }
                    None => RequestPermissionOutcome::Cancelled,
                };
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            on_receive_request!(),
        )
        .connect_with(streams, async |cx| {
            let host = Host { cx, seen, changed };
            result = Some(work(host).await);
            Ok(())
        });
    tokio::time::timeout(PATIENCE, serving)
        .await
        .unwrap()
        .unwrap();
    let ended = tokio::time::timeout(PATIENCE, agent.wait())
        .await
        .unwrap()
        .unwrap();
    assert!(ended.success(), "{ended}");
    result.unwrap()
}

impl Host {
    pub async fn initialize(&self) -> Value {
        let request = InitializeRequest::new(ProtocolVersion::V1);
        let response = self.cx.send_request(request).block_task().await.unwrap();
        serde_json::to_value(response).unwrap()
    }

    /// A session in this folder.
    pub async fn session(&self, cwd: &Path) -> SessionId {
        self.new_session(NewSessionRequest::new(cwd)).await.unwrap()
    }

    pub async fn with_servers(&self, cwd: &Path, servers: Vec<McpServer>) -> SessionId {
        let request = NewSessionRequest::new(cwd).mcp_servers(servers);
        self.new_session(request).await.unwrap()
    }

    pub async fn new_session(&self, request: NewSessionRequest) -> Result<SessionId, Error> {
        let sent = self.cx.send_request(request);
        Ok(sent.block_task().await?.session_id)
    }

    pub async fn load(&self, id: &str, cwd: &Path) -> Result<(), Error> {
        let request = LoadSessionRequest::new(id.to_owned(), cwd);
        self.cx.send_request(request).block_task().await.map(drop)
    }

    pub async fn prompt(&self, id: &SessionId, text: &str) -> Result<PromptResponse, Error> {
        self.send(id, vec![ContentBlock::from(text)]).await
    }

    pub async fn send(
        &self,
        id: &SessionId,
        blocks: Vec<ContentBlock>,
    ) -> Result<PromptResponse, Error> {
        let request = PromptRequest::new(id.clone(), blocks);
        self.cx.send_request(request).block_task().await
    }

    /// Says something, and expects it to end like this.
    #[track_caller]
    pub fn expect(
        &self,
        id: &SessionId,
        text: &'static str,
        reason: StopReason,
    ) -> impl Future<Output = PromptResponse> + Send + use<> {
        let (host, id) = (self.clone(), id.clone());
        async move {
            let response = host.prompt(&id, text).await.unwrap();
            assert_eq!(response.stop_reason, reason, "{text}");
            response
        }
    }

    pub fn cancel(&self, id: &SessionId) {
        let told = CancelNotification::new(id.clone());
        self.cx.send_notification(told).unwrap();
    }

    /// The updates of a session so far.
    pub fn updates(&self, id: &SessionId) -> Vec<Value> {
        let seen = self.seen.lock().unwrap();
        let of = seen
            .updates
            .iter()
            .filter(|(session, _)| **session == *id.0);
        of.map(|(_, update)| update.clone()).collect()
    }

    /// Those of one kind.
    pub fn of_kind(&self, id: &SessionId, kind: &str) -> Vec<Value> {
        let mut all = self.updates(id);
        all.retain(|update| update["sessionUpdate"] == kind);
        all
    }

    /// The text of all chunks of a kind.
    pub fn text(&self, id: &SessionId, kind: &str) -> String {
        let chunks = self.of_kind(id, kind);
        let texts = chunks.iter().map(|chunk| chunk["content"]["text"].as_str());
        texts.map(Option::unwrap_or_default).collect()
    }

    pub fn asked(&self) -> Vec<Value> {
        self.seen.lock().unwrap().asked.clone()
    }

    /// Waits until it saw this.
    pub async fn sees(&self, what: impl Fn(&Seen) -> bool) {
        let mut changed = self.changed.subscribe();
        let seen = async {
            while !what(&self.seen.lock().unwrap()) {
                changed.changed().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, seen).await.unwrap();
    }

    /// Waits for an update of this kind.
    pub async fn sees_kind(&self, kind: &str) {
        self.sees(|seen| {
            let mut updates = seen.updates.iter();
            updates.any(|(_, update)| update["sessionUpdate"] == kind)
        })
        .await;
    }
}

/// Statuses of a tool's call, in order.
pub fn statuses(updates: &[Value], call: &str) -> Vec<String> {
    let of = updates.iter().filter(|update| update["toolCallId"] == call);
    of.filter_map(|update| update["status"].as_str())
        .map(str::to_owned)
        .collect()
}

/// No call is left open.
#[track_caller]
pub fn nothing_dangles(updates: &[Value]) {
    for update in updates {
        if update["sessionUpdate"] != json!("tool_call") {
            continue;
        }
        let call = update["toolCallId"].as_str().unwrap();
        let last = statuses(updates, call).pop().unwrap_or_default();
        assert!(
            ["completed", "failed"].contains(&last.as_str()),
            "{call}: {last}"
        );
    }
}
