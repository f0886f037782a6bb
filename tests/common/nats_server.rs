//! A real NATS server for tests, one of our own that ends with the test, however the test ends.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub struct NatsServer {
    folder: TempDir,
    program: PathBuf,
    port: u16,
    more: Vec<String>,
    child: RefCell<Option<Child>>,
}

impl NatsServer {
    /// A server with JetStream. Where none is installed the test is skipped, and says so; one that does not
    /// start is a failure, because `./test` counts as skipped only what it can foresee.
    pub fn get() -> Option<Self> {
        Self::with(&["-js"])
    }

    /// A server that is told more, or that has no JetStream.
    pub fn with(more: &[&str]) -> Option<Self> {
        let Some(program) = program() else {
            println!("skipped: nats-server is not installed");
            return None;
        };
        let folder = tempfile::Builder::new()
            .prefix("contexture-nats-")
            .tempdir()
            .unwrap();
        let more = more.iter().map(|&word| word.to_owned()).collect();
        let mut server = Self {
            folder,
            program,
            port: 0,
            more,
            child: RefCell::new(None),
        };
        let mut why = String::new();
        // Somebody else may take the port before the server does.
        for _ in 0..5 {
            server.port = free_port();
            match server.try_start() {
                Ok(()) => return Some(server),
                Err(error) => why = error,
            }
        }
        panic!("no server could be started: {why}");
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address, without a user.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Starts it again, on the same port and with what is on its disk.
    pub fn restart(&self) {
        self.stop();
        let mut why = String::new();
        // What a crash left may take a moment to go.
        for _ in 0..20 {
            match self.try_start() {
                Ok(()) => return,
                Err(error) => why = error,
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the server did not start again: {why}");
    }

    /// Ends it without a chance to tidy up, as a crash would.
    pub fn stop(&self) {
        if let Some(mut child) = self.child.borrow_mut().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Forgets all that is on its disk. It must not run.
    pub fn forget(&self) {
        let _ = fs::remove_dir_all(self.folder.path().join("data"));
    }

    /// Makes it hang for a while. A process of its own wakes it again, also when the test is killed meanwhile.
    pub fn hang(&self, seconds: u32) -> Option<Child> {
        let id = self.child.borrow().as_ref()?.id();
        let script = format!("kill -s STOP {id}; sleep {seconds}; kill -s CONT {id}");
        Command::new("setsid")
            .args(["sh", "-c", &script])
            .spawn()
            .ok()
    }

    /// In the foreground and tied to this thread: when it ends, also by a panic or a signal, the kernel ends the
    /// server.
    fn try_start(&self) -> Result<(), String> {
        let log = self.folder.path().join("log");
        let file = File::create(&log).map_err(|error| error.to_string())?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(&self.program)
            .args(["--addr", "127.0.0.1", "--port", &self.port.to_string()])
            .arg("--store_dir")
            .arg(self.folder.path().join("data"))
            .args(&self.more)
            .current_dir(self.folder.path())
            .stderr(file)
            .spawn()
            .map_err(|error| error.to_string())?;
        *self.child.borrow_mut() = Some(child);
        let since = Instant::now();
        while !self.greets() {
            let ended = self
                .child
                .borrow_mut()
                .as_mut()
                .unwrap()
                .try_wait()
                .unwrap();
            if ended.is_some() || since.elapsed() > Duration::from_secs(20) {
                self.stop();
                return Err(fs::read_to_string(&log).unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Whether it says hello.
    fn greets(&self) -> bool {
        let Ok(stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) else {
            return false;
        };
        let mut line = String::new();
        let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
        BufReader::new(stream).read_line(&mut line).is_ok() && line.starts_with("INFO ")
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Debian puts it where only root looks.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places =
        std::env::split_paths(&path).chain(["/usr/sbin", "/usr/local/bin"].map(PathBuf::from));
    places
        .map(|place| place.join("nats-server"))
        .find(|program: &PathBuf| Path::is_file(program))
}

fn free_port() -> u16 {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.local_addr().unwrap().port()
}
