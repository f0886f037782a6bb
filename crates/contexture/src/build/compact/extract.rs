use std::collections::{HashMap, HashSet};

use super::constraints::{Rule, rules};
use super::{Compactor, Span, SpanItem};
use crate::{EntryId, Message, Role, ToolCall};

/// A summary without a model: the same span gives the same text, anywhere.
///
/// It keeps the rules that users gave, what was asked, what was decided, each call with its outcome,
/// the names that matter and what is still open, a line each, cited by entry. Where there is room, the
/// lines quote their messages whole; where there is not, they are cut, and the oldest leave.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extract;

/// The rules that users gave, and nothing else: the shortest summary that may stand for a span.
#[derive(Debug, Clone, Copy, Default)]
pub struct RulesOnly;

/// The headings of the summary, in their order, each with its share of the room in per cent. What
/// one does not use, the next may.
const HEADINGS: [(Heading, &str, usize); 6] = [
    (Heading::Constraints, "Constraints:", 100),
    (Heading::Open, "Open:", 15),
    (Heading::Requests, "Asked:", 55),
    (Heading::Said, "Said:", 40),
    (Heading::Calls, "Done:", 100),
    (Heading::Earlier, "Earlier:", 100),
];
const NAMES: &str = "Names:";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Heading {
    Constraints,
    Open,
    Requests,
    Said,
    Calls,
    Earlier,
}

impl Compactor for Extract {
    fn name(&self) -> &str {
        "extract"
    }

    fn summarise(&self, span: &Span<'_>) -> Result<String, String> {
        let rules = rules(&span.items);
        let names = match span.probes.as_slice() {
            [] => String::new(),
            probes => format!("{NAMES} {}", probes.join(", ")),
        };
        let frame = 4 * (HEADINGS.len() - usize::from(rules.is_empty()));
        let used = span.tokenizer.count(&names) + frame;
        let room = span.max_tokens.checked_sub(used);
        let room = room.ok_or_else(|| format!("{} tokens are too few", span.max_tokens))?;
        let lines = lines(&span.items, &rules);
        let mut text =
            whole(span, &lines, room).unwrap_or_else(|| fitted(span, &lines, room, Length::Cut));
        if text.is_empty() {
            // In a small window a line of usual length has no room under any heading: a short one says more than none.
            text = fitted(span, &lines, room, Length::Short);
        }
        text.push_str(&names);
        Ok(text.trim_end().to_owned())
    }
}

impl Compactor for RulesOnly {
    fn name(&self) -> &str {
        "rules"
    }

    fn summarise(&self, span: &Span<'_>) -> Result<String, String> {
        let rules = rules(&span.items);
        let lines = lines(&[], &rules);
        let room = span.max_tokens.saturating_sub(4);
        let text = fitted(span, &lines, room, Length::Cut);
        if text.is_empty() {
            return Err("no rule fits".to_owned());
        }
        Ok(text.trim_end().to_owned())
    }
}

/// All lines with their messages quoted whole, where there is room for that.
fn whole(span: &Span<'_>, lines: &[Line<'_>], room: usize) -> Option<String> {
    // Few texts have longer tokens on average: a span that cannot fit is not written out to be counted.
    const MEAN_TOKEN_BYTES: usize = 8;
    let bytes: usize = span
        .items
        .iter()
        .map(|item| item.message.text().len())
        .sum();
    if bytes / MEAN_TOKEN_BYTES > room {
        return None;
    }
    let mut text = String::new();
    let mut said: HashSet<String> = HashSet::new();
    for (heading, title, _) in HEADINGS {
        let under = lines.iter().filter(|line| line.heading == heading);
        let under = under.map(|line| line.text(Length::Whole));
        let under: Vec<String> = under.filter(|line| said.insert(line.clone())).collect();
        if !under.is_empty() {
            text.push_str(&format!("{title}\n{}\n", under.join("\n")));
        }
    }
    (span.tokenizer.count(&text) <= room).then_some(text)
}

/// The lines that there is room for, each cut to a length, the newest of each heading.
fn fitted(span: &Span<'_>, lines: &[Line<'_>], mut room: usize, length: Length) -> String {
    let mut text = String::new();
    // What is said already is not said again.
    let mut said: HashSet<String> = HashSet::new();
    for (heading, title, share) in HEADINGS {
        let share = if length == Length::Short { 100 } else { share };
        let mut allowed = room * share / 100;
        let mut kept = Vec::new();
        // The newest first: it is what the work goes on from.
        for line in lines.iter().rev().filter(|line| line.heading == heading) {
            let line = line.text(length);
            if said.contains(&line) {
                continue;
            }
            let cost = span.tokenizer.count(&line) + 1;
            if cost > allowed {
                break;
            }
            allowed -= cost;
            room -= cost;
            kept.push(line);
        }
        if heading == Heading::Constraints {
            said.extend(kept.iter().cloned());
        }
        if !kept.is_empty() {
            kept.reverse();
            text.push_str(title);
            text.push('\n');
            kept.iter().for_each(|line| {
                text.push_str(line);
                text.push('\n');
            });
        }
    }
    text
}

/// How much of a message a line quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    /// All of it.
    Whole,
    /// So much as tells what it is about.
    Cut,
    /// A quarter of that.
    Short,
}

impl Length {
    /// The most characters, where a cut line has this many.
    fn of(self, cut: usize) -> usize {
        match self {
            Self::Whole => usize::MAX,
            Self::Cut => cut,
            Self::Short => cut / 4,
        }
    }
}

/// A line of the summary, written out only when there may be room for it: of a long span, most
/// lines have none.
struct Line<'a> {
    heading: Heading,
    what: What<'a>,
}

enum What<'a> {
    /// So many characters of what a message says.
    Words(&'a SpanItem<'a>, usize),
    /// A call, and its result once that is found.
    Call(&'a EntryId, &'a ToolCall, Option<&'a Message>),
    /// A rule, as its user wrote it.
    Rule(Rule<'a>),
    /// A line of an earlier summary, as it was.
    Line(String),
}

fn lines<'a>(items: &'a [SpanItem<'a>], rules: &[Rule<'a>]) -> Vec<Line<'a>> {
    let told = |rule: &Rule<'a>| Line::new(Heading::Constraints, What::Rule(*rule));
    let mut lines: Vec<Line<'a>> = rules.iter().map(told).collect();
    // Where the line of a call stands that waits for its outcome, by call id.
    let mut waiting: HashMap<&str, usize> = HashMap::new();
    for item in items {
        let message = item.message;
        if item.is_summary {
            lines.extend(earlier(&message.text()));
            continue;
        }
        match message.role {
            Role::User if item.is_users => {
                lines.push(Line::new(Heading::Requests, What::Words(item, 300)));
            }
            Role::Assistant => {
                if !message.text().trim().is_empty() {
                    lines.push(Line::new(Heading::Said, What::Words(item, 200)));
                }
                let heading = if item.is_open {
                    Heading::Open
                } else {
                    Heading::Calls
                };
                for call in &message.tool_calls {
                    waiting.insert(&call.id, lines.len());
                    lines.push(Line::new(heading, What::Call(item.id, call, None)));
                }
            }
            Role::Tool => {
                let id = message.tool_call_id.as_deref().unwrap_or_default();
                if let Some(line) = waiting.remove(id)
                    && let What::Call(_, _, result) = &mut lines[line].what
                {
                    *result = Some(message);
                }
            }
            Role::User | Role::System | Role::Developer => {
                lines.push(Line::new(Heading::Said, What::Words(item, 200)));
            }
        }
    }
    lines
}

impl<'a> Line<'a> {
    fn new(heading: Heading, what: What<'a>) -> Self {
        Self { heading, what }
    }

    fn text(&self, length: Length) -> String {
        match &self.what {
            What::Words(item, longest) => {
                format!(
                    "- [{}] {}",
                    item.id,
                    one_line(&item.message.text(), length.of(*longest))
                )
            }
            What::Call(id, call, result) => format!(
                "- [{id}] {}({}){}",
                call.name,
                one_line(&call.arguments, length.of(120)),
                result
                    .map(|result| outcome(result, length))
                    .unwrap_or_default()
            ),
            What::Rule(rule) => format!("- [{}] {}", rule.id, rule.text),
            What::Line(line) => clip(line, length.of(400)),
        }
    }
}

/// How a call ended, from the first words of its result.
fn outcome(result: &Message, length: Length) -> String {
    const SIGNS: [&str; 5] = ["error", "traceback", "exception", "failed", "not found"];
    let said = one_line(&result.text(), length.of(100));
    let lower = said.to_lowercase();
    let sign = if SIGNS.iter().any(|sign| lower.contains(sign)) {
        "✗"
    } else {
        "→"
    };
    if said.is_empty() {
        format!(" {sign} (nothing)")
    } else {
        format!(" {sign} {said}")
    }
}

/// The lines of a summary that goes into a new one. Ours keep their headings.
fn earlier(summary: &str) -> Vec<Line<'static>> {
    let mut heading = Heading::Earlier;
    let mut lines = Vec::new();
    for line in summary
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        if let Some((known, _, _)) = HEADINGS.iter().find(|(_, title, _)| *title == line) {
            heading = *known;
        } else if !line.starts_with(NAMES) {
            let heading = match heading {
                // What was open then is settled, or open again further down.
                Heading::Open => Heading::Calls,
                // Rules are taken from the messages that gave them: a summary proves none.
                Heading::Constraints => Heading::Earlier,
                heading => heading,
            };
            let text = if line.starts_with("- ") {
                line.to_owned()
            } else {
                format!("- {line}")
            };
            lines.push(Line::new(heading, What::Line(text)));
        }
    }
    lines
}

/// A text on one line, so that it cannot pass for more than one.
fn one_line(text: &str, longest: usize) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        if words.len() / 4 > longest {
            break;
        }
    }
    clip(&words, longest)
}

fn clip(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
