//! What the loading tools share: how much is loaded, under which identity, and what is said of it.

use contexture_store::{Key, StoreError};
use serde_json::json;

use crate::plain::beginning;
use crate::template::Template;
use crate::{Outcome, Refusal, RunContext};

/// The most characters that are loaded at once.
pub(super) const MOST: usize = 12_000;

/// Blocks of text, fitted into [`MOST`] characters.
pub(super) struct Fitted {
    /// What the model reads; nothing where there was nothing.
    pub content: String,
    /// How many blocks are in it.
    pub shown: usize,
    /// How many older ones are not.
    pub left: usize,
}

/// As many of the newest blocks as fit, oldest first, in the template. A newest block that is too
/// long for itself is cut.
pub(super) fn fitted(template: Template, blocks: &[String]) -> Result<Fitted, String> {
    let Some(newest) = blocks.last() else {
        return Ok(Fitted {
            content: String::new(),
            shown: 0,
            left: 0,
        });
    };
    let mut room = MOST;
    let mut shown = 0;
    for block in blocks.iter().rev() {
        // One for the end of the line.
        let size = block.chars().count() + 1;
        if size > room {
            break;
        }
        room -= size;
        shown += 1;
    }
    let (lines, cut) = match shown {
        0 => (beginning(newest, MOST).0.to_owned(), true),
        _ => (
            blocks[blocks.len() - shown..].join("\n"),
            shown < blocks.len(),
        ),
    };
    let shown = shown.max(1);
    let left = blocks.len() - shown;
    let values = json!({ "lines": lines, "cut": cut, "most": MOST, "left": left });
    Ok(Fitted {
        content: template
            .render(&values)
            .map_err(|error| error.to_string())?,
        shown,
        left,
    })
}

/// The identity of a content that a tool brings in.
pub(crate) fn fingerprint(tool: &str, content: &str) -> String {
    format!("{tool}:{}", blake3::hash(content.as_bytes()).to_hex())
}

/// What a model is told when nothing was added. A duplicate is no failure: what was asked for is there.
pub(super) fn refused(refusal: Refusal) -> Outcome {
    let why = match refusal {
        Refusal::MissingFingerprint => "it has no identity, so it could be added twice",
        Refusal::EmptyContent => "there is nothing there",
        Refusal::Duplicate => "the same content is in this conversation already; read it there",
        Refusal::LimitReached => {
            "this run has added as many messages as it may; work with what is there"
        }
    };
    let text = format!("Nothing was added ({refusal}): {why}.");
    match refusal {
        Refusal::Duplicate | Refusal::EmptyContent => Outcome::done(text),
        Refusal::MissingFingerprint | Refusal::LimitReached => Outcome::failed(text),
    }
}

/// The key of the run's chat.
pub(super) fn chat(run: &RunContext) -> Result<Key, String> {
    Key::new(run.chat_key()).map_err(|error| failed(&error))
}

/// A store's error, for the model.
pub(super) fn failed(error: &StoreError) -> String {
    format!("the store could not be read: {error}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_refusal_is_named_and_explained() {
        for (refusal, name, failed) in [
            (Refusal::MissingFingerprint, "missing_fingerprint", true),
            (Refusal::EmptyContent, "empty_content", false),
            (Refusal::Duplicate, "duplicate", false),
            (Refusal::LimitReached, "limit_reached", true),
        ] {
            let outcome = refused(refusal);
            assert_eq!(outcome.failed, failed);
            assert!(outcome.summary.contains(&format!("({name}): ")));
        }
    }

    #[test]
    fn the_newest_that_fit_are_shown() {
        let blocks: Vec<String> = (0..5)
            .map(|n| format!("{n}{}", "é".repeat(4_000)))
            .collect();
        let fitted = fitted(Template::ChatHistory, &blocks).unwrap();
        assert_eq!((fitted.shown, fitted.left), (2, 3));
        assert!(fitted.content.contains("3 earlier lines are not shown"));
        assert!(fitted.content.contains("\n3é") && fitted.content.contains("\n4é"));
        assert!(!fitted.content.contains("2é"));
    }

    #[test]
    fn a_single_block_is_cut_with_a_mark() {
        let fitted = fitted(Template::ChatHistory, &["é".repeat(12_001)]).unwrap();
        assert_eq!((fitted.shown, fitted.left), (1, 0));
        assert_eq!(fitted.content.matches('é').count(), 12_000);
        assert!(fitted.content.contains("[cut at 12000 characters]"));
        let whole = super::fitted(Template::ChatHistory, &["é".repeat(11_999)]).unwrap();
        assert!(!whole.content.contains("[cut"));
    }
}
