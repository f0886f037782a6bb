//! The calls that an agent has announced and not ended, for questions about them.
//!
//! A question often says less than the announcement did ("shell", without the command), or nothing but the call's id.
//! A person has to see what is asked, so a question is completed with what is known of its call.

use std::collections::VecDeque;

use serde_json::{Map, Value};

use super::bounded;
use super::shorten::shortened;

/// The most calls that are remembered of a session.
const MAX_CALLS: usize = 64;
/// The most bytes of a call's id.
const MAX_ID_BYTES: usize = 256;
/// The most characters of a title.
const MAX_TITLE_CHARS: usize = 300;

/// Arguments that are a command, which says best what is asked.
pub(crate) const COMMANDS: [&str; 2] = ["command", "cmd"];
/// Places where agents name the tool, beside its title.
const NAMES: [&str; 3] = [
    "/name",
    "/_meta/claudeCode/toolName",
    "/_meta/goose/toolCall/toolName",
];

/// A session's calls under way, the newest last.
#[derive(Debug, Default)]
pub(super) struct Calls(VecDeque<(String, Facts)>);

/// The facts that an agent has told of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Facts {
    /// The tool, as the agent calls it.
    pub tool: Option<String>,
    /// A description of the call, for people.
    pub title: Option<String>,
    /// Of what kind that is.
    pub kind: Option<String>,
    /// The arguments; null where the agent told none.
    pub arguments: Value,
}

impl Calls {
    /// Takes an update of the session.
    pub fn hear(&mut self, update: &Value) {
        let begins = match update["sessionUpdate"].as_str() {
            Some("tool_call") => true,
            Some("tool_call_update") => false,
            _ => return,
        };
        let Some(id) = id(update) else { return };
        let place = self.0.iter().position(|(known, _)| known == id);
        if matches!(update["status"].as_str(), Some("completed" | "failed")) {
            place.map(|place| self.0.remove(place));
            return;
        }
        let told = Facts::read(update);
        match place {
            // Ids are used again: what begins is another call.
            Some(place) if begins => self.0[place].1 = told,
            Some(place) => {
                let known = std::mem::take(&mut self.0[place].1);
                self.0[place].1 = told.or(known);
            }
            None => {
                self.0.push_back((id.to_owned(), told));
                if self.0.len() > MAX_CALLS {
                    self.0.pop_front();
                }
            }
        }
    }

    /// The call that a question is about: as the question has it, completed with what is known of the call.
    pub fn asked(&self, question: &Value) -> Facts {
        let own = Facts::read(question);
        let known = id(question).and_then(|id| self.0.iter().find(|(known, _)| known == id));
        let known = known.map(|(_, facts)| facts.clone()).unwrap_or_default();
        let own_title = own.title.clone();
        let known_title = known.title.clone();
        let mut facts = own.or(known);
        // Some question has the tool's name alone, where the announcement said more.
        if let (Some(own), Some(known)) = (own_title, known_title)
            && known.len() > own.len()
            && known.starts_with(&own)
        {
            facts.title = Some(known);
        }
        let says_it = |command: &String| {
            let title = facts.title.as_deref().unwrap_or_default();
            title.starts_with(command.as_str())
        };
        if let Some(command) = facts.command().filter(|command| !says_it(command)) {
            facts.title = Some(bounded(&command, MAX_TITLE_CHARS));
        }
        facts
    }
}

impl Facts {
    fn read(told: &Value) -> Self {
        let text = |value: &Value| {
            let text = value.as_str().filter(|text| !text.trim().is_empty());
            text.map(|text| bounded(text, MAX_TITLE_CHARS))
        };
        Self {
            tool: NAMES
                .iter()
                .find_map(|place| text(told.pointer(place).unwrap_or(&Value::Null))),
            title: text(&told["title"]),
            kind: text(&told["kind"]),
            arguments: arguments(told),
        }
    }

    /// Fills in from earlier facts what is not known here.
    fn or(self, before: Self) -> Self {
        Self {
            tool: self.tool.or(before.tool),
            title: self.title.or(before.title),
            kind: self.kind.or(before.kind),
            arguments: match self.arguments {
                Value::Null => before.arguments,
                known => known,
            },
        }
    }

    /// The command that would run, where it is one.
    fn command(&self) -> Option<String> {
        let value = COMMANDS.iter().find_map(|name| self.arguments.get(name))?;
        let words = |value: &Value| -> Vec<String> {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            match value {
                Value::Array(words) => words.iter().filter_map(text).collect(),
                one => text(one).into_iter().collect(),
            }
        };
        let mut all = words(value);
        all.extend(words(&self.arguments["args"]));
        Some(all.join(" ")).filter(|text| !text.trim().is_empty())
    }
}

fn id(told: &Value) -> Option<&str> {
    told["toolCallId"]
        .as_str()
        .filter(|id| id.len() <= MAX_ID_BYTES)
}

/// A call's arguments: as the agent has them, else as it shows them.
fn arguments(told: &Value) -> Value {
    let raw = match &told["rawInput"] {
        Value::Null => Value::Null,
        Value::Object(none) if none.is_empty() => Value::Null,
        raw => shortened(raw.clone()),
    };
    if !raw.is_null() {
        return raw;
    }
    let content = told["content"].as_array().into_iter().flatten();
    let mut shown = content.filter_map(|piece| match piece["type"].as_str()? {
        "diff" => {
            let fields = ["path", "oldText", "newText"];
            let told = fields.map(|name| (name.to_owned(), piece[name].clone()));
            let told = told.into_iter().filter(|(_, value)| !value.is_null());
            Some(Value::Object(Map::from_iter(told)))
        }
        "content" => {
            let text = piece["content"]["text"].as_str()?;
            contexture::json::from_text::<Value>(text)
                .ok()
                .filter(Value::is_object)
        }
        _ => None,
    });
    shown.next().map_or(Value::Null, shortened)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn heard(updates: &[Value]) -> Calls {
        let mut calls = Calls::default();
        updates.iter().for_each(|update| calls.hear(update));
        calls
    }

    fn title(calls: &Calls, question: &Value) -> String {
        calls.asked(question).title.unwrap()
    }

    /// As goose, Claude Code, opencode, codex and Gemini ask.
    #[test]
    fn a_question_says_what_would_run() {
        let goose = heard(&[json!({
            "sessionUpdate": "tool_call", "toolCallId": "c", "title": "shell · rm -rf important",
            "rawInput": {"command": "rm -rf important"},
            "_meta": {"goose": {"toolCall": {"toolName": "shell", "extensionName": "developer"}}},
        })]);
        let asked = goose.asked(&json!({"toolCallId": "c", "kind": "other", "title": "shell"}));
        assert_eq!(asked.title.as_deref(), Some("rm -rf important"));
        assert_eq!(asked.arguments["command"], "rm -rf important");
        assert_eq!(asked.tool.as_deref(), Some("shell"));

        let claude = heard(&[
            json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Terminal", "rawInput": {}}),
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "ls", "rawInput": {"command": "ls"}}),
        ]);
        assert_eq!(title(&claude, &json!({"toolCallId": "c"})), "ls");

        let list = json!({"toolCallId": "x", "title": "exec", "rawInput": {"command": ["rm", "-rf", "important"]}});
        assert_eq!(title(&Calls::default(), &list), "rm -rf important");

        let pong = json!({"type": "content", "content": {"type": "text", "text": "{\"message\":\"pong\"}"}});
        let gemini =
            json!({"toolCallId": "g", "title": "echo (every MCP Server)", "content": [pong]});
        let asked = Calls::default().asked(&gemini);
        assert_eq!(asked.arguments, json!({"message": "pong"}));
        let diff = json!({"type": "diff", "path": "a.txt", "oldText": null, "newText": "b"});
        let edit = json!({"toolCallId": "g", "title": "Edit", "content": [diff]});
        let asked = Calls::default().asked(&edit);
        assert_eq!(asked.arguments, json!({"path": "a.txt", "newText": "b"}));
    }

    /// A title that a model made up says less than the arguments, and an ended call says nothing of the next.
    #[test]
    fn what_was_told_of_another_call_is_not_shown() {
        let call = |command: &str| json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "shell", "rawInput": {"command": command}});
        let made_up =
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "List files"});
        let calls = heard(&[call("rm -rf important"), made_up]);
        let question = json!({"toolCallId": "c"});
        assert_eq!(title(&calls, &question), "rm -rf important");

        let again = heard(&[
            call("ls"),
            json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "shell"}),
        ]);
        assert_eq!(title(&again, &question), "shell");
        let ended =
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"});
        let ended = heard(&[call("ls"), ended]);
        assert_eq!(ended.asked(&question), Facts::default());
    }

    #[test]
    fn only_so_many_calls_are_remembered() {
        let mut calls = Calls::default();
        for n in 0..10_000 {
            calls.hear(
                &json!({"sessionUpdate": "tool_call", "toolCallId": n.to_string(), "title": "x"}),
            );
        }
        assert_eq!(calls.0.len(), MAX_CALLS);
        assert_eq!(title(&calls, &json!({"toolCallId": "9999"})), "x");
        let long = "x".repeat(1 << 20);
        calls.hear(&json!({"sessionUpdate": "tool_call", "toolCallId": "l", "title": long, "rawInput": {"command": long}}));
        let asked = calls.asked(&json!({"toolCallId": "l"}));
        assert!(asked.title.unwrap().len() < 2_000);
        assert!(contexture::json::held(&asked.arguments) <= 64 << 10);
    }
}
