//! What leaves the request, and in which order.

use std::sync::Arc;

use crate::build::item::{Item, Kind, Piece, Rule, Source};

/// How much a request has of each thing that is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    pub tokens: usize,
    pub bytes: usize,
    /// Messages of the history alone: see [`Item::counted`].
    pub messages: usize,
}

impl Load {
    pub(crate) fn within(&self, limit: &Self) -> bool {
        self.has_room(limit) && self.messages <= limit.messages
    }

    /// Whether it is within the limits of size, so that nothing but the number of messages can be over.
    pub(crate) fn has_room(&self, limit: &Self) -> bool {
        self.tokens <= limit.tokens && self.bytes <= limit.bytes
    }

    fn less(&mut self, piece: &Piece) {
        self.tokens = self.tokens.saturating_sub(piece.tokens);
        self.bytes = self.bytes.saturating_sub(piece.bytes);
    }
}

/// What is to be done about a load.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Tool results to mask, by item.
    pub mask: Vec<usize>,
    /// The span to cover, `start..end` by item, less what stays in it.
    pub cover: Option<(usize, usize)>,
}

/// What a plan may do.
pub(crate) struct Terms<'a> {
    pub items: &'a [Item],
    /// Which items may not leave.
    pub floor: &'a [bool],
    /// The first item of the tail that stays verbatim.
    pub tail: usize,
    /// Where the span begins that a summary may cover.
    pub begin: usize,
    pub load: Load,
    pub goal: Load,
    /// What a summary of the span may cost; nothing when there is no compactor.
    pub reserve: Load,
    pub may_mask: bool,
}

/// Plans the least that brings the load to its goal, or the most that there is.
pub(crate) fn plan(terms: &Terms<'_>, mut masked: impl FnMut(&Item) -> Arc<Piece>) -> Plan {
    let Terms {
        items,
        floor,
        tail,
        begin,
        goal,
        ..
    } = *terms;
    let mut load = terms.load;
    let mut plan = Plan::default();
    // What each item costs once it is masked, where it will be.
    let mut masks: Vec<Option<Arc<Piece>>> = vec![None; tail];
    if terms.may_mask {
        for (i, slot) in masks.iter_mut().enumerate() {
            if load.has_room(&goal) {
                break;
            }
            let item = &items[i];
            if floor[i] || !can_mask(item) {
                continue;
            }
            let mark = masked(item);
            if mark.tokens * 2 < item.piece.tokens {
                // A load that a provider counted may be less than the bounds of its items.
                load.tokens = load.tokens.saturating_sub(item.piece.tokens) + mark.tokens;
                load.bytes = load.bytes.saturating_sub(item.piece.bytes) + mark.bytes;
                plan.mask.push(i);
                *slot = Some(mark);
            }
        }
    }
    if load.within(&goal) {
        return plan;
    }
    load.tokens += terms.reserve.tokens;
    load.bytes += terms.reserve.bytes;
    // The prefix breaks here whatever else happens, and each token kept behind the break is billed
    // again: so a span takes a little more than it must. Not where messages alone are too many: they
    // cost no tokens.
    let goal = if terms.load.has_room(&goal) {
        goal
    } else {
        Load {
            tokens: goal.tokens / 4 * 3,
            ..goal
        }
    };
    let mut start = None;
    let mut at = begin;
    while at < tail && !(start.is_some() && load.within(&goal)) {
        let end = unit_end(items, at);
        if !stays(floor, at, end) {
            start.get_or_insert(at);
            for i in at..end {
                load.less(masks[i].as_deref().unwrap_or(&items[i].piece));
            }
            let counted: usize = items[at..end].iter().map(Item::counted).sum();
            load.messages = load.messages.saturating_sub(counted);
        }
        at = end;
    }
    if let Some(start) = start {
        plan.cover = Some((start, at));
        plan.mask.retain(|i| !(start..at).contains(i));
    }
    plan
}

/// Where the tail begins that stays verbatim: the last units of at most `tokens`, and at least the
/// last one.
pub(crate) fn tail(items: &[Item], tokens: usize) -> usize {
    let mut at = items.len();
    let mut sum = 0;
    while at > 0 {
        let start = unit_start(items, at - 1);
        sum += items[start..at]
            .iter()
            .map(|item| item.piece.tokens)
            .sum::<usize>();
        if sum > tokens && at < items.len() {
            break;
        }
        at = start;
    }
    at
}

/// Where the last `many` messages of the history begin, with the whole of a group that one of them is in.
pub(crate) fn newest(items: &[Item], many: usize) -> usize {
    let mut left = many;
    let mut at = items.len();
    while at > 0 && left > 0 {
        at -= 1;
        left -= items[at].counted();
    }
    if at < items.len() {
        unit_start(items, at)
    } else {
        at
    }
}

/// Spreads the floor over units: what stays keeps its whole group.
pub(crate) fn whole_units(items: &[Item], floor: &mut [bool]) {
    let mut at = 0;
    while at < items.len() {
        let end = unit_end(items, at);
        let any = floor[at..end].contains(&true);
        floor[at..end].fill(any);
        at = end;
    }
}

fn can_mask(item: &Item) -> bool {
    item.kind == Kind::Result
        && item.rule != Rule::Masked
        && !item.pinned
        && matches!(item.source, Source::Entry(_))
}

fn stays(floor: &[bool], start: usize, end: usize) -> bool {
    floor[start..end].contains(&true)
}

fn unit_end(items: &[Item], at: usize) -> usize {
    let unit = items[at].unit;
    at + items[at..]
        .iter()
        .take_while(|item| item.unit == unit)
        .count()
}

pub(crate) fn unit_start(items: &[Item], at: usize) -> usize {
    let unit = items[at].unit;
    at + 1
        - items[..=at]
            .iter()
            .rev()
            .take_while(|item| item.unit == unit)
            .count()
}
