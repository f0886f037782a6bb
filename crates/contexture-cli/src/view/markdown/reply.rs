//! A reply as it arrives: what of it stays as it is, and what may still change.
//!
//! Rows that stay are made of whole lines alone, and of blocks that nothing can change any more: those before the last
//! one, the items of a list before the last one, the lines of code. So wherever a reply is cut, all that was shown of it
//! is as it would be in the whole.

use contexture::text::markdown::{Block, read};

use super::{parts, text_width};
use crate::view::Paint;

/// The longest text that waits for its end. What is longer is shown as it is.
const MAX_OPEN_BYTES: usize = 32 << 10;

/// A reply that is not complete.
#[derive(Debug, Default)]
pub struct Reply {
    /// The text from the beginning of the last block on.
    open: String,
    /// The parts of that block that were given out.
    done: usize,
    /// True once anything was given out.
    begun: bool,
}

impl Reply {
    /// Adds text; gives the rows that stay as they are from now on.
    pub fn add(&mut self, text: &str, paint: Paint) -> Vec<String> {
        self.open.push_str(text);
        let mut rows = Vec::new();
        // Lines that are not whole may become anything.
        if text.contains('\n')
            && let Some(end) = self.open.rfind('\n')
        {
            let whole = self.open[..=end].to_owned();
            self.settle(&whole, paint, &mut rows);
        }
        if self.open.len() > MAX_OPEN_BYTES {
            self.give_up(paint, &mut rows);
        }
        rows
    }

    /// The rows that may still change.
    pub fn rows(&self, paint: Paint) -> Vec<String> {
        let mut rows = Vec::new();
        let (mut done, mut begun) = (self.done, self.begun);
        for (block, _) in read(&self.open) {
            lay(&block, usize::MAX, &mut done, &mut begun, paint, &mut rows);
            done = 0;
        }
        rows
    }

    /// The rows of all that is left; nothing follows.
    pub fn end(&mut self, paint: Paint) -> Vec<String> {
        let rows = self.rows(paint);
        *self = Self::default();
        rows
    }

    /// Returns true if nothing is left that may change.
    pub fn is_empty(&self) -> bool {
        self.open.trim().is_empty()
    }

    /// Gives out what whole lines have settled.
    fn settle(&mut self, whole: &str, paint: Paint, rows: &mut Vec<String>) {
        let blocks = read(whole);
        let Some(((last, at), before)) = blocks.split_last() else {
            self.open.drain(..whole.len());
            return;
        };
        for (block, _) in before {
            lay(
                block,
                usize::MAX,
                &mut self.done,
                &mut self.begun,
                paint,
                rows,
            );
            self.done = 0;
        }
        let from = whole[..at.start].rfind('\n').map_or(0, |end| end + 1);
        self.open.drain(..from);
        match last {
            Block::List(_, items) => {
                let stays = items.len().saturating_sub(1);
                lay(last, stays, &mut self.done, &mut self.begun, paint, rows);
            }
            Block::Code(Some(_), code) if is_fence(&self.open) => {
                lay(
                    last,
                    usize::MAX,
                    &mut self.done,
                    &mut self.begun,
                    paint,
                    rows,
                );
                // The lines behind the fence, which are given out; its label is not said again.
                let mut ends = self.open.match_indices('\n').map(|(end, _)| end + 1);
                let fence = ends.next().unwrap_or(self.open.len());
                let lines = code.lines().count();
                let end = match lines {
                    0 => fence,
                    lines => ends.nth(lines - 1).unwrap_or(self.open.len()),
                };
                self.open.drain(fence..end);
                self.done = 1;
            }
            _ => {}
        }
    }

    /// Gives out all that there is, for it is too long to wait for more.
    fn give_up(&mut self, paint: Paint, rows: &mut Vec<String>) {
        let fence = match read(&self.open).last() {
            Some((Block::Code(Some(_), _), at)) if is_fence(&self.open[at.start..]) => {
                let fence = self.open[at.start..].lines().next();
                fence.map(|fence| format!("{fence}\n"))
            }
            _ => None,
        };
        let rest = self.rows(paint);
        self.begun |= !rest.is_empty();
        rows.extend(rest);
        self.done = usize::from(fence.is_some());
        self.open = fence.unwrap_or_default();
    }
}

/// Returns true if the text begins with a fence.
fn is_fence(text: &str) -> bool {
    let text = text.trim_start_matches(' ');
    text.starts_with("```") || text.starts_with("~~~")
}

/// Adds the rows of a block's parts from `done` up to `stays`.
fn lay(
    block: &Block,
    stays: usize,
    done: &mut usize,
    begun: &mut bool,
    paint: Paint,
    rows: &mut Vec<String>,
) {
    let parts = parts(block, text_width(paint), paint);
    let stays = stays.min(parts.len());
    for part in parts.get(*done..stays).unwrap_or_default() {
        if *done == 0 && *begun {
            rows.push(String::new());
        }
        *begun = true;
        *done += 1;
        rows.extend(part.iter().cloned());
    }
    *done = (*done).max(stays);
}
