//! Which result answers which call, for the forms that name the call in the result.

use std::collections::{BTreeMap, VecDeque};

use super::{Message, Role, ToolCall};

/// The results among `messages` before the assistant speaks again.
pub(super) fn group<'a>(messages: impl Iterator<Item = &'a Message>) -> Vec<&'a Message> {
    messages
        .take_while(|message| message.role != Role::Assistant)
        .filter(|message| message.role == Role::Tool)
        .collect()
}

/// Which call each result of a group answers.
pub(super) struct Pairs {
    /// For each result, the index of its call.
    pub answers: Vec<Option<usize>>,
    /// The calls that no result answers.
    pub open: VecDeque<usize>,
}

/// Pairs results with the calls of their own group only, for ids come again in later ones: by id,
/// the first of an id with the first of that id, and what is left in order.
pub(super) fn pair(calls: &[ToolCall], results: &[&Message]) -> Pairs {
    let mut by_id: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
    for (at, call) in calls.iter().enumerate() {
        by_id.entry(&call.id).or_default().push_back(at);
    }
    let mut answers: Vec<_> = results
        .iter()
        .map(|result| by_id.get_mut(result.tool_call_id.as_deref()?)?.pop_front())
        .collect();
    let mut open: Vec<_> = by_id.into_values().flatten().collect();
    open.sort_unstable();
    let mut open = VecDeque::from(open);
    for answer in answers.iter_mut().filter(|answer| answer.is_none()) {
        *answer = open.pop_front();
    }
    Pairs { answers, open }
}
