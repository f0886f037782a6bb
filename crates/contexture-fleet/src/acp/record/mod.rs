//! What an agent said and did, as messages of our log.
//!
//! Agents stream: a few letters, a call that begins, a call that is half done. A log holds whole messages,
//! in an order that every provider takes: what the assistant said with its calls, then a result for each.
//! So a step is kept until it is whole, and what comes while its calls are under way stands behind it.

mod call;
mod part;
mod terminal;
mod turn;

use std::collections::VecDeque;

use contexture::Payload;
use contexture::message::{Content, Message, Part, Role, ToolCall};
use serde_json::{Map, Value, json};

use call::{Call, MAX_RESULT_BYTES};
use part::{PART, length, part};
pub(crate) use terminal::{MAX_OUTPUT_BYTES, TERMINAL_OUTPUT};
pub use turn::{TURN, TurnEnd};

/// The most bytes of a text that is still being said. Then it is a message, and the next begins.
const LONGEST_TEXT: usize = 1 << 20;
/// The most steps that wait for a call to end, and the most memory that they take.
const MOST_STEPS: usize = 64;
const MAX_WAITING_BYTES: usize = 16 << 20;
/// The most calls of a step.
const MOST_CALLS: usize = 128;
/// How many ended calls are remembered, for what is told of them later.
const REMEMBERED: usize = 1024;

/// The kind of the `custom` entry that holds an agent's plan.
pub const PLAN: &str = "acp_plan";

/// Makes messages of a session's updates.
#[derive(Debug, Default)]
pub struct Transcript {
    steps: VecDeque<Step>,
    ended: VecDeque<String>,
    user: Step,
    replays: bool,
}

/// What the assistant said, and the calls that it made then.
#[derive(Debug, Default)]
struct Step {
    parts: Vec<Part>,
    bytes: usize,
    calls: Vec<Call>,
}

impl Transcript {
    /// For a session that is under way: what the user says is given with [`prompt`](Self::prompt), and an
    /// agent that repeats it is not listened to.
    pub fn new() -> Self {
        Self::default()
    }

    /// For a session that is loaded: what the user said comes with the rest.
    pub fn replay() -> Self {
        Self {
            replays: true,
            ..Self::default()
        }
    }

    /// What the user says. Whatever came before is over.
    pub fn prompt(&mut self, blocks: &[Value]) -> Vec<Payload> {
        let mut out = self.finish("another prompt");
        let mut said = Step::default();
        blocks
            .iter()
            .filter_map(|block| part(block, false))
            .for_each(|part| said.say(part));
        out.extend(said.message(Role::User).map(payload));
        out
    }

    /// Takes an update, and gives what is whole with it.
    pub fn push(&mut self, update: &Value) -> Vec<Payload> {
        let mut out = Vec::new();
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        if kind == "user_message_chunk" && self.replays {
            if self.user.parts.is_empty() || self.user.bytes > LONGEST_TEXT {
                out.extend(self.finish("another prompt"));
            }
            if let Some(part) = part(&update["content"], false) {
                self.user.say(part);
            }
            return out;
        }
        out.extend(self.user_message());
        match kind {
            "agent_message_chunk" => self.say(&update["content"], false),
            "agent_thought_chunk" => self.say(&update["content"], true),
            "tool_call" => self.call(update, true),
            "tool_call_update" => self.call(update, false),
            "plan" if update["entries"].to_string().len() <= MAX_RESULT_BYTES => {
                let kind = ("kind".to_owned(), json!(PLAN));
                let entries = ("entries".to_owned(), update["entries"].clone());
                out.push(Payload::Custom(Map::from_iter([kind, entries])));
            }
            _ => {}
        }
        self.flush(&mut out);
        out
    }

    /// The turn is over, and this is why. Calls that did not end never will.
    pub fn finish(&mut self, stop_reason: &str) -> Vec<Payload> {
        let mut out = Vec::new();
        out.extend(self.user_message());
        while let Some(step) = self.steps.pop_front() {
            self.write(step, stop_reason, &mut out);
        }
        out
    }

    fn user_message(&mut self) -> Option<Payload> {
        std::mem::take(&mut self.user)
            .message(Role::User)
            .map(payload)
    }

    /// Adds to what is being said.
    fn say(&mut self, block: &Value, thought: bool) {
        let Some(said) = part(block, thought) else {
            return;
        };
        let step = match self.steps.back_mut() {
            Some(step) if step.calls.is_empty() && step.bytes < LONGEST_TEXT => step,
            _ => self.begin(),
        };
        step.say(said);
    }

    fn begin(&mut self) -> &mut Step {
        self.steps.push_back(Step::default());
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }

    /// Takes what is told of a call, the first time or later.
    fn call(&mut self, update: &Value, begins: bool) {
        let Some(id) = update["toolCallId"].as_str() else {
            return;
        };
        let id: String = id.chars().take(200).collect();
        let under_way = self.steps.iter_mut().rev();
        let mut calls = under_way.flat_map(|step| step.calls.iter_mut());
        if let Some(call) = calls.find(|call| call.id == id && call.failed.is_none()) {
            return call.take(update);
        }
        // Of a call that has ended there is nothing more to say. But agents use ids again.
        let ended = || self.steps.iter().flat_map(|step| &step.calls);
        if !begins && (self.ended.contains(&id) || ended().any(|call| call.id == id)) {
            return;
        }
        let mut call = Call::new(id);
        call.take(update);
        // Calls that run beside each other are one step; one that begins behind the end of all is the next.
        let step = match self.steps.back_mut() {
            Some(step) if step.takes(&call.id) => step,
            _ => self.begin(),
        };
        step.calls.push(call);
    }

    /// Gives the steps that are whole: nothing is added to one that has another behind it, or whose calls
    /// have all ended.
    fn flush(&mut self, out: &mut Vec<Payload>) {
        while let Some(first) = self.steps.front() {
            let ended = first.calls.iter().all(|call| call.failed.is_some());
            let whole = match first.calls.is_empty() {
                true => self.steps.len() > 1,
                false => ended,
            };
            if !whole && self.has_room() {
                return;
            }
            if let Some(step) = self.steps.pop_front() {
                self.write(step, "it went on without it", out);
            }
        }
    }

    /// Whether the first step may wait for the end of its calls.
    fn has_room(&self) -> bool {
        let held = || self.steps.iter().map(Step::held).sum::<usize>();
        match self.steps.len() {
            0 | 1 => true,
            many => many <= MOST_STEPS && held() <= MAX_WAITING_BYTES,
        }
    }

    fn write(&mut self, step: Step, why: &str, out: &mut Vec<Payload>) {
        let results: Vec<Message> = step.calls.iter().map(|call| call.result(why)).collect();
        let calls: Vec<ToolCall> = step.calls.iter().map(Call::tool_call).collect();
        let ids = step.calls.iter().map(|call| call.id.clone());
        self.ended.extend(ids);
        let beyond = self.ended.len().saturating_sub(REMEMBERED);
        self.ended.drain(..beyond);
        let said = Step {
            calls: Vec::new(),
            ..step
        };
        // Thoughts alone are kept too: they are what was done, though no model is shown them.
        let message = match said.message(Role::Assistant) {
            Some(message) => Some(Message {
                tool_calls: calls,
                ..message
            }),
            None if calls.is_empty() => None,
            None => Some(Message::calls(calls)),
        };
        out.extend(message.map(payload));
        out.extend(results.into_iter().map(payload));
    }
}

impl Step {
    /// Adds a part, to the last one where both are of a kind.
    fn say(&mut self, part: Part) {
        self.bytes += length(&part) + PART;
        match (self.parts.last_mut(), part) {
            (Some(Part::Text { text, .. }), Part::Text { text: more, .. }) => text.push_str(&more),
            (Some(Part::Thinking { thinking, .. }), Part::Thinking { thinking: more, .. }) => {
                thinking.push_str(&more);
            }
            (_, part) => self.parts.push(part),
        }
    }

    /// The memory that it takes, about.
    fn held(&self) -> usize {
        self.bytes + self.calls.iter().map(Call::held).sum::<usize>()
    }

    /// What was said, as a message of whoever said it; none if nothing was.
    fn message(self, role: Role) -> Option<Message> {
        let content = match self.parts.as_slice() {
            [] => return None,
            [Part::Text { text, .. }] => Content::Text(text.clone()),
            _ => Content::Parts(self.parts),
        };
        Some(Message {
            content,
            ..Message::new(role, "")
        })
    }

    /// Whether a call of this id can be one of this step's.
    fn takes(&self, id: &str) -> bool {
        let running = self.calls.iter().any(|call| call.failed.is_none());
        let has = self.calls.iter().any(|call| call.id == id);
        !has && self.calls.len() < MOST_CALLS && (self.calls.is_empty() || running)
    }
}

fn payload(message: Message) -> Payload {
    Payload::Message { message }
}
