//! The system prompt: of one call, of the log, or as it is configured.

use super::{Session, Turn};
use crate::Payload;
use crate::prompt::{CONFIGURED, ONE_CALL, Section, Stability, configured};

/// The name of the section that a plain system prompt becomes.
const NAME: &str = "system";
/// The system prompt of one call.
pub(super) fn of_one_call(text: String) -> Section {
    Section::stable(NAME, ONE_CALL, text)
}

/// A system side with this prompt in the place of all its stable sections.
pub(super) fn prompted(prompt: Section, sections: Option<Vec<Section>>) -> Vec<Section> {
    let sections = sections.unwrap_or_default().into_iter();
    let volatile = sections.filter(|section| section.stability == Stability::Volatile);
    std::iter::once(prompt).chain(volatile).collect()
}

impl Turn {
    /// The system side as a log keeps it that is told as a whole: with the system prompt for all of its calls.
    pub(crate) fn take_sections(&mut self) -> Option<Vec<Section>> {
        let sections = self.sections.take();
        match self.system_prompt.take() {
            Some(text) => Some(prompted(Section::stable(NAME, "input", text), sections)),
            None => sections,
        }
    }
}

impl Session {
    /// The stable sections that hold for a call without a system prompt, where they are not those in effect.
    pub(super) fn standing_sections(&self) -> Option<Vec<Section>> {
        let standing = self.view.standing_sections();
        let has_none = standing.iter().all(|section| section.origin == CONFIGURED);
        let standing = if has_none && !self.leads_with_system() {
            let text = self.settings.system_prompt.as_deref();
            text.map(configured).into_iter().collect()
        } else {
            standing.to_vec()
        };
        (standing != self.view.sections()).then_some(standing)
    }

    /// The system prompt of one call, while it is in effect.
    pub(super) fn prompt_of_one_call(&self) -> Option<&str> {
        let sections = self.view.sections().iter();
        let mut own = sections.filter(|section| section.is_of_one_call());
        own.next().map(|section| section.text.as_str())
    }

    /// Returns true if the conversation begins with a system message of its own.
    fn leads_with_system(&self) -> bool {
        let first = self.view.live(0).next();
        first.is_some_and(|live| {
            matches!(&live.entry.payload, Payload::Message { message } if message.role.is_system())
        })
    }
}
