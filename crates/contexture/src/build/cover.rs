//! Puts a summary, or nothing, in the place of a span of history.

use std::collections::{HashMap, HashSet};

use super::compact::{Compactor, Span, SpanItem, accept, probes};
use super::item::{Item, Kind, Rule, Source};
use super::relieve::Means;
use super::{Session, normalize};
use crate::entry::{Compaction, Gone, Refused};
use crate::{ContextError, EntryId, Message, Payload, Role};

/// The most characters of why a summary was refused: a model's error may be a page.
const LONGEST_WHY: usize = 500;

/// A span, in terms of items that leave and of the log positions around it.
pub(super) struct Covered {
    leaving: Vec<usize>,
    first: Option<usize>,
    last: Option<usize>,
    kept: Vec<usize>,
}

/// A summary that was accepted.
struct Made {
    summary: String,
    strategy: String,
    /// What it costs as it is shown.
    tokens: usize,
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
        means: &Means<'_>,
        max_tokens: usize,
    ) -> Result<(), ContextError> {
        let (Some(first), Some(last)) = (covered.first, covered.last) else {
            return Ok(());
        };
        let tokens_before = self.tokens();
        let (made, refused) = match means.compactors {
            [] => (None, Vec::new()),
            _ => self.summarised(covered, means, max_tokens),
        };
        let made = made.unwrap_or_else(|| Made {
            summary: String::new(),
            strategy: "drop".to_owned(),
            tokens: 0,
        });
        let id = |p: usize| self.view.log()[p].id.clone();
        let gone = self.tokens_of(covered);
        let compaction = Compaction {
            tokens_before,
            tokens_after: tokens_before.saturating_sub(gone) + made.tokens,
            summary: made.summary,
            first_kept_entry_id: id(last),
            strategy: made.strategy,
            first_covered_entry_id: Some(id(first)),
            kept_entry_ids: covered.kept.iter().map(|&p| id(p)).collect(),
            refused,
        };
        self.log(means.now, Payload::CompactionSummary(compaction))?;
        Ok(())
    }

    /// The first summary of the span that passes the acceptance test, and why others did not.
    fn summarised(
        &self,
        covered: &Covered,
        means: &Means<'_>,
        max_tokens: usize,
    ) -> (Option<Made>, Vec<Refused>) {
        let restated: Vec<Option<Message>> = covered
            .leaving
            .iter()
            .map(|&i| self.restated(&self.weave.items[i]))
            .collect();
        let items = self.span_items(covered, &restated);
        let tokenizer = self.settings.tokenizer.as_ref();
        let span = Span {
            probes: probes(&items, max_tokens / 4, tokenizer),
            items,
            max_tokens,
            tokenizer,
            log: &self.view.log()[..means.before],
        };
        let mut refused = Vec::new();
        for compactor in means.compactors {
            match self.made(compactor.as_ref(), &span, self.tokens_of(covered)) {
                Ok(made) => return (Some(made), refused),
                Err(why) => refused.push(Refused {
                    strategy: compactor.name().to_owned(),
                    why: why.chars().take(LONGEST_WHY).collect(),
                }),
            }
        }
        (None, refused)
    }

    fn made(
        &self,
        compactor: &dyn Compactor,
        span: &Span<'_>,
        span_tokens: usize,
    ) -> Result<Made, String> {
        let summary = compactor.summarise(span)?;
        accept::accept(&summary, span, span_tokens).map_err(|refusal| refusal.to_string())?;
        let shown = normalize::summary(&summary).map_err(|error| error.to_string())?;
        let tokens = span.tokenizer.message(&shown);
        // With what stands around it, it may be longer than what it stands for.
        if tokens >= span_tokens {
            let refusal = accept::Refusal::TooLong {
                tokens,
                limit: span_tokens.saturating_sub(1),
            };
            return Err(refusal.to_string());
        }
        Ok(Made {
            summary,
            strategy: compactor.name().to_owned(),
            tokens,
        })
    }

    /// What leaves, as a compactor is shown it. `restated` are those that are shown in other words than
    /// they were logged.
    fn span_items<'a>(
        &'a self,
        covered: &Covered,
        restated: &'a [Option<Message>],
    ) -> Vec<SpanItem<'a>> {
        let items = &self.weave.items;
        let is_summary = |&i: &usize| items[i].kind == Kind::Summary;
        let mut asked = match covered.leaving.iter().any(is_summary) {
            true => self.covered_users(),
            false => HashMap::new(),
        };
        let mut out = Vec::new();
        for (&i, restated) in covered.leaving.iter().zip(restated) {
            let item = &items[i];
            let (Some(position), Source::Entry(_)) = (item.position(), item.source) else {
                continue;
            };
            let entry = &self.view.log()[position];
            let message = match (restated, &entry.payload) {
                (Some(restated), _) => restated,
                (None, Payload::Message { message }) if item.rule != Rule::Redacted => message,
                _ => &item.piece.message,
            };
            let is_open = items
                .get(i + 1)
                .is_some_and(|next| matches!(next.source, Source::Aborted(p) if p == position));
            out.push(SpanItem {
                id: &entry.id,
                message,
                is_summary: item.kind == Kind::Summary,
                is_open,
                is_users: item.kind == Kind::User && self.is_message(item),
                asked: asked.remove(&position).unwrap_or_default(),
            });
        }
        out
    }

    /// The users' messages that each summary stands for, those of summaries that went into it too.
    fn covered_users(&self) -> HashMap<usize, Vec<(&EntryId, &Message)>> {
        let gone: HashMap<usize, Gone> = self.view.gone().collect();
        let mut out: HashMap<usize, Vec<_>> = HashMap::new();
        for (position, entry) in self.view.log().iter().enumerate() {
            let Payload::Message { message } = &entry.payload else {
                continue;
            };
            let told = message.role == Role::User && message.include_in_context;
            if !told || self.view.is_redacted(position) {
                continue;
            }
            let mut cursor = position;
            while let Some(Gone::Summarised(by) | Gone::Dropped(by)) = gone.get(&cursor) {
                out.entry(*by).or_default().push((&entry.id, message));
                cursor = *by;
            }
        }
        out
    }

    fn tokens_of(&self, covered: &Covered) -> usize {
        let items = &self.weave.items;
        covered.leaving.iter().map(|&i| items[i].piece.tokens).sum()
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

    /// The words of a summary without what stands around them, or a tool's result with nothing hidden
    /// in it; nothing for what is whole as it was logged.
    fn restated(&self, item: &Item) -> Option<Message> {
        match &self.view.log()[item.position()?].payload {
            Payload::Message { message } if item.rule != Rule::Redacted => {
                self.pricing.revealed(message).map(|(message, _)| message)
            }
            Payload::CompactionSummary(c) => Some(Message::user(c.summary.clone())),
            Payload::BranchSummary(b) => Some(Message::user(b.summary.clone())),
            _ => None,
        }
    }
}
