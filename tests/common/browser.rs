//! A Chromium without a window, driven over its DevTools pipe.
#![allow(dead_code, reason = "each test binary uses its own share")]

use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Enough for anything that is not stuck.
const LONG: Duration = Duration::from_secs(60);
/// The programs that will do, best first.
const PROGRAMS: [&str; 4] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
];
/// The pipe is at descriptors 3 and 4 of the browser: here, its standard input and output.
const PIPED: &str = r#"exec "$@" 3<&0 4>&1 0</dev/null 1>/dev/null"#;

/// A browser with a profile of its own, until it is dropped.
pub struct Browser {
    child: Child,
    input: RefCell<ChildStdin>,
    replies: Receiver<Value>,
    calls: Cell<u64>,
    _profile: TempDir,
}

/// A tab.
pub struct Tab<'a> {
    browser: &'a Browser,
    session: String,
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut all = PROGRAMS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    all.find(|path| path.is_file())
}

impl Browser {
    /// Starts one; `None`, with the reason, where there is none.
    pub fn start() -> Option<Self> {
        let Some(program) = program() else {
            println!("skipped: there is no Chromium; ./test installs one");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", PIPED, "sh"]).arg(program);
        command.args([
            "--headless",
            "--remote-debugging-pipe",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            // Its own sandbox takes rights that a container's root does not have.
            "--no-sandbox",
        ]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.env("HOME", profile.path());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = RefCell::new(child.stdin.take().unwrap());
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, replies) = channel();
        std::thread::spawn(move || {
            for message in output.split(0) {
                let Ok(message) = message else { return };
                let value = serde_json::from_slice(&message).unwrap_or_default();
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        Some(Self {
            child,
            input,
            replies,
            calls: Cell::new(0),
            _profile: profile,
        })
    }

    /// A new tab.
    pub fn tab(&self) -> Tab<'_> {
        self.open(&json!({"url": "about:blank"}))
    }

    /// A new tab of somebody else, whose storage is empty.
    pub fn strangers_tab(&self) -> Tab<'_> {
        let context = self.call(None, "Target.createBrowserContext", &json!({}));
        let context = &context["browserContextId"];
        self.open(&json!({"url": "about:blank", "browserContextId": context}))
    }

    fn open(&self, what: &Value) -> Tab<'_> {
        let made = self.call(None, "Target.createTarget", what);
        let session = self.attach(&made["targetId"]);
        Tab {
            browser: self,
            session,
        }
    }

    fn attach(&self, target: &Value) -> String {
        let what = json!({"targetId": target, "flatten": true});
        let attached = self.call(None, "Target.attachToTarget", &what);
        attached["sessionId"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn call(&self, session: Option<&str>, method: &str, params: &Value) -> Value {
        let done = self.try_call(session, method, params);
        done.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Calls a method of the protocol. Events are passed over.
    #[track_caller]
    fn try_call(
        &self,
        session: Option<&str>,
        method: &str,
        params: &Value,
    ) -> Result<Value, Value> {
        let id = self.calls.get() + 1;
        self.calls.set(id);
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.input.borrow_mut().write_all(&bytes).unwrap();
        let until = Instant::now() + LONG;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let mut said = match self.replies.recv_timeout(left) {
                Ok(said) => said,
                Err(RecvTimeoutError::Timeout) => panic!("{method}: no answer"),
                Err(RecvTimeoutError::Disconnected) => panic!("{method}: the browser ended"),
            };
            if said["id"] == json!(id) {
                return match said.get_mut("error") {
                    Some(error) => Err(error.take()),
                    None => Ok(said["result"].take()),
                };
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Tab<'_> {
    #[track_caller]
    fn call(&self, method: &str, params: &Value) -> Value {
        self.browser.call(Some(&self.session), method, params)
    }

    /// Goes to an address, as whoever enters it above the page.
    #[track_caller]
    pub fn open(&self, url: &str) {
        self.call("Page.navigate", &json!({ "url": url }));
    }

    pub fn reload(&self) {
        self.call("Page.reload", &json!({}));
    }

    /// The value of an expression on the page; of a promise, what it comes to.
    #[track_caller]
    pub fn eval(&self, expression: &str) -> Value {
        let what = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut said = self.call("Runtime.evaluate", &what);
        assert!(
            said.get("exceptionDetails").is_none(),
            "{expression}: {said}"
        );
        said["result"]["value"].take()
    }

    /// Waits until an expression holds.
    #[track_caller]
    pub fn until(&self, expression: &str) {
        let until = Instant::now() + LONG;
        let what = json!({"expression": format!("!!({expression})"), "returnByValue": true});
        // A page on its way to another answers with an error.
        let holds = || {
            let session = Some(self.session.as_str());
            let said = self.browser.try_call(session, "Runtime.evaluate", &what);
            said.is_ok_and(|said| said["result"]["value"] == json!(true))
        };
        while !holds() {
            assert!(
                Instant::now() < until,
                "never: {expression}: {}",
                self.everything()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The addresses in the tab's history.
    pub fn history(&self) -> Vec<String> {
        let said = self.call("Page.getNavigationHistory", &json!({}));
        let entries = said["entries"].as_array().unwrap().iter();
        entries
            .map(|entry| entry["url"].as_str().unwrap().to_owned())
            .collect()
    }

    /// What is in the page and in all of its frames, as the browser took it apart.
    pub fn everything(&self) -> String {
        let whole = json!({"depth": -1, "pierce": true});
        let mut text = self.call("DOM.getDocument", &whole).to_string();
        let targets = self.browser.call(None, "Target.getTargets", &json!({}));
        let all = targets["targetInfos"].as_array().unwrap().iter();
        for frame in all.filter(|target| target["type"] == "iframe") {
            let session = self.browser.attach(&frame["targetId"]);
            let of_frame = self.browser.call(Some(&session), "DOM.getDocument", &whole);
            text.push_str(&of_frame.to_string());
        }
        text
    }
}

/// A server of somebody else on this machine: what it was sent, head by head.
pub struct Stranger {
    pub url: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Stranger {
    /// Serves this page, whatever is asked.
    pub fn start(page: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let (seen, page) = (Arc::clone(&heads), page.to_owned());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                // A browser opens connections that it may not use.
                let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
                let mut head = String::new();
                for line in BufReader::new(&stream).lines() {
                    match line {
                        Ok(line) if !line.is_empty() => head += &format!("{line}\n"),
                        _ => break,
                    }
                }
                if !head.is_empty() {
                    seen.lock().unwrap().push(head);
                }
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
                    page.len()
                );
            }
        });
        Self { url, heads }
    }

    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}
