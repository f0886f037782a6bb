//! Puts a summary, or nothing, in the place of a span of history.

use std::collections::HashSet;

use super::compact::{Compactor, Span, SpanItem, accept, probes};
use super::item::{Item, Rule, Source};
use super::{Session, normalize};
use crate::entry::Compaction;
use crate::tokens::count;
use crate::{ContextError, Message, Payload};

/// A span, in terms of items that leave and of the log positions around it.
pub(super) struct Covered {
    leaving: Vec<usize>,
    first: Option<usize>,
    last: Option<usize>,
    kept: Vec<usize>,
}

impl Session {
    /// The span `start..end` of items in terms of the log.
    pub(super) fn span(&self, start: usize, end: usize, floor: &[bool]) -> Covered {
        let items = &self.weave.items;
        let leaving: Vec<usize> = (start..end).filter(|&i| !floor[i]).collect();
        let positions: HashSet<usize> = leaving
            .iter()
            .filter_map(|&i| items[i].position())
            .collect();
        let shown: HashSet<usize> = items.iter().filter_map(Item::position).collect();
        let first = items[start].position();
        let last = items.get(end).and_then(Item::position);
        // Between the two, in the order of the log, whatever is shown and does not leave stays.
        let kept = self
            .view
            .live(0)
            .map(|live| live.position)
            .skip_while(|p| Some(*p) != first)
            .take_while(|p| Some(*p) != last)
            .filter(|p| shown.contains(p) && !positions.contains(p))
            .collect();
        Covered {
            leaving,
            first,
            last,
            kept,
        }
    }

    pub(super) fn cover(
        &mut self,
        covered: &Covered,
        compactor: Option<&dyn Compactor>,
        max_tokens: usize,
        now: &str,
    ) -> Result<(), ContextError> {
        let (Some(first), Some(last)) = (covered.first, covered.last) else {
            return Ok(());
        };
        let tokens_before = self.tokens();
        let (summary, strategy, cost) =
            match compactor.and_then(|c| self.summary(covered, c, max_tokens)) {
                Some(made) => made,
                None => (String::new(), "drop".to_owned(), 0),
            };
        let id = |p: usize| self.view.log()[p].id.clone();
        let items = &self.weave.items;
        let gone: usize = covered.leaving.iter().map(|&i| items[i].piece.tokens).sum();
        let compaction = Compaction {
            tokens_before,
            tokens_after: tokens_before.saturating_sub(gone) + cost,
            summary,
            first_kept_entry_id: id(last),
            strategy,
            first_covered_entry_id: Some(id(first)),
            kept_entry_ids: covered.kept.iter().map(|&p| id(p)).collect(),
        };
        self.log(now, Payload::CompactionSummary(compaction))?;
        Ok(())
    }

    /// A summary of the span that passed the acceptance test, the name of its strategy, and what it
    /// costs as it is shown.
    fn summary(
        &self,
        covered: &Covered,
        compactor: &dyn Compactor,
        max_tokens: usize,
    ) -> Option<(String, String, usize)> {
        let items = &self.weave.items;
        let summaries: Vec<Option<Message>> = covered
            .leaving
            .iter()
            .map(|&i| self.summary_text(&items[i]))
            .collect();
        let mut span_items = Vec::new();
        for (&i, summary) in covered.leaving.iter().zip(&summaries) {
            let item = &items[i];
            let (Some(position), Source::Entry(_)) = (item.position(), item.source) else {
                continue;
            };
            let entry = &self.view.log()[position];
            let message = match (summary, &entry.payload) {
                (Some(summary), _) => summary,
                (None, Payload::Message { message }) if item.rule != Rule::Redacted => message,
                _ => &item.piece.message,
            };
            let is_open = items
                .get(i + 1)
                .is_some_and(|next| matches!(next.source, Source::Aborted(p) if p == position));
            span_items.push(SpanItem {
                id: &entry.id,
                message,
                is_summary: summary.is_some(),
                is_open,
            });
        }
        let tokenizer = self.settings.tokenizer.as_ref();
        let probes = probes(&span_items, max_tokens / 4, tokenizer);
        let span = Span {
            items: span_items,
            max_tokens,
            tokenizer,
            probes,
        };
        let span_tokens: usize = covered.leaving.iter().map(|&i| items[i].piece.tokens).sum();
        let summary = compactor.summarise(&span).ok()?;
        accept::accept(&summary, &span, span_tokens).ok()?;
        let cost = count::message(tokenizer, &normalize::summary(&summary).ok()?);
        // With what stands around it, it may be longer than what it stands for.
        (cost < span_tokens).then(|| (summary, compactor.name().to_owned(), cost))
    }

    /// Whether a span is nothing but one summary, as short as one may be: another of it gains
    /// nothing, and would be made again at every turn.
    pub(super) fn is_settled(
        &self,
        start: usize,
        end: usize,
        floor: &[bool],
        max_tokens: usize,
    ) -> bool {
        let mut leaving = (start..end).filter(|&i| !floor[i]);
        let (Some(only), None) = (leaving.next(), leaving.next()) else {
            return false;
        };
        let position = self.weave.items[only].position();
        match position.map(|p| &self.view.log()[p].payload) {
            Some(Payload::CompactionSummary(c)) => {
                self.settings.tokenizer.count(&c.summary) <= max_tokens
            }
            _ => false,
        }
    }

    fn summary_text(&self, item: &Item) -> Option<Message> {
        match &self.view.log()[item.position()?].payload {
            Payload::CompactionSummary(c) => Some(Message::user(c.summary.clone())),
            Payload::BranchSummary(b) => Some(Message::user(b.summary.clone())),
            _ => None,
        }
    }
}
