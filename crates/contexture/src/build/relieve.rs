//! Brings a request under its limits, by entries alone: a decision that is not in the log would
//! fall differently on the next turn, and break the prefix.

use std::sync::Arc;

use super::compact::Compactor;
use super::compact::ladder::{self, Load, Terms};
use super::cover::SummaryRoom;
use super::item::{Item, Kind, Source};
use super::{Session, fit};
use crate::entry::Mask;
use crate::error::{Overflow, Unit};
use crate::{ContextError, EntryId, Payload};

/// What a summary may take of the goal, and what all summaries may take before they become one, in
/// per cent. Small ones, many in a row: those that are there stay in the shared prefix.
const SUMMARY_PERCENT: usize = 12;
const SUMMARIES_PERCENT: usize = 50;

/// What the wrapper around a summary costs at most.
pub(super) const SUMMARY_FRAME: usize = 96;

/// Where the number of messages comes down to when it is over its limit, in per cent. Each compaction breaks the prefix
/// once, and messages cost nothing by themselves: a quarter of them at a time keeps most of what was said.
const MESSAGES_TARGET_PERCENT: usize = 75;

/// The most climbs of the ladder on the way to a goal: few are needed, since each takes what the one before left.
const MAX_CLIMBS: usize = 8;

/// What happens to the rules that users gave in a span of which no summary is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rules {
    /// They leave with their messages.
    Dropped,
    /// They stay, as a summary of rules alone or in their messages, whichever is shorter.
    Summarised,
    /// The messages that state them stay.
    InPlace,
}

/// The means to make room.
#[derive(Clone, Copy)]
pub(super) struct Means<'a> {
    /// The compactors that may write a summary, in order.
    pub compactors: &'a [Arc<dyn Compactor>],
    /// What happens to the rules that users gave where no summary is accepted.
    pub rules: Rules,
    /// How long the log was before this build decided anything.
    pub before: usize,
    /// The time, for entries.
    pub now: &'a str,
}

impl Session {
    /// Brings the request under its limits, by entries.
    pub(super) fn relieve(
        &mut self,
        overflow: bool,
        keep_messages: Option<usize>,
        now: &str,
    ) -> Result<bool, ContextError> {
        let config = self.settings.config;
        let limit = self.limit();
        let mut trigger = if config.enable_compaction {
            limit.percent(config.trigger_percent).messages_of(&limit)
        } else {
            limit
        };
        let load = self.load();
        let keep = keep_messages.map_or(usize::MAX, |keep| keep.max(1));
        trigger.messages = trigger.messages.min(keep);
        if load.within(&trigger) && !overflow {
            return Ok(false);
        }
        let before = self.view.log().len();
        let mut goal = goal(&load, &limit, &trigger, overflow, config.target_percent);
        // So many are wanted, and not a share of so many.
        if load.messages > keep {
            goal.messages = keep.min(limit.messages);
        }
        let compactors = if config.enable_compaction {
            self.settings.compactors.clone()
        } else {
            Vec::new()
        };
        let means = Means {
            compactors: &compactors,
            rules: if compactors.is_empty() {
                Rules::Dropped
            } else {
                Rules::Summarised
            },
            before,
            now,
        };
        // Asked for by number, and with room for more, the last ones stay whatever the ladder would rather take.
        let by_number = keep < limit.messages && load.has_room(&trigger) && !overflow;
        let newest = by_number.then_some(keep);
        let states_rules = |at| self.states_rules(at);
        let has_rules =
            means.rules != Rules::Dropped && (0..self.weave.items.len()).any(states_rules);
        self.settle(&goal, &trigger, newest, &means)?;
        if !self.load().within(&limit) {
            // The end of the work is worth more than a summary of its beginning, and so are the users' rules: first they
            // stay in their messages, which is the shortest form of a few, then as a summary of rules alone.
            if has_rules {
                self.rewind(before)?;
            }
            for rules in [Rules::InPlace, Rules::Summarised, Rules::Dropped] {
                if self.load().within(&limit) {
                    break;
                }
                let means = Means {
                    compactors: &[],
                    rules: rules.min(means.rules),
                    ..means
                };
                let tail = ladder::tail(&self.weave.items, 0);
                self.climb(&limit, tail, &means)?;
            }
            self.cut(&limit, now)?;
            if has_rules && self.load().within(&limit) {
                // What the next build would do is done now, or not at all.
                let within = self.view.log().len();
                self.settle(&goal, &trigger, newest, &means)?;
                if !self.load().within(&limit) {
                    self.rewind(within)?;
                }
            }
        }
        if !self.load().within(&limit) {
            let error = self.overflow(&limit);
            if overflow || !load.within(&limit) {
                return Err(error);
            }
            // What a provider counted is less than our bound for the same. A request that changes
            // has only the bound, so one that fits as it is stays as it is.
            self.rewind(before)?;
            return Ok(false);
        }
        Ok(self.view.log().len() > before)
    }

    /// Climbs until the load is within its trigger, or there is nothing more to gain: what is left to do would be done by
    /// the next build, at the prefix's expense. The first climb leaves a tail verbatim; of the `newest` messages none
    /// leaves, where so many are asked for.
    fn settle(
        &mut self,
        goal: &Load,
        trigger: &Load,
        newest: Option<usize>,
        means: &Means<'_>,
    ) -> Result<(), ContextError> {
        let mut tail_tokens = goal.tokens / 2;
        for _ in 0..MAX_CLIMBS {
            let (entries, load) = (self.view.log().len(), self.load());
            let items = &self.weave.items;
            let newest = newest.map_or(items.len(), |many| ladder::newest(items, many));
            let tail = ladder::tail(items, tail_tokens).min(newest);
            self.climb(goal, tail, means)?;
            if self.view.log().len() > entries && load.within(&self.load()) {
                // It took nothing away, and would do so again at every turn.
                self.rewind(entries)?;
            }
            let settled = tail_tokens == 0 && self.view.log().len() == entries;
            if settled || self.load().within(trigger) {
                break;
            }
            tail_tokens = 0;
        }
        Ok(())
    }

    /// One climb of the ladder.
    fn climb(&mut self, goal: &Load, tail: usize, means: &Means<'_>) -> Result<(), ContextError> {
        let summarises = !means.compactors.is_empty();
        let items = &self.weave.items;
        let load = self.load();
        let floor = self.floor(means.rules);
        let share = goal.tokens.saturating_mul(SUMMARY_PERCENT) / 100;
        // In a small window a share of it says nothing: there it may be up to a quarter.
        let summary_tokens = share.clamp(256.min(goal.tokens / 4).max(64), 4_096);
        let summaries = items.iter().rposition(|item| item.kind == Kind::Summary);
        let summarised: usize = items
            .iter()
            .filter(|i| i.kind == Kind::Summary)
            .map(|i| i.piece.tokens)
            .sum();
        let room = goal.tokens.saturating_mul(SUMMARIES_PERCENT) / 100;
        let begin = match summaries {
            Some(last) if summarises && summarised + summary_tokens <= room => last + 1,
            _ => 0,
        };
        let reserved_tokens = if summarises {
            summary_tokens + SUMMARY_FRAME
        } else {
            0
        };
        let reserve = Load {
            tokens: reserved_tokens,
            bytes: reserved_tokens * 6,
            messages: 0,
        };
        let terms = Terms {
            items,
            floor: &floor,
            tail,
            begin,
            load,
            goal: *goal,
            reserve,
            may_mask: self.settings.config.enable_compaction,
        };
        let plan = ladder::plan(&terms, |item| {
            let entry = item
                .position()
                .map_or("", |p| self.view.log()[p].id.as_str());
            self.pricing.piece(fit::masked(&item.piece.message, entry))
        });
        let cover = plan.cover.filter(|&(start, end)| {
            !summarises || !self.is_settled(start, end, &floor, summary_tokens)
        });
        let covered = cover.map(|(start, end)| self.span(start, end, &floor));
        if !plan.mask.is_empty() {
            let entry_ids = plan
                .mask
                .iter()
                .filter_map(|&i| self.id_of(&items[i]))
                .collect();
            let reason = "compaction".to_owned();
            let mask = Mask {
                entry_ids,
                reason,
                keep_bytes: None,
            };
            self.log(means.now, Payload::Mask(mask))?;
        }
        if let Some(covered) = covered {
            let room = SummaryRoom {
                tokens: summary_tokens,
                spare: load.has_room(goal).then(|| (goal.tokens - load.tokens) / 2),
            };
            self.cover(covered, means, room)?;
        }
        self.refresh()
    }

    /// Marks the items that may not leave the request.
    fn floor(&self, rules: Rules) -> Vec<bool> {
        let items = &self.weave.items;
        let mut floor: Vec<bool> = items
            .iter()
            .enumerate()
            .map(|(at, item)| {
                item.kind == Kind::System
                    || item.pinned
                    || rules == Rules::InPlace && self.states_rules(at)
                    || item.position().is_some_and(|p| self.view.is_current(p))
            })
            .collect();
        let last_call = items.iter().rposition(|item| item.kind == Kind::Call);
        for at in [self.latest_user(), last_call].into_iter().flatten() {
            floor[at] = true;
        }
        if let Some(last) = floor.last_mut() {
            *last = true;
        }
        ladder::whole_units(items, &mut floor);
        floor
    }

    fn latest_user(&self) -> Option<usize> {
        self.weave
            .items
            .iter()
            .rposition(|item| item.kind == Kind::User && self.is_message(item))
    }

    pub(super) fn is_message(&self, item: &Item) -> bool {
        item.position()
            .is_some_and(|p| matches!(self.view.log()[p].payload, Payload::Message { .. }))
    }

    fn id_of(&self, item: &Item) -> Option<EntryId> {
        match item.source {
            Source::Entry(position) => Some(self.view.log()[position].id.clone()),
            Source::Sections | Source::Aborted(_) => None,
        }
    }

    /// Cuts inside the last messages: there is nothing else left to leave out.
    fn cut(&mut self, limit: &Load, now: &str) -> Result<(), ContextError> {
        let latest_user = self.latest_user();
        let load = self.load();
        let over = [
            (load.tokens.saturating_sub(limit.tokens), true),
            (load.bytes.saturating_sub(limit.bytes), false),
        ];
        for (excess, by_tokens) in over {
            if excess == 0 {
                continue;
            }
            let items = &self.weave.items;
            let user = latest_user.and_then(|i| items[i].position());
            let cuts = fit::cuts(
                items,
                |item| {
                    item.kind != Kind::System
                        && item.position() != user
                        && matches!(item.source, Source::Entry(_))
                        && self.is_message(item)
                },
                excess,
                |piece| if by_tokens { piece.tokens } else { piece.bytes },
                &self.pricing,
            );
            let masks: Vec<Mask> = cuts
                .into_iter()
                .filter_map(|(i, keep)| {
                    Some(Mask {
                        entry_ids: vec![self.id_of(&items[i])?],
                        reason: "fit".to_owned(),
                        keep_bytes: Some(keep),
                    })
                })
                .collect();
            for mask in masks {
                self.log(now, Payload::Mask(mask))?;
            }
            self.refresh()?;
        }
        Ok(())
    }

    fn overflow(&self, limit: &Load) -> ContextError {
        let load = self.load();
        let items = &self.weave.items;
        let (unit, needed, limit) = if load.tokens > limit.tokens {
            (Unit::Tokens, load.tokens, limit.tokens)
        } else if load.bytes > limit.bytes {
            (Unit::Bytes, load.bytes, limit.bytes)
        } else {
            (Unit::Messages, load.messages, limit.messages)
        };
        let price = |item: &Item| match unit {
            Unit::Tokens => item.piece.tokens,
            Unit::Bytes => item.piece.bytes,
            Unit::Messages => item.counted(),
        };
        let user = self.latest_user();
        let sum = |wanted: &dyn Fn(usize, &Item) -> bool| {
            items
                .iter()
                .enumerate()
                .filter(|(i, x)| wanted(*i, x))
                .map(|(_, x)| price(x))
                .sum()
        };
        let tools = match unit {
            Unit::Tokens => self.tool_tokens + self.framing(),
            Unit::Bytes => self.frame_bytes,
            Unit::Messages => 0,
        };
        let is_system = |item: &Item| item.kind == Kind::System;
        let parts = vec![
            ("tools and frame", tools),
            ("system side", sum(&|_, x| is_system(x))),
            (
                "pinned",
                sum(&|i, x| x.pinned && !is_system(x) && Some(i) != user),
            ),
            ("latest user message", sum(&|i, _| Some(i) == user)),
            (
                "end of the work",
                sum(&|i, x| !x.pinned && !is_system(x) && Some(i) != user),
            ),
        ];
        ContextError::Overflow(Box::new(Overflow {
            unit,
            limit,
            needed,
            parts,
        }))
    }
}

impl Load {
    fn percent(&self, percent: usize) -> Self {
        let of = |n: usize| {
            if n == usize::MAX {
                n
            } else {
                (n as u128 * percent as u128 / 100) as usize
            }
        };
        Self {
            tokens: of(self.tokens),
            bytes: of(self.bytes),
            messages: of(self.messages),
        }
    }

    /// Messages are counted whole: their limit is its own trigger.
    fn messages_of(self, limit: &Self) -> Self {
        Self {
            messages: limit.messages,
            ..self
        }
    }
}

/// What to come down to: the target in what is over its trigger, the trigger in all else.
fn goal(load: &Load, limit: &Load, trigger: &Load, overflow: bool, percent: usize) -> Load {
    let target = limit.percent(percent);
    let pick =
        |load: usize, trigger: usize, target: usize| if load > trigger { target } else { trigger };
    let tokens = if overflow {
        // The provider counts more than we do: what we have is already too much.
        let have = Load {
            tokens: load.tokens.min(limit.tokens),
            ..*load
        };
        have.percent(percent).tokens
    } else {
        pick(load.tokens, trigger.tokens, target.tokens)
    };
    Load {
        tokens,
        bytes: pick(load.bytes, trigger.bytes, target.bytes),
        messages: pick(
            load.messages,
            trigger.messages,
            limit.percent(MESSAGES_TARGET_PERCENT).messages.max(1),
        ),
    }
}
