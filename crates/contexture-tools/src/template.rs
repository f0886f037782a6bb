//! Texts for models that ship with the tools.

use contexture::ContextError;
use contexture::prompt::render_str;
use serde_json::Value;

/// Makes the enum and its sources from one table.
macro_rules! templates {
    ($($(#[$doc:meta])* $variant:ident = $file:literal,)*) => {
        /// A file of `templates/`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Template {
            $($(#[$doc])* $variant,)*
        }

        impl Template {
            #[cfg(test)]
            const ALL: &'static [Self] = &[$(Self::$variant,)*];

            fn name_and_source(self) -> (&'static str, &'static str) {
                match self {
                    $(Self::$variant => {
                        ($file, include_str!(concat!("../templates/", $file, ".md")))
                    })*
                }
            }
        }
    };
}

templates! {
    /// Runs from the execution memory: `lines`, `cut`, `most`, `left`.
    AgentContext = "agent-context",
    /// Lines of a transcript: `lines`, `cut`, `most`, `left`.
    ChatHistory = "chat-history",
    /// A file of the project's: `path`, `text`, `cut`.
    Instructions = "instructions",
    /// A skill that was loaded: `name`, `description`, `folder`, `body`.
    Skill = "skill",
    /// The overview of skills: `lines`, `left`, and `lists`, whether the agent can list them.
    Skills = "skills",
}

impl Template {
    /// Fills in the template. Values are data: they are never rendered themselves.
    pub(crate) fn render(self, values: &Value) -> Result<String, ContextError> {
        let (name, source) = self.name_and_source();
        render_str(name, source, values)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn every_template_compiles() {
        for template in Template::ALL {
            // Rendering with nothing fails at most for want of a value.
            if let Err(error) = template.render(&json!({})) {
                assert!(error.to_string().contains("is undefined"), "{error}");
            }
        }
    }

    #[test]
    fn a_value_is_never_rendered() {
        let values = json!({ "lines": "{{token}} {% x %}", "cut": true, "most": "9", "left": 2 });
        let text = Template::ChatHistory.render(&values).unwrap();
        assert!(text.ends_with("\n\n{{token}} {% x %}"), "{text}");
        assert!(text.contains("[cut at 9 characters: 2 earlier lines are not shown]"));
    }
}
