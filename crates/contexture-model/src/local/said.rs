//! From tokens to what is said: bytes that are whole letters, text that is no stop word, calls.

use contexture::{Content, Message, ToolCall, json};
use serde_json::Value;

use super::words::CALL;

/// The text of an answer as it grows. What may be the beginning of a stop word or of a call is held
/// back until it is clear.
#[derive(Debug)]
pub(super) struct Said {
    /// Bytes of a letter that is not whole.
    bytes: Vec<u8>,
    text: String,
    shown: usize,
    stops: Vec<String>,
    /// What begins a call.
    call: Option<&'static str>,
}

/// What a new piece came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// Nothing special.
    Nothing,
    /// A stop word: the answer ends before it.
    Stop,
    /// The beginning of a call, which stands at the end of the text.
    Call,
}

impl Said {
    pub fn new(stops: Vec<String>, call: Option<&'static str>) -> Self {
        Self {
            bytes: Vec::new(),
            text: String::new(),
            shown: 0,
            stops,
            call,
        }
    }

    /// Takes the bytes of a token.
    pub fn push(&mut self, bytes: &[u8]) -> Met {
        self.bytes.extend_from_slice(bytes);
        let before = self.text.len();
        loop {
            match std::str::from_utf8(&self.bytes) {
                Ok(whole) => {
                    self.text.push_str(whole);
                    self.bytes.clear();
                }
                Err(error) => {
                    let whole = error.valid_up_to();
                    self.text
                        .push_str(&String::from_utf8_lossy(&self.bytes[..whole]));
                    match error.error_len() {
                        // Never a letter: shown as such, and gone on behind it.
                        Some(bad) => {
                            self.text.push(char::REPLACEMENT_CHARACTER);
                            self.bytes.drain(..whole + bad);
                            continue;
                        }
                        None => drop(self.bytes.drain(..whole)),
                    }
                }
            }
            break;
        }
        self.meet(before)
    }

    fn meet(&mut self, before: usize) -> Met {
        let longest = self.words().map(str::len).max().unwrap_or_default();
        let from = floor(&self.text, before.saturating_sub(longest));
        let found = |word: &str| self.text[from..].find(word).map(|at| from + at);
        let stop = self.stops.iter().filter_map(|stop| found(stop)).min();
        let call = self.call.and_then(|call| found(call).map(|at| (at, call)));
        match (stop, call) {
            (Some(stop), call) if call.is_none_or(|(at, _)| stop <= at) => {
                self.text.truncate(stop);
                Met::Stop
            }
            (_, Some((at, call))) => {
                self.text.truncate(at + call.len());
                Met::Call
            }
            _ => Met::Nothing,
        }
    }

    /// What may be shown and was not yet.
    pub fn fresh(&mut self) -> Option<&str> {
        let held = self.words().map(|word| overlap(&self.text, word)).max();
        let end = self.text.len() - held.unwrap_or_default();
        self.show(end)
    }

    /// The rest: nothing more comes.
    pub fn rest(&mut self) -> Option<&str> {
        if !self.bytes.is_empty() {
            self.bytes.clear();
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        self.show(self.text.len())
    }

    /// Whether this may come to a call in a model's own form, which is known at its end.
    pub fn may_be_a_call(&self) -> bool {
        let plain = self.text.trim_start();
        plain.is_empty()
            || plain.starts_with(['{', '['])
            || self.text.contains(CALL.0)
            || overlap(&self.text, CALL.0) > 0
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn show(&mut self, end: usize) -> Option<&str> {
        let from = self.shown;
        self.shown = end.max(from);
        (end > from).then(|| &self.text[from..end])
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.stops.iter().map(String::as_str).chain(self.call)
    }
}

/// How much of the text's end is the beginning of a word.
fn overlap(text: &str, word: &str) -> usize {
    (1..word.len())
        .rev()
        .filter(|&len| word.is_char_boundary(len))
        .find(|&len| text.ends_with(&word[..len]))
        .unwrap_or_default()
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The message that a text is, when its calls are in our form: `json` is the call at its end.
pub(super) fn message(text: &str, json: Option<&str>, id: &str) -> Message {
    let Some(call) = json.and_then(|json| one_call(json, id)) else {
        return Message::assistant(text);
    };
    with_calls(text, vec![call])
}

/// The message that a text is, when its calls are in the model's own form: the tags of Hermes and
/// Qwen, Mistral's list, or nothing but the call, as Llama writes it.
pub(super) fn native(text: &str, known: &dyn Fn(&str) -> bool, id: &str) -> Message {
    let plain = text.trim();
    let listed = plain.strip_prefix("[TOOL_CALLS]");
    let jsons: Vec<&str> = match listed {
        Some(list) => vec![list.trim()],
        None if plain.starts_with(['{', '[']) => vec![plain],
        None => tagged(plain),
    };
    let values = jsons.iter().filter_map(|text| json::from_text(text).ok());
    let values = values.flat_map(|value: Value| match value {
        Value::Array(all) => all,
        one => vec![one],
    });
    let calls: Vec<ToolCall> = values
        .enumerate()
        .filter_map(|(n, value)| call_of(&value, &format!("{id}_{n}")))
        .filter(|call| known(&call.name))
        .collect();
    if calls.is_empty() {
        return Message::assistant(text);
    }
    let before = text.split(CALL.0).next().unwrap_or_default();
    let before = if plain.starts_with(['{', '[']) {
        ""
    } else {
        before.trim_end()
    };
    with_calls(before, calls)
}

fn tagged(text: &str) -> Vec<&str> {
    let behind = text.split(CALL.0).skip(1);
    behind
        .map(|rest| rest.split(CALL.1).next().unwrap_or_default().trim())
        .collect()
}

fn with_calls(text: &str, calls: Vec<ToolCall>) -> Message {
    let mut message = Message::calls(calls);
    if !text.is_empty() {
        message.content = Content::Text(text.to_owned());
    }
    message
}

/// The call in a constrained answer; its arguments as the model wrote them.
fn one_call(text: &str, id: &str) -> Option<ToolCall> {
    let value: Value = json::from_text(text).ok()?;
    let mut call = call_of(&value, id)?;
    let raw = text
        .split_once("\"arguments\": ")
        .and_then(|(_, raw)| raw.strip_suffix('}'));
    let reads = |raw: &&str| json::from_text::<Value>(raw).is_ok();
    if let Some(raw) = raw.filter(reads) {
        raw.clone_into(&mut call.arguments);
    }
    Some(call)
}

fn call_of(value: &Value, id: &str) -> Option<ToolCall> {
    let name = value.get("name")?.as_str()?;
    let arguments = value.get("arguments").or_else(|| value.get("parameters"));
    let arguments = match arguments {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "{}".to_owned(),
    };
    Some(ToolCall::new(id, name, arguments))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is shown, piece by piece, and how it ended.
    fn shown(pieces: &[&[u8]], stops: &[&str], call: Option<&'static str>) -> (String, Met) {
        let mut said = Said::new(stops.iter().map(|s| (*s).to_owned()).collect(), call);
        let mut out = String::new();
        for piece in pieces {
            let met = said.push(piece);
            if met != Met::Nothing {
                return (out, met);
            }
            out.extend(said.fresh());
        }
        out.extend(said.rest());
        (out, Met::Nothing)
    }

    #[test]
    fn what_may_become_a_stop_word_is_held_back() {
        let pieces: [&[u8]; 4] = [b"one E", b"N", b"D", b" two"];
        assert_eq!(
            shown(&pieces, &["END"], None),
            ("one ".to_owned(), Met::Stop)
        );
        let pieces: [&[u8]; 3] = [b"one E", b"N", b"T"];
        assert_eq!(
            shown(&pieces, &["END"], None),
            ("one ENT".to_owned(), Met::Nothing)
        );
    }

    #[test]
    fn a_call_is_met_wherever_its_letters_are_cut() {
        for cut in 1..CALL.0.len() {
            let (a, b) = CALL.0.as_bytes().split_at(cut);
            let behind = [b, b"{\"na"].concat();
            let pieces: [&[u8]; 3] = [b"Well. ", a, &behind];
            let (text, met) = shown(&pieces, &[], Some(CALL.0));
            assert_eq!((text.as_str(), met), ("Well. ", Met::Call), "cut at {cut}");
        }
    }

    #[test]
    fn text_of_a_model_with_its_own_form_is_held_back_where_it_may_be_a_call() {
        let held = |text: &str| {
            let mut said = Said::new(Vec::new(), None);
            said.push(text.as_bytes());
            said.may_be_a_call()
        };
        for text in [
            "",
            " ",
            "{\"na",
            " [TOOL_C",
            "Well.\n<tool",
            "Well. <tool_call>{",
        ] {
            assert!(held(text), "{text:?}");
        }
        for text in ["Well", "a < b", "a {b}"] {
            assert!(!held(text), "{text:?}");
        }
    }

    #[test]
    fn calls_in_the_models_own_form_are_read() {
        let known = |name: &str| name == "look";
        let forms = [
            "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": 1}}\n</tool_call>",
            "[TOOL_CALLS][{\"name\": \"look\", \"arguments\": {\"at\": 1}}]",
            "{\"name\": \"look\", \"parameters\": {\"at\": 1}}",
        ];
        for form in forms {
            let message = native(form, &known, "c");
            assert_eq!(message.tool_calls.len(), 1, "{form}");
            assert_eq!(message.tool_calls[0].arguments, "{\"at\":1}");
            assert_eq!(message.text(), "");
        }
        let unknown = "{\"name\": \"rm\", \"parameters\": {}}";
        assert_eq!(native(unknown, &known, "c"), Message::assistant(unknown));
        let two = "Two:\n<tool_call>{\"name\": \"look\", \"arguments\": {}}</tool_call>\
                   <tool_call>{\"name\": \"look\", \"arguments\": {}}</tool_call>";
        let message = native(two, &known, "c");
        assert_eq!((message.tool_calls.len(), &*message.text()), (2, "Two:"));
    }

    proptest! {
        /// However a text is cut into pieces, also inside a letter, it arrives whole.
        #[test]
        fn no_letter_is_lost(text in "\\PC{0,40}", cuts in proptest::collection::vec(1..5_usize, 0..60)) {
            let mut pieces: Vec<&[u8]> = Vec::new();
            let mut rest = text.as_bytes();
            for cut in cuts {
                let (piece, behind) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = behind;
            }
            pieces.push(rest);
            prop_assert_eq!(shown(&pieces, &["\u{1}\u{2}"], Some(CALL.0)).0, text);
        }

        #[test]
        fn any_bytes_are_taken(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..6), 0..12)) {
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let whole = pieces.concat();
            let (text, _) = shown(&pieces, &[], None);
            if let Ok(valid) = std::str::from_utf8(&whole) {
                prop_assert_eq!(text, valid);
            }
        }
    }
}
