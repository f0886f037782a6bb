//! What two requests begin with, and what is paid for the rest.

use std::collections::HashMap;

use serde::Serialize;

use super::Break;
use super::side::{Line, Side};
use crate::build::held;
use crate::{Message, Payload, View};

/// What both requests begin with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Prefix {
    /// How many tools and messages both begin with. Tools are all shared, or none.
    pub shared_items: usize,
    /// Their tokens. For a model that runs in this process, those that B begins with as A and the reply
    /// to it do, be it in the middle of a message.
    pub shared_tokens: usize,
    /// Their bytes; for a form that merges messages, at most.
    pub shared_bytes: usize,
    /// Why B does not begin with all of A; absent when A only grew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken_by: Option<Break>,
}

/// How far two requests are the same.
pub(super) struct Shared {
    /// What stands before the messages and differs.
    pub head: Option<HeadChange>,
    /// How many messages both begin with.
    pub messages: usize,
    /// The tokens of both, where they are known one by one.
    tokens: Option<usize>,
    /// What lies within those.
    within: Within,
}

/// How many lines and tools of a receipt the model need not read again.
#[derive(Default)]
struct Within {
    lines: usize,
    tools: usize,
}

/// What can differ before the first message, in the order in which it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadChange {
    Model,
    /// The parameter that differs.
    Param(&'static str),
    Tools,
}

/// Parameters that become a part of the prompt, or of the key that its cache is looked up by.
const KEYED: [&str; 3] = ["prompt_cache_key", "reasoning_effort", "response_format"];

/// B's tokens: what it shares, what A had too, and the rest.
pub(super) struct Bill {
    pub shared: usize,
    pub rebilled: usize,
    pub new: usize,
}

impl Shared {
    pub(super) fn of(view: &View, a: &Side, b: &Side) -> Self {
        let param = || {
            KEYED
                .into_iter()
                .find(|k| a.params.get(*k) != b.params.get(*k))
        };
        let tools = |side: &Side| -> Vec<blake3::Hash> {
            side.tools.iter().map(|tool| tool.hash).collect()
        };
        let head = if a.model != b.model {
            Some(HeadChange::Model)
        } else if let Some(name) = param() {
            Some(HeadChange::Param(name))
        } else if tools(a) != tools(b) {
            Some(HeadChange::Tools)
        } else {
            None
        };
        let same = a.messages.iter().zip(&b.messages);
        let messages = match head {
            Some(_) => 0,
            None => same.take_while(|(a, b)| a.hash == b.hash).count(),
        };
        let tokens = match (head, &a.told, &b.told) {
            (None | Some(HeadChange::Tools), Some(before), Some(told)) => {
                Some(told.shared_with(before, reply(view, a.log_len)))
            }
            _ => None,
        };
        Self {
            head,
            messages,
            tokens,
            within: tokens.map_or_else(Within::default, |tokens| Within::of(a, b, head, tokens)),
        }
    }

    /// Whether B is A and more.
    pub(super) fn is_whole(&self, a: &Side) -> bool {
        self.head.is_none() && self.messages == a.messages.len()
    }

    pub(super) fn items(&self, b: &Side) -> usize {
        match self.head {
            Some(_) => 0,
            None => b.tools.len() + self.messages,
        }
    }

    pub(super) fn bytes(&self, b: &Side) -> usize {
        let tools = b.tools.iter().map(|tool| tool.bytes);
        let messages = b.messages[..self.messages].iter().map(|m| m.bytes);
        match self.head {
            Some(_) => 0,
            None => tools.chain(messages).sum(),
        }
    }

    pub(super) fn bill(&self, a: &Side, b: &Side) -> Bill {
        let all = b.summary.input_tokens;
        // What stands around tools and messages is shared as soon as anything is.
        let behind = match (self.tokens, self.head) {
            (Some(tokens), _) => all.saturating_sub(tokens),
            (None, Some(_)) => all,
            (None, None) => {
                let messages = b.messages[self.messages..].iter();
                messages.map(|m| m.tokens).sum::<usize>().min(all)
            }
        };
        let rebilled = self.had_before(a, b).min(behind);
        Bill {
            shared: all - behind,
            rebilled,
            new: behind - rebilled,
        }
    }

    /// The tokens of what B has behind the prefix and A had there, too.
    fn had_before(&self, a: &Side, b: &Side) -> usize {
        let mut paid: HashMap<blake3::Hash, usize> = HashMap::new();
        for line in self.behind(a) {
            *paid.entry(line.hash).or_default() += 1;
        }
        let again = self
            .behind(b)
            .filter(|line| match paid.get_mut(&line.hash) {
                Some(left) if *left > 0 => {
                    *left -= 1;
                    true
                }
                _ => false,
            });
        again.map(|line| line.tokens).sum()
    }

    fn behind<'a>(&self, side: &'a Side) -> impl Iterator<Item = &'a Line> {
        let tools = match (self.tokens, self.head) {
            (None, None) => &[],
            (Some(_), _) | (None, Some(_)) => side.tools.as_slice(),
        };
        let tools = tools.iter().skip(self.within.tools);
        let from = self.messages;
        let lines = side.lines.iter().skip(self.within.lines);
        tools.chain(lines.filter(move |line| line.index >= from))
    }
}

impl Within {
    /// What both begin with and has no more than these tokens. Where the tools stand, only the
    /// tokenizer knows: as a rule behind the system's message, so that nothing but this is shared when
    /// they differ.
    fn of(a: &Side, b: &Side, head: Option<HeadChange>, tokens: usize) -> Self {
        let mut left = tokens;
        let mut same = |(a, b): &(&Line, &Line)| {
            let less = left.checked_sub(b.tokens).filter(|_| a.hash == b.hash);
            left = less.unwrap_or(left);
            less.is_some()
        };
        let lines = a.lines.iter().zip(&b.lines);
        let lines = lines.take_while(|(line, _)| head.is_none() || line.index == 0);
        Self {
            lines: lines.take_while(&mut same).count(),
            tools: a.tools.iter().zip(&b.tools).take_while(same).count(),
        }
    }
}

/// The reply to the request that was made when the log had `len` entries.
fn reply(view: &View, len: usize) -> Option<&Message> {
    let log = view.log();
    let tail = len.checked_sub(1).and_then(|tail| Some(&log.get(tail)?.id));
    let made_here = |at: &usize| match &log[*at].payload {
        Payload::Request(record) => match &record.at {
            // Others wrote to the log before it was recorded.
            Some(id) if *at > len => Some(id) == tail,
            _ => *at == len,
        },
        _ => false,
    };
    let record = (len..log.len()).find(made_here)?;
    held::reply(log, record)
}
