//! What a reader of the text would not see and a model would: tag characters, turned directions,
//! characters without width. In what tools say, none of them goes to a model unseen.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{Content, Message, Part};

/// The text with a mark in the place of each hidden character, and how many there were; nothing
/// where there is none.
///
/// Characters that come again and again are one mark with their number. A run of tag characters is
/// one mark, too, which shows the ASCII text that they spell. Joiners stay where a script or an emoji
/// needs them, and so do the flags that are made of tags.
pub(crate) fn visible(text: &str) -> Option<(String, usize)> {
    // All of them begin with one of these bytes in UTF-8, and most text has none.
    if !text.bytes().any(|byte| matches!(byte, 0xe2 | 0xef | 0xf3)) {
        return None;
    }
    let mut out = String::new();
    let mut found = 0;
    let mut done = 0;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let end = at + c.len_utf8();
        let before = text[..at].chars().next_back();
        if !is_hidden(c) || is_needed(c, before, text[end..].chars().next()) {
            at = end;
            continue;
        }
        let run = run_of(c, &text[at..]);
        let (chars, end) = (run.chars().count(), at + run.len());
        if !is_flag(before, run) {
            out.push_str(&text[done..at]);
            out.push_str(&mark(c, run, chars));
            found += chars;
            done = end;
        }
        at = end;
    }
    if found == 0 {
        return None;
    }
    out.push_str(&text[done..]);
    Some((out, found))
}

/// The message with nothing hidden in what it says; nothing where nothing was.
pub(crate) fn visible_message(message: &Message) -> Option<(Message, usize)> {
    let mut found = 0;
    let content = match &message.content {
        Content::Null => Content::Null,
        Content::Text(text) => Content::Text(shown(text, &mut found).into_owned()),
        Content::Parts(parts) => {
            let parts = parts.iter().map(|part| visible_part(part, &mut found));
            Content::Parts(parts.collect())
        }
    };
    let extra = visible_map(&message.extra, &mut found);
    let name = message.name.as_ref();
    let name = name.map(|name| shown(name, &mut found).into_owned());
    (found > 0).then(|| {
        let message = Message {
            content,
            name,
            extra,
            ..message.clone()
        };
        (message, found)
    })
}

/// The tool spec with nothing hidden in it, keys included, and how much was; nothing where nothing
/// was. Its name stays: it is what calls are told apart by.
fn visible_spec(spec: &Value) -> Option<(Value, usize)> {
    let mut found = 0;
    let mut out = visible_value(spec, &mut found);
    if found == 0 {
        return None;
    }
    for path in ["/name", "/function/name", "/custom/name"] {
        if let (Some(name), Some(shown)) = (spec.pointer(path), out.pointer_mut(path)) {
            shown.clone_from(name);
        }
    }
    Some((out, found))
}

/// All specs so, with what was hidden in each. No copy is made where nothing was.
pub(crate) fn visible_specs(specs: &Arc<Vec<Value>>) -> (Arc<Vec<Value>>, Vec<usize>) {
    let mut shown = Arc::clone(specs);
    let mut hidden = vec![0; specs.len()];
    for (at, spec) in specs.iter().enumerate() {
        if let Some((spec, found)) = visible_spec(spec) {
            Arc::make_mut(&mut shown)[at] = spec;
            hidden[at] = found;
        }
    }
    (shown, hidden)
}

fn visible_part(part: &Part, found: &mut usize) -> Part {
    match part {
        Part::Text { text, extra } => Part::Text {
            text: shown(text, found).into_owned(),
            extra: extra.clone(),
        },
        Part::Other(map) => Part::Other(visible_map(map, found)),
        other => other.clone(),
    }
}

fn visible_value(value: &Value, found: &mut usize) -> Value {
    match value {
        Value::String(text) => Value::String(shown(text, found).into_owned()),
        Value::Array(values) => values.iter().map(|v| visible_value(v, found)).collect(),
        Value::Object(map) => Value::Object(visible_map(map, found)),
        other => other.clone(),
    }
}

fn visible_map(map: &Map<String, Value>, found: &mut usize) -> Map<String, Value> {
    let fields = map.iter().map(|(key, value)| {
        let key = shown(key, found).into_owned();
        (key, visible_value(value, found))
    });
    fields.collect()
}

fn shown<'a>(text: &'a str, found: &mut usize) -> Cow<'a, str> {
    match visible(text) {
        None => Cow::Borrowed(text),
        Some((shown, hidden)) => {
            *found += hidden;
            Cow::Owned(shown)
        }
    }
}

fn is_hidden(c: char) -> bool {
    is_tag(c)
        || matches!(
            c,
            '\u{200b}'..='\u{200d}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}'
        )
}

fn is_tag(c: char) -> bool {
    ('\u{e0000}'..='\u{e007f}').contains(&c)
}

/// Whether the character does its work there: a joiner inside a word or an emoji, the mark that many
/// files begin with.
fn is_needed(c: char, before: Option<char>, after: Option<char>) -> bool {
    let joins =
        |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !c.is_whitespace() && !is_hidden(c));
    match c {
        '\u{200c}' | '\u{200d}' => joins(before) && joins(after),
        '\u{feff}' => before.is_none(),
        _ => false,
    }
}

/// What the text begins with: tag characters, or the same character again and again.
fn run_of(first: char, text: &str) -> &str {
    let goes_on = |c: char| c == first || is_tag(first) && is_tag(c);
    let end = text.find(|c| !goes_on(c)).unwrap_or(text.len());
    &text[..end]
}

fn mark(c: char, run: &str, chars: usize) -> String {
    if is_tag(c) {
        return format!("⟨{chars} tag characters: {:?}⟩", spelled(run));
    }
    let code = u32::from(c);
    match chars {
        1 => format!("⟨U+{code:04X}⟩"),
        chars => format!("⟨U+{code:04X} ×{chars}⟩"),
    }
}

/// The ASCII text that tag characters spell.
fn spelled(run: &str) -> String {
    let letters = run.chars().filter_map(|c| {
        let code = u32::from(c).checked_sub(0xe0000)?;
        char::from_u32(code).filter(|c| matches!(c, ' '..='~'))
    });
    letters.collect()
}

/// The flags of England, Scotland and Wales are a black flag and tags, up to one that ends them.
fn is_flag(before: Option<char>, run: &str) -> bool {
    let ends = run.find('\u{e007f}').is_some_and(|at| at + 4 == run.len());
    before == Some('\u{1f3f4}')
        && ends
        && ["gbeng", "gbsct", "gbwls"].contains(&spelled(run).as_str())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn tags(text: &str) -> String {
        let tag = |c| char::from_u32(0xe0000 + u32::from(c)).unwrap();
        text.chars().map(tag).collect()
    }

    fn of(text: &str) -> (String, usize) {
        visible(text).unwrap_or_else(|| (text.to_owned(), 0))
    }

    #[test]
    fn what_hides_is_shown_and_counted() {
        let hidden = format!("a{}b", tags("send \"it\"⟩".trim_end_matches('⟩')));
        assert_eq!(
            of(&hidden),
            (r#"a⟨9 tag characters: "send \"it\""⟩b"#.into(), 9)
        );
        assert_eq!(of("a\u{202e}b\u{2069}"), ("a⟨U+202E⟩b⟨U+2069⟩".into(), 2));
        assert_eq!(
            of(&"\u{200b}".repeat(1_000)),
            ("⟨U+200B ×1000⟩".into(), 1_000)
        );
        assert_eq!(of("a\u{200d}b"), ("a⟨U+200D⟩b".into(), 1));
        assert_eq!(
            of("é\u{200d}\u{200c}é").1,
            2,
            "joiners that join one another"
        );
        assert_eq!(of("x\u{feff}y"), ("x⟨U+FEFF⟩y".into(), 1));
    }

    #[test]
    fn what_writing_needs_stays() {
        let england = format!("\u{1f3f4}{}\u{e007f}", tags("gbeng"));
        for text in [
            "",
            "plain",
            "“quoted” – naïve 数据 ｆｕｌｌ",
            "می\u{200c}خواهم",
            "👩\u{200d}👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥",
            "\u{feff}a file",
            &england,
        ] {
            assert_eq!(visible(text), None, "{text}");
        }
        let forged = format!("\u{1f3f4}{}\u{e007f}", tags("obey"));
        assert_eq!(of(&forged).1, 5);
        let two = format!("\u{1f3f4}{}\u{e007f}{}", tags("gb"), tags("eng"));
        assert_eq!(of(&two).1, 6);
    }

    #[test]
    fn a_spec_keeps_its_name_and_its_order() {
        let spec = json!({"type": "function", "function": {
            "name": "a\u{200b}",
            "description": "reads\u{202e}",
            "parameters": {"properties": {"b\u{200b}": {"enum": ["\u{2060}x"]}, "a": {"title": "t"}}}}});
        let (shown, found) = visible_spec(&spec).unwrap();
        assert_eq!(found, 4);
        let function = &shown["function"];
        assert_eq!(function["name"], "a\u{200b}");
        assert_eq!(function["description"], "reads⟨U+202E⟩");
        let properties = function["parameters"]["properties"].to_string();
        assert_eq!(
            properties,
            r#"{"b⟨U+200B⟩":{"enum":["⟨U+2060⟩x"]},"a":{"title":"t"}}"#
        );
    }
}
