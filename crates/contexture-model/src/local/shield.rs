//! Data is data: what a user or a tool writes is never read as one of the model's control tokens,
//! even where it is spelt like one.

use regex::Regex;
use serde_json::{Map, Value};

use super::LocalError;
use super::template::Spoken;

/// The control tokens of a vocabulary, as text.
pub(super) struct Shield {
    /// Any of them; none where the vocabulary has none.
    control: Option<Regex>,
}

/// A piece of a rendered text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A control token of the template.
    Control(&'a str),
    /// What stands between two of them.
    Text(&'a str),
}

/// What marks data that looks like a control token: code points that no text has.
const MARKS: std::ops::RangeInclusive<char> = '\u{FDD0}'..='\u{FDEF}';

impl Shield {
    pub fn new(control: impl Iterator<Item = String>) -> Result<Self, LocalError> {
        // One letter alone cannot be broken up; no model has such a control token.
        let mut control: Vec<String> = control.filter(|text| text.chars().count() > 1).collect();
        // Of two that begin at one place the first in the pattern is found: the longest.
        control.sort_by_key(|text| std::cmp::Reverse(text.len()));
        if control.is_empty() {
            return Ok(Self { control: None });
        }
        let any: Vec<String> = control.iter().map(|text| regex::escape(text)).collect();
        let control = Regex::new(&any.join("|"))
            .map_err(|error| LocalError::engine("too many control tokens", error))?;
        Ok(Self {
            control: Some(control),
        })
    }

    /// Breaks up whatever looks like a control token in messages and tools, with a mark behind its
    /// first letter. Gives the mark, where there was any need.
    pub fn hide(&self, messages: &mut [Spoken], tools: &mut [Value]) -> Option<char> {
        let control = self.control.as_ref()?;
        let all = || {
            let spoken = messages.iter().map(serde_json::to_string);
            spoken.flatten().chain(tools.iter().map(Value::to_string))
        };
        if !all().any(|text| control.is_match(&text)) {
            return None;
        }
        // That the data has them all is as good as impossible; then it loses the last of them.
        let free = MARKS
            .into_iter()
            .find(|mark| !all().any(|text| text.contains(*mark)));
        let mark = free.unwrap_or(*MARKS.end());
        for message in messages {
            message.content = self.broken(&message.content, mark);
            for text in [&mut message.tool_call_id, &mut message.name]
                .into_iter()
                .flatten()
            {
                *text = self.broken(text, mark);
            }
            for call in &mut message.tool_calls {
                *call = self.broken_value(call, mark);
            }
        }
        for tool in tools {
            *tool = self.broken_value(tool, mark);
        }
        Some(mark)
    }

    /// The control tokens of a rendered text, and what stands between them.
    pub fn split<'a>(&self, text: &'a str) -> Vec<Piece<'a>> {
        let mut out = Vec::new();
        let mut end = 0;
        let found = self
            .control
            .iter()
            .flat_map(|control| control.find_iter(text));
        for token in found {
            if token.start() > end {
                out.push(Piece::Text(&text[end..token.start()]));
            }
            out.push(Piece::Control(token.as_str()));
            end = token.end();
        }
        if end < text.len() {
            out.push(Piece::Text(&text[end..]));
        }
        out
    }

    /// Breaking one token may leave another that began inside it, so this goes on behind its first
    /// letter, not behind its end.
    fn broken(&self, text: &str, mark: char) -> String {
        let mut out = String::with_capacity(text.len() + 8);
        let mut rest = text;
        while let Some(token) = self.control.as_ref().and_then(|control| control.find(rest)) {
            let first = token.as_str().chars().next().map_or(1, char::len_utf8);
            let (before, behind) = rest.split_at(token.start() + first);
            out.extend(before.chars().filter(|c| *c != mark));
            out.push(mark);
            rest = behind;
        }
        out.extend(rest.chars().filter(|c| *c != mark));
        out
    }

    fn broken_value(&self, value: &Value, mark: char) -> Value {
        match value {
            Value::String(text) => self.broken(text, mark).into(),
            Value::Array(all) => all
                .iter()
                .map(|value| self.broken_value(value, mark))
                .collect(),
            Value::Object(all) => all
                .iter()
                .map(|(name, value)| (self.broken(name, mark), self.broken_value(value, mark)))
                .collect::<Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }
}
