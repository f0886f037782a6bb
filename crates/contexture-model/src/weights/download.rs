//! A file over the network, which may go away in the middle: what has come is kept, and the rest is
//! asked for.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, IF_RANGE, RANGE,
};
use reqwest::{Response, StatusCode};

use super::index::Link;
use super::shelf::etag_of;
use super::web::{Address, Web};
use super::{Progress, WeightsError};

/// The first pause between two tries; it doubles.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest, also where the server asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// So many new bytes make a server worth asking again, however often it was asked before.
const WORTH: u64 = 1 << 20;

/// Tries again, after a pause, what may well work then.
pub(super) struct Tries {
    left: u32,
    pause: Duration,
    most: u32,
    /// How far the best try came.
    best: u64,
}

impl Tries {
    pub fn new(most: u32, done: u64) -> Self {
        Self {
            left: most,
            pause: PAUSE,
            most,
            best: done,
        }
    }

    /// Waits, where there is another try; otherwise the error is the answer. `done` is how far it came.
    pub async fn again(
        &mut self,
        error: WeightsError,
        done: u64,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<(), WeightsError> {
        if done >= self.best + WORTH {
            *self = Self::new(self.most, done);
        }
        if self.left == 0 || !error.may_pass() {
            return Err(error);
        }
        self.left -= 1;
        let asked = match &error {
            WeightsError::Refused {
                retry_after: Some(asked),
                ..
            } => (*asked).min(LONGEST_PAUSE),
            _ => Duration::ZERO,
        };
        progress(Progress::Again {
            why: error.to_string(),
        });
        tokio::time::sleep(self.pause.max(asked)).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

/// Fetches the file that a link leads to, or what is missing of it. It has at most `most` bytes.
pub(super) async fn download(
    web: &Web,
    link: &Link,
    part: &Path,
    most: u64,
    retries: u32,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<(), WeightsError> {
    if link.bytes.is_some_and(|bytes| bytes > most) {
        return Err(too_long(&link.address));
    }
    let mut tries = Tries::new(retries, length(part));
    loop {
        match once(web, link, part, most, progress).await {
            Ok(()) => return Ok(()),
            Err(error) => tries.again(error, length(part), progress).await?,
        }
    }
}

async fn once(
    web: &Web,
    link: &Link,
    part: &Path,
    most: u64,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<(), WeightsError> {
    let ours = |error| WeightsError::io(part, error);
    let mut done = length(part);
    if done > link.bytes.unwrap_or(most) {
        discard(part);
        done = 0;
    }
    if done > 0 && link.bytes == Some(done) {
        return Ok(());
    }
    let (mut response, from) = web.get(&link.address, &wanted(part, done)).await?;
    let total = match answered(&response, done) {
        Answered::Whole(total) => {
            discard(part);
            done = 0;
            total
        }
        Answered::Rest(total) => total,
        Answered::NothingLeft => return Ok(()),
        Answered::Nonsense => {
            discard(part);
            return Err(WeightsError::Cut {
                place: from.place(),
            });
        }
    };
    if let (Some(bytes), Some(total)) = (link.bytes, total)
        && bytes != total
    {
        return Err(WeightsError::Wrong {
            place: from.place(),
            what: format!("the file has {total} bytes, not {bytes}"),
        });
    }
    let total = link.bytes.or(total);
    if total.is_some_and(|total| total > most) {
        return Err(too_long(&from));
    }
    remember(part, &response).map_err(ours)?;
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).open(part);
    let mut file = file.map_err(ours)?;
    progress(Progress::Fetching { done, total });
    while let Some(chunk) = web.next(&from, &mut response).await? {
        let chunk = chunk.as_ref();
        done += chunk.len() as u64;
        if done > total.unwrap_or(most) {
            return Err(too_long(&from));
        }
        // A few KiB into the system's own memory: not worth another thread.
        file.write_all(chunk).map_err(ours)?;
        progress(Progress::Fetching { done, total });
    }
    match total {
        Some(total) if done < total => Err(WeightsError::Cut {
            place: from.place(),
        }),
        _ => Ok(()),
    }
}

/// What is asked for: all of it, or what is missing. The mark says of which file, so that the rest of
/// another one is never taken.
fn wanted(part: &Path, done: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // As it is: a part of something packed is no part of it.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if done > 0 {
        if let Ok(range) = HeaderValue::from_str(&format!("bytes={done}-")) {
            headers.insert(RANGE, range);
        }
        let mark = std::fs::read(etag_of(part)).ok();
        if let Some(mark) = mark.and_then(|mark| HeaderValue::from_bytes(&mark).ok()) {
            headers.insert(IF_RANGE, mark);
        }
    }
    headers
}

/// What an answer brings, and how long the whole file is where it says so.
enum Answered {
    Whole(Option<u64>),
    Rest(Option<u64>),
    NothingLeft,
    Nonsense,
}

fn answered(response: &Response, done: u64) -> Answered {
    let range = response.headers().get(CONTENT_RANGE);
    let range = range.and_then(|range| range.to_str().ok()?.strip_prefix("bytes "));
    let (span, total) = range.and_then(|range| range.split_once('/')).unzip();
    let total = total.and_then(|total| total.parse::<u64>().ok());
    let start = span.and_then(|span| span.split_once('-')?.0.parse::<u64>().ok());
    match response.status() {
        StatusCode::PARTIAL_CONTENT if start == Some(done) => Answered::Rest(total),
        StatusCode::RANGE_NOT_SATISFIABLE if done > 0 && total == Some(done) => {
            Answered::NothingLeft
        }
        StatusCode::OK => Answered::Whole(response.content_length()),
        _ => Answered::Nonsense,
    }
}

/// Keeps the mark of the file for the next time. A weak one does not say that the bytes are the same.
fn remember(part: &Path, response: &Response) -> io::Result<()> {
    let mark = response.headers().get(ETAG).map(HeaderValue::as_bytes);
    match mark.filter(|mark| mark.starts_with(b"\"") && mark.len() < 1_000) {
        Some(mark) => std::fs::write(etag_of(part), mark),
        None => forget(&etag_of(part)),
    }
}

/// Removes the mark of a file, so that the rest is taken from wherever it is: another hash is checked in the end.
pub(super) fn forget_mark(part: &Path) {
    let _ = forget(&etag_of(part));
}

/// Removes what is kept of a download.
pub(super) fn discard(part: &Path) {
    // What cannot be removed is found wrong again the next time.
    let _ = forget(part);
    let _ = forget(&etag_of(part));
}

fn forget(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |about| about.len())
}

fn too_long(from: &Address) -> WeightsError {
    WeightsError::Wrong {
        place: from.place(),
        what: "the file is longer than it can be".to_owned(),
    }
}
