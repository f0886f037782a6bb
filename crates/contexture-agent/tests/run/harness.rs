//! An agent with tools of a few lines, a scripted model and a real log.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use contexture::entry::SessionHeader;
use contexture::prompt::{Section, ToolPolicy};
use contexture::replay::verify;
use contexture::{ContextConfig, Entry, Message, Payload, Settings};
use contexture_agent::{
    Agent, AgentError, AgentResult, Cancel, Chat, Event, History, Limits, ModelCompactor, Options,
    Stores,
};
use contexture_model::{Client, Endpoint, Model, Patience};
use contexture_store::{FileLog, FileOptions, Key, Log, Memories, Sessions, Transcripts};
use contexture_tools::approval::{Approvals, Standing};
use contexture_tools::{
    Calling, Effect, Outcome, RunContext, Secrets, Tool, ToolSpec, Tools, Toolset,
};
use serde_json::{Map, Value, json};

use crate::model_server::{Answer, ModelServer, Seen};

/// The forms that providers speak.
pub const MODELS: [&str; 3] = ["openai:m", "openai-responses:m", "anthropic:m"];

pub struct Bench {
    pub server: ModelServer,
    pub folder: tempfile::TempDir,
    pub agent: Agent,
    pub sessions: Sessions,
    pub settings: Settings,
    pub events: Arc<Mutex<Vec<Event>>>,
    pub cancel: Cancel,
    /// What else happens when something happens.
    pub hook: Mutex<Option<Hook>>,
    pub spy: Arc<Spy>,
}

pub type Hook = Box<dyn FnMut(&Event) + Send>;

/// What the tools did.
#[derive(Default)]
pub struct Spy {
    pub runs: AtomicUsize,
    pub at_once: AtomicUsize,
    pub most_at_once: AtomicUsize,
}

#[must_use]
pub struct Setup {
    pub model: &'static str,
    pub script: Vec<Answer>,
    pub budget: usize,
    pub max_steps: usize,
    pub policy: ToolPolicy,
    pub standing: Standing,
    pub sections: Vec<Section>,
    pub reserved: usize,
    pub compactor: Summaries,
    pub history: Option<History>,
}

/// Who writes summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Summaries {
    None,
    Extracted,
    ByModel,
}

impl Setup {
    pub fn new(model: &'static str, script: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            model,
            script: script.into_iter().collect(),
            budget: 32_000,
            max_steps: 30,
            policy: ToolPolicy::default(),
            standing: Standing {
                all: true,
                ..Standing::default()
            },
            sections: vec![Section::stable("default", "test", "You are a test.")],
            reserved: 1_000,
            compactor: Summaries::Extracted,
            history: None,
        }
    }

    pub fn start(mut self) -> Bench {
        let server = ModelServer::start(std::mem::take(&mut self.script));
        self.start_with(server)
    }

    pub fn start_with(self, server: ModelServer) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let log: Arc<dyn Log> = Arc::new(FileLog::new(
            folder.path().join(".contexture"),
            FileOptions::default(),
        ));
        let endpoint = Endpoint::parse(self.model, Some(&server.url)).unwrap();
        let patience = Patience {
            pause: Duration::from_millis(1),
            first: Duration::from_secs(5),
            next: Duration::from_secs(1),
            retries: 2,
            ..Patience::default()
        };
        let client = Arc::new(Client::new(endpoint, patience).unwrap());
        let mut settings = Settings {
            config: ContextConfig {
                max_input_tokens: self.budget,
                reserved_output: self.reserved,
                ..ContextConfig::default()
            },
            wire: client.endpoint().api().wire(),
            model: Some("m".to_owned()),
            params: Map::from_iter([("stream".to_owned(), json!(true))]),
            ..Settings::default()
        };
        let compactor = (self.compactor == Summaries::ByModel).then(|| {
            let model = Arc::clone(&client) as Arc<dyn Model>;
            Arc::new(ModelCompactor::new(model, &settings).within(Duration::from_secs(2)))
        });
        match (&compactor, self.compactor) {
            (Some(model), _) => settings.compactors.insert(0, Arc::clone(model) as _),
            (None, Summaries::None) => settings.compactors.clear(),
            _ => {}
        }
        let spy = Arc::new(Spy::default());
        let tools: Vec<Arc<dyn Tool>> = [
            ("look", Effect::Reads),
            ("write", Effect::Acts),
            ("note", Effect::Tells),
            ("break_down", Effect::Reads),
            ("fail", Effect::Reads),
            ("refuse", Effect::Reads),
            ("hang", Effect::Reads),
            ("leak", Effect::Reads),
            ("long", Effect::Reads),
        ]
        .into_iter()
        .map(|(name, effect)| Arc::new(Fake::new(name, effect, Arc::clone(&spy))) as Arc<dyn Tool>)
        .collect();
        let source: Arc<dyn Tools> = Arc::new(tools);
        let secrets = Secrets::of(["correct-horse-battery".to_owned()]);
        let agent = Agent {
            model: client,
            tools: Toolset::new(self.policy, Approvals::new(self.standing), secrets).with(source),
            stores: Stores {
                transcripts: Transcripts::new(Arc::clone(&log)),
                memories: Memories::new(Arc::clone(&log), 200),
            },
            compactor,
            options: Options {
                limits: Limits {
                    max_steps: self.max_steps,
                    ..Limits::default()
                },
                history: self.history,
                max_injected: 120,
                sections: self.sections,
                ..Options::default()
            },
        };
        Bench {
            server,
            folder,
            agent,
            sessions: Sessions::new(log),
            settings,
            events: Arc::default(),
            cancel: Cancel::default(),
            hook: Mutex::default(),
            spy,
        }
    }
}

impl Bench {
    pub fn key(&self) -> Key {
        Key::new("test").unwrap()
    }

    pub fn chat(&self) -> Chat {
        let header = SessionHeader::default();
        Chat::open(&self.sessions, &self.key(), header, self.settings.clone()).unwrap()
    }

    /// Somebody else who opens the same conversation, again and again.
    pub fn other(&self) -> impl FnMut() -> Chat + Send + 'static {
        let (sessions, key) = (self.sessions.clone(), self.key());
        let settings = self.settings.clone();
        move || {
            let header = SessionHeader::default();
            Chat::open(&sessions, &key, header, settings.clone()).unwrap()
        }
    }

    pub fn run(&self, text: &str) -> Result<AgentResult, AgentError> {
        self.run_in(&mut self.chat(), text)
    }

    pub fn run_in(&self, chat: &mut Chat, text: &str) -> Result<AgentResult, AgentError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let events = Arc::clone(&self.events);
        let on = |event: Event| {
            if let Some(hook) = self.hook.lock().unwrap().as_mut() {
                hook(&event);
            }
            events.lock().unwrap().push(event);
        };
        let run = self.agent.run(chat, Message::user(text), &self.cancel, &on);
        runtime.block_on(async {
            tokio::time::timeout(Duration::from_secs(60), run)
                .await
                .expect("a run ends")
        })
    }

    /// The log as it is on the disk.
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        self.sessions.load(&self.key()).unwrap().view.log().to_vec()
    }

    /// The types of the log's entries; messages by their role, requests by their outcome.
    pub fn shape(&self) -> Vec<String> {
        let entries = self.entries();
        entries.iter().map(|entry| shape(entry)).collect()
    }

    /// Every recorded request can be made again, and is what the server was sent.
    #[track_caller]
    pub fn verify(&self) {
        self.verify_all_but(|_| false);
    }

    /// The same, where some requests are not the loop's own.
    #[track_caller]
    pub fn verify_all_but(&self, other: impl Fn(&Seen) -> bool) {
        let mut made = Vec::new();
        verify(
            |_| self.settings.clone(),
            self.entries(),
            |step, built| {
                assert_eq!(
                    step.recorded_digest, None,
                    "request {} differs",
                    step.request
                );
                made.push(built.body().to_vec());
                Ok(())
            },
        )
        .unwrap();
        let seen = self.server.seen().into_iter().filter(|seen| !other(seen));
        let mut seen: Vec<Vec<u8>> = seen.map(|seen| seen.body).collect();
        // The same request sent again is one request.
        seen.dedup();
        made.dedup();
        assert_eq!(made.len(), seen.len());
        assert!(made == seen, "a recorded request is not what was sent");
    }

    pub fn said(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        let said = events.iter().filter_map(|event| match event {
            Event::Assistant { text } => Some(text.clone()),
            _ => None,
        });
        said.collect()
    }
}

fn shape(entry: &Entry) -> String {
    match &entry.payload {
        Payload::Message { message } => match message.tool_calls.len() {
            0 if message.failed() => format!("{}!", message.role.as_str()),
            0 => message.role.as_str().to_owned(),
            n => format!("{}+{n}", message.role.as_str()),
        },
        Payload::Request(record) => match record.extra.get("outcome") {
            Some(outcome) => format!("request {}", outcome.as_str().unwrap()),
            None if record.usage.is_some() => "request".to_owned(),
            None => "request without usage".to_owned(),
        },
        other => other.type_name().to_owned(),
    }
}

struct Fake {
    spec: ToolSpec,
    spy: Arc<Spy>,
}

impl Fake {
    fn new(name: &str, effect: Effect, spy: Arc<Spy>) -> Self {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: format!("does {name}"),
            parameters: json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
            category: "test".to_owned(),
            effect,
        };
        Self { spec, spy }
    }
}

impl Tool for Fake {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: &'a Map<String, Value>) -> Calling<'a> {
        Box::pin(async move {
            self.spy.runs.fetch_add(1, Ordering::SeqCst);
            let now = self.spy.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            self.spy.most_at_once.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            self.spy.at_once.fetch_sub(1, Ordering::SeqCst);
            let run = RunContext::current().expect("a tool runs inside a run");
            match self.spec.name.as_str() {
                "note" => {
                    run.tell("a note");
                    let n = arguments.get("n").and_then(Value::as_i64).unwrap_or(0);
                    run.inject_system_message_once(&format!("s{n}"), &format!("rule {n}"), "note")
                        .unwrap();
                    run.inject_assistant_message_once(
                        &format!("a{n}"),
                        &format!("memory {n}"),
                        "note",
                    )
                    .unwrap();
                    Outcome::done("noted")
                }
                "break_down" => panic!("as it was told"),
                "fail" => Outcome::failed("no such thing"),
                "refuse" => Outcome::done(r#"{"success": false, "stderr": "no such file"}"#),
                "hang" => std::future::pending().await,
                "leak" => {
                    Outcome::done("the key is correct-horse-battery and sk-abcdefghijklmnopqrs")
                }
                "long" => Outcome::done("lorem ipsum dolor ".repeat(400)),
                name => Outcome::done(format!("{name} {}", Value::Object(arguments.clone()))),
            }
        })
    }
}
