//! The calls in an answer: in the model's own form, or as JSON that is all of the answer.
//!
//! Models that were trained on calls still write some as plain JSON, bare or in a fence. Such an answer is a call where
//! there is nothing else in it, and all of it is valid. JSON in prose is an example, and stays text.

use contexture::{Content, Message, ToolCall, json};
use jsonschema::PatternOptions;
use serde_json::Value;

use super::ask::name;
use super::form::Form;
use super::words::function;

/// Labels of a fence around a call.
const LABELS: [&str; 6] = ["", "json", "tool_call", "tool_calls", "tool_code", "xml"];
/// The mark that Llama may begin a call with.
const PYTHON: &str = "<|python_tag|>";
/// The most memory that a pattern in a tool's schema may take.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The message that an answer is.
pub(super) fn message(text: &str, form: &Form, tools: &[Value], id: &str) -> Message {
    let known = |call: &ToolCall| find(tools, &call.name).is_some();
    let (before, calls) = match marked(text, form, id) {
        Some((before, calls)) => (before, calls.into_iter().filter(known).collect()),
        None => ("", whole(text, tools, id).unwrap_or_default()),
    };
    if calls.is_empty() {
        return Message::assistant(text);
    }
    let mut message = Message::calls(calls);
    if !before.is_empty() {
        message.content = Content::Text(before.to_owned());
    }
    message
}

/// Returns true if an answer that begins like this may be nothing but calls in JSON.
pub(super) fn may_be_whole(text: &str) -> bool {
    let plain = text.trim_start();
    let Some(fenced) = plain.strip_prefix("```") else {
        let opens = |open: &&str| open.starts_with(plain);
        return plain.starts_with(['{', '['])
            || plain.starts_with(PYTHON)
            || ["```", PYTHON].iter().any(opens);
    };
    match fenced.split_once('\n') {
        Some((label, block)) => {
            let block = block.trim_start();
            LABELS.contains(&label.trim()) && (block.is_empty() || block.starts_with(['{', '[']))
        }
        None => LABELS.iter().any(|label| label.starts_with(fenced.trim())),
    }
}

/// The tool that an answer has begun to call in JSON, and what stands behind the colon of its arguments.
pub(super) fn begun<'t, 'a>(text: &'a str, tools: &'t [Value]) -> Option<(&'t Value, &'a str)> {
    let mut rest = text.trim_start();
    rest = rest.strip_prefix(PYTHON).unwrap_or(rest).trim_start();
    if let Some(fenced) = rest.strip_prefix("```") {
        let (label, block) = fenced.split_once('\n')?;
        rest = LABELS.contains(&label.trim()).then(|| block.trim_start())?;
    }
    rest = rest.strip_prefix('[').unwrap_or(rest);
    rest = token(rest, "{")?;
    rest = token(token(rest, "\"name\"")?, ":")?.trim_start();
    let (called, behind) = rest.strip_prefix('"')?.split_once('"')?;
    let tool = find(tools, called)?;
    rest = token(behind, ",")?;
    rest = token(rest, "\"arguments\"").or_else(|| token(rest, "\"parameters\""))?;
    Some((tool, token(rest, ":")?))
}

fn token<'a>(text: &'a str, token: &str) -> Option<&'a str> {
    text.trim_start().strip_prefix(token)
}

fn find<'t>(tools: &'t [Value], wanted: &str) -> Option<&'t Value> {
    tools.iter().find(|tool| name(tool) == Some(wanted))
}

/// The calls behind the form's mark, and the text before the first.
fn marked<'a>(text: &'a str, form: &Form, id: &str) -> Option<(&'a str, Vec<ToolCall>)> {
    if form.mark.is_empty() {
        return None;
    }
    let (before, mut rest) = text.split_once(&form.mark)?;
    let mut calls = Vec::new();
    loop {
        let mut body = rest.trim_start();
        let named = match body.starts_with(['{', '[']) {
            true => None,
            false => body.split_once(form.before_arguments.trim()),
        };
        if let Some((_, arguments)) = named {
            body = arguments.trim_start();
        }
        if let Some(end) = extent(body) {
            let (value, behind) = body.split_at(end);
            match named {
                Some((name, _)) => calls.push(ToolCall::new("", name.trim(), value)),
                None => calls.extend(in_json(value).unwrap_or_default()),
            }
            rest = behind;
        }
        match rest.split_once(&form.mark) {
            Some((_, behind)) => rest = behind,
            None => break,
        }
    }
    Some((before.trim_end(), numbered(calls, id)))
}

/// The calls of an answer that has nothing else: JSON, or blocks of it in fences.
fn whole(text: &str, tools: &[Value], id: &str) -> Option<Vec<ToolCall>> {
    let mut rest = text.trim();
    rest = rest.strip_prefix(PYTHON).unwrap_or(rest).trim_start();
    let mut calls = Vec::new();
    if rest.starts_with("```") {
        while !rest.is_empty() {
            let (label, block) = rest.strip_prefix("```")?.split_once('\n')?;
            if !LABELS.contains(&label.trim()) {
                return None;
            }
            let block = block.trim_start();
            let (value, behind) = block.split_at(extent(block)?);
            calls.extend(in_json(value)?);
            // Some end the answer with the call, and leave the fence open.
            rest = match behind.trim_start() {
                "" => "",
                behind => behind.strip_prefix("```")?.trim_start(),
            };
        }
    } else {
        calls = in_json(rest)?;
    }
    let valid = |call: &ToolCall| find(tools, &call.name).is_some_and(|tool| allows(tool, call));
    calls.iter().all(valid).then(|| numbered(calls, id))
}

/// The calls that a JSON text is: an object, or a list of them.
fn in_json(text: &str) -> Option<Vec<ToolCall>> {
    match json::from_text(text).ok()? {
        Value::Array(all) => all.iter().map(|one| call_of(one, None)).collect(),
        one => Some(vec![call_of(&one, Some(text))?]),
    }
}

/// A call from its JSON; its arguments as the model wrote them, where `text` is at hand, so that reading it again finds
/// the same tokens.
fn call_of(value: &Value, text: Option<&str>) -> Option<ToolCall> {
    let name = value.get("name")?.as_str()?;
    let arguments = value.get("arguments").or_else(|| value.get("parameters"));
    let arguments = match arguments {
        Some(Value::String(text)) => text.clone(),
        Some(other) => {
            let raw = text.and_then(|text| text.split_once("\"arguments\": "));
            let raw = raw.and_then(|(_, raw)| raw.strip_suffix('}'));
            let same = |raw: &&str| json::from_text::<Value>(raw).is_ok_and(|raw| raw == *other);
            raw.filter(same)
                .map_or_else(|| other.to_string(), str::to_owned)
        }
        None => "{}".to_owned(),
    };
    Some(ToolCall::new("", name, arguments))
}

fn numbered(mut calls: Vec<ToolCall>, id: &str) -> Vec<ToolCall> {
    for (n, call) in calls.iter_mut().enumerate() {
        call.id = format!("{id}_{n}");
    }
    calls
}

/// Returns true if a tool takes these arguments. A malformed schema takes any object.
fn allows(tool: &Value, call: &ToolCall) -> bool {
    let Some(arguments) = call.arguments_object() else {
        return false;
    };
    let Some(schema) = function(tool).get("parameters") else {
        return true;
    };
    let patterns = PatternOptions::regex()
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(MAX_PATTERN_BYTES);
    let validator = jsonschema::options()
        .offline()
        .with_pattern_options(patterns)
        .build(schema);
    validator.map_or(true, |schema| schema.is_valid(&Value::Object(arguments)))
}

/// The length of the object or the list that a text begins with; none where it is not whole.
fn extent(text: &str) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn tools() -> Vec<Value> {
        let schema = json!({"type": "object", "properties": {"at": {"type": "integer"}},
            "required": ["at"], "additionalProperties": false});
        vec![json!({"type": "function", "function": {"name": "look", "parameters": schema}})]
    }

    /// The arguments of each call in an answer.
    fn arguments(text: &str, form: &Form) -> Vec<String> {
        let message = message(text, form, &tools(), "c");
        let calls = message.tool_calls.iter();
        calls.map(|call| call.arguments.clone()).collect()
    }

    fn mistral(before_name: &str, before_arguments: &str) -> Form {
        Form {
            mark: "[TOOL_CALLS]".to_owned(),
            before_name: before_name.to_owned(),
            before_arguments: before_arguments.to_owned(),
            close: "",
        }
    }

    #[test]
    fn calls_in_the_models_own_form_are_read() {
        let hermes = Form::in_words();
        let one = "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": 1}}\n</tool_call>";
        assert_eq!(arguments(one, &hermes), ["{\"at\": 1}"]);
        let two = format!("Two:\n{one}\n{one}");
        let read = message(&two, &hermes, &tools(), "c");
        assert_eq!((read.tool_calls.len(), &*read.text()), (2, "Two:"));
        assert_ne!(read.tool_calls[0].id, read.tool_calls[1].id);
        let listed =
            "[TOOL_CALLS] [{\"name\": \"look\", \"arguments\": {\"at\": 1}, \"id\": \"x\"}]";
        let form = mistral(" [{\"name\": \"", "\", \"arguments\": ");
        assert_eq!(arguments(listed, &form), ["{\"at\":1}"]);
        let named = "[TOOL_CALLS]look[ARGS]{\"at\": 1}[TOOL_CALLS]look[ARGS]{\"at\": 2}";
        let form = mistral("", "[ARGS]");
        assert_eq!(arguments(named, &form), ["{\"at\": 1}", "{\"at\": 2}"]);
        for text in [
            "<tool_call>\n{\"name\": \"rm\", \"arguments\": {}}\n</tool_call>",
            "<tool_call>\n{\"name\": \"look\", \"argu",
            "<tool_call>",
        ] {
            assert_eq!(
                message(text, &hermes, &tools(), "c"),
                Message::assistant(text)
            );
        }
        let quoted = "<tool_call>{\"name\": \"look\", \"arguments\": {\"at\": \"</tool_call>}<tool_call>\"}}";
        assert_eq!(
            arguments(quoted, &hermes),
            ["{\"at\": \"</tool_call>}<tool_call>\"}"]
        );
    }

    const CALL: &str = "{\"name\": \"look\", \"arguments\": {\"at\": 1}}";

    #[test]
    fn an_answer_that_is_nothing_but_a_valid_call_is_one() {
        let form = Form::in_words();
        for text in [
            CALL.to_owned(),
            format!("\n {CALL}\n"),
            format!("```json\n{CALL}\n```"),
            format!("```\n{CALL}```\n"),
            format!("```json\n{CALL}\n"),
            format!("```tool_call\n\n{CALL}\n```"),
            format!("<|python_tag|>{CALL}"),
            "{\"type\": \"function\", \"name\": \"look\", \"parameters\": {\"at\": 1}}".to_owned(),
            "{\n  \"name\": \"look\",\n  \"arguments\": {\n    \"at\": 1\n  }\n}".to_owned(),
            format!("[{CALL}]"),
        ] {
            assert!(may_be_whole(&text), "{text}");
            assert_eq!(arguments(&text, &form).len(), 1, "{text}");
        }
        let two = format!("```json\n{CALL}\n```\n\n```json\n{CALL}\n```");
        assert_eq!(arguments(&two, &form).len(), 2);
    }

    #[test]
    fn json_that_is_no_call_stays_text() {
        let form = Form::in_words();
        for text in [
            format!("Like this:\n```json\n{CALL}\n```"),
            format!("```json\n{CALL}\n```\nThat reads it."),
            format!("{CALL} is a call."),
            format!("```python\n{CALL}\n```"),
            format!("```json\n{CALL} yes"),
            format!("```json\n{CALL}\n```\n```json\n{{}}\n```"),
            "{\"name\": \"rm\", \"arguments\": {\"at\": 1}}".to_owned(),
            "{\"name\": \"look\", \"arguments\": {\"at\": \"x\"}}".to_owned(),
            "{\"name\": \"look\", \"arguments\": {}}".to_owned(),
            "{\"name\": \"look\", \"arguments\": [1]}".to_owned(),
            "{\"name\": \"look\"}".to_owned(),
            "{\"city\": \"Paris\"}".to_owned(),
            "[]".to_owned(),
            "[1]".to_owned(),
        ] {
            let read = message(&text, &form, &tools(), "c");
            assert_eq!(read, Message::assistant(&*text), "{text}");
        }
    }

    #[test]
    fn a_call_is_seen_as_soon_as_its_tool_is_named() {
        let tools = tools();
        for (text, behind) in [
            ("{\"name\": \"look\", \"arguments\":", ""),
            (
                "```json\n{\n \"name\":\"look\",\n \"parameters\" : {\"",
                " {\"",
            ),
            ("<|python_tag|>[{\"name\": \"look\", \"arguments\": ", " "),
        ] {
            assert_eq!(begun(text, &tools).unwrap().1, behind, "{text}");
        }
        for text in [
            "",
            "{\"name\": \"look\"",
            "{\"name\": \"rm\", \"arguments\":",
            "So: {\"name\": \"look\", \"arguments\":",
            "```rust\n{\"name\": \"look\", \"arguments\":",
        ] {
            assert_eq!(begun(text, &tools), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[\\[\\]{}\"\\\\`a,: \n<>/]{0,40}|\\PC{0,30}") {
            for form in [Form::in_words(), mistral("", "[ARGS]")] {
                for text in [text.clone(), format!("{}{text}", form.mark)] {
                    let read = message(&text, &form, &tools(), "c");
                    prop_assert_eq!(read.text(), text.as_str());
                    begun(&text, &tools());
                    may_be_whole(&text);
                }
            }
        }
    }
}
