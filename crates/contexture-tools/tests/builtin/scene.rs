//! A chat with stores of its own, and a run in it.

use std::sync::{Arc, Mutex};

use contexture::{Entry, EntryId, Message};
use contexture_store::{Execution, FileLog, FileOptions, Key, Log, Memories, Said, Transcripts};
use contexture_tools::builtin::{self, Stores};
use contexture_tools::skills::Skills;
use contexture_tools::{Outcome, RunContext, Tool};
use serde_json::Value;
use tempfile::TempDir;

pub struct Scene {
    pub folder: TempDir,
    pub log: Arc<dyn Log>,
    pub stores: Stores,
    pub run: Arc<RunContext>,
    pub told: Arc<Mutex<Vec<String>>>,
}

impl Scene {
    pub fn new() -> Self {
        Self::injecting(120)
    }

    /// A run that may inject so many messages.
    pub fn injecting(most: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log: Arc<dyn Log> = Arc::new(FileLog::new(folder.path(), FileOptions::default()));
        let stores = Stores {
            transcripts: Transcripts::new(Arc::clone(&log)),
            memories: Memories::new(Arc::clone(&log), 200),
            skills: Arc::new(Skills::none()),
        };
        let told = Arc::new(Mutex::new(Vec::new()));
        let ear = Arc::clone(&told);
        let messages = vec![Message::user("and now?")];
        let tell = move |text: &str| ear.lock().unwrap().push(text.to_owned());
        let run = RunContext::new("chat", "run", messages, EntryId::from("u"), [], most, tell);
        Self {
            folder,
            log,
            stores,
            run: Arc::new(run),
            told,
        }
    }

    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        builtin::tools(self.stores.clone())
    }

    pub fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let found = self
            .tools()
            .into_iter()
            .find(|tool| tool.spec().name == name);
        found.unwrap()
    }

    pub async fn call(&self, name: &str, arguments: Value) -> Outcome {
        let tool = self.tool(name);
        let arguments = arguments.as_object().unwrap().clone();
        Arc::clone(&self.run).scope(tool.call(&arguments)).await
    }

    /// What the model reads of a call that must work.
    #[track_caller]
    pub fn works(outcome: &Outcome) -> String {
        assert!(!outcome.failed, "{outcome:?}");
        text(outcome)
    }

    #[track_caller]
    pub fn fails(outcome: &Outcome) -> String {
        assert!(outcome.failed, "{outcome:?}");
        text(outcome)
    }

    pub fn said(&self, chat: &str, role: &str, text: &str) {
        let line = said(chat, role, text);
        let key = Key::new(chat).unwrap();
        self.stores.transcripts.append(&key, &[line]).unwrap();
    }

    pub fn did(&self, chat: &str, run: &str, asked: &str) {
        let run = Execution {
            ts: "2026-01-02T03:04:05Z".into(),
            request_id: run.into(),
            user_preview: asked.into(),
            ..Execution::default()
        };
        let key = Key::new(chat).unwrap();
        self.stores.memories.put(&key, run).unwrap();
    }

    /// The only injection since this was last asked: whose it is, and what it says.
    #[track_caller]
    pub fn injected(&self) -> (&'static str, String) {
        let injections = self.run.take_injections();
        let [one] = &injections[..] else {
            panic!("{injections:?}")
        };
        (one.role.as_str(), one.content.clone())
    }

    /// Sets the session's log.
    pub fn logs(&self, entries: Vec<Entry>) {
        self.run
            .set_log(entries.into_iter().map(Arc::new).collect());
    }
}

pub fn said(chat: &str, role: &str, text: &str) -> Said {
    Said {
        v: 1,
        ts: "2026-01-02T03:04:05Z".into(),
        chat_key: chat.into(),
        role: role.into(),
        text: text.into(),
        request_id: None,
        extra: Default::default(),
    }
}

fn text(outcome: &Outcome) -> String {
    match &outcome.content {
        contexture::Content::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    }
}
