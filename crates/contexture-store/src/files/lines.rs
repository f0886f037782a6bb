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

/// The longest line: the longest record, with the mark before it.
pub const LONGEST: usize = MAX_BYTES + 1;

const BLOCK: usize = 256 << 10;

/// The lines of a file up to a given end. Memory is bounded by the longest line that is read.
pub struct Lines<F> {
    file: F,
    buffer: Vec<u8>,
    /// Where in the buffer the next line begins, and where in the file the buffer does.
    next: usize,
    base: u64,
    end: u64,
    block: usize,
    longest: usize,
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
            block: BLOCK,
            longest: LONGEST,
        }
    }

    /// Reads so much at once.
    pub fn in_blocks(self, block: usize) -> Self {
        Self { block, ..self }
    }

    /// With other sizes, so that tests meet every border.
    #[cfg(test)]
    pub fn sized(self, block: usize, longest: usize) -> Self {
        Self {
            block,
            longest,
            ..self
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
            if seen - self.next > self.longest {
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
            too_long: to - from > self.longest,
        }
    }

    /// Reads on; what was handed out leaves the buffer.
    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.drain(..self.next);
        self.base += self.next as u64;
        self.next = 0;
        let held = self.buffer.len();
        let at = self.base + held as u64;
        let want = self.room(at);
        self.buffer.resize(held + want, 0);
        let read = self.file.read_at(&mut self.buffer[held..], at)?;
        self.buffer.truncate(held + read);
        Ok(read)
    }

    /// How much to read at `at`.
    fn room(&self, at: u64) -> usize {
        let left = usize::try_from(self.end.saturating_sub(at));
        left.unwrap_or(self.block).min(self.block)
    }

    /// Passes over the rest of a line that is too long, keeping none of it.
    fn skip_rest(&mut self) -> io::Result<Line<'_>> {
        let offset = self.base + self.next as u64;
        let mut at = self.base + self.buffer.len() as u64;
        let mut block = vec![0; self.block];
        self.buffer.truncate(self.next + 64);
        loop {
            let want = self.room(at);
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

impl Line<'_> {
    /// The record in it, or what is wrong with it.
    pub fn record(&self) -> Result<Record, String> {
        match self.too_long {
            true => Err(too_long()),
            false => record(self.bytes),
        }
    }
}

/// The record in a line, checked to be JSON with an id, or what is wrong with it.
pub fn record(line: &[u8]) -> Result<Record, String> {
    if line.len() > LONGEST {
        return Err(too_long());
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

fn too_long() -> String {
    format!("it is longer than {} MiB", MAX_BYTES >> 20)
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

#[cfg(test)]
mod tests;
