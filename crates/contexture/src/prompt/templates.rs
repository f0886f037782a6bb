//! Templates by name, and the texts that somebody put in the place of ours (spec 000's `loadTemplate`).
//!
//! Apart from [`Template`], because a replacement is a value that a host passes in: the core reads no files, and two
//! sessions of one process may have different texts.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Template, engine, guard};
use crate::ContextError;
use crate::text::nearest;

/// The built-in templates with their replacements.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Templates {
    replaced: BTreeMap<&'static str, Replacement>,
}

/// A text in the place of a built-in template.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Replacement {
    /// Its source, for errors.
    place: String,
    source: String,
}

impl Templates {
    /// The source of the template of this name.
    pub fn load(&self, name: &str) -> Result<&str, ContextError> {
        Ok(self.source(Template::parse(name)?))
    }

    /// The source of a template.
    pub fn source(&self, template: Template) -> &str {
        match self.replaced.get(template.name()) {
            Some(own) => &own.source,
            None => template.source(),
        }
    }

    /// The place that a template comes from; none where it is the built-in one.
    pub fn place(&self, template: Template) -> Option<&str> {
        let own = self.replaced.get(template.name())?;
        Some(&own.place)
    }

    /// Puts a text in the place of the template of this name. `place` is for errors and lists.
    ///
    /// Refused for a name that no template has, for one that is rendered from the log at each request (another text
    /// would change requests that were sent already), and for a source that a user may not write (see
    /// [`render_str`](super::render_str)).
    pub fn replace(&mut self, name: &str, place: &str, source: &str) -> Result<(), ContextError> {
        let template = Template::parse(name)?;
        if !template.is_replaceable() {
            return Err(ContextError::invalid(
                place,
                format!(
                    "the template `{name}` cannot be replaced: requests of the log are made with it"
                ),
                format!("those that can be: {}", names(Template::is_replaceable)),
            ));
        }
        let shown = shown(template, place);
        guard::check(&shown, source)?;
        engine::check_source(&shown, source)?;
        let own = Replacement {
            place: place.to_owned(),
            source: source.to_owned(),
        };
        self.replaced.insert(template.name(), own);
        Ok(())
    }

    /// Fills in a template, by the rules of [`Template::render`].
    pub fn render(
        &self,
        template: Template,
        values: impl Serialize,
    ) -> Result<String, ContextError> {
        match self.replaced.get(template.name()) {
            Some(own) => engine::render_source(&shown(template, &own.place), &own.source, values),
            None => template.render(values),
        }
    }
}

/// The name of a replacement in errors.
fn shown(template: Template, place: &str) -> String {
    format!("{} ({place})", template.name())
}

impl Template {
    /// The template of this name.
    pub fn parse(name: &str) -> Result<Self, ContextError> {
        let found = Self::ALL.iter().find(|template| template.name() == name);
        found.copied().ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|template| template.name()).collect();
            let hint = match nearest(name, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", names(|_| true)),
            };
            ContextError::invalid(
                format!("template `{name}`"),
                "there is no such template",
                hint,
            )
        })
    }

    /// Returns true if another text may stand in its place. Not for what the build renders from the log again and
    /// again: the same log would give other requests.
    pub fn is_replaceable(self) -> bool {
        !matches!(
            self,
            Self::AgentContextEn
                | Self::AgentContextZh
                | Self::BranchSummary
                | Self::Hints
                | Self::RuntimeInit
                | Self::Summary
        )
    }
}

fn names(which: impl Fn(Template) -> bool) -> String {
    let all = Template::ALL.iter().filter(|template| which(**template));
    let all: Vec<&str> = all.map(|template| template.name()).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_template_is_loaded_by_its_name_and_rendered_from_its_replacement() {
        let mut templates = Templates::default();
        assert_eq!(templates.load("mode").unwrap(), "# Mode: {{ mode }}\n");
        templates
            .replace("mode", "mine.md", "In {{ mode }} mode.\n")
            .unwrap();
        assert_eq!(templates.load("mode").unwrap(), "In {{ mode }} mode.\n");
        assert_eq!(templates.place(Template::Mode), Some("mine.md"));
        let text = templates.render(Template::Mode, json!({"mode": "{{x}}"}));
        assert_eq!(text.unwrap(), "In {{x}} mode.");
        let hint = templates.load("core-identitty").unwrap_err().hint();
        assert!(hint.contains("`core-identity`"), "{hint}");
    }

    #[test]
    fn what_would_change_old_requests_or_break_is_refused() {
        let mut templates = Templates::default();
        for (name, source, words) in [
            ("summary", "x", "cannot be replaced"),
            ("nothing-of-this", "x", "no such template"),
            ("mode", "{% set a = 1 %}", "mode (mine.md)"),
            ("mode", "{% if mode %}", "mode (mine.md)"),
        ] {
            let error = templates.replace(name, "mine.md", source).unwrap_err();
            assert!(error.to_string().contains(words), "{name}: {error}");
        }
        assert_eq!(templates, Templates::default());
        // A variable that is not given is found when it is asked for, with its place.
        templates.replace("mode", "mine.md", "{{ mood }}").unwrap();
        let error = templates
            .render(Template::Mode, json!({"mode": "x"}))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "template `mode (mine.md)`, line 1: `mood` is undefined"
        );
    }
}
