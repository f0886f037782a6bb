//! A tool at work, and what came of it, in a few lines.

use std::time::{Duration, Instant};

use contexture::json;
use contexture_agent::Event;
use serde_json::Value;

use super::{Paint, clip, meter, safe, width};

/// A tool that runs, or ran.
pub struct ToolLine {
    pub id: String,
    tool: String,
    arguments: String,
    since: Option<Instant>,
    /// For how long questions had been open by then.
    waited: Duration,
    pub end: Option<End>,
}

/// How it ended.
pub struct End {
    worked: bool,
    summary: String,
    took: Option<Duration>,
}

/// The most lines of a summary that are shown.
const LINES: usize = 3;

impl ToolLine {
    /// The tool of an event. A tool does not take the time that a question takes: `waited` is how long
    /// questions were open up to now.
    pub fn of(event: &Event, waited: Duration) -> Option<Self> {
        let Event::Tool {
            id,
            tool,
            arguments,
            ..
        } = event
        else {
            return None;
        };
        Some(Self {
            id: id.clone(),
            tool: safe(tool),
            arguments: spoken(arguments.as_deref().unwrap_or_default()),
            since: arguments.is_some().then(Instant::now),
            waited,
            end: None,
        })
    }

    /// It ended as this event says.
    pub fn ends(&mut self, event: &Event, waited: Duration) {
        if let Event::Tool {
            success, summary, ..
        } = event
        {
            self.end = Some(End {
                worked: *success != Some(false),
                summary: summary.clone().unwrap_or_default(),
                took: self.took(waited),
            });
        }
    }

    fn took(&self, waited: Duration) -> Option<Duration> {
        let asked = waited.saturating_sub(self.waited);
        Some(self.since?.elapsed().saturating_sub(asked))
    }

    /// As it begins, where nothing moves.
    pub fn started(&self, paint: Paint) -> String {
        fitted(
            &format!("  {} {}", paint.dim("▸"), self.named(paint)),
            paint,
        )
    }

    /// While it runs.
    pub fn running(&self, spinner: &str, paint: Paint, waited: Duration) -> String {
        let took = match self.took(waited) {
            Some(took) if took >= Duration::from_secs(1) => meter::seconds(took),
            _ => String::new(),
        };
        let head = format!("  {} {}", paint.fg(173, spinner), self.named(paint));
        format!("{} {}", fitted(&head, paint), paint.dim(&took))
    }

    /// What came of it: on one line where that has room, else below.
    pub fn ended(&self, paint: Paint) -> Vec<String> {
        let Some(end) = &self.end else {
            return Vec::new();
        };
        let mark = match end.worked {
            true => paint.fg(71, "✓"),
            false => paint.fg(167, "✗"),
        };
        let took = match end.took {
            Some(took) => paint.dim(&format!(" · {}", meter::seconds(took))),
            None => String::new(),
        };
        let (shown, more) = self.summary(end);
        let head = format!("  {mark} {}", self.named(paint));
        let room = paint.width.saturating_sub(width(&took) + 2);
        let mut rows = Vec::new();
        match &shown[..] {
            [only] if more == 0 && width(&head) + 3 + width(only) <= room => {
                return vec![format!("{head} {} {only}{took}", paint.dim("·"))];
            }
            _ => rows.push(format!("{}{took}", clip(&head, room))),
        }
        rows.extend(shown.iter().map(|line| {
            let line = clip(line, paint.width.saturating_sub(8));
            format!("    {} {}", paint.fg(238, "│"), paint.dim(&line))
        }));
        if more > 0 {
            let s = if more == 1 { "" } else { "s" };
            let more = paint.dim(&format!("… {more} line{s} more"));
            rows.push(format!("    {} {more}", paint.fg(238, "│")));
        }
        rows
    }

    /// The first lines of what came of it, and how many more there are. What says nothing is left out:
    /// rules, and the command that stands above.
    fn summary(&self, end: &End) -> (Vec<String>, usize) {
        let command = format!("$ {}", self.arguments);
        let lines: Vec<String> = end
            .summary
            .lines()
            .filter(|line| line.chars().any(char::is_alphanumeric))
            .map(|line| safe(line.trim_end()))
            .filter(|line| *line != command)
            .collect();
        let more = lines.len().saturating_sub(LINES);
        (lines.into_iter().take(LINES).collect(), more)
    }

    fn named(&self, paint: Paint) -> String {
        match self.arguments.is_empty() {
            true => paint.bold(&self.tool),
            false => format!("{} {}", paint.bold(&self.tool), paint.dim(&self.arguments)),
        }
    }
}

fn fitted(text: &str, paint: Paint) -> String {
    clip(text, paint.width.saturating_sub(12))
}

/// Arguments as people read them: the values, and the names where there are several.
fn spoken(arguments: &str) -> String {
    let text = match json::from_text(arguments) {
        Ok(Value::Object(map)) => {
            let alone = map.len() == 1;
            let each = map.iter().map(|(name, value)| {
                let value = match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                if alone {
                    value
                } else {
                    format!("{name}={value}")
                }
            });
            each.collect::<Vec<_>>().join(" ")
        }
        // It was cut where it is too long to be shown.
        _ => arguments.to_owned(),
    };
    safe(&text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use contexture_agent::ToolStatus;

    use super::*;

    const PLAIN: Paint = Paint {
        colour: false,
        width: 60,
    };

    fn event(status: ToolStatus, text: &str, success: bool) -> Event {
        let started = status == ToolStatus::Started;
        Event::Tool {
            id: "c".to_owned(),
            tool: "look".to_owned(),
            status,
            arguments: started.then(|| text.to_owned()),
            success: (!started).then_some(success),
            summary: (!started).then(|| text.to_owned()),
        }
    }

    /// Without the time, which is never the same.
    fn ended(arguments: &str, summary: &str, success: bool) -> Vec<String> {
        let mut line =
            ToolLine::of(&event(ToolStatus::Started, arguments, true), Duration::ZERO).unwrap();
        line.since = None;
        line.ends(
            &event(ToolStatus::Finished, summary, success),
            Duration::ZERO,
        );
        line.ended(PLAIN)
    }

    #[test]
    fn a_short_summary_stands_beside_the_tool() {
        let rows = ended(r#"{"path":"a.rs"}"#, "12 lines", true);
        assert_eq!(rows, ["  ✓ look a.rs · 12 lines"]);
    }

    #[test]
    fn a_long_one_below_and_what_is_left_is_counted() {
        let rows = ended(r#"{"n":1,"m":"x"}"#, "a\n\nb\nc\nd\ne\n", false);
        assert_eq!(
            rows,
            [
                "  ✗ look n=1 m=x",
                "    │ a",
                "    │ b",
                "    │ c",
                "    │ … 2 lines more"
            ]
        );
    }

    #[test]
    fn what_says_nothing_is_left_out() {
        let rows = ended(r#"{"command":"ls -l"}"#, "$ ls -l\n=====\na.rs", true);
        assert_eq!(rows, ["  ✓ look ls -l · a.rs"]);
    }

    #[test]
    fn nothing_is_wider_than_the_screen_or_commands_it() {
        let long = "\u{1b}[2Jé".repeat(100);
        for row in ended(&long, &long, true) {
            assert!(width(&row) <= PLAIN.width, "{row}");
            assert!(!row.contains('\u{1b}'), "{row:?}");
        }
    }
}
