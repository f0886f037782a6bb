use super::FileLog;
use super::lines::{Lines, trimmed};
use super::paths::path;
use crate::disk::DiskFile;
use crate::{Record, StoreError, Stream};

/// The records of a file, read as they are asked for.
pub struct FileRecords<'l> {
    pub log: &'l FileLog,
    pub stream: Stream,
    pub lines: Lines<Box<dyn DiskFile>>,
}

impl Iterator for FileRecords<'_> {
    type Item = Result<Record, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = match self.lines.next() {
                Ok(line) => line?,
                Err(error) => return Some(Err(self.log.failed(&path(&self.stream), error))),
            };
            if trimmed(line.bytes).is_empty() {
                continue;
            }
            match line.record() {
                Ok(record) => return Some(Ok(record)),
                Err(what) => self.log.report(&self.stream, line.offset, what),
            }
        }
    }
}
