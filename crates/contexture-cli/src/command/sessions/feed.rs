//! Lines for an append, read while the one before is made durable.

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::error::CliError;
use crate::input::{self, Line};

/// What comes in while a sync is under way goes out together with the next.
const MOST_LINES: usize = 1_024;
const MOST_BYTES: usize = 4 << 20;

/// The lines of a file, as they come.
pub struct Feed {
    incoming: Receiver<Result<Line, CliError>>,
    room: Arc<Room>,
}

impl Feed {
    /// Reads in a thread of its own, so that reading and syncing overlap.
    pub fn of(file: &Path) -> Self {
        let (sender, incoming) = channel();
        let room = Arc::new(Room::default());
        let (file, free) = (file.to_owned(), Arc::clone(&room));
        std::thread::spawn(move || {
            input::lines(&file, |line| {
                free.take(size(&line));
                sender.send(line).is_ok()
            });
        });
        Self { incoming, room }
    }

    /// The next line, and those that came in the meantime; what went wrong behind them. None at the
    /// end.
    pub fn next(&self) -> Option<(Vec<Line>, Option<CliError>)> {
        let mut lines = Vec::new();
        let mut bytes = 0;
        let mut next = Some(self.incoming.recv().ok()?);
        while let Some(line) = next {
            self.room.give_back(size(&line));
            match line {
                Ok(line) => {
                    bytes += line.bytes.len();
                    lines.push(line);
                }
                Err(error) => return Some((lines, Some(error))),
            }
            let more = lines.len() < MOST_LINES && bytes < MOST_BYTES;
            next = if more {
                self.incoming.try_recv().ok()
            } else {
                None
            };
        }
        Some((lines, None))
    }
}

/// How much of a queue a line takes; a short one as much as to bound their number, too.
fn size(line: &Result<Line, CliError>) -> usize {
    let bytes = line.as_ref().map_or(0, |line| line.bytes.len());
    bytes.max(MOST_BYTES / MOST_LINES)
}

/// How much waits to be appended. Long lines must not pile up while the disk is slow.
#[derive(Default)]
struct Room {
    used: Mutex<usize>,
    freed: Condvar,
}

impl Room {
    fn take(&self, bytes: usize) {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut used = self
            .freed
            .wait_while(used, |used| *used > 0 && *used + bytes > MOST_BYTES)
            .unwrap_or_else(PoisonError::into_inner);
        *used += bytes;
    }

    fn give_back(&self, bytes: usize) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) -= bytes;
        self.freed.notify_one();
    }
}
