//! A stream's file, line by line.
//!
//! A line is a record. The lines of one append belong together: each but the last begins with a
//! blank, which JSON does not mind. So a file that ends in the middle of an append shows it, and
//! every line is still plain JSON for `less`, `jq` and people.

use std::borrow::Cow;
use std::io;
use std::ops::Deref;

use contexture::EntryId;
use contexture::json::MAX_BYTES;
use serde::Deserialize;

use crate::Record;
use crate::disk::DiskFile;

/// What begins each line of an append but its last.
pub const MORE: u8 = b' ';

const BLOCK: usize = 256 << 10;

/// The lines of a file up to a given end. Memory is bounded by the longest line that is read.
pub struct Lines<F> {
    file: F,
    buffer: Vec<u8>,
    /// Where in the buffer the next line begins, and where in the file the buffer does.
    next: usize,
    base: u64,
    end: u64,
}

/// A line, without its end.
pub struct Line<'b> {
    /// Where in the file it begins.
    pub offset: u64,
    /// What it holds; its beginning, if it is too long to be a record.
    pub bytes: &'b [u8],
    /// It is longer than any record.
    pub too_long: bool,
}

impl<F: Deref<Target: DiskFile>> Lines<F> {
    pub fn new(file: F, start: u64, end: u64) -> Self {
        Self {
            file,
            buffer: Vec::new(),
            next: 0,
            base: start,
            end,
        }
    }

    /// The next line.
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut seen = self.next;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[seen..]) {
                return Ok(Some(self.take(seen + at, 1)));
            }
            seen = self.buffer.len();
            if seen - self.next > MAX_BYTES {
                return self.skip_rest().map(Some);
            }
            let moved = self.next;
            if self.fill()? == 0 {
                let rest = self.buffer.len() - self.next;
                return Ok((rest > 0).then(|| self.take(self.buffer.len(), 0)));
            }
            seen -= moved;
        }
    }

    fn take(&mut self, to: usize, ending: usize) -> Line<'_> {
        let from = std::mem::replace(&mut self.next, to + ending);
        Line {
            offset: self.base + from as u64,
            bytes: &self.buffer[from..to],
            too_long: to - from > MAX_BYTES,
        }
    }

    /// Reads on; what was handed out leaves the buffer.
    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.drain(..self.next);
        self.base += self.next as u64;
        self.next = 0;
        let held = self.buffer.len();
        let at = self.base + held as u64;
        let want = BLOCK.min(usize::try_from(self.end.saturating_sub(at)).unwrap_or(BLOCK));
        self.buffer.resize(held + want, 0);
        let read = self.file.read_at(&mut self.buffer[held..], at)?;
        self.buffer.truncate(held + read);
        Ok(read)
    }

    /// Passes over the rest of a line that is too long, keeping none of it.
    fn skip_rest(&mut self) -> io::Result<Line<'_>> {
        let offset = self.base + self.next as u64;
        let mut at = self.base + self.buffer.len() as u64;
        let mut block = vec![0; BLOCK];
        self.buffer.truncate(self.next + 64);
        loop {
            let want = BLOCK.min(usize::try_from(self.end.saturating_sub(at)).unwrap_or(BLOCK));
            let read = self.file.read_at(&mut block[..want], at)?;
            if let Some(end) = memchr::memchr(b'\n', &block[..read]) {
                at += end as u64 + 1;
                break;
            }
            at += read as u64;
            if read == 0 {
                break;
            }
        }
        let kept = self.buffer.split_off(self.next);
        self.buffer = kept;
        self.next = self.buffer.len();
        self.base = at - self.next as u64;
        Ok(Line {
            offset,
            bytes: &self.buffer,
            too_long: true,
        })
    }
}

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

/// Finds the end of what was appended whole, from behind: the cost does not grow with the file.
pub fn settle(file: &dyn DiskFile, len: u64) -> io::Result<Settled> {
    let mut end = len;
    let mut unbroken = false;
    if let Some((start, line)) = line_before(file, len)?
        && line.last() != Some(&b'\n')
    {
        if line.first() != Some(&MORE) && record(&line).is_ok() {
            unbroken = true;
        } else {
            end = start;
        }
    }
    // A line that announces more, at the end, belongs to an append that did not get through.
    while !unbroken && let Some((start, line)) = line_before(file, end)? {
        if line.first() != Some(&MORE) {
            break;
        }
        end = start;
    }
    let mut tail = None;
    let mut cursor = end;
    while let Some((start, line)) = line_before(file, cursor)? {
        if let Ok(record) = record(trimmed(&line)) {
            tail = Some(record.id().clone());
            break;
        }
        cursor = start;
    }
    Ok(Settled {
        end,
        unbroken,
        tail,
    })
}

/// The line that ends at `end`, with its line break, and where it begins. A line that is too long
/// comes back as its last part.
fn line_before(file: &dyn DiskFile, end: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
    const STEP: u64 = 16 << 10;
    if end == 0 {
        return Ok(None);
    }
    let mut line: Vec<u8> = Vec::new();
    let mut at = end;
    let mut step = STEP;
    while at > 0 {
        let from = at.saturating_sub(step);
        let mut block = vec![0; usize::try_from(at - from).unwrap_or(0)];
        let read = file.read_at(&mut block, from)?;
        block.truncate(read);
        // The line's own line break does not begin it.
        let search = if at == end {
            block.len().saturating_sub(1)
        } else {
            block.len()
        };
        if let Some(found) = memchr::memrchr(b'\n', &block[..search]) {
            block.drain(..=found);
            let start = from + found as u64 + 1;
            block.append(&mut line);
            return Ok(Some((start, block)));
        }
        // Of a line that is too long only where it begins matters.
        if line.len() <= MAX_BYTES {
            block.append(&mut line);
        } else {
            block.truncate(1);
        }
        line = block;
        at = from;
        step = (step * 2).min(4 << 20);
    }
    Ok(Some((0, line)))
}

/// The record in a line, checked to be JSON with an id, or what is wrong with it.
pub fn record(line: &[u8]) -> Result<Record, String> {
    if line.len() > MAX_BYTES {
        return Err(format!("it is longer than {} MiB", MAX_BYTES >> 20));
    }
    if line.first().is_some_and(|&b| b == 0) {
        return Err("it holds NUL bytes, as after a power cut".to_owned());
    }
    let text = std::str::from_utf8(trimmed(line)).map_err(|_| "it is not UTF-8".to_owned())?;
    let head: Head<'_> = serde_json::from_str(text).map_err(|error| {
        let what = error.to_string();
        match what.rsplit_once(" at line ") {
            Some((what, _)) => format!("it is no JSON object with an `id` ({what})"),
            None => what,
        }
    })?;
    if head.id.is_empty() {
        return Err("its `id` is empty".to_owned());
    }
    Ok(Record::trusted(
        EntryId::from(head.id.as_ref()),
        text.to_owned(),
    ))
}

/// The id in a line, read no further than needed. Of a line that is no record, anything or nothing.
pub fn quick_id(line: &[u8]) -> Option<Cow<'_, str>> {
    let line = trimmed(line);
    if let Some(rest) = line.strip_prefix(b"{\"id\":\"") {
        let end = memchr::memchr2(b'"', b'\\', rest)?;
        if rest[end] == b'"' {
            return std::str::from_utf8(&rest[..end]).ok().map(Cow::Borrowed);
        }
    }
    serde_json::from_slice::<Head<'_>>(line)
        .ok()
        .map(|head| head.id)
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
}

/// A line without the blanks around it.
pub fn trimmed(line: &[u8]) -> &[u8] {
    line.trim_ascii()
}
