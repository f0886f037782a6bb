//! One door for tests that tell a story: entries in, a turn, then the shape of what the model sees.

use std::fmt::Write;
use std::sync::Arc;

use contexture::build::{BuildResult, Compactor, Receipt, Session, Settings, Turn, Wire};
use contexture::diff::{Diff, Side};
use contexture::entry::{
    BranchSummary, Compaction, DeferredTool, Injection, Mask, RequestRecord, Target, ToolDelta,
};
use contexture::message::openai;
use contexture::prompt::Section;
use contexture::tokens::Estimate;
use contexture::{
    ContextConfig, ContextError, Entry, EntryId, Message, Overflow, Payload, Role, ToolCall, View,
};
use serde_json::{Map, Value, json};

use super::chatml::ChatMl;

/// A session in the making. Entries are `e0`, `e1`, … in the order in which they come; the build's
/// own are shown by what they do.
#[must_use]
pub struct Scenario {
    settings: Settings,
    session: Option<Session>,
    waiting: Vec<Entry>,
    made: usize,
    turn: Turn,
    last: Option<Seen>,
}

/// A request that was built.
struct Seen {
    body: Value,
    bytes: Vec<u8>,
    receipt: Receipt,
    messages: Vec<Message>,
    appended: Vec<Entry>,
    result: BuildResult,
    side: Side,
}

impl Scenario {
    /// With room for `budget` tokens.
    pub fn new(budget: usize) -> Self {
        let config = ContextConfig {
            max_input_tokens: budget,
            ..ContextConfig::default()
        };
        Self {
            settings: Settings {
                config,
                ..Settings::default()
            },
            session: None,
            waiting: Vec::new(),
            made: 0,
            turn: Turn::default(),
            last: None,
        }
    }

    pub fn config(mut self, change: impl FnOnce(&mut ContextConfig)) -> Self {
        change(&mut self.settings.config);
        self
    }

    pub fn compactors(mut self, compactors: &[Arc<dyn Compactor>]) -> Self {
        self.settings.compactors = compactors.to_vec();
        self
    }

    pub fn no_compactor(self) -> Self {
        self.compactors(&[])
    }

    pub fn wire(mut self, wire: Wire) -> Self {
        self.settings.wire = wire;
        self
    }

    pub fn estimated(mut self) -> Self {
        self.settings.tokenizer = Arc::new(Estimate);
        self
    }

    /// For a model that runs in the process.
    pub fn local(mut self) -> Self {
        self.settings.tokenizer = Arc::new(ChatMl);
        self
    }

    // The log.

    pub fn entry(mut self, payload: Payload) -> Self {
        let entry = Entry {
            id: EntryId::from(format!("e{}", self.made)),
            parent_id: None,
            timestamp: String::new(),
            run_id: None,
            payload,
            meta: None,
            extra: Map::new(),
        };
        self.made += 1;
        self.waiting.push(entry);
        self
    }

    /// The last entry follows the entry `parent`, not the one before it.
    pub fn after(mut self, parent: &str) -> Self {
        self.waiting.last_mut().unwrap().parent_id = Some(EntryId::from(parent));
        self
    }

    pub fn message(self, message: Message) -> Self {
        self.entry(Payload::Message { message })
    }

    pub fn json(self, message: Value) -> Self {
        self.message(openai::read(message).unwrap())
    }

    pub fn system(self, text: &str) -> Self {
        self.message(Message::system(text))
    }

    pub fn user(self, text: &str) -> Self {
        self.message(Message::user(text))
    }

    pub fn assistant(self, text: &str) -> Self {
        self.message(Message::assistant(text))
    }

    /// Calls of `read`, one for each id, with a path of that name.
    pub fn calls(self, ids: &[&str]) -> Self {
        let call = |id: &&str| {
            let path = format!("src/{id}.rs");
            ToolCall::new(*id, "read", json!({ "path": path }).to_string())
        };
        self.message(Message::calls(ids.iter().map(call)))
    }

    pub fn result(self, id: &str, text: &str) -> Self {
        self.message(Message::tool_result(id, text))
    }

    /// A call and its result.
    pub fn tool(self, id: &str, text: &str) -> Self {
        self.calls(&[id]).result(id, text)
    }

    pub fn pin(self, id: &str) -> Self {
        self.entry(Payload::Pin(target(id)))
    }

    pub fn unpin(self, id: &str) -> Self {
        self.entry(Payload::Unpin(target(id)))
    }

    pub fn redact(self, id: &str) -> Self {
        self.entry(Payload::Redaction(target(id)))
    }

    pub fn revert(self, id: &str) -> Self {
        self.entry(Payload::Revert(target(id)))
    }

    /// Undoes all that the last build decided.
    pub fn revert_build(mut self) -> Self {
        let decided: Vec<String> = self
            .last
            .as_ref()
            .unwrap()
            .appended
            .iter()
            .filter(|e| matches!(e.payload, Payload::Mask(_) | Payload::CompactionSummary(_)))
            .map(|e| e.id.to_string())
            .collect();
        for id in decided {
            self = self.revert(&id);
        }
        self
    }

    /// A summary of everything before the entry `kept`, as some other program writes it.
    pub fn summary(self, kept: &str, text: &str) -> Self {
        self.compaction(None, kept, text)
    }

    /// The same from the entry `first` on.
    pub fn summary_of(self, first: &str, kept: &str, text: &str) -> Self {
        self.compaction(Some(first), kept, text)
    }

    fn compaction(self, first: Option<&str>, kept: &str, text: &str) -> Self {
        self.entry(Payload::CompactionSummary(Compaction {
            summary: text.to_owned(),
            first_kept_entry_id: EntryId::from(kept),
            strategy: "model".to_owned(),
            tokens_before: 0,
            tokens_after: 0,
            first_covered_entry_id: first.map(EntryId::from),
            kept_entry_ids: Vec::new(),
            refused: Vec::new(),
        }))
    }

    /// A mark in the place of the entry's content.
    pub fn mask(self, id: &str, reason: &str) -> Self {
        self.entry(Payload::Mask(Mask {
            entry_ids: vec![EntryId::from(id)],
            reason: reason.to_owned(),
            keep_bytes: None,
        }))
    }

    pub fn branch_summary(self, text: &str) -> Self {
        self.entry(Payload::BranchSummary(BranchSummary {
            summary: text.to_owned(),
            extra: Map::new(),
        }))
    }

    pub fn injection(self, role: Role, text: &str, fingerprint: &str) -> Self {
        self.entry(Payload::Injection(Injection {
            role,
            content: text.to_owned(),
            fingerprint: Some(fingerprint.to_owned()),
            origin: Some("test".to_owned()),
            before_entry_id: None,
        }))
    }

    /// An injection that stands before the entry `anchor`. Its fingerprint is its text.
    pub fn inject(self, role: Role, text: &str, anchor: &str) -> Self {
        self.entry(Payload::Injection(Injection {
            role,
            content: text.to_owned(),
            fingerprint: Some(text.to_owned()),
            origin: Some("test".to_owned()),
            before_entry_id: Some(EntryId::from(anchor)),
        }))
    }

    pub fn runtime_init(self, data: Value) -> Self {
        self.entry(Payload::RuntimeInit { data: map(data) })
    }

    pub fn tools(self, add: &[&str], remove: &[&str]) -> Self {
        self.entry(Payload::Tools(ToolDelta {
            add: add.iter().map(|name| tool(name)).collect(),
            remove: remove.iter().map(|&name| name.to_owned()).collect(),
            ..ToolDelta::default()
        }))
    }

    /// The last request went out, and the provider counted `reported` tokens.
    pub fn sent(self, reported: Option<usize>) -> Self {
        let usage = reported.map(|n| map(json!({ "prompt_tokens": n })));
        self.entry(Payload::Request(RequestRecord {
            digest: String::new(),
            usage,
            ..RequestRecord::default()
        }))
    }

    // The turn.

    pub fn sections(mut self, sections: &[Section]) -> Self {
        self.turn.sections = Some(sections.to_vec());
        self
    }

    pub fn turn_tools(mut self, names: &[&str]) -> Self {
        self.turn.tools = Some(names.iter().map(|name| tool(name)).collect());
        self
    }

    /// Tools that are not offered, each with what its spec would cost.
    pub fn deferred(mut self, tools: &[(&str, usize)], reason: &str) -> Self {
        let tools = tools.iter().map(|&(name, tokens)| DeferredTool {
            name: name.to_owned(),
            tokens,
        });
        self.turn.deferred = Some(tools.collect());
        self.turn.tool_reason = Some(reason.to_owned());
        self
    }

    pub fn specs(mut self, specs: &[Value]) -> Self {
        self.turn.tools = Some(specs.to_vec());
        self
    }

    pub fn hints(mut self, data: Value) -> Self {
        self.turn.hints = Some(map(data));
        self
    }

    pub fn input(mut self, message: Message) -> Self {
        self.turn.messages.push(message);
        self
    }

    /// Compacts down to so many messages.
    pub fn keep(mut self, messages: usize) -> Self {
        self.turn.keep_messages = Some(messages);
        self
    }

    pub fn overflow(mut self) -> Self {
        self.turn.overflow = true;
        self
    }

    /// Logs what came and builds. More may follow.
    #[track_caller]
    pub fn build(mut self) -> Self {
        self.try_build().unwrap();
        self
    }

    /// The build is refused; what it says. More may follow.
    #[track_caller]
    pub fn refused(mut self) -> (Self, Overflow) {
        match self.try_build() {
            Err(ContextError::Overflow(overflow)) => (self, *overflow),
            Err(error) => panic!("{error}"),
            Ok(()) => panic!("it fits:\n{}", self.shape()),
        }
    }

    /// What is wrong with the log or the turn.
    #[track_caller]
    pub fn invalid(mut self) -> String {
        match self.try_build() {
            Err(error) => format!("{error} ({})", error.hint()),
            Ok(()) => panic!("it is built:\n{}", self.shape()),
        }
    }

    fn try_build(&mut self) -> Result<(), ContextError> {
        let session = match &mut self.session {
            Some(session) => session,
            none => none.insert(Session::new(self.settings.clone())?),
        };
        session.append(std::mem::take(&mut self.waiting))?;
        let built = session.build(std::mem::take(&mut self.turn))?;
        self.last = Some(Seen {
            body: serde_json::from_slice(built.body()).unwrap(),
            bytes: built.body().to_vec(),
            receipt: built.receipt(),
            messages: built.messages().cloned().collect(),
            appended: built.entries_to_append().cloned().collect(),
            result: built.to_result(),
            side: Side::of(&built),
        });
        Ok(())
    }

    // What came of it.

    fn seen(&self) -> &Seen {
        self.last.as_ref().expect("something was built")
    }

    pub fn body(&self) -> &Value {
        &self.seen().body
    }

    pub fn bytes(&self) -> &[u8] {
        &self.seen().bytes
    }

    pub fn receipt(&self) -> &Receipt {
        &self.seen().receipt
    }

    /// The result as `ctx build --json` prints it.
    pub fn result_of_build(&self) -> &BuildResult {
        &self.seen().result
    }

    pub fn messages(&self) -> &[Message] {
        &self.seen().messages
    }

    /// The last request, to be compared with another.
    pub fn side(&self) -> Side {
        self.seen().side.clone()
    }

    /// What changed from one request to another.
    pub fn diff(&self, a: &Side, b: &Side) -> Diff {
        Diff::between(self.view(), a, b)
    }

    pub fn view(&self) -> &View {
        self.session.as_ref().expect("something was built").view()
    }

    /// The types of the entries that the build made, in order.
    pub fn appended(&self) -> Vec<&'static str> {
        let entries = self.seen().appended.iter();
        entries.map(|entry| entry.payload.type_name()).collect()
    }

    /// The request, a line a message: `03 tool(call_1) masked 12 "…"`. Then what is not in it.
    pub fn shape(&self) -> String {
        let Seen {
            receipt, messages, ..
        } = self.seen();
        let mut out = String::new();
        for item in &receipt.items {
            let message = &messages[item.index];
            let who = match (&message.tool_call_id, message.tool_calls.as_slice()) {
                (Some(id), _) => format!("{}({id})", item.role),
                (None, []) => item.role.to_owned(),
                (None, calls) => {
                    let calls: Vec<_> = calls.iter().map(|call| call.id.as_str()).collect();
                    format!("{}→{}", item.role, calls.join("+"))
                }
            };
            let what = match item.origin.strip_prefix("section:") {
                Some(name) => format!("§{name}"),
                None => clip(&message.text()),
            };
            let rule = item.rule.as_str();
            let (index, tokens) = (item.index, item.tokens);
            writeln!(out, "{index:02} {who} {rule} {tokens} {what}").unwrap();
        }
        let mut excluded = receipt.excluded.as_slice();
        while let Some(first) = excluded.first() {
            let run = excluded.iter().take_while(|x| x.rule == first.rule).count();
            let names: Vec<_> = excluded[..run].iter().map(|x| name(&x.origin)).collect();
            let names = match names.as_slice() {
                [first, .., last] if run > 4 => format!("{first} … {last} ({run})"),
                names => names.join(" "),
            };
            writeln!(out, "-- {} {names}", first.rule.as_str()).unwrap();
            excluded = &excluded[run..];
        }
        out
    }

    /// What a prompt cache can reuse.
    pub fn cache(&self) -> String {
        let cache = &self.receipt().cache;
        match &cache.first_change {
            Some(change) => format!("{} shared, then {change}", cache.shared_prefix_tokens),
            None => format!("{} shared", cache.shared_prefix_tokens),
        }
    }
}

/// An entry of the test by its name; the ids of others follow from a hash.
fn name(origin: &str) -> &str {
    let id = origin.strip_prefix("entry:").unwrap();
    match id.strip_prefix('e').map(str::parse::<usize>) {
        Some(Ok(_)) => id,
        _ => "(made)",
    }
}

/// A function of that name.
pub fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}})
}

fn target(id: &str) -> Target {
    Target {
        entry_id: EntryId::from(id),
    }
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("an object is wanted, not {other}"),
    }
}

/// The beginning of a text, on one line, without ids that follow from a hash.
fn clip(text: &str) -> String {
    const LONGEST: usize = 72;
    let text = match text.strip_prefix("<summary>\nEarlier turns of this conversation, in short.") {
        Some(rest) => format!("<summary>{}", rest.split_once("\n\n").unwrap().1),
        None => text.to_owned(),
    };
    let line = format!("{text:?}");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
