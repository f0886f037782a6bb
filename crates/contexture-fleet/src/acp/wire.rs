//! Messages out and in: one JSON text a line.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contexture::json::{self, ReadError};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};
use tokio::time::timeout;

use contexture_tools::process::Lines;

/// The longest line that is read.
const LONGEST_LINE: usize = 8 << 20;
/// The most memory that one may take once it is parsed.
const MAX_HELD_BYTES: usize = 32 << 20;
/// The most lines in a row that are no messages. Some agents print a few words before they begin.
const MOST_NOISE: usize = 200;
/// The most lines that wait to be written.
const QUEUE: usize = 16;
/// The most answers that may be outstanding.
const MOST_WAITING: usize = 256;
/// How long something that nobody waits for may wait to be written.
const SOON: Duration = Duration::from_secs(5);

/// What goes to the agent, and what is waited for.
pub(super) struct Wire {
    lines: mpsc::Sender<String>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    last: u64,
    closed: bool,
    all: HashMap<u64, Waiter>,
}

struct Waiter {
    tell: oneshot::Sender<Result<Value, Refusal>>,
    opens: bool,
    /// A turn is over when its prompt is answered, whether somebody still waits or not.
    _turn: Option<OwnedMutexGuard<()>>,
}

/// What is asked beside a method and its parameters.
#[derive(Default)]
pub(super) struct Asking {
    /// Whether the answer names a session that exists from then on.
    pub opens: bool,
    /// The turn that the answer ends.
    pub turn: Option<OwnedMutexGuard<()>>,
}

/// An error that the agent answered with.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub code: i64,
    pub message: String,
}

/// Why something was not asked.
pub(super) enum Unasked {
    /// The agent is gone.
    Gone,
    /// Too much is asked already.
    TooMany(usize),
}

impl Wire {
    /// A wire, and what writes to its end.
    pub fn new(mut input: ChildStdin) -> (Self, impl Future<Output = ()>) {
        let (lines, mut queue) = mpsc::channel::<String>(QUEUE);
        let writing = async move {
            while let Some(line) = queue.recv().await {
                let written = input.write_all(line.as_bytes()).await;
                if written.is_err() || input.flush().await.is_err() {
                    return;
                }
            }
        };
        let waiting = Mutex::default();
        (Self { lines, waiting }, writing)
    }

    /// Asks something. Gives what to wait for, and a number to forget it by.
    pub async fn ask(
        &self,
        method: &str,
        params: &Value,
        asking: Asking,
    ) -> Result<(u64, oneshot::Receiver<Result<Value, Refusal>>), Unasked> {
        // A place in the queue first: from there on nothing is waited for, so whoever is dropped meanwhile
        // has asked or has not.
        let place = self.lines.reserve().await.map_err(|_| Unasked::Gone)?;
        let (tell, told) = oneshot::channel();
        let id = {
            let mut waiting = self.waiting();
            if waiting.closed {
                return Err(Unasked::Gone);
            }
            if waiting.all.len() >= MOST_WAITING {
                return Err(Unasked::TooMany(waiting.all.len()));
            }
            waiting.last += 1;
            let id = waiting.last;
            let waiter = Waiter {
                tell,
                opens: asking.opens,
                _turn: asking.turn,
            };
            waiting.all.insert(id, waiter);
            id
        };
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        place.send(format!("{request}\n"));
        Ok((id, told))
    }

    /// No longer waits for an answer.
    pub fn forget(&self, id: u64) {
        self.waiting().all.remove(&id);
    }

    /// Hands an answer to whoever waits for it. `open` is called first if it names a session. Whether
    /// somebody had asked.
    pub fn answered(
        &self,
        id: u64,
        answer: Result<Value, Refusal>,
        open: impl FnOnce(&Value),
    ) -> bool {
        let Some(waiter) = self.waiting().all.remove(&id) else {
            return false;
        };
        if let (true, Ok(answer)) = (waiter.opens, &answer) {
            open(answer);
        }
        let _ = waiter.tell.send(answer);
        true
    }

    /// Sends a message, when there is room for it.
    pub async fn send(&self, message: &Value) {
        let _ = self.lines.send(format!("{message}\n")).await;
    }

    /// Sends a message, without waiting for it.
    pub fn send_soon(&self, message: &Value) {
        let line = format!("{message}\n");
        if let Err(mpsc::error::TrySendError::Full(line)) = self.lines.try_send(line) {
            let lines = self.lines.clone();
            tokio::spawn(async move {
                let _ = timeout(SOON, lines.send(line)).await;
            });
        }
    }

    /// The agent is gone: nothing is answered any more.
    pub fn close(&self) {
        let mut waiting = self.waiting();
        waiting.closed = true;
        waiting.all.clear();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message of the agent's.
pub(super) enum Incoming {
    /// It asks something.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    /// It tells something.
    Notice { method: String, params: Value },
    /// It answers.
    Answer(u64, Result<Value, Refusal>),
    /// A message of no kind.
    Neither,
}

/// Reads messages, one after another.
pub(super) struct Reader {
    lines: BufReader<Lines<ChildStdout>>,
    line: Vec<u8>,
    noise: usize,
}

impl Reader {
    pub fn new(output: Lines<ChildStdout>) -> Self {
        Self {
            lines: BufReader::new(output.longest(LONGEST_LINE).holding(MAX_HELD_BYTES)),
            line: Vec::new(),
            noise: 0,
        }
    }

    /// The next message; none at the end. An error says why there is no more.
    pub async fn next(&mut self) -> Result<Option<Incoming>, String> {
        loop {
            self.line.clear();
            self.line.shrink_to(1 << 20);
            let read = self.lines.read_until(b'\n', &mut self.line).await;
            let read = read.map_err(|error| format!("its output cannot be read: {error}"))?;
            if read == 0 {
                return Ok(None);
            }
            let line = self.line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            match json::read(line, MAX_HELD_BYTES) {
                Ok(Value::Object(message)) => {
                    self.noise = 0;
                    return Ok(Some(read_message(Value::Object(message))));
                }
                // What was meant for us and cannot be read may be an answer that somebody waits for.
                Err(ReadError::Malformed(error)) if line.starts_with(b"{\"jsonrpc\"") => {
                    return Err(format!("it sent a message that cannot be read: {error}"));
                }
                _ => self.noise += 1,
            }
            if self.noise > MOST_NOISE {
                let last = super::bounded(&String::from_utf8_lossy(line), 100);
                return Err(format!("what it prints is not the protocol: {last}"));
            }
        }
    }
}

fn read_message(mut message: Value) -> Incoming {
    let method = message["method"].as_str().map(str::to_owned);
    let id = message.get_mut("id").map(Value::take);
    let params = message.get_mut("params").map(Value::take);
    match (method, id) {
        (Some(method), Some(id)) => Incoming::Request {
            id,
            method,
            params: params.unwrap_or_default(),
        },
        (Some(method), None) => Incoming::Notice {
            method,
            params: params.unwrap_or_default(),
        },
        (None, Some(id)) => match id.as_u64() {
            Some(id) => Incoming::Answer(id, read_answer(message)),
            None => Incoming::Neither,
        },
        (None, None) => Incoming::Neither,
    }
}

fn read_answer(mut message: Value) -> Result<Value, Refusal> {
    match message.get_mut("error").map(Value::take) {
        None | Some(Value::Null) => Ok(message["result"].take()),
        Some(error) => {
            // Many put what went wrong into `data`, and leave the message as the code's name.
            let mut message = error["message"].as_str().unwrap_or_default().to_owned();
            let data = &error["data"];
            let more = [data, &data["details"], &data["message"], &data["error"]];
            if let Some(more) = more.into_iter().find_map(Value::as_str) {
                message = format!("{message}: {more}");
            }
            Err(Refusal {
                code: error["code"].as_i64().unwrap_or_default(),
                message: super::bounded(&message, 600),
            })
        }
    }
}
