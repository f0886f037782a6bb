use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture::Content;
use contexture_tools::mcp::{self, Options, Servers, State};
use contexture_tools::{Outcome, Tool};
use serde_json::{Map, Value, json};

/// Enough for anything that is not stuck.
pub const LONG: Duration = Duration::from_secs(60);

/// The server that misbehaves, as cargo built it beside the tests.
pub fn hostile_path() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let built = here.parent().unwrap().parent().unwrap();
    let path = built.join("examples/hostile_mcp_server");
    assert!(path.is_file(), "{} is missing", path.display());
    path
}

/// The configuration of a server that misbehaves in this way.
pub fn hostile(way: &str) -> Value {
    json!({ "command": hostile_path(), "args": [way] })
}

pub fn options(root: &Path) -> Options {
    let mut options = Options::new(root);
    options.start = Duration::from_secs(20);
    options.pause = Duration::from_millis(50);
    options.supervisor = Some(supervisor());
    options
}

pub fn supervisor() -> Vec<OsString> {
    vec![hostile_path().into(), "supervise".into()]
}

pub fn start(servers: &Value, options: Options) -> Servers {
    Servers::start(mcp::read(servers).unwrap(), options)
}

/// One server that misbehaves in this way, ready.
pub async fn ready(way: &str) -> (Servers, tempfile::TempDir) {
    let root = tempfile::tempdir().unwrap();
    let servers = start(&json!({ "h": hostile(way) }), options(root.path()));
    assert!(servers.settled(LONG).await);
    let state = state(&servers, "h");
    assert!(matches!(state, State::Ready { .. }), "{state:?}");
    (servers, root)
}

pub fn state(servers: &Servers, name: &str) -> State {
    let states = servers.states();
    states
        .into_iter()
        .find(|status| status.name == name)
        .unwrap()
        .state
}

pub fn names(servers: &Servers) -> Vec<String> {
    servers
        .tools()
        .iter()
        .map(|tool| tool.spec().name.clone())
        .collect()
}

pub fn tool(servers: &Servers, name: &str) -> Arc<dyn Tool> {
    let tools = servers.tools();
    let found = tools.into_iter().find(|tool| tool.spec().name == name);
    found.unwrap_or_else(|| panic!("{name} is not among {:?}", names(servers)))
}

pub async fn call(servers: &Servers, name: &str, arguments: Value) -> Outcome {
    let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap();
    let tool = tool(servers, name);
    let outcome = tokio::time::timeout(LONG, tool.call(&arguments)).await;
    outcome.expect("the call hangs")
}

pub fn text(outcome: &Outcome) -> String {
    match &outcome.content {
        Content::Text(text) => text.clone(),
        Content::Parts(parts) => parts.iter().filter_map(|part| part.text()).collect(),
        Content::Null => String::new(),
    }
}

/// Waits until something is so.
pub async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < LONG, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether a process runs: one that only waits to be collected does not.
pub fn runs(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    !matches!(behind.split_whitespace().next(), None | Some("Z" | "X"))
}
