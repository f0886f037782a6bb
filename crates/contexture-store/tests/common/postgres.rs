//! A real server for tests: the one of `CONTEXTURE_TEST_POSTGRES`, or one of our own that ends with
//! the test, however the test ends.

use std::cell::RefCell;
use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// It has signs that a URL must escape.
pub const PASSWORD: &str = "s3cret/p@ss";

/// Nobody: PostgreSQL does not run as root.
const NOBODY: u32 = 65534;

pub struct Server {
    /// To its `postgres` database, as one who may create others.
    url: String,
    own: Option<Own>,
}

struct Own {
    folder: TempDir,
    bin: PathBuf,
    port: u16,
    child: RefCell<Option<Child>>,
}

impl Server {
    /// A server. Where none is installed the test is skipped, and says so; one that does not start
    /// is a failure, because `./test` counts as skipped only what it can foresee.
    pub fn get() -> Option<Self> {
        if let Ok(url) = std::env::var("CONTEXTURE_TEST_POSTGRES") {
            return Some(Self { url, own: None });
        }
        let Some(bin) = binaries() else {
            println!("skipped: no PostgreSQL server, and CONTEXTURE_TEST_POSTGRES is not set");
            return None;
        };
        let own = Own::make(bin).unwrap_or_else(|why| panic!("no server could be started: {why}"));
        Some(Self {
            url: own.url("127.0.0.1", "postgres"),
            own: Some(own),
        })
    }

    /// A fresh database, gone with what is given back.
    pub fn database(&self) -> Database<'_> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("contexture_test_{}_{n}", std::process::id());
        self.admin(&format!(
            "CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0"
        ));
        Database { server: self, name }
    }

    /// A URL of this server for another host name, database, or options.
    pub fn url(&self, host: &str, database: &str) -> Option<String> {
        self.own.as_ref().map(|own| own.url(host, database))
    }

    /// Where it listens, when it is ours.
    pub fn port(&self) -> Option<u16> {
        self.own.as_ref().map(|own| own.port)
    }

    /// A file in its folder, when it is ours: `server.crt` is its certificate.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        self.own.as_ref().map(|own| own.folder.path().join(name))
    }

    pub fn admin(&self, sql: &str) -> Vec<String> {
        query(&self.url, sql).unwrap()
    }

    /// Ends it without a chance to tidy up, as a crash would; whether it is ours to end.
    pub fn crash(&self) -> bool {
        let Some(own) = &self.own else {
            println!("skipped: the server of CONTEXTURE_TEST_POSTGRES is not ours to end");
            return false;
        };
        own.end("QUIT");
        true
    }

    pub fn start_again(&self) {
        self.own.as_ref().unwrap().start().unwrap();
    }

    /// Makes it hang for a while, all of its processes; whether it is ours. A process of its own
    /// wakes it again, also when the test is killed meanwhile: what is stopped cannot even end.
    pub fn hang(&self, seconds: u32) -> Option<Child> {
        let own = self.own.as_ref()?;
        let id = own.child.borrow().as_ref()?.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        let all = format!("{id} {children}");
        let script = format!("kill -s STOP {all}; sleep {seconds}; kill -s CONT {all}");
        Command::new("setsid")
            .args(["sh", "-c", &script])
            .spawn()
            .ok()
    }
}

/// A database that is dropped at the end.
pub struct Database<'s> {
    server: &'s Server,
    name: String,
}

impl Database<'_> {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn url(&self) -> String {
        let (before, after) = match self.server.url.split_once('?') {
            Some((before, after)) => (before, format!("?{after}")),
            None => (self.server.url.as_str(), String::new()),
        };
        let (address, _) = before.rsplit_once('/').unwrap();
        format!("{address}/{}{after}", self.name)
    }

    pub fn query(&self, sql: &str) -> Vec<String> {
        query(&self.url(), sql).unwrap()
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        if self.server.own.is_none() {
            self.server
                .admin(&format!("DROP DATABASE {} WITH (FORCE)", self.name));
        }
    }
}

impl Own {
    fn make(bin: PathBuf) -> Result<Self, String> {
        let folder = tempfile::Builder::new()
            .prefix("contexture-pg-")
            .tempdir()
            .map_err(|error| error.to_string())?;
        let (data, password) = (folder.path().join("data"), folder.path().join("password"));
        fs::write(&password, PASSWORD).map_err(|error| error.to_string())?;
        run(Command::new("openssl")
            .args(["req", "-x509", "-nodes", "-days", "2"])
            .args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
            .args([
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost",
            ])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .arg("-keyout")
            .arg(folder.path().join("server.key"))
            .arg("-out")
            .arg(folder.path().join("server.crt")))?;
        if is_root() {
            for file in ["", "password", "server.key"] {
                let path = folder.path().join(file);
                chown(path, Some(NOBODY), Some(NOBODY)).map_err(|error| error.to_string())?;
            }
        }
        run(unprivileged(&bin.join("initdb"))
            .args(["--no-sync", "--auth=scram-sha-256", "--username=contexture"])
            .args(["--encoding=UTF8", "--locale=C"])
            .arg("--pwfile")
            .arg(&password)
            .arg("--pgdata")
            .arg(&data)
            .current_dir(folder.path()))?;
        let own = Self {
            folder,
            bin,
            port: free_port()?,
            child: RefCell::new(None),
        };
        own.start()?;
        Ok(own)
    }

    fn start(&self) -> Result<(), String> {
        let mut why = String::new();
        // What a crash left may take a moment to go.
        for _ in 0..20 {
            match self.try_start() {
                Ok(()) => return Ok(()),
                Err(error) => why = error,
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(why)
    }

    /// In the foreground and tied to this thread: when it ends, also by a panic or a signal, the
    /// kernel ends the server.
    fn try_start(&self) -> Result<(), String> {
        let folder = self.folder.path();
        let log = folder.join("log");
        let file = File::create(&log).map_err(|error| error.to_string())?;
        let child = unprivileged(&self.bin.join("postgres"))
            .arg("-D")
            .arg(folder.join("data"))
            .arg("-k")
            .arg(folder)
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(["-c", "ssl=on"])
            .arg("-c")
            .arg(format!(
                "ssl_cert_file={}",
                folder.join("server.crt").display()
            ))
            .arg("-c")
            .arg(format!(
                "ssl_key_file={}",
                folder.join("server.key").display()
            ))
            .args(["-c", "shared_buffers=32MB", "-c", "max_wal_size=256MB"])
            .current_dir(folder)
            .stderr(file)
            .spawn()
            .map_err(|error| error.to_string())?;
        *self.child.borrow_mut() = Some(child);
        let since = Instant::now();
        let url = self.url("127.0.0.1", "postgres");
        loop {
            let ended = self
                .child
                .borrow_mut()
                .as_mut()
                .unwrap()
                .try_wait()
                .unwrap();
            if ended.is_some() || since.elapsed() > Duration::from_secs(20) {
                self.end("KILL");
                return Err(fs::read_to_string(&log).unwrap_or_default());
            }
            if query(&url, "SELECT 1").is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn end(&self, signal: &str) {
        let child = self.child.borrow_mut().take();
        if let Some(mut child) = child {
            kill(signal, &child.id().to_string());
            child.wait().unwrap();
        }
    }

    fn url(&self, host: &str, database: &str) -> String {
        let password = PASSWORD.replace('/', "%2F").replace('@', "%40");
        format!(
            "postgres://contexture:{password}@{host}:{}/{database}",
            self.port
        )
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.end("QUIT");
    }
}

/// Runs SQL and gives the first column of its rows.
fn query(url: &str, sql: &str) -> Result<Vec<String>, tokio_postgres::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        let messages = client.simple_query(sql).await?;
        Ok(messages
            .into_iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
                _ => None,
            })
            .collect())
    })
}

/// The newest server that is installed.
fn binaries() -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .collect();
    let version = |bin: &PathBuf| {
        let name = bin.parent().and_then(Path::file_name);
        name.and_then(|name| name.to_str()?.parse::<u32>().ok())
    };
    found.sort_by_key(version);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = found.into_iter().rev().chain(std::env::split_paths(&path));
    places
        .into_iter()
        .find(|bin| bin.join("initdb").exists() && bin.join("postgres").exists())
}

/// A command that ends with us, and that is never root.
fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "INT"]);
    if is_root() {
        let id = NOBODY.to_string();
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]);
    }
    command.arg(program);
    command
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{command:?}: {said}"))
}

fn kill(signal: &str, process: &str) {
    let _ = Command::new("kill").args(["-s", signal, process]).output();
}

fn free_port() -> Result<u16, String> {
    let socket = std::net::TcpListener::bind(("127.0.0.1", 0));
    socket
        .and_then(|socket| socket.local_addr())
        .map(|address| address.port())
        .map_err(|error| error.to_string())
}
