use std::collections::VecDeque;

use serde::Serialize;
use serde_json::{Map, Value};

use super::block::{Answer, Block, Marked};
use super::{NAME_MAX, content};
use crate::message::names::{ID_MAX, ToolNames, Unique, longest};
use crate::message::pairs::{Pairs, group, pair};
use crate::message::words::is_blank;
use crate::message::{Message, Role, ToolCall};

/// What the user says, for the API wants it, when the assistant speaks first.
pub(super) const OPENING: &str = "(The conversation so far begins with the assistant.)";

/// What the user says when nobody has said anything.
const SILENCE: &str = "(No message yet.)";

/// How deep the arguments of a call may nest: readers of JSON stop at 128 levels, and the body has
/// levels of its own.
const DEPTH_MAX: usize = 100;

/// How many user turns are marked for the cache: the end of this request, and where the previous
/// one ended.
const MARKED_TURNS: usize = 2;

/// A conversation as the API wants it.
pub(super) struct Turns<'a> {
    /// The instructions from before it.
    pub system: Vec<Marked<Block<'a>>>,
    /// User and assistant in turn, the user first.
    pub turns: Vec<Turn<'a>>,
}

/// All that one side says before the other does.
#[derive(Serialize)]
pub(super) struct Turn<'a> {
    role: Side,
    content: Vec<Marked<Block<'a>>>,
    /// How many tool results the turn begins with.
    #[serde(skip)]
    results: usize,
}

#[derive(Serialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Side {
    User,
    Assistant,
}

impl<'a> Turns<'a> {
    pub fn of(messages: &[&'a Message], names: &mut ToolNames) -> Self {
        let leading = messages.iter().take_while(|m| m.role.is_system()).count();
        let (leading, rest) = messages.split_at(leading);
        let system = leading.iter().filter_map(|m| content::instruction(m));
        let mut this = Self {
            system: system.map(Marked::from).collect(),
            turns: Vec::new(),
        };
        this.read(rest, names);
        this.open();
        this.close();
        this.mark();
        this
    }

    fn read(&mut self, messages: &[&'a Message], names: &mut ToolNames) {
        let mut ids = Unique::new(ID_MAX);
        // The calls that the next results answer.
        let mut answered = VecDeque::new();
        for (at, message) in messages.iter().copied().enumerate() {
            match message.role {
                Role::System | Role::Developer => self.say(Side::User, content::note(message)),
                Role::User => self.say(Side::User, content::said(message)),
                Role::Assistant => {
                    let calls = message.tool_calls.as_slice();
                    let sent: Vec<_> = calls.iter().map(|call| ids.claim(&call.id)).collect();
                    self.say(Side::Assistant, content::said(message));
                    let blocks = calls
                        .iter()
                        .zip(&sent)
                        .map(|(call, id)| tool_use(call, id.clone(), names.called(&call.name)));
                    self.say(Side::Assistant, blocks);

                    let results = group(messages.iter().skip(at + 1).copied());
                    let Pairs { answers, open } = pair(calls, &results);
                    let id = |call: usize| sent.get(call).cloned();
                    for id in open.into_iter().filter_map(id) {
                        self.answer(Block::ToolResult {
                            tool_use_id: id,
                            content: Answer::Empty,
                            is_error: false,
                        });
                    }
                    answered = answers.into_iter().map(|call| call.and_then(id)).collect();
                }
                Role::Tool => match answered.pop_front().flatten() {
                    Some(id) => self.answer(content::result(message, id)),
                    None => self.say(Side::User, content::orphan(message)),
                },
            }
        }
    }

    fn say(&mut self, side: Side, blocks: impl IntoIterator<Item = Block<'a>>) {
        let mut blocks = blocks.into_iter().map(Marked::from).peekable();
        if blocks.peek().is_some() {
            self.turn(side).content.extend(blocks);
        }
    }

    /// Puts a result before all that is said in its turn.
    fn answer(&mut self, block: Block<'a>) {
        let turn = self.turn(Side::User);
        turn.content.insert(turn.results, block.into());
        turn.results += 1;
    }

    /// The last turn, if it is `side`'s, or a new one.
    fn turn(&mut self, side: Side) -> &mut Turn<'a> {
        let at = match self.turns.last() {
            Some(turn) if turn.role == side => self.turns.len() - 1,
            _ => {
                self.turns.push(Turn::new(side));
                self.turns.len() - 1
            }
        };
        &mut self.turns[at]
    }

    /// Makes the user begin.
    fn open(&mut self) {
        match self.turns.first() {
            Some(first) if first.role == Side::User => {}
            Some(_) => self.turns.insert(0, Turn::opening(OPENING)),
            None => self.turns.push(Turn::opening(SILENCE)),
        }
    }

    /// Takes the blank end off the assistant's last words, where they are the last of all.
    fn close(&mut self) {
        if let Some(turn) = self.turns.last_mut()
            && turn.role == Side::Assistant
            && let Some(block) = turn.content.last_mut()
        {
            block.inner.trim_end();
        }
    }

    fn mark(&mut self) {
        if let Some(block) = self.system.last_mut() {
            block.mark();
        }
        let users = self.turns.iter_mut().rev().filter(|t| t.role == Side::User);
        for turn in users.take(MARKED_TURNS) {
            let block = turn
                .content
                .iter_mut()
                .rev()
                .find(|b| b.inner.is_markable());
            if let Some(block) = block {
                block.mark();
            }
        }
    }
}

impl Turn<'_> {
    /// A user turn that says `text`.
    pub fn opening(text: &'static str) -> Self {
        Self {
            content: Block::text(text).into_iter().map(Marked::from).collect(),
            ..Self::new(Side::User)
        }
    }

    fn new(role: Side) -> Self {
        Self {
            role,
            content: Vec::new(),
            results: 0,
        }
    }
}

/// The blocks of a message by itself, each at least as long as in any conversation.
pub(super) fn alone(message: &Message) -> Vec<Block<'_>> {
    match message.role {
        Role::System | Role::Developer => content::note(message).into_iter().collect(),
        Role::User => content::said(message),
        Role::Assistant => {
            let mut blocks = content::said(message);
            blocks.extend(message.tool_calls.iter().map(|call| {
                let id = longest(&call.id, ID_MAX);
                tool_use(call, id, longest(&call.name, NAME_MAX))
            }));
            blocks
        }
        // Its id is the call's, which may be any.
        Role::Tool => vec![content::result(message, "_".repeat(ID_MAX))],
    }
}

fn tool_use(call: &ToolCall, id: String, name: String) -> Block<'static> {
    let input = match call.arguments_object() {
        Some(input) if input.values().all(|value| is_flat(value, DEPTH_MAX)) => input,
        None if is_blank(&call.arguments) => Map::new(),
        _ => Map::from_iter([("_raw".to_owned(), Value::from(call.arguments.as_str()))]),
    };
    Block::ToolUse { id, name, input }
}

/// Whether `value` nests no more than `depth` levels.
fn is_flat(value: &Value, depth: usize) -> bool {
    let Some(below) = depth.checked_sub(1) else {
        return false;
    };
    match value {
        Value::Array(values) => values.iter().all(|value| is_flat(value, below)),
        Value::Object(map) => map.values().all(|value| is_flat(value, below)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}
