//! The cause of a break in a sentence, for people.

use crate::entry::{Injection, Target};
use crate::{Entry, EntryId, Payload, View};

/// `cause` took a branch that `subject` is not on.
pub(super) fn branch(cause: &Entry, subject: &Entry) -> String {
    let parent = cause.parent_id.as_ref().map_or("", EntryId::as_str);
    let (by, old) = (&cause.id, &subject.id);
    format!("{by} took another branch, behind {parent}, without entry {old}")
}

/// What `cause` did to `subject`, in whose place `other` stands now.
pub(super) fn entry(view: &View, cause: &Entry, subject: &Entry, other: Option<&Entry>) -> String {
    let (by, old) = (&cause.id, &subject.id);
    match &cause.payload {
        Payload::Mask(mask) => {
            let what = if mask.keep_bytes.is_some() {
                "cut"
            } else {
                "masked"
            };
            let reason = match mask.reason.as_str() {
                "" => String::new(),
                reason => format!(": {reason}"),
            };
            format!("entry {old} was {what} by {by}{reason}")
        }
        Payload::CompactionSummary(compaction) if compaction.summary.is_empty() => {
            format!("entry {old} was dropped by {by}")
        }
        Payload::CompactionSummary(_) => {
            format!("the summary {by} stands where entry {old} stood")
        }
        Payload::Redaction(target) if target.entry_id == *old => {
            format!("entry {old} was redacted by {by}")
        }
        Payload::Redaction(target) => {
            let hidden = &target.entry_id;
            format!("entry {old} left because {by} redacted {hidden}")
        }
        Payload::Revert(target) => format!("{by} undid {}", undone(view, target)),
        Payload::Pin(target) => {
            format!("{by} pinned {}, which is shown again", target.entry_id)
        }
        Payload::Unpin(target) => format!("{by} ended the pin of {}", target.entry_id),
        Payload::RuntimeInit { .. } => {
            format!("{by} gave the session's facts, which stand before the conversation")
        }
        Payload::Injection(Injection {
            before_entry_id: Some(anchor),
            ..
        }) => format!("{by} was injected before entry {anchor}"),
        _ => match other {
            Some(other) if other.id != *old => {
                format!("entry {} stands where entry {old} stood", other.id)
            }
            _ => format!("entry {old} was logged"),
        },
    }
}

/// What a revert took back.
fn undone(view: &View, target: &Target) -> String {
    let id = &target.entry_id;
    let payload = view.position(id).map(|p| &view.log()[p].payload);
    match payload {
        Some(Payload::CompactionSummary(_)) => format!("the compaction {id}"),
        Some(Payload::Mask(_)) => format!("the mask {id}"),
        Some(Payload::Revert(_)) => format!("the revert {id}"),
        _ => format!("everything after entry {id}"),
    }
}
