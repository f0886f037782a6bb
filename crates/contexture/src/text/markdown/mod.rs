//! Markdown as blocks of styled text, for every place that renders it.
//!
//! Whoever writes a block may be hostile, so what comes out is safe to render: no raw HTML, no image, no link but to the
//! web or a mailbox, no control or hidden character, and bounded nesting. Nothing that is written disappears either:
//! tags, images, definitions and targets are text.

mod reader;
mod tree;

pub use self::tree::{Align, Block, Line, Span, Style};

use std::ops::Range;

/// The blocks of a text at its top level, each with the part of the text that it is made of.
pub fn read(text: &str) -> Vec<(Block, Range<usize>)> {
    reader::read(text)
}

/// The schemes of links.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

/// Returns true if a link may lead there: to the web or to a mailbox.
fn is_link(target: &str) -> bool {
    SCHEMES.into_iter().any(|scheme| {
        let head = target.get(..scheme.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(scheme))
    })
}

#[cfg(test)]
mod tests;
