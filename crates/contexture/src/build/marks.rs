//! The marks that stand where something was. They are part of recorded requests' bytes: changing
//! one changes every digest that has it.

/// For a call that never got an answer.
pub(crate) const ABORTED: &str = "[no result: the call was interrupted]";

/// For content that was taken out.
pub(crate) const REDACTED: &str = "[redacted]";

/// For a tool result that left for room.
pub(crate) fn masked(bytes: usize, entry: &str) -> String {
    format!("[masked to save room: {bytes} bytes, entry {entry}]")
}

/// For the middle of a text.
pub(crate) fn cut(bytes: usize) -> String {
    format!("\n[… {bytes} bytes cut …]\n")
}

/// For images and other parts beside a text that was cut.
pub(crate) fn parts(count: usize) -> String {
    format!("\n[{count} parts left out]")
}
