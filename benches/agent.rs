//! What the loop adds to the exchanges that it makes.
//!
//! A run of many steps over a history of 1,000 messages, against a scripted model server on this
//! machine: each step is a request, a streamed reply that calls a tool, the tool (which does nothing),
//! and the log, durable. Beside it a bare HTTP client that sends the same bytes and reads the same
//! replies. The loop's own time is the run's less what its model's calls took.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

#[path = "../tests/common/model_server.rs"]
mod model_server;

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use contexture::entry::SessionHeader;
use contexture::prompt::ToolPolicy;
use contexture::{ContextConfig, Message, Payload, Settings};
use contexture_agent::{Agent, Cancel, Chat, Limits, Options, Stores};
use contexture_benches::{Bar, Times, asked, long, note, row};
use contexture_model::{Api, Called, Client, Delta, Endpoint, Model, Patience};
use contexture_store::{
    Durability, FileLog, FileOptions, Key, Log, Memories, Sessions, Transcripts,
};
use contexture_tools::approval::{Approvals, Standing};
use contexture_tools::{Calling, Effect, Outcome, Secrets, Tool, ToolSpec, Tools, Toolset};
use model_server::{Answer, ModelServer, Piece};
use serde_json::{Map, Value, json};

const STEPS: usize = 60;
const HISTORY: usize = 1_000;

fn main() {
    if !asked("agent: a step at 1,000 messages, without the model : a bare HTTP exchange") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    for (name, durability) in [("sync", Durability::Sync), ("os", Durability::Os)] {
        let (own, bodies) = runtime.block_on(run(durability));
        let bare = runtime.block_on(exchange(bodies));
        let steps = u32::try_from(STEPS).unwrap();
        row(
            &format!("a step of the loop, log {name}"),
            own / steps,
            bare / steps,
            Bar::None,
        );
        match durability {
            // A reply is on the disk before its tools run, and their results before the next call.
            Durability::Sync => {
                let disk = syncs();
                row(
                    "  … and two writes that are synced",
                    own / steps,
                    disk,
                    Bar::None,
                );
            }
            Durability::Os => {
                let bar = Duration::from_millis(1);
                row("  … and a millisecond", own / steps, bar, Bar::Most(1.0));
            }
        }
    }
    note("the bare client keeps its connection and reads every byte of the same streams");
}

fn script() -> Vec<Answer> {
    let call = Answer::Says(vec![
        Piece::Text("Looking."),
        Piece::Call("c", "look", json!({"n": 1})),
    ]);
    let mut script = vec![call; STEPS];
    script.push(Answer::Says(vec![Piece::Text("Done.")]));
    script
}

/// The time of a run that is not its model's, and what it sent.
async fn run(durability: Durability) -> (Duration, Vec<Vec<u8>>) {
    let server = ModelServer::start(script());
    let folder = tempfile::tempdir().unwrap();
    let options = FileOptions {
        durability,
        ..FileOptions::default()
    };
    let log: Arc<dyn Log> = Arc::new(FileLog::new(folder.path().join("log"), options));
    let endpoint = Endpoint::parse("openai:m", Some(&server.url)).unwrap();
    let model = Arc::new(Timed {
        client: Client::new(endpoint, Patience::default()).unwrap(),
        spent: Mutex::default(),
    });
    let settings = Settings {
        config: ContextConfig {
            max_input_tokens: 10_000_000,
            ..ContextConfig::default()
        },
        model: Some("m".to_owned()),
        params: Map::from_iter([("stream".to_owned(), json!(true))]),
        ..Settings::default()
    };
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(Look(spec()))];
    let tools: Arc<dyn Tools> = Arc::new(tools);
    let agent = Agent {
        model: Arc::clone(&model) as Arc<dyn Model>,
        tools: Toolset::new(
            ToolPolicy::default(),
            Approvals::new(Standing::default()),
            Secrets::default(),
        )
        .with(tools),
        stores: Stores {
            transcripts: Transcripts::new(Arc::clone(&log)),
            memories: Memories::new(Arc::clone(&log), 200),
        },
        compactor: None,
        options: Options {
            limits: Limits {
                max_steps: STEPS + 5,
                ..Limits::default()
            },
            max_injected: 120,
            ..Options::default()
        },
    };
    let sessions = Sessions::new(log);
    let key = Key::new("bench").unwrap();
    let mut chat = Chat::open(&sessions, &key, SessionHeader::default(), settings).unwrap();
    for message in long().messages.into_iter().take(HISTORY) {
        chat.say(Payload::Message { message }).unwrap();
    }
    let started = Instant::now();
    let user = Message::user("Look again.");
    let result = agent
        .run(&mut chat, user, &Cancel::default(), &|_| {})
        .await
        .unwrap();
    let whole = started.elapsed();
    assert_eq!(result.steps, STEPS + 1);
    let bodies = server.seen().into_iter().map(|seen| seen.body).collect();
    (whole.saturating_sub(*model.spent.lock().unwrap()), bodies)
}

/// What two synced writes of this disk take, in the middle.
fn syncs() -> Duration {
    let mut file = tempfile::tempfile().unwrap();
    let mut times = Times::default();
    for _ in 0..STEPS {
        times.time(|| {
            for _ in 0..2 {
                file.write_all(&[b'x'; 700]).unwrap();
                file.sync_data().unwrap();
            }
        });
    }
    times.median()
}

/// The same exchange by a client that does nothing else.
async fn exchange(bodies: Vec<Vec<u8>>) -> Duration {
    let server = ModelServer::start(script());
    let http = reqwest::Client::new();
    let started = Instant::now();
    for body in bodies {
        let url = format!("{}/chat/completions", server.url);
        let reply = http.post(url).body(body).send().await.unwrap();
        std::hint::black_box(reply.bytes().await.unwrap());
    }
    started.elapsed()
}

struct Timed {
    client: Client,
    spent: Mutex<Duration>,
}

impl Model for Timed {
    fn name(&self) -> &str {
        self.client.name()
    }

    fn api(&self) -> Api {
        self.client.api()
    }

    fn call<'a>(
        &'a self,
        body: Vec<u8>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> Called<'a> {
        Box::pin(async move {
            let started = Instant::now();
            let reply = self.client.call(body, on_delta).await;
            *self.spent.lock().unwrap() += started.elapsed();
            reply
        })
    }
}

struct Look(ToolSpec);

fn spec() -> ToolSpec {
    ToolSpec {
        name: "look".to_owned(),
        description: "Looks.".to_owned(),
        parameters: json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
        category: "bench".to_owned(),
        effect: Effect::Reads,
    }
}

impl Tool for Look {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, _: &'a Map<String, Value>) -> Calling<'a> {
        Box::pin(async { Outcome::done("nothing new") })
    }
}
