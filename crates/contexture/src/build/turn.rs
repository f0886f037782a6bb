use serde_json::{Map, Value};

use super::{Session, dedupe, system};
use crate::entry::{DeferredTool, ToolDelta, add_tools, tool_name};
use crate::prompt::{Section, Stability};
use crate::{ContextError, Entry, EntryId, Message, Payload};

/// What a turn brings, beside what the log has.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    /// The system prompt of this call alone, in the place of all stable sections: for the next call those that stood
    /// there before hold again.
    pub system_prompt: Option<String>,
    /// The whole system side as it is now; what differs from the log's is appended.
    pub sections: Option<Vec<Section>>,
    /// All tools as they are now.
    pub tools: Option<Vec<Value>>,
    /// All tools that exist and are not offered now, for the receipt.
    pub deferred: Option<Vec<DeferredTool>>,
    /// Why tools came or went, where they did.
    pub tool_reason: Option<String>,
    /// Facts that hold for the session.
    pub runtime_init: Option<Map<String, Value>>,
    /// Facts that change from turn to turn.
    pub hints: Option<Map<String, Value>>,
    /// New messages.
    pub messages: Vec<Message>,
    /// The provider said that the last request was too long.
    pub overflow: bool,
    /// Compact now, if the request has more messages than this, down to so many.
    pub keep_messages: Option<usize>,
    /// The time, for the entries that are made.
    pub now: Option<String>,
}

impl Session {
    /// Logs what the turn changes, brings the request under its limits and writes it. Says whether
    /// anything was compacted.
    pub(super) fn take_turn(&mut self, turn: Turn) -> Result<bool, ContextError> {
        let now = match turn.now {
            Some(now) => now,
            // The core has no clock: without a time of its own, a turn is as old as the log.
            None => self
                .view
                .log()
                .last()
                .map(|e| e.timestamp.clone())
                .unwrap_or_default(),
        };
        let sections = match turn.system_prompt {
            Some(text) => Some(system::prompted(system::of_one_call(text), turn.sections)),
            None => turn.sections.or_else(|| self.standing_sections()),
        };
        let changes = [
            sections.and_then(|s| self.changed_sections(&s)),
            self.changed_tools(turn.tools.as_deref(), turn.deferred, turn.tool_reason),
            turn.runtime_init
                .filter(|data| self.view.runtime_init() != Some(data))
                .map(|data| Payload::RuntimeInit { data }),
            turn.hints
                .filter(|data| self.view.hints() != Some(data))
                .map(|data| Payload::Hints { data }),
        ];
        for payload in changes.into_iter().flatten() {
            self.log(&now, payload)?;
        }
        // What was undone or redacted is not there: a user may say it again.
        let shown = self.view.live(0).filter(|live| !live.redacted);
        if !dedupe::present(shown.map(|live| live.entry.as_ref()), &turn.messages) {
            for message in turn.messages {
                if let Some(entry) = self.input(message, &now) {
                    self.push(entry)?;
                }
            }
        }
        self.refresh()?;
        let compacted = self.relieve(turn.overflow, turn.keep_messages, &now)?;
        self.write();
        Ok(compacted)
    }

    /// The entry for a message of the input; none when it is in the session already.
    fn input(&self, message: Message, now: &str) -> Option<Entry> {
        let known = message.id.as_deref().map(EntryId::from);
        let Some(known) = known.and_then(|id| self.view.position(&id)) else {
            return Some(Entry::message(self.view.tail(), now, message));
        };
        let payload = Payload::Message { message };
        match self.view.log()[known].payload == payload {
            true if self.view.is_reverted(known) => {
                Some(Entry::derived(self.view.tail(), now, payload))
            }
            true => None,
            // Something else under an id that is taken: the log refuses it.
            false => Some(Entry {
                id: self.view.log()[known].id.clone(),
                ..Entry::derived(self.view.tail(), now, payload)
            }),
        }
    }

    /// What differs between these sections and the log's.
    fn changed_sections(&self, now: &[Section]) -> Option<Payload> {
        let known = self.view.sections();
        let mut sections: Vec<Section> = known
            .iter()
            .filter(|old| {
                let stays = |s: &Section| s.name == old.name && s.stability == Stability::Stable;
                !now.iter().any(stays)
            })
            .map(|old| Section {
                text: String::new(),
                ..old.clone()
            })
            .collect();
        for (i, section) in now.iter().enumerate() {
            // Of two that are one, the later holds.
            let again = |s: &Section| s.name == section.name && s.stability == section.stability;
            if now[i + 1..].iter().any(again) {
                continue;
            }
            let old = match section.stability {
                Stability::Stable => known.iter().find(|s| s.name == section.name),
                Stability::Volatile => self.view.note(&section.name),
            };
            if old.map_or(!section.is_blank(), |old| old != section) {
                sections.push(section.clone());
            }
        }
        (!sections.is_empty()).then_some(Payload::Sections { sections })
    }

    /// What differs between these tools and the log's, offered and not.
    fn changed_tools(
        &self,
        now: Option<&[Value]>,
        deferred: Option<Vec<DeferredTool>>,
        reason: Option<String>,
    ) -> Option<Payload> {
        let delta = now.and_then(|now| self.changed_specs(now));
        let deferred = deferred.filter(|deferred| self.view.deferred() != deferred);
        if delta.is_none() && deferred.is_none() {
            return None;
        }
        Some(Payload::Tools(ToolDelta {
            deferred,
            reason,
            ..delta.unwrap_or_default()
        }))
    }

    fn changed_specs(&self, now: &[Value]) -> Option<ToolDelta> {
        let known = self.view.tools();
        // Of two of one name, the later holds.
        let mut asked = Vec::new();
        add_tools(&mut asked, now);
        let now = asked.as_slice();
        if known == now {
            return None;
        }
        let names = |specs: &[Value]| -> Vec<Option<String>> {
            specs.iter().map(|s| tool_name(s).cloned()).collect()
        };
        // Added in place or at the end, tools keep their order. Where that would not give the order
        // asked for, all go and come again.
        let kept: Vec<&Value> = known
            .iter()
            .filter(|k| names(now).contains(&tool_name(k).cloned()))
            .collect();
        let in_order = kept.len() <= now.len()
            && names(&now[..kept.len()]) == names(&kept.into_iter().cloned().collect::<Vec<_>>());
        let (old, new) = (names(known), names(now));
        let (add, remove) = if in_order {
            (
                now.iter()
                    .filter(|spec| !known.contains(spec))
                    .cloned()
                    .collect(),
                old.into_iter()
                    .flatten()
                    .filter(|name| !new.contains(&Some(name.clone())))
                    .collect(),
            )
        } else {
            (now.to_vec(), old.into_iter().flatten().collect())
        };
        Some(ToolDelta {
            add,
            remove,
            ..ToolDelta::default()
        })
    }
}
