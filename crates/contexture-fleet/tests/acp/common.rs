use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use contexture_fleet::acp::{AcpError, Answer, Ask, Begin, Connection, Ended, Host, Launch};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

/// Enough for anything that is not stuck.
pub const LONG: Duration = Duration::from_secs(60);

/// A host that keeps what it is told, and answers as it was set up.
#[derive(Default)]
pub struct Spy {
    pub updates: Mutex<Vec<(String, Value)>>,
    pub asks: Mutex<Vec<Ask>>,
    /// What questions are answered with; without it they are not answered at all.
    pub answer: Mutex<Option<Answer>>,
    /// How long it takes to catch up with an update.
    pub slow: Mutex<Duration>,
}

impl Host for Spy {
    fn update(&self, session_id: &str, update: Value) {
        let mut updates = self.updates.lock().unwrap();
        updates.push((session_id.to_owned(), update));
    }

    fn permission(&self, ask: Ask) -> BoxFuture<'static, Answer> {
        self.asks.lock().unwrap().push(ask);
        let answer = self.answer.lock().unwrap().clone();
        Box::pin(async move {
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }

    fn caught_up(&self) -> BoxFuture<'static, ()> {
        let slow = *self.slow.lock().unwrap();
        Box::pin(async move {
            if !slow.is_zero() {
                tokio::time::sleep(slow).await;
            }
        })
    }
}

impl Spy {
    /// All that the agent said, in one text.
    pub fn said(&self) -> String {
        self.chunks().concat()
    }

    /// What it said, piece by piece.
    pub fn chunks(&self) -> Vec<String> {
        let updates = self.updates.lock().unwrap();
        let said = updates
            .iter()
            .filter(|(_, update)| update["sessionUpdate"] == "agent_message_chunk");
        said.filter_map(|(_, update)| Some(update["content"]["text"].as_str()?.to_owned()))
            .collect()
    }

    /// What the host's answers were that the agent repeated.
    pub fn told(&self) -> Vec<Value> {
        let chunks = self.chunks();
        chunks
            .iter()
            .map(|text| serde_json::from_str(text).unwrap())
            .collect()
    }
}

/// An agent that behaves in one way, in a workspace of its own.
#[must_use]
pub struct Scene {
    pub folder: tempfile::TempDir,
    pub host: Arc<Spy>,
    pub launch: Launch,
}

impl Scene {
    pub fn new(way: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acp/agent.py");
        let mut launch = Launch::new("python3", workspace);
        launch.args = vec![
            "-u".to_owned(),
            script.display().to_string(),
            way.to_owned(),
        ];
        launch.patience = Duration::from_secs(20);
        launch.supervisor = Some(supervisor());
        Self {
            folder,
            host: Arc::default(),
            launch,
        }
    }

    pub fn with(mut self, change: impl FnOnce(&mut Launch)) -> Self {
        change(&mut self.launch);
        self
    }

    pub fn answering(self, answer: Answer) -> Self {
        *self.host.answer.lock().unwrap() = Some(answer);
        self
    }

    pub fn workspace(&self) -> PathBuf {
        self.launch.workspace.canonicalize().unwrap()
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.launch.workspace.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub async fn launch(&self) -> Result<Connection, AcpError> {
        let host: Arc<dyn Host> = self.host.clone();
        let launching = Connection::launch(self.launch.clone(), host);
        within(launching).await
    }

    pub async fn started(&self) -> (Connection, String) {
        let connection = self.launch().await.unwrap();
        let id = within(connection.new_session(Begin::default())).await;
        (connection, id.unwrap())
    }

    /// Starts it, gives it one thing to do, and stops it.
    pub async fn once(&self, text: impl Into<Said>) -> Result<Ended, AcpError> {
        let (connection, id) = self.started().await;
        let ended = within(connection.prompt(&id, text_blocks(text))).await;
        within(connection.stop()).await;
        ended
    }

    /// What the agent wrote down of a request.
    pub fn noted(&self, name: &str) -> Value {
        let text = std::fs::read_to_string(self.launch.workspace.join(name)).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

pub fn text_blocks(text: impl Into<Said>) -> Vec<Value> {
    let Said(text) = text.into();
    vec![json!({"type": "text", "text": text})]
}

/// What an agent is told, as it is or as JSON.
pub struct Said(String);

impl From<&str> for Said {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<Value> for Said {
    fn from(value: Value) -> Self {
        Self(value.to_string())
    }
}

/// The supervisor, as cargo built it beside the tests.
pub fn supervisor() -> Vec<OsString> {
    let here = std::env::current_exe().unwrap();
    let built = here.parent().unwrap().parent().unwrap();
    let path = built.join("examples/supervise");
    assert!(path.is_file(), "{} is missing", path.display());
    vec![path.into()]
}

pub async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, what).await.expect("it hangs")
}

/// Waits until something is so.
pub async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < LONG, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What the kernel tells of a process behind its name: its state, its parent, …
fn stat(pid: i32) -> Vec<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    behind.split_whitespace().map(str::to_owned).collect()
}

/// Whether a process runs: one that only waits to be collected does not.
pub fn runs(pid: i32) -> bool {
    !matches!(
        stat(pid).first().map(String::as_str),
        None | Some("Z" | "X")
    )
}

/// The process that we started in a scene's workspace: its agent, or the supervisor of that.
pub fn started_in(scene: &Scene) -> i32 {
    let (workspace, us) = (scene.workspace(), std::process::id().to_string());
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let found = pids.find(|pid| {
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd"));
        stat(*pid).get(1) == Some(&us) && cwd.is_ok_and(|cwd| cwd == workspace)
    });
    found.expect("it runs")
}

/// The most memory that this process had, in bytes.
pub fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    let kilobytes = line.split_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() * 1024
}
