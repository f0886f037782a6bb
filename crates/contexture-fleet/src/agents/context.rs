//! The system context of an agent's session: what it is to be told, and what it was told, according to the log.
//!
//! Sections are in the log from when the agent is told of them, not from when a session is begun: an agent that is
//! stopped before its first prompt has heard nothing. What a turn told counts once that turn ended well.

use contexture::Payload;
use contexture::prompt::Section;
use contexture_store::{Key, Sessions, StoreError};
use serde_json::Value;

use crate::acp::record::TurnEnd;
use crate::backends::in_prompt;

/// The system context of a session's agent: what it is to be told, and what it was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Context {
    current: Vec<Section>,
    /// The sections that the log has in effect.
    logged: Vec<Section>,
    /// The sections that the agent was told; nothing is known of a session's agent at first.
    told: Option<Vec<Section>>,
}

/// The context that goes out with a prompt.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    /// The whole context, where any of it is new to the agent.
    pub block: Option<Value>,
    /// The sections that the log lacks; one that is gone has no text.
    pub sections: Vec<Section>,
    told: Vec<Section>,
}

/// The name of the section that says how tools are called.
const TOOLS: &str = "contexture/system/tool-instructions";

impl Context {
    /// The context of a session of which nothing is in the log.
    pub fn new(current: Vec<Section>) -> Self {
        Self {
            current,
            ..Self::default()
        }
    }

    /// The context of a session that goes on: what was told of it is in its log.
    pub fn of_log(
        current: Vec<Section>,
        sessions: &Sessions,
        key: &Key,
    ) -> Result<Self, StoreError> {
        let mut context = Self::new(current);
        for record in sessions.records(key)? {
            // What cannot be read told nobody anything.
            let Ok(entry) = record?.entry() else { continue };
            match entry.payload {
                Payload::Sections { sections } => context.log(sections),
                Payload::Custom(custom)
                    if TurnEnd::read(&custom).is_some_and(|end| end.counts()) =>
                {
                    context.told = Some(context.logged.clone());
                }
                _ => {}
            }
        }
        Ok(context)
    }

    /// The agent is told all of it as its session begins. Gives the sections that the log lacks.
    pub fn tell_at_beginning(&mut self) -> Vec<Section> {
        let sections = self.unlogged();
        self.log(sections.clone());
        self.told = Some(self.current.clone());
        sections
    }

    /// The context that is to go out with the next prompt.
    pub fn delivery(&self) -> Delivery {
        let is_known = match &self.told {
            Some(told) => same(told, &self.current),
            None => self.current.is_empty(),
        };
        if is_known {
            return Delivery::default();
        }
        let texts: Vec<&str> = self.current.iter().map(|one| one.text.as_str()).collect();
        Delivery {
            block: Some(in_prompt(&texts)),
            sections: self.unlogged(),
            told: self.current.clone(),
        }
    }

    /// The sections of a delivery are in the log.
    pub fn delivered(&mut self, delivery: &Delivery) {
        self.log(delivery.sections.clone());
    }

    /// A turn ended in which the agent took in what was delivered.
    pub fn heard(&mut self, delivery: Delivery) {
        if delivery.block.is_some() {
            self.told = Some(delivery.told);
        }
    }

    /// The session has other tools from now on, and these are the instructions for them.
    pub fn change_tools(&mut self, instructions: Option<String>) {
        let known = self.current.iter().position(|one| one.name == TOOLS);
        match (known, instructions) {
            (Some(at), Some(text)) => self.current[at].text = text,
            (Some(at), None) => drop(self.current.remove(at)),
            (None, Some(text)) => {
                let section = Section::stable(TOOLS, "provider:contexture", text);
                self.current.push(section);
            }
            (None, None) => {}
        }
    }

    fn unlogged(&self) -> Vec<Section> {
        let is_in = |all: &[Section], one: &Section| all.iter().any(|known| known.name == one.name);
        let gone = self.logged.iter().filter(|one| !is_in(&self.current, one));
        let gone = gone.map(|one| Section {
            text: String::new(),
            ..one.clone()
        });
        let new = self.current.iter().filter(|one| !self.logged.contains(one));
        gone.chain(new.cloned()).collect()
    }

    fn log(&mut self, sections: Vec<Section>) {
        for section in sections {
            let known = self.logged.iter().position(|one| one.name == section.name);
            match known {
                Some(at) if section.is_blank() => drop(self.logged.remove(at)),
                Some(at) => self.logged[at] = section,
                None if section.is_blank() => {}
                None => self.logged.push(section),
            }
        }
    }
}

/// Returns true if an agent that was told one knows the other: the same texts, in whatever order.
fn same(told: &[Section], current: &[Section]) -> bool {
    let has = |all: &[Section], one: &Section| {
        all.iter()
            .any(|known| known.name == one.name && known.text == one.text)
    };
    told.len() == current.len() && current.iter().all(|one| has(told, one))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn section(name: &str, text: &str) -> Section {
        Section::stable(name, "provider:p", text)
    }

    fn text(delivery: &Delivery) -> String {
        let block = delivery.block.as_ref().unwrap();
        block["text"].as_str().unwrap().to_owned()
    }

    #[test]
    fn context_goes_out_until_a_turn_ended_well_and_is_logged_once() {
        let mut context = Context::new(vec![section("a", "You are a."), section("b", "B.")]);
        let first = context.delivery();
        assert!(text(&first).contains("You are a.\n\nB."));
        assert_eq!(first.sections.len(), 2);
        context.delivered(&first);
        // The turn failed.
        let again = context.delivery();
        assert!(again.block.is_some() && again.sections.is_empty());
        context.delivered(&again);
        context.heard(again);
        assert!(context.delivery().block.is_none());
        context.heard(Delivery::default());
        assert!(context.delivery().block.is_none());
    }

    #[test]
    fn a_change_goes_out_whole_and_is_logged_as_a_change() {
        let mut context = Context::new(vec![section("a", "One."), section("b", "Two.")]);
        assert_eq!(context.tell_at_beginning().len(), 2);
        assert!(context.delivery().block.is_none());
        context.current = vec![section("b", "Two."), section("c", "Three.")];
        let changed = context.delivery();
        assert!(text(&changed).contains("Two.\n\nThree."));
        let named: Vec<(&str, &str)> = changed
            .sections
            .iter()
            .map(|one| (one.name.as_str(), one.text.as_str()))
            .collect();
        assert_eq!(named, [("a", ""), ("c", "Three.")]);
        context.delivered(&changed);
        assert_eq!(context.logged.len(), 2);
    }

    #[test]
    fn other_tools_are_told_with_the_next_prompt() {
        let mut context = Context::new(vec![section("a", "One.")]);
        context.tell_at_beginning();
        context.change_tools(Some("canvas_update, canvas_clear".to_owned()));
        let more = context.delivery();
        assert!(text(&more).contains("canvas_clear"));
        context.delivered(&more);
        context.heard(more);
        context.change_tools(Some("canvas_update".to_owned()));
        assert!(!text(&context.delivery()).contains("canvas_clear"));
        context.change_tools(None);
        let none = context.delivery();
        assert_eq!(none.sections[0].name, TOOLS);
        assert!(none.sections[0].is_blank() && !text(&none).contains("canvas"));
    }
}
