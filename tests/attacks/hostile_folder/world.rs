//! A user with a home, and what stands around a hostile folder: a listener that nobody may connect to, a folder that
//! nobody may touch, and a model that calls every tool it is offered.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::plants::Bait;
use super::variant;
use crate::common::SESSION;
use crate::model_server::{Answer, ModelServer, Piece, Seen};

/// The programs of the machine. Bubblewrap is not among them: to see whether it works is to start it.
const PROGRAMS: [&str; 9] = [
    "sh", "bash", "env", "touch", "cat", "rm", "git", "curl", "npx",
];

pub struct World {
    _base: TempDir,
    pub base: PathBuf,
    pub bait: Bait,
    pub model: ModelServer,
    /// How often somebody connected to the listener.
    caught: Arc<AtomicUsize>,
    known: BTreeMap<PathBuf, String>,
}

impl World {
    pub fn new() -> Self {
        // In memory, where that is possible: each folder has a hundred files, and lives for a moment.
        let memory = tempfile::tempdir_in("/dev/shm");
        let folder = memory.or_else(|_| tempfile::tempdir()).unwrap();
        let base = folder.path().canonicalize().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let caught = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&caught);
        std::thread::spawn(move || {
            for _connection in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        let mut world = Self {
            bait: Bait {
                port,
                outside: base.join("outside"),
            },
            _base: folder,
            base,
            model: ModelServer::answering(answer),
            caught,
            known: BTreeMap::new(),
        };
        world.reset();
        world
    }

    /// The home as it was at first, and what is outside.
    pub fn reset(&mut self) {
        let home = self.home();
        let _ = fs::remove_dir_all(&home);
        for folder in [".config/contexture", ".ssh", "tmp"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        let own = json!({"model": "openai:gpt-4o", "baseUrl": self.model.url});
        fs::write(
            home.join(".config/contexture/contexture.json"),
            own.to_string(),
        )
        .unwrap();
        fs::write(home.join(".ssh/id_rsa"), "a key").unwrap();
        fs::write(home.join(".bashrc"), "").unwrap();
        fs::copy(SESSION, home.join("session.jsonl")).unwrap();
        let _ = fs::create_dir(self.base.join("bin"));
        for program in PROGRAMS {
            if let Some(real) = found(program) {
                let _ = symlink(real, self.base.join("bin").join(program));
            }
        }
        variant::outside(&self.bait);
        self.known = self.outside();
    }

    pub fn home(&self) -> PathBuf {
        self.base.join("home")
    }

    /// Where the user's own things are, which `ctx` may change.
    pub fn own(&self) -> Vec<PathBuf> {
        [
            ".config/contexture",
            ".local/state/contexture",
            ".cache/contexture",
        ]
        .map(|folder| self.home().join(folder))
        .to_vec()
    }

    /// Forgets what commands kept for the user.
    pub fn forget(&self) {
        for folder in [".local", ".cache"] {
            let _ = fs::remove_dir_all(self.home().join(folder));
        }
    }

    /// The environment of a user who has a key.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", self.base.join("bin"))
            .env("HOME", self.home())
            .env("TMPDIR", self.home().join("tmp"))
            .env("LANG", "C.UTF-8")
            .env("OPENAI_API_KEY", "sk-of-the-user-0123456789")
            .env("PIP_INDEX_URL", &self.model.url)
            .env("PIP_CONFIG_FILE", "/dev/null");
        command
    }

    pub fn model_port(&self) -> u16 {
        let (_, port) = self
            .model
            .url
            .strip_suffix("/v1")
            .unwrap()
            .rsplit_once(':')
            .unwrap();
        port.parse().unwrap()
    }

    /// What came to where nothing may come, and what is another outside, by the way of looking that needs no tracer.
    pub fn harm(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        match self.caught.swap(0, Ordering::SeqCst) {
            0 => {}
            times => all.push(format!("connected {times} times to where the folder says")),
        }
        let now = self.outside();
        let changed: Vec<&PathBuf> = now
            .iter()
            .filter(|(path, state)| self.known.get(*path) != Some(state))
            .map(|(path, _)| path)
            .chain(self.known.keys().filter(|path| !now.contains_key(*path)))
            .collect();
        if !changed.is_empty() {
            all.push(format!("changed outside: {changed:?}"));
            self.reset();
        }
        all
    }

    /// All that is outside and at home, but for the user's own things.
    fn outside(&self) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        let own = self.own();
        let mut folders = vec![self.bait.outside.clone(), self.home()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                let Ok(about) = path.symlink_metadata() else {
                    continue;
                };
                if own
                    .iter()
                    .any(|own| own.starts_with(&path) || path.starts_with(own))
                    && path.is_dir()
                {
                    // What is on the way to them is looked into, they are not.
                    if !own.contains(&path) {
                        folders.push(path);
                    }
                    continue;
                }
                if about.is_dir() {
                    folders.push(path.clone());
                }
                let text = if about.is_file() {
                    fs::read(&path).unwrap_or_default()
                } else {
                    Vec::new()
                };
                let size = if about.is_dir() { 0 } else { about.size() };
                all.insert(
                    path,
                    format!("{:o} {size} {}", about.mode(), blake3::hash(&text)),
                );
            }
        }
        all
    }
}

/// Where a program is.
pub fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Calls every tool once, with words that reach elsewhere; then it has nothing more to say.
fn answer(seen: &Seen) -> Answer {
    let Ok(body) = serde_json::from_slice::<Value>(&seen.body) else {
        return Answer::Status(404, vec![], String::new());
    };
    let answered = body["messages"]
        .as_array()
        .is_some_and(|all| all.iter().any(|one| one["role"] == "tool"));
    let mut pieces = vec![Piece::Text("well")];
    for (n, tool) in body["tools"].as_array().into_iter().flatten().enumerate() {
        if answered {
            break;
        }
        let name = tool["function"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let properties = tool["function"]["parameters"]["properties"].as_object();
        let arguments = properties
            .into_iter()
            .flatten()
            .map(|(name, schema)| (name.clone(), argument(name, schema)));
        let arguments = Value::Object(arguments.collect());
        pieces.push(Piece::Call(format!("c{n}").leak(), name.leak(), arguments));
    }
    Answer::Says(pieces)
}

fn argument(name: &str, schema: &Value) -> Value {
    match (name, schema["type"].as_str()) {
        ("command", _) => json!("touch ../started; curl http://127.0.0.1:9"),
        (_, Some("integer" | "number")) => json!(1),
        (_, Some("boolean")) => json!(true),
        (_, Some("array")) => json!(["web"]),
        (_, Some("object")) => json!({}),
        _ => json!("s"),
    }
}
