mod read;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::web::Address;

pub(super) use read::at_home;

/// Where this machine takes its Python packages from: what `pip` is told by its files and by `PIP_*`
/// variables. Addresses may carry a user and a password; they are used, and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct PipSettings {
    /// The indexes, in the order in which they are asked.
    pub indexes: Vec<String>,
    /// Folders and pages with wheels, which are asked before.
    pub find_links: Vec<String>,
    /// Certificates that are trusted beside those of the system.
    pub cert: Option<PathBuf>,
    /// The proxy; that of the environment unless given.
    pub proxy: Option<String>,
    /// How long a server may be silent.
    pub timeout: Duration,
    /// How often something is tried again.
    pub retries: u32,
}

impl Default for PipSettings {
    /// As pip is without any setting.
    fn default() -> Self {
        Self {
            indexes: vec!["https://pypi.org/simple".to_owned()],
            find_links: Vec::new(),
            cert: None,
            proxy: None,
            timeout: Duration::from_secs(15),
            retries: 5,
        }
    }
}

impl fmt::Debug for PipSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |all: &[String]| all.iter().map(|one| shown(one)).collect::<Vec<_>>();
        f.debug_struct("PipSettings")
            .field("indexes", &shown(&self.indexes))
            .field("find_links", &shown(&self.find_links))
            .field("cert", &self.cert)
            .field("proxy", &self.proxy.as_deref().map(|_| "…"))
            .field("timeout", &self.timeout)
            .field("retries", &self.retries)
            .finish()
    }
}

/// A place for people: without what lets us in there.
fn shown(place: &str) -> String {
    match place.contains("://") {
        true => Address::parse(place).map_or_else(|| "…".to_owned(), |address| address.place()),
        false => place.to_owned(),
    }
}

impl PipSettings {
    /// Those of this machine. Where there is no pip to ask, its variables alone count.
    pub async fn of_machine() -> Self {
        let asked = tokio::time::timeout(PATIENCE, ask()).await;
        let listed = asked.ok().flatten().unwrap_or_default();
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            Some((name, value.into_string().ok()?))
        });
        read::settings(&listed, variables)
    }
}

/// How long pip may take to say what it is told.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes that it may say.
const MOST: u64 = 1 << 20;

/// What `pip config list` says; none where there is no pip.
async fn ask() -> Option<String> {
    let mut child = Command::new("python3")
        .args(["-m", "pip", "config", "list"])
        .env_clear()
        .envs(without_keys())
        // Python takes modules from the folder it is started in: no project may give us its own pip.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .ok()?;
    let mut group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let mut said = Vec::new();
    let stdout = child.stdout.take()?;
    stdout.take(MOST).read_to_end(&mut said).await.ok()?;
    let status = child.wait().await.ok()?;
    group.0 = None;
    status.success().then(|| String::from_utf8(said).ok())?
}

/// Our environment, which may say where packages are, but not our keys.
fn without_keys() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        !crate::names_key(&name) && !name.starts_with("CONTEXTURE_")
    })
}

/// A program and what it started, ended together where nobody waits for them any more.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}
