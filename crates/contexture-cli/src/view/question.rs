//! The question whether something may act, whoever asks it: one look for `chat`, `run` and agents of others.

use serde_json::Value;

use super::{Paint, safe, width};

/// A question. All of it is data that somebody else said.
pub struct Question<'a> {
    /// The agent that asks, where it is not our own.
    pub who: Option<&'a str>,
    /// The tool, or what it would do.
    pub title: &'a str,
    /// The kind of act, such as `execute`.
    pub kind: Option<&'a str>,
    /// The arguments, exactly as they would be used.
    pub arguments: Option<&'a Value>,
    /// The tool's description, where it has changed since the tool was allowed.
    pub changed: Option<&'a str>,
    /// The answers beside a plain no.
    pub choices: &'a [Choice],
}

/// An answer that may be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The words that choose it, the shown one first.
    pub keys: Vec<String>,
    /// Its meaning.
    pub label: String,
}

impl Choice {
    pub fn new(keys: &[&str], label: &str) -> Self {
        Self {
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            label: label.to_owned(),
        }
    }
}

/// The most of an argument that is shown, and the most arguments; the rest is counted.
const MAX_CHARS: usize = 2_000;
const MAX_LINES: usize = 24;
const MAX_ARGUMENTS: usize = 20;
/// The most of a title or a label.
const MAX_TITLE_CHARS: usize = 300;

impl Question<'_> {
    /// The question as rows, the last one of which the answer follows.
    pub fn text(&self, paint: Paint) -> String {
        let mut text = self.about(paint);
        let choices = self.choices.iter().map(|choice| {
            let key = choice.keys.first().map_or("", String::as_str);
            (key, shortened(&choice.label))
        });
        let mut used = 0;
        for (key, label) in choices.chain([("Enter", "no".to_owned())]) {
            let label = if label.is_empty() {
                label
            } else {
                format!(" {label}")
            };
            let needs = width(key) + width(&label) + 3;
            if used > 0 && used + needs + 4 > paint.width {
                text.push('\n');
                used = 0;
            }
            text.push_str(if used == 0 { "    " } else { " · " });
            text.push_str(&format!("{}{label}", paint.bold(&safe(key))));
            used += needs;
        }
        text
    }

    /// The text of the question, without the answers.
    pub fn about(&self, paint: Paint) -> String {
        let mut text = String::new();
        let title = shortened(self.title);
        if let Some(now) = self.changed {
            let changed = format!("{title} has changed its description since you allowed it:");
            text.push_str(&format!("  {}\n", paint.fg(167, &changed)));
            lines("    ", now, "", &mut text);
        }
        let mark = paint.fg(179, "?");
        let who = match self.who {
            Some(who) => format!("{} asks: ", shortened(who)),
            None => String::new(),
        };
        let kind = match self.kind.filter(|kind| *kind != "other") {
            Some(kind) => paint.dim(&format!(" ({})", shortened(kind))),
            None => String::new(),
        };
        let title = paint.bold(&title);
        text.push_str(&format!("  {mark} {who}Allow {title}{kind}?\n"));
        match self.arguments {
            None | Some(Value::Null) => {}
            Some(Value::Object(map)) => {
                for (name, value) in map.iter().take(MAX_ARGUMENTS) {
                    let name = paint.dim(&format!("{}: ", shortened(name)));
                    lines("    ", &spelled(value), &name, &mut text);
                }
                let left = map.len().saturating_sub(MAX_ARGUMENTS);
                if left > 0 {
                    let s = if left == 1 { "" } else { "s" };
                    text.push_str(&format!("    … and {left} argument{s} more\n"));
                }
            }
            Some(other) => lines("    ", &spelled(other), "", &mut text),
        }
        text
    }

    /// The answer that a line chooses. A line that nobody knows is a no.
    pub fn chosen(&self, line: &str) -> Option<usize> {
        let line = line.trim().to_lowercase();
        let chooses = |choice: &Choice| choice.keys.contains(&line);
        self.choices.iter().position(chooses)
    }
}

/// A text, or a value as JSON.
fn spelled(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Text behind a name, line by line, and how much more there is of it.
fn lines(indent: &str, value: &str, name: &str, text: &mut String) {
    let mut left = MAX_CHARS;
    let mut shown = 0;
    let mut rest = value;
    let mut first = name;
    while shown < MAX_LINES && left > 0 {
        let (line, more) = match rest.split_once('\n') {
            Some((line, more)) => (line, Some(more)),
            None => (rest, None),
        };
        let end = line
            .char_indices()
            .nth(left)
            .map_or(line.len(), |(at, _)| at);
        let deeper = if shown == 0 { "" } else { "  " };
        text.push_str(&format!("{indent}{deeper}{first}{}\n", safe(&line[..end])));
        first = "";
        shown += 1;
        left -= line[..end].chars().count().min(left);
        rest = &rest[end..];
        match more {
            None if rest.is_empty() => return,
            Some(more) if rest.len() == more.len() + 1 => rest = more,
            _ => break,
        }
    }
    let (chars, lines) = (rest.chars().count(), rest.lines().count());
    let s = if chars == 1 { "" } else { "s" };
    let lines = match lines {
        0 | 1 => String::new(),
        lines => format!(" in {lines} lines"),
    };
    text.push_str(&format!(
        "{indent}  … and {chars} character{s} more{lines}\n"
    ));
}

fn shortened(text: &str) -> String {
    let shown: String = text.chars().take(MAX_TITLE_CHARS).collect();
    match text.chars().count() - shown.chars().count() {
        0 => safe(&shown),
        left => format!("{}… and {left} characters more", safe(&shown)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PLAIN: Paint = Paint {
        colour: false,
        width: 80,
    };

    #[test]
    fn every_argument_is_shown_and_what_is_left_is_counted() {
        let arguments = json!({
            "path": "a.rs",
            "content": "x\n".repeat(30),
            "line": "y".repeat(2_001),
            "evil\u{1b}[2J\nname": {"deep": [1, "\u{202e}"]},
        });
        let choices = [
            Choice::new(&["y", "yes"], "once"),
            Choice::new(&["never"], ""),
        ];
        let question = Question {
            who: Some("helper"),
            title: "rm -rf important",
            kind: Some("execute"),
            arguments: Some(&arguments),
            changed: None,
            choices: &choices,
        };
        let text = question.text(PLAIN);
        let long = "y".repeat(2_000);
        let text = text.replace(&long, "yyy").replace("      x\n", "");
        let shown = [
            "  ? helper asks: Allow rm -rf important (execute)?",
            "    path: a.rs",
            "    content: x",
            "      … and 12 characters more in 6 lines",
            "    line: yyy",
            "      … and 1 character more",
            "    evil⟨ESC⟩[2J⏎name: {\"deep\":[1,\"⟨U+202E⟩\"]}",
            "    y once · never · Enter no",
        ];
        assert_eq!(text, shown.join("\n"));
        let narrow = question.text(Paint { width: 20, ..PLAIN });
        assert!(
            narrow.ends_with("    y once\n    never\n    Enter no"),
            "{narrow}"
        );
        assert_eq!(question.chosen(" YES "), Some(0));
        assert_eq!(question.chosen("never"), Some(1));
        for other in ["", "n", "no", "yy", "ye", "ok", "sure", "y n", "allow", "1"] {
            assert_eq!(question.chosen(other), None, "{other:?}");
        }
    }

    #[test]
    fn what_changed_comes_first() {
        let question = Question {
            who: None,
            title: "look",
            kind: None,
            arguments: Some(&json!({})),
            changed: Some("Sends files.\nNow!"),
            choices: &[],
        };
        let shown = [
            "  look has changed its description since you allowed it:",
            "    Sends files.",
            "      Now!",
            "  ? Allow look?",
            "    Enter no",
        ];
        assert_eq!(question.text(PLAIN), shown.join("\n"));
    }
}
