use serde::Serialize;

use super::{engine, guard};
use crate::ContextError;

/// Makes the enum, its names and its sources from one table.
macro_rules! templates {
    ($($(#[$doc:meta])* $variant:ident = $file:literal,)*) => {
        /// A text for the model that ships with Contexture.
        ///
        /// Prompts are files and not code, so that they can be read, compared and changed by
        /// somebody who knows models rather than Rust. To add one: a line in the table of this
        /// file, and the file `templates/<name>.md`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Template {
            $($(#[$doc])* $variant,)*
        }

        impl Template {
            /// Every template, for tables and tests.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name: that of its file, without the ending.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $file,)*
                }
            }

            /// Its text, before any value is put in.
            pub fn source(self) -> &'static str {
                match self {
                    $(Self::$variant => {
                        include_str!(concat!("../../templates/", $file, ".md"))
                    })*
                }
            }
        }
    };
}

templates! {
    /// What an agent is told of the pool and of its task, in English: `total`, `available`, `busy`, `error`,
    /// `released`, `rows` and `moreRows`, `task`, `note`.
    AgentContextEn = "agent-context-en",
    /// The same in Chinese.
    AgentContextZh = "agent-context-zh",
    /// What an employee is. Takes no values.
    ArchetypeEmployee = "archetype-employee",
    /// What an agent of a repository is. Takes no values.
    ArchetypeRepo = "archetype-repo",
    /// What a service is. Takes no values.
    ArchetypeService = "archetype-service",
    /// How to behave in `chat` and `agent` mode. Takes no values.
    BaseRulesChat = "base-rules-chat",
    /// How to behave in `run` mode. Takes no values.
    BaseRulesRun = "base-rules-run",
    /// What happened on a branch that was left: `summary`.
    BranchSummary = "branch-summary",
    /// What a canvas is for. Takes no values.
    CanvasContext = "canvas-context",
    /// Who an agent of a fleet is: `agentName`, `archetype`, `archetypeDescription`, `backendType`,
    /// `workspacePolicy`.
    CoreIdentity = "core-identity",
    /// What the host wants the model to bear in mind this turn: `lines`.
    Hints = "hints",
    /// Rules for our own agent's work: `tools`, the names of those that it is offered.
    HowToWork = "how-to-work",
    /// The same for a small model. Takes no values.
    HowToWorkSmall = "how-to-work-small",
    /// The first line of the prompt: `mode`.
    Mode = "mode",
    /// Rules for an orchestrator's work. Takes no values.
    Orchestrator = "orchestrator",
    /// Who the agent is: `name`, `role`, `identity`, `communicationStyle`, `principles`.
    Persona = "persona",
    /// The step of a workflow: `packageName`, `workflowName`, `step`, `stepsCompleted`, `edges`.
    RunDirective = "run-directive",
    /// What the host knew when the session began: `lines`.
    RuntimeInit = "runtime-init",
    /// What stands in the place of a span of history: `summary`.
    Summary = "summary",
    /// How to call the host's tools: `toolList`, and `token`, the name of the variable that holds it.
    ToolInstructions = "tool-instructions",
    /// Which tools may be used: the four lists and `customRules`.
    ToolPolicy = "tool-policy",
}

impl Template {
    /// Fills in the template.
    ///
    /// Strict: a variable that `values` (an object) does not give is an error which names it,
    /// because a prompt with a hole in it fails silently, in the model. Values are data: they are
    /// put in as they are, neither escaped nor looked at for template syntax. Null, numbers, lists
    /// and objects appear as compact JSON with sorted keys. The newline that ends the file is not
    /// part of the text.
    pub fn render(self, values: impl Serialize) -> Result<String, ContextError> {
        engine::render_builtin(self, values)
    }
}

/// Fills in a template that a user wrote, by the same rules as [`Template::render`].
///
/// `name` is for the errors alone. The source is not trusted: it can look values up, test them,
/// loop over them and pass them through a few filters (`attr`, `default`, `first`, `items`,
/// `join`, `last`, `length`, `lower`, `sort`, `trim`, `upper`), and nothing else. It reads no other
/// template, defines nothing, and can build no value larger than the ones it was given, because
/// that is how forty characters become forty gigabytes; its steps, its depth and its output are
/// bounded as well.
pub fn render_str(
    name: &str,
    source: &str,
    values: impl Serialize,
) -> Result<String, ContextError> {
    guard::check(name, source)?;
    engine::render_source(name, source, values)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tokens::{Bpe, Tokenizer};
    use serde_json::json;

    #[test]
    fn every_template_compiles_and_ends_without_a_newline() {
        for template in Template::ALL {
            let source = template.source();
            assert!(source.ends_with('\n') && !source.ends_with("\n\n"));
            // Rendering with nothing fails at most for want of a value.
            match template.render(json!({})) {
                Ok(text) => assert!(!text.ends_with('\n')),
                Err(error) => assert!(error.to_string().contains("is undefined"), "{error}"),
            }
        }
    }

    #[test]
    fn the_rules_are_short_enough_for_a_small_model() {
        for tokenizer in [Bpe::O200k, Bpe::Cl100k] {
            let count = |template: Template| tokenizer.count(&template.render(json!({})).unwrap());
            let (chat, run) = (
                count(Template::BaseRulesChat),
                count(Template::BaseRulesRun),
            );
            assert!(chat <= 120, "{chat}");
            assert!(run <= 180, "{run}");
        }
    }

    #[test]
    fn a_missing_value_is_named_with_its_template() {
        let error = Template::Mode.render(json!({"mood": 1})).unwrap_err();
        insta::assert_snapshot!(error, @"template `mode`, line 1: `mode` is undefined");
        insta::assert_snapshot!(error.hint(), @"the template was given: mood");
    }

    #[test]
    fn a_value_is_never_rendered() {
        for value in [
            "{{env.KEY}}",
            "{{ mode }}",
            "{% for x in y %}",
            "{# gone? #}",
            "<b>&\"'",
            "\r\n",
            "ends\n",
        ] {
            let text = Template::Mode.render(json!({"mode": value})).unwrap();
            assert_eq!(text, format!("# Mode: {value}"));
            let text = render_str(
                "mine",
                "{{ a }}|{{ b.c }}",
                json!({"a": value, "b": {"c": value}}),
            );
            assert_eq!(text.unwrap(), format!("{value}|{value}"));
        }
    }

    #[test]
    fn the_order_of_values_does_not_matter() {
        let source = "{{ map }} {{ nothing }} {{ list }}\n";
        let one = json!({"map": {"b": 1, "a": [true]}, "list": ["x"], "nothing": null});
        let two = json!({"nothing": null, "list": ["x"], "map": {"a": [true], "b": 1}});
        let (one, two) = (render_str("t", source, one), render_str("t", source, two));
        assert_eq!(one.as_deref(), Ok(r#"{"a":[true],"b":1} null ["x"]"#));
        assert_eq!(one, two);
    }
}
