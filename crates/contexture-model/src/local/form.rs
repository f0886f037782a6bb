//! The form in which a model writes calls, read off its own template: no list of models has to know it.

use std::fmt::Write;

use serde_json::Value;

use super::template::Spoken;

/// The text around the name and the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form {
    /// The mark that begins a call and nothing else, as `<tool_call>`; empty where there is none.
    pub mark: String,
    /// The text between the mark and the tool's name.
    pub before_name: String,
    /// The text between the name and the arguments.
    pub before_arguments: String,
    /// The braces that close the call behind its arguments. What else a template has there is no part of the call.
    pub close: &'static str,
}

/// The tool and the arguments that a template is tried with.
pub(super) const PROBE: (&str, &str) = ("look_up", r#"{"place": "here"}"#);

impl Form {
    /// The form of models that have none of their own: `<tool_call>{"name": …, "arguments": …}</tool_call>`.
    pub fn in_words() -> Self {
        Self {
            mark: "<tool_call>".to_owned(),
            before_name: "{\"name\": \"".to_owned(),
            before_arguments: "\", \"arguments\": ".to_owned(),
            close: "}",
        }
    }

    /// The form of a call of [`PROBE`] with this id, as a template wrote it.
    pub fn parse(written: &str, id: &str) -> Option<Self> {
        let (before, rest) = written.split_once(PROBE.0)?;
        let (before_arguments, _) = rest.split_once(PROBE.1)?;
        if before.contains(id) || before_arguments.contains(id) {
            return None;
        }
        // The mark is one word, and no prose: `[TOOL_CALLS] [{"name": "` has one, `{"name": "` has none.
        let opening = before.split('{').next().unwrap_or_default();
        let opening = opening.trim_end_matches(|c: char| c.is_whitespace() || c == '[');
        let word = opening.rsplit(char::is_whitespace).next();
        let mark = word.filter(|word| word.len() > 2 && word.starts_with(['<', '[']));
        let mark = mark.unwrap_or_default();
        let before_name = match mark {
            "" => before.trim_start(),
            mark => before.rsplit_once(mark)?.1,
        };
        Some(Self {
            mark: mark.to_owned(),
            before_name: before_name.to_owned(),
            before_arguments: before_arguments.to_owned(),
            close: match (before_name.contains('{'), before_name.contains('[')) {
                (true, true) => "}]",
                (true, false) => "}",
                (false, _) => "",
            },
        })
    }

    /// A grammar of the text behind the mark: a call of one of these tools, with the schema of its arguments.
    pub fn grammar(&self, tools: &[(&str, Value)]) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        let mut out = String::from("start:");
        if !self.before_name.is_empty() {
            let _ = write!(out, " {}", quoted(&self.before_name));
        }
        let calls: Vec<String> = (0..tools.len()).map(|n| format!("call{n}")).collect();
        let _ = writeln!(out, " ( {} )", calls.join(" | "));
        let close = match self.close {
            "" => String::new(),
            close => format!(" {}", quoted(close)),
        };
        for (n, (name, schema)) in tools.iter().enumerate() {
            let name = quoted(&format!("{name}{}", self.before_arguments));
            let _ = writeln!(out, "call{n}: {name} arguments{n}{close}");
            let _ = writeln!(out, "arguments{n}: %json {schema}");
        }
        out
    }

    /// A grammar of the text behind a name, up to the end of the object that is the call.
    pub fn grammar_of_arguments(schema: &Value) -> String {
        format!(
            "start: blank? arguments blank? \"}}\"\nblank: /[ \\n\\r\\t]{{1,12}}/\narguments: %json {schema}\n"
        )
    }
}

/// Several calls of one message, each in a message of its own and its result behind it, for a template that knows no
/// more than one.
pub(super) fn one_call_each(messages: Vec<Spoken>) -> Vec<Spoken> {
    let mut out: Vec<Spoken> = Vec::with_capacity(messages.len());
    let mut messages = messages.into_iter().peekable();
    while let Some(mut message) = messages.next() {
        if message.tool_calls.len() < 2 {
            out.push(message);
            continue;
        }
        for call in std::mem::take(&mut message.tool_calls) {
            let mut one = Spoken::new(message.role, std::mem::take(&mut message.content));
            one.tool_calls.push(call);
            out.push(one);
            out.extend(messages.next_if(|next| next.role == "tool"));
        }
    }
    out
}

/// Returns true if a conversation has what only a template for tools can say.
pub(super) fn has_calls(messages: &[Spoken]) -> bool {
    let about_calls = |m: &Spoken| m.role == "tool" || !m.tool_calls.is_empty();
    messages.iter().any(about_calls)
}

/// The id of a call, for a template that takes nine letters and digits and nothing else.
pub(super) fn short_id(id: &str) -> String {
    use sha2::{Digest, Sha256};
    let hash = Sha256::digest(id);
    let digits = hash.iter().map(|byte| format!("{byte:02x}"));
    digits.collect::<String>().chars().take(9).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::local::template::Template;

    /// Parses a template, for what it takes and how it writes calls.
    #[track_caller]
    fn form(source: &str) -> Template {
        Template::new(Some(source), None, "<s>", "</s>").unwrap()
    }

    fn written(mark: &str, before_name: &str, before_arguments: &str, close: &'static str) -> Form {
        Form {
            mark: mark.to_owned(),
            before_name: before_name.to_owned(),
            before_arguments: before_arguments.to_owned(),
            close,
        }
    }

    #[test]
    fn the_form_of_calls_is_read_off_the_template() {
        let arguments = "\", \"arguments\": ";
        for source in [
            include_str!("../../tests/local/templates/qwen.jinja"),
            include_str!("../../tests/local/templates/hermes.jinja"),
        ] {
            let hermes = form(source);
            let wanted = written("<tool_call>", "\n{\"name\": \"", arguments, "}");
            assert_eq!(hermes.form, wanted);
            assert!(hermes.takes.tools && hermes.takes.several_calls && hermes.takes.any_id);
        }
        let llama = form(include_str!("../../tests/local/templates/llama.jinja"));
        let wanted = written("", "{\"name\": \"", "\", \"parameters\": ", "}");
        assert_eq!(llama.form, wanted);
        assert!(llama.takes.tools && !llama.takes.several_calls && llama.takes.any_id);
        let mistral = form(include_str!("../../tests/local/templates/mistral.jinja"));
        let wanted = written("[TOOL_CALLS]", " [{\"name\": \"", arguments, "}]");
        assert_eq!(mistral.form, wanted);
        assert!(mistral.takes.tools && mistral.takes.several_calls && !mistral.takes.any_id);
        let named = form(include_str!(
            "../../tests/local/templates/mistral-named.jinja"
        ));
        assert_eq!(named.form, written("[TOOL_CALLS]", "", "[ARGS]", ""));
        let gemma = form(include_str!("../../tests/local/templates/gemma.jinja"));
        assert_eq!(gemma.form, Form::in_words());
        assert!(!gemma.takes.tools && !gemma.takes.system && !gemma.takes.repeats);
    }
}
