//! Looks at every stream, says what is wrong in words, and repairs with a backup.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;

use contexture::EntryId;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::disk::{Create, DiskFile};
use crate::files::behind::settle;
use crate::files::lines::{Lines, record, trimmed};
use crate::files::{self, FileLog};
use crate::sieve::{Judged, Sieve};
use crate::{From, Kind, Log, Record, Sessions, StoreError, Stream};

/// What was found in one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkup {
    /// Which.
    pub stream: Stream,
    /// How many sound records it has.
    pub records: usize,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// At which line of the file, from 1, where it is one.
    pub line: Option<usize>,
    /// What, in words.
    pub what: String,
    /// What a repair does about it; nothing if there is nothing to do.
    pub remedy: Option<String>,
}

/// What a repair came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// Where the file is kept as it was.
    pub backup: String,
    /// How many records it has now.
    pub records: usize,
}

/// A stream's file, line by line: what stays and what is wrong.
#[derive(Default)]
struct Examined {
    sound: Vec<Record>,
    findings: Vec<Finding>,
    /// A newer program wrote here: what looks wrong to this one may well be right.
    newer: bool,
}

/// Looks at all streams of these kinds in a folder, and at what stands in the place of one.
pub fn check_files(log: &Arc<FileLog>, kinds: &[Kind]) -> Result<Vec<Checkup>, StoreError> {
    let mut all = each_stream(log.as_ref(), kinds, |stream| {
        Ok(examine(log, stream)?.checkup(stream))
    })?;
    for (stream, error) in log.strangers(kinds)? {
        all.push(Checkup::failed(stream, &error));
    }
    Ok(all)
}

/// Looks at all streams of any log. Of damage that the home itself deals with it sees nothing.
pub fn check(log: &Arc<dyn Log>) -> Result<Vec<Checkup>, StoreError> {
    each_stream(log.as_ref(), &Kind::ALL, |stream| {
        let mut examined = Examined::default();
        let mut judge = Judge::new(log, stream);
        for record in log.read(stream, From::Start)? {
            judge.take(&mut examined, None, record?);
        }
        judge.end(&mut examined);
        examined.end();
        // Only files can be repaired here.
        for finding in &mut examined.findings {
            finding.remedy = None;
        }
        Ok(examined.checkup(stream))
    })
}

/// Looks at where forks come from.
pub fn check_forks(sessions: &Sessions) -> Result<Vec<(Stream, Finding)>, StoreError> {
    let mut out = Vec::new();
    for info in sessions.list()? {
        let loaded = sessions.load(&info.stream.key);
        if let Err(
            error @ (StoreError::Context(_)
            | StoreError::BadKey { .. }
            | StoreError::BadRecord { .. }
            | StoreError::NotOurs { .. }),
        ) = loaded
        {
            out.push((
                info.stream,
                Finding {
                    line: None,
                    what: error.to_string(),
                    remedy: None,
                },
            ));
        }
    }
    Ok(out)
}

/// Repairs a stream's file: what is sound stays, in order; the file as it was is kept beside it.
/// Nothing is done where nothing can be.
pub fn repair(log: &Arc<FileLog>, stream: &Stream) -> Result<Option<Repair>, StoreError> {
    log.alone(stream, || repair_alone(log, stream))
}

fn repair_alone(log: &Arc<FileLog>, stream: &Stream) -> Result<Option<Repair>, StoreError> {
    let examined = examine(log, stream)?;
    if examined
        .findings
        .iter()
        .all(|finding| finding.remedy.is_none())
    {
        return Ok(None);
    }
    let path = files::path(stream);
    let backup = back_up(log, &path)?;
    let mut bytes = Vec::new();
    for record in &examined.sound {
        bytes.extend_from_slice(record.text().as_bytes());
        bytes.push(b'\n');
    }
    log.overwrite(&path, &bytes)?;
    Ok(Some(Repair {
        backup: log.disk().place(&backup),
        records: examined.sound.len(),
    }))
}

fn each_stream(
    log: &dyn Log,
    kinds: &[Kind],
    mut look: impl FnMut(&Stream) -> Result<Checkup, StoreError>,
) -> Result<Vec<Checkup>, StoreError> {
    let mut all = Vec::new();
    for &kind in kinds {
        for info in log.list(kind)? {
            // One that cannot be opened is a finding, not the end.
            let looked = look(&info.stream);
            all.push(looked.unwrap_or_else(|error| Checkup::failed(info.stream, &error)));
        }
    }
    Ok(all)
}

fn examine(log: &Arc<FileLog>, stream: &Stream) -> Result<Examined, StoreError> {
    let path = files::path(stream);
    let failed = |error| StoreError::io(log.disk().place(&path), error);
    let file = log.disk().open(&path, Create::No).map_err(failed)?;
    let home: Arc<dyn Log> = log.clone();
    let mut examined = Examined::default();
    lines(file.as_ref(), Judge::new(&home, stream), &mut examined).map_err(failed)?;
    Ok(examined)
}

fn lines(file: &dyn DiskFile, mut judge: Judge<'_>, examined: &mut Examined) -> io::Result<()> {
    let len = file.length()?;
    let end = settle(file, len)?.end;
    let mut lines = Lines::new(file, 0, end);
    let mut number = 0;
    while let Some(line) = lines.next()? {
        number += 1;
        if trimmed(line.bytes).is_empty() {
            continue;
        }
        let what = match line.record() {
            Ok(record) => {
                judge.take(examined, Some(number), record);
                continue;
            }
            Err(what) => what,
        };
        let saved = salvage(line.bytes);
        let remedy = match saved.len() {
            0 => "the line is taken out".to_owned(),
            1 => "the entry inside it is kept, the rest taken out".to_owned(),
            n => format!("the {n} entries inside it are kept, the rest taken out"),
        };
        examined.findings.push(Finding {
            line: Some(number),
            what,
            remedy: Some(remedy),
        });
        for record in saved {
            judge.take(examined, Some(number), record);
        }
    }
    judge.end(examined);
    if end < len {
        examined.findings.push(Finding {
            line: Some(number + 1),
            what: format!(
                "the last append was cut off: {} bytes that were never acknowledged",
                len - end
            ),
            remedy: Some("they are taken away".to_owned()),
        });
    }
    examined.end();
    Ok(())
}

/// Whether records belong into a stream, one after another.
struct Judge<'s> {
    stream: &'s Stream,
    sieve: Sieve,
    /// What the session begins with, or whether it has such a thing, is not known. Then nothing is
    /// taken out for speaking of what is not there.
    blind: bool,
    /// Records whose fate the sieve has not told yet, with their lines.
    waiting: VecDeque<(Option<usize>, Record)>,
    seen: HashSet<EntryId>,
}

const TAKEN_OUT: &str = "the line is taken out";

impl<'s> Judge<'s> {
    fn new(log: &Arc<dyn Log>, stream: &'s Stream) -> Self {
        let mut sieve = Sieve::default();
        let mut blind = false;
        // Entries of a fork may speak of those it began with. Whether these are there is another
        // question (`check_forks`).
        if stream.kind == Kind::Session {
            let sessions = Sessions::new(Arc::clone(log));
            match sessions.ancestry(&stream.key) {
                Ok(ancestry) => sieve.view = ancestry,
                Err(_) => blind = true,
            }
            blind |= !sessions.has_header(&stream.key);
        }
        Self {
            stream,
            sieve,
            blind,
            waiting: VecDeque::new(),
            seen: HashSet::new(),
        }
    }

    fn take(&mut self, examined: &mut Examined, line: Option<usize>, record: Record) {
        if self.stream.kind != Kind::Session {
            match self.foreign(&record) {
                None => examined.sound.push(record),
                Some(what) => examined.find(line, what, Some(TAKEN_OUT)),
            }
            return;
        }
        if examined.newer {
            examined.sound.push(record);
            return;
        }
        self.waiting.push_back((line, record.clone()));
        let mut fates = Vec::new();
        let taken = self.sieve.take(&record, &mut |judged| fates.push(judged));
        self.settle(examined, fates);
        if let Err(error) = taken {
            // What a newer program wrote is not ours to take out, nor what follows it: that may
            // speak of what we cannot read.
            examined.find(line, error.to_string(), None);
            examined.newer = true;
            examined
                .sound
                .extend(self.waiting.drain(..).map(|(_, record)| record));
        }
    }

    fn end(&mut self, examined: &mut Examined) {
        let mut fates = Vec::new();
        self.sieve.end(&mut |judged| fates.push(judged));
        self.settle(examined, fates);
    }

    fn settle(&mut self, examined: &mut Examined, fates: Vec<Judged>) {
        for fate in fates {
            let at = self
                .waiting
                .iter()
                .position(|(_, record)| *record.id() == fate.id);
            let Some((line, record)) = at.and_then(|at| self.waiting.remove(at)) else {
                continue;
            };
            match (fate.kept, fate.odd) {
                (true, None) => examined.sound.push(record),
                (true, Some(what)) if self.blind => {
                    examined.find(line, what, None);
                    examined.sound.push(record);
                }
                (true, Some(what)) => {
                    examined.find(line, what, Some("it follows the entry that is there"));
                    examined
                        .sound
                        .push(self.as_folded(&record).unwrap_or(record));
                }
                (false, what) if self.blind && !self.has(&record) => {
                    examined.find(line, what.unwrap_or_default(), None);
                    examined.sound.push(record);
                }
                (false, what) => examined.find(line, what.unwrap_or_default(), Some(TAKEN_OUT)),
            }
        }
    }

    fn has(&self, record: &Record) -> bool {
        self.sieve.view.position(record.id()).is_some()
    }

    /// The record as the sieve took it, with another parent.
    fn as_folded(&self, record: &Record) -> Option<Record> {
        let position = self.sieve.view.position(record.id())?;
        Record::try_from(self.sieve.view.log()[position].as_ref()).ok()
    }

    /// What is wrong with a line of a transcript or of an execution memory.
    fn foreign(&mut self, record: &Record) -> Option<String> {
        let value = record.value().ok()?;
        if let Some(Value::String(key)) = value.get("chatKey")
            && key != self.stream.key.as_str()
        {
            return Some(format!("it is of another chat, `{key}`"));
        }
        let again = !self.seen.insert(record.id().clone());
        again.then(|| format!("line `{}` stands here a second time", record.id()))
    }
}

impl Checkup {
    /// Of one that cannot even be opened.
    fn failed(stream: Stream, error: &StoreError) -> Self {
        Self {
            stream,
            records: 0,
            findings: vec![Finding {
                line: None,
                what: error.to_string(),
                remedy: None,
            }],
        }
    }
}

impl Examined {
    fn checkup(self, stream: &Stream) -> Checkup {
        Checkup {
            stream: stream.clone(),
            records: self.sound.len(),
            findings: self.findings,
        }
    }

    /// There is no more. Where a newer program wrote, nothing is repaired.
    fn end(&mut self) {
        if self.newer {
            for finding in &mut self.findings {
                finding.remedy = None;
            }
        }
    }

    fn find(&mut self, line: Option<usize>, what: String, remedy: Option<&str>) {
        self.findings.push(Finding {
            line,
            what,
            remedy: remedy.map(str::to_owned),
        });
    }
}

/// The most records that are found inside one line: an accident leaves a few.
const MAX_SALVAGED: usize = 1_000;
/// How often a line may be read over, in search of them.
const MAX_READS: usize = 8;

/// The whole records inside a damaged line, such as two that ran together.
fn salvage(line: &[u8]) -> Vec<Record> {
    const BEGINS: &[u8] = b"{\"id\":";
    let mut found = Vec::new();
    let mut rest = line;
    // What begins and does not end is read as far as it makes sense, which may be to the end, for each beginning.
    let mut left = line.len().saturating_mul(MAX_READS);
    while let Some(at) = memchr::memmem::find(rest, BEGINS) {
        rest = &rest[at..];
        let (read, whole) = value_at(rest);
        left = left.saturating_sub(read);
        if left == 0 || found.len() == MAX_SALVAGED {
            break;
        }
        let length = if whole { read } else { BEGINS.len() };
        if whole && let Ok(record) = record(&rest[..length]) {
            found.push(record);
        }
        rest = &rest[length..];
    }
    found
}

/// How much was read of the value that begins here, and whether it is whole.
fn value_at(bytes: &[u8]) -> (usize, bool) {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => (values.byte_offset(), true),
        // A line is one line, so the column of an error says how far it came.
        Some(Err(error)) => (error.column().clamp(1, bytes.len()), false),
        None => (bytes.len(), false),
    }
}

/// A copy beside the file, under a name that is free.
fn back_up(log: &FileLog, path: &str) -> Result<String, StoreError> {
    let disk = log.disk();
    let failed = |error| StoreError::io(disk.place(path), error);
    let from = disk.open(path, Create::No).map_err(failed)?;
    let (name, to) = (1..)
        .find_map(|n: u32| {
            let name = format!("{path}.bak{n}");
            match disk.open(&name, Create::New) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                other => Some((name, other)),
            }
        })
        .ok_or_else(|| failed(io::Error::other("has too many backups")))?;
    let to = to.map_err(failed)?;
    let mut block = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        let read = from.read_at(&mut block, at).map_err(failed)?;
        if read == 0 {
            break;
        }
        to.write_at(&block[..read], at).map_err(failed)?;
        at += read as u64;
    }
    to.sync().map_err(failed)?;
    Ok(name)
}
