//! `chat_load_history`: what was said earlier, as one message of the assistant's.

use contexture_store::Said;
use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::Stores;
use super::arguments::{COUNT, OFFSET, text};
use super::inject::{chat, failed, fingerprint, fitted, refused};
use crate::plain::{hanging, one_line, plural};
use crate::template::Template;
use crate::{Outcome, RunContext};

/// The most characters of a keyword.
pub(super) const LONGEST_KEYWORD: usize = 500;

/// The most memory that a pattern may compile to.
const LARGEST_PATTERN: usize = 1 << 20;

pub(super) fn load(
    stores: &Stores,
    run: &RunContext,
    arguments: &Map<String, Value>,
) -> Result<Outcome, String> {
    const NAME: &str = "chat_load_history";
    let (count, offset) = (COUNT.of(arguments)?, OFFSET.of(arguments)?);
    let matches = matcher(text(arguments, "keyword", LONGEST_KEYWORD)?);
    // This run's own lines stand in the conversation.
    let is_earlier = |said: &Said| said.request_id.as_deref() != Some(run.run_id());
    let wanted = |said: &Said| is_earlier(said) && matches(&said.text);
    let found = stores
        .transcripts
        .last(&chat(run)?, count, offset, wanted)
        .map_err(|error| failed(&error))?;
    let blocks: Vec<String> = found.lines.iter().map(block).collect();
    let fitted = fitted(Template::ChatHistory, &blocks)?;
    let print = fingerprint(NAME, &fitted.content);
    if let Err(refusal) = run.inject_assistant_message_once(&print, &fitted.content, NAME) {
        return Ok(refused(refusal));
    }
    let mut answer = format!(
        "{} of this chat added before the user's message.",
        plural(fitted.shown, "line")
    );
    if fitted.left > 0 {
        let next = offset + fitted.shown;
        answer.push_str(&format!(
            " {} earlier ones did not fit: offset {next} loads them.",
            fitted.left
        ));
    }
    if found.skipped > 0 {
        let skipped = plural(found.skipped, "stored line");
        answer.push_str(&format!(" {skipped} could not be read."));
    }
    Ok(Outcome::done(answer))
}

/// A line, with the text so indented that it cannot pass for another.
fn block(said: &Said) -> String {
    let (role, when) = (one_line(&said.role), one_line(&said.ts));
    format!("{role} ({when}): {}", hanging(&said.text, "    "))
}

/// Whether a text has the keyword: as a pattern, or as it is where it is none. Both take time
/// linear in the text.
fn matcher(keyword: Option<&str>) -> Box<dyn Fn(&str) -> bool> {
    let Some(keyword) = keyword.filter(|keyword| !keyword.trim().is_empty()) else {
        return Box::new(|_| true);
    };
    let pattern = RegexBuilder::new(keyword)
        .case_insensitive(true)
        .size_limit(LARGEST_PATTERN)
        .dfa_size_limit(LARGEST_PATTERN)
        .build();
    match pattern {
        Ok(pattern) => Box::new(move |text| pattern.is_match(text)),
        Err(_) => {
            let keyword = keyword.to_lowercase();
            Box::new(move |text| text.to_lowercase().contains(&keyword))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyword_is_a_pattern_or_a_text() {
        for (keyword, text, wanted) in [
            (Some("de.loy"), "we Deploy", true),
            (Some("^we"), "as we do", false),
            (Some("f(x"), "call F(X) twice", true),
            (Some("a{9999}{9999}"), "aaa", false),
            (Some("  "), "anything", true),
            (None, "anything", true),
        ] {
            assert_eq!(matcher(keyword)(text), wanted, "{keyword:?} in {text}");
        }
    }
}
