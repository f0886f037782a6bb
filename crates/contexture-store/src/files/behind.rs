//! A stream's file from behind: where it ends can be told without reading it all.

use std::io;

use contexture::EntryId;

use super::lines::{LONGEST, MORE, record};
use crate::Record;
use crate::disk::DiskFile;

/// Where the whole appends of a file end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Behind the last of them; what follows was never acknowledged.
    pub end: u64,
    /// The last line is whole but for its line break.
    pub unbroken: bool,
    /// The last record's id.
    pub tail: Option<EntryId>,
}

/// Finds the end of what was appended whole: the cost does not grow with a sound file.
pub fn settle(file: &dyn DiskFile, len: u64) -> io::Result<Settled> {
    Behind::new(file, len).settle()
}

/// The lines of a file, the last one first. Memory is bounded by the longest line that is read.
pub(super) struct Behind<'f> {
    file: &'f dyn DiskFile,
    /// What was read and not handed out, from `base` to `end`.
    buffer: Vec<u8>,
    base: u64,
    end: u64,
    step: u64,
    longest: usize,
}

/// A line as it is met from behind.
struct Met {
    start: u64,
    first: u8,
    /// It has a line break.
    broken: bool,
    /// What it holds, unless it is too long to be a record.
    bytes: Option<Vec<u8>>,
}

const STEP: u64 = 16 << 10;
const LONGEST_STEP: u64 = 4 << 20;

impl<'f> Behind<'f> {
    pub fn new(file: &'f dyn DiskFile, len: u64) -> Self {
        Self {
            file,
            buffer: Vec::new(),
            base: len,
            end: len,
            step: STEP,
            longest: LONGEST,
        }
    }

    /// With other sizes, so that tests meet every border.
    #[cfg(test)]
    pub fn sized(self, step: u64, longest: usize) -> Self {
        Self {
            step,
            longest,
            ..self
        }
    }

    pub fn settle(mut self) -> io::Result<Settled> {
        let mut settled = Settled {
            end: self.end,
            unbroken: false,
            tail: None,
        };
        let mut whole = false;
        while let Some(line) = self.next()? {
            let record = line.record();
            // A line that announces more, at the end, belongs to an append that did not get
            // through; so does one that was not written to its end.
            let cut = line.first == MORE || (!line.broken && record.is_none());
            if !whole && cut {
                settled.end = line.start;
                continue;
            }
            settled.unbroken |= !whole && !line.broken;
            whole = true;
            if let Some(record) = record {
                settled.tail = Some(record.id().clone());
                break;
            }
        }
        Ok(settled)
    }

    fn next(&mut self) -> io::Result<Option<Met>> {
        if self.end == 0 || (self.buffer.is_empty() && !self.more()?) {
            return Ok(None);
        }
        let broken = self.buffer.last() == Some(&b'\n');
        let ending = usize::from(broken);
        // The line's own line break does not begin it.
        let mut unseen = self.buffer.len() - 1;
        let mut dropped = None;
        let start = loop {
            if let Some(found) = memchr::memrchr(b'\n', &self.buffer[..unseen]) {
                break found + 1;
            }
            let length = self.end - self.base - ending as u64;
            if length > self.longest as u64 {
                // Of a line that is too long only where and how it begins matters.
                dropped = self.buffer.first().copied().or(dropped);
                self.buffer.clear();
            }
            let held = self.buffer.len();
            if !self.more()? {
                break 0;
            }
            unseen = self.buffer.len() - held;
        };
        let at = self.base + start as u64;
        let length = usize::try_from(self.end - at).unwrap_or(usize::MAX) - ending;
        let bytes = self.buffer.split_off(start);
        let first = bytes.first().copied().or(dropped).unwrap_or(b'\n');
        let fits = dropped.is_none() && length <= self.longest;
        self.end = at;
        Ok(Some(Met {
            start: at,
            first,
            broken,
            bytes: fits.then_some(bytes),
        }))
    }

    /// Reads what stands before the buffer; whether there is anything.
    fn more(&mut self) -> io::Result<bool> {
        let from = self.base.saturating_sub(self.step);
        let mut block = vec![0; usize::try_from(self.base - from).unwrap_or(0)];
        let read = self.file.read_at(&mut block, from)?;
        if read < block.len() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "became shorter while it was read",
            ));
        }
        let any = !block.is_empty();
        block.append(&mut self.buffer);
        self.buffer = block;
        self.base = from;
        self.step = (self.step * 2).min(LONGEST_STEP);
        Ok(any)
    }
}

impl Met {
    fn record(&self) -> Option<Record> {
        record(self.bytes.as_deref()?).ok()
    }
}
