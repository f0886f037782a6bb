//! What an item cannot know by itself: the ids and names that its message has in this body.

use std::collections::{BTreeSet, VecDeque};

use super::NAME_MAX;
use super::content::thought_id;
use super::item::{Item, Words};
use crate::message::names::{ID_MAX, ToolNames, Unique, legal, longest};
use crate::message::pairs::{Pairs, group, pair};
use crate::message::{Content, Message, Role};

/// The ids and names of one message.
#[derive(PartialEq)]
pub(super) struct Told<'a> {
    /// For each call its id and the tool's name.
    pub calls: Vec<(String, String)>,
    /// The call that a result answers.
    pub answer: Option<Answer>,
    /// The calls that nothing answers.
    pub open: Vec<Answer>,
    /// The ids of its thoughts that the body has already.
    pub known: BTreeSet<&'a str>,
}

/// A result's call.
#[derive(Clone, PartialEq)]
pub(super) struct Answer {
    id: String,
    /// Whether it called a tool whose input is plain text.
    custom: bool,
}

impl<'a> Told<'a> {
    /// What almost every message is told: the ids and names that it has.
    pub fn own(message: &'a Message) -> Self {
        Self::with(message, legal)
    }

    /// Ids and names at least as long as in any body.
    pub fn longest(message: &'a Message) -> Self {
        let mut told = Self::with(message, longest);
        if let Some(answer) = &mut told.answer {
            answer.id = "_".repeat(ID_MAX);
            answer.custom = true;
        }
        told
    }

    fn with(message: &'a Message, name: fn(&str, usize) -> String) -> Self {
        let calls = message.tool_calls.iter();
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        Self {
            calls: match message.role {
                Role::Assistant => calls
                    .map(|call| (name(&call.id, ID_MAX), name(&call.name, NAME_MAX)))
                    .collect(),
                _ => Vec::new(),
            },
            answer: (message.role == Role::Tool).then(|| Answer {
                id: name(id, ID_MAX),
                custom: false,
            }),
            open: Vec::new(),
            known: BTreeSet::new(),
        }
    }
}

impl Answer {
    pub fn output<'a>(&self, output: Words<'a>) -> Item<'a> {
        let call_id = self.id.clone();
        if self.custom {
            Item::CustomToolCallOutput { call_id, output }
        } else {
            Item::FunctionCallOutput { call_id, output }
        }
    }
}

/// What was told so far: a message's ids depend on those before it only.
pub(super) struct Teller {
    names: ToolNames,
    ids: Unique,
    thoughts: BTreeSet<String>,
    /// The calls that the next results answer.
    answered: VecDeque<Option<Answer>>,
}

impl Teller {
    pub fn new(names: ToolNames) -> Self {
        Self {
            names,
            ids: Unique::new(ID_MAX),
            thoughts: BTreeSet::new(),
            answered: VecDeque::new(),
        }
    }

    /// Tells the next message, behind which `following` come.
    pub fn tell<'a>(
        &mut self,
        message: &'a Message,
        following: impl Iterator<Item = &'a Message>,
    ) -> Told<'a> {
        let mut told = Told {
            calls: Vec::new(),
            answer: None,
            open: Vec::new(),
            known: BTreeSet::new(),
        };
        match message.role {
            Role::System | Role::Developer | Role::User => {}
            Role::Tool => told.answer = self.answered.pop_front().flatten(),
            Role::Assistant => {
                self.learn(message, &mut told.known);
                self.number(message, following, &mut told);
            }
        }
        told
    }

    fn learn<'a>(&mut self, message: &'a Message, known: &mut BTreeSet<&'a str>) {
        let Content::Parts(parts) = &message.content else {
            return;
        };
        // Thoughts of which nothing came are not sent.
        if message.is_empty() {
            return;
        }
        for id in parts.iter().filter_map(thought_id) {
            if !self.thoughts.insert(id.to_owned()) {
                known.insert(id);
            }
        }
    }

    fn number<'a>(
        &mut self,
        message: &'a Message,
        following: impl Iterator<Item = &'a Message>,
        told: &mut Told<'a>,
    ) {
        self.answered.clear();
        let calls = message.tool_calls.as_slice();
        if calls.is_empty() {
            return;
        }
        let names = &self.names;
        let name = |own: &str| match names.declared(own) {
            Some(name) => name.to_owned(),
            None => legal(own, NAME_MAX),
        };
        told.calls = calls
            .iter()
            .map(|call| (self.ids.claim(&call.id), name(&call.name)))
            .collect();
        let Pairs { answers, open } = pair(calls, &group(following));
        let answer = |at: usize| {
            let (id, call) = (&told.calls.get(at)?.0, calls.get(at)?);
            Some(Answer {
                id: id.clone(),
                custom: call.is_custom(),
            })
        };
        told.open = open.into_iter().filter_map(answer).collect();
        self.answered = answers.into_iter().map(|at| answer(at?)).collect();
    }
}
