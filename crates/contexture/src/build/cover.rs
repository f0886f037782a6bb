//! Puts a summary, or nothing, in the place of a span of history.

use std::collections::{HashMap, HashSet};

use super::compact::{
    Compactor, RulesOnly, Span, SpanItem, accept, constraints, has_rules, probes,
};
use super::item::{Item, Kind, Rule, Source};
use super::relieve::{Means, Rules, SUMMARY_FRAME};
use super::{Session, normalize};
use crate::entry::{Compaction, Gone, Refused};
use crate::{ContextError, EntryId, Message, Payload, Role};

/// The most characters of why a summary was refused: a model's error may be a page.
const LONGEST_WHY: usize = 500;

/// What a rule's line costs beside its words: the dash and the entry's id.
const RULE_FRAME: usize = 16;

/// A span, in terms of items that leave and of the log positions around it.
pub(super) struct Covered {
    leaving: Vec<usize>,
    first: Option<usize>,
    last: Option<usize>,
    kept: Vec<usize>,
}

/// The room for a summary.
#[derive(Debug, Clone, Copy)]
pub(super) struct SummaryRoom {
    /// The most tokens that it may have where tokens are short: then it must be shorter than its span, too.
    pub tokens: usize,
    /// Where only messages are too many: the tokens that are free beside those of the span.
    pub spare: Option<usize>,
}

impl SummaryRoom {
    /// The most tokens of a summary of a span of so many.
    fn of_span(self, span_tokens: usize) -> usize {
        match self.spare {
            Some(spare) => self.tokens.max(span_tokens + spare),
            None => self.tokens,
        }
    }
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
        let leaving = (start..end).filter(|&i| !floor[i]).collect();
        let items = &self.weave.items;
        let first = items[start].position();
        let last = items.get(end).and_then(Item::position);
        let mut covered = Covered {
            leaving,
            first,
            last,
            kept: Vec::new(),
        };
        covered.kept = self.kept(&covered);
        covered
    }

    /// The log positions of what is shown between the ends of a span and does not leave.
    fn kept(&self, covered: &Covered) -> Vec<usize> {
        let items = &self.weave.items;
        let leaving = covered.leaving.iter().filter_map(|&i| items[i].position());
        let leaving: HashSet<usize> = leaving.collect();
        let shown: HashSet<usize> = items.iter().filter_map(Item::position).collect();
        self.view
            .live(0)
            .map(|live| live.position)
            .skip_while(|p| Some(*p) != covered.first)
            .take_while(|p| Some(*p) != covered.last)
            .filter(|p| shown.contains(p) && !leaving.contains(p))
            .collect()
    }

    /// Puts a summary in the place of a span; where none is accepted, the rules that users gave in it, or nothing.
    pub(super) fn cover(
        &mut self,
        mut covered: Covered,
        means: &Means<'_>,
        room: SummaryRoom,
    ) -> Result<(), ContextError> {
        let (Some(first), Some(last)) = (covered.first, covered.last) else {
            return Ok(());
        };
        let tokens_before = self.tokens();
        let (mut made, refused) = if means.compactors.is_empty() {
            (None, Vec::new())
        } else {
            self.summarised(&covered, means, room)
        };
        if made.is_none() && means.rules != Rules::Dropped {
            made = self.rules_of(&covered, means);
            if made.is_none() {
                // A message that states a rule is shorter than a summary that repeats it.
                covered.leaving.retain(|&i| !self.states_rules(i));
                covered.kept = self.kept(&covered);
            }
        }
        if covered.leaving.is_empty() {
            return Ok(());
        }
        let made = made.unwrap_or_else(|| Made {
            summary: String::new(),
            strategy: "drop".to_owned(),
            tokens: 0,
        });
        let id = |p: usize| self.view.log()[p].id.clone();
        let gone = self.tokens_of(&covered);
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
        room: SummaryRoom,
    ) -> (Option<Made>, Vec<Refused>) {
        let span_tokens = self.tokens_of(covered);
        let longest = if room.spare.is_some() {
            usize::MAX
        } else {
            span_tokens
        };
        let restated = self.restatements(covered);
        let mut span = self.span_of(covered, &restated, means, room.of_span(span_tokens));
        // Rules come first, and may take all that the request has room for.
        let rules = constraints(&span.items);
        let rules: usize = rules
            .iter()
            .map(|r| span.tokenizer.count(r) + RULE_FRAME)
            .sum();
        let others = self.tokens().saturating_sub(span_tokens);
        let fits = self.limit().tokens.saturating_sub(others + SUMMARY_FRAME);
        span.max_tokens = span.max_tokens.max(fits.min(rules + span.max_tokens / 2));
        let mut refused = Vec::new();
        for compactor in means.compactors {
            match self.made(compactor.as_ref(), &span, longest) {
                Ok(made) => return (Some(made), refused),
                Err(why) => refused.push(Refused {
                    strategy: compactor.name().to_owned(),
                    why: why.chars().take(LONGEST_WHY).collect(),
                }),
            }
        }
        (None, refused)
    }

    /// A summary of nothing but the rules that users gave in the span, where it is shorter than the messages that
    /// state them and fits; the newest that do, if not all.
    fn rules_of(&self, covered: &Covered, means: &Means<'_>) -> Option<Made> {
        let limit = self.limit().tokens;
        let others = self.tokens().saturating_sub(self.tokens_of(covered));
        let wrapper = normalize::summary("").ok()?;
        let wrapper = self.settings.tokenizer.message(&wrapper);
        let room = limit.checked_sub(others + wrapper)?;
        let items = &self.weave.items;
        let stating = covered.leaving.iter().filter(|&&i| self.states_rules(i));
        let stated: usize = stating.map(|&i| items[i].piece.tokens).sum();
        // An earlier summary may be the only place where a rule still stands.
        let has_summary = covered
            .leaving
            .iter()
            .any(|&i| items[i].kind == Kind::Summary);
        let longest = if has_summary {
            self.tokens_of(covered)
        } else {
            stated
        };
        let restated = self.restatements(covered);
        let span = Span {
            probes: Vec::new(),
            ..self.span_of(covered, &restated, means, room)
        };
        self.made(&RulesOnly, &span, longest).ok()
    }

    /// Whether an item is a user's message that states a rule.
    pub(super) fn states_rules(&self, at: usize) -> bool {
        let item = &self.weave.items[at];
        item.kind == Kind::User && self.is_message(item) && has_rules(&item.piece.message)
    }

    /// The span as a compactor is given it.
    fn span_of<'a>(
        &'a self,
        covered: &Covered,
        restated: &'a [Option<Message>],
        means: &Means<'_>,
        max_tokens: usize,
    ) -> Span<'a> {
        let items = self.span_items(covered, restated);
        let tokenizer = self.settings.tokenizer.as_ref();
        Span {
            probes: probes(&items, max_tokens / 4, tokenizer),
            items,
            max_tokens,
            tokenizer,
            log: &self.view.log()[..means.before],
        }
    }

    fn restatements(&self, covered: &Covered) -> Vec<Option<Message>> {
        let items = &self.weave.items;
        covered
            .leaving
            .iter()
            .map(|&i| self.restated(&items[i]))
            .collect()
    }

    /// The summary of a compactor, where it is acceptable and shorter than `longest` as it is shown.
    fn made(
        &self,
        compactor: &dyn Compactor,
        span: &Span<'_>,
        longest: usize,
    ) -> Result<Made, String> {
        let summary = compactor.summarise(span)?;
        accept::accept(&summary, span, longest).map_err(|refusal| refusal.to_string())?;
        let shown = normalize::summary(&summary).map_err(|error| error.to_string())?;
        let tokens = span.tokenizer.message(&shown);
        // With what stands around it, it may be longer than what it stands for.
        if tokens >= longest {
            let refusal = accept::Refusal::TooLong {
                tokens,
                limit: longest.saturating_sub(1),
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
