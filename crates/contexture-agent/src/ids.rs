//! Ids for runs, and call ids that can be told apart.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use contexture::Message;

/// A run's id: unique for all who write to one log.
pub fn run_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let parts = [
        now.as_nanos() as u64,
        u64::from(std::process::id()),
        COUNT.fetch_add(1, Ordering::Relaxed),
    ];
    // FNV-1a over the three: ids need to differ, not to be secret.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in parts.iter().flat_map(|part| part.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("run-{:x}-{hash:016x}", now.as_secs())
}

/// The longest call id that every provider takes.
const LONGEST: usize = 40;

/// Gives every call of a reply an id of its own. Some servers leave ids out or give one to all, and
/// then a result could not say what it answers; some give ids that another provider would refuse as
/// too long. A call that is there twice, id and all, is one call.
pub fn tell_apart(message: &mut Message, run_id: &str, step: usize) {
    let mut seen: Vec<(String, String, String)> = Vec::new();
    message.tool_calls.retain(|call| {
        let this = (call.id.clone(), call.name.clone(), call.arguments.clone());
        let again = !call.id.is_empty() && seen.contains(&this);
        seen.push(this);
        !again
    });
    let mut taken: HashSet<String> = HashSet::new();
    for (i, call) in message.tool_calls.iter_mut().enumerate() {
        let fits = (1..=LONGEST).contains(&call.id.len());
        if !fits || !taken.insert(call.id.clone()) {
            let tail = run_id.rsplit('-').next().unwrap_or_default();
            call.id = format!("call_{tail}_{step}_{i}");
            taken.insert(call.id.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use contexture::ToolCall;

    use super::*;

    #[test]
    fn runs_have_ids_of_their_own() {
        assert_ne!(run_id(), run_id());
    }

    #[test]
    fn calls_are_told_apart_and_one_that_came_twice_is_one() {
        let mut message = Message::calls([
            ToolCall::new("a", "read", r#"{"n":1}"#),
            ToolCall::new("a", "read", r#"{"n":1}"#),
            ToolCall::new("a", "read", r#"{"n":2}"#),
            ToolCall::new("", "read", "{}"),
            ToolCall::new("", "read", "{}"),
            ToolCall::new("x".repeat(LONGEST + 1), "read", "{}"),
        ]);
        tell_apart(&mut message, "run-1-ff", 3);
        let ids: Vec<&str> = message.tool_calls.iter().map(|c| c.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "a",
                "call_ff_3_1",
                "call_ff_3_2",
                "call_ff_3_3",
                "call_ff_3_4"
            ]
        );
    }
}
