//! What an agent did, run by run: the execution memory of spec 001.
//!
//! A window, not a log: at `windowEntries` the oldest runs become one line that says how many there
//! were, when, and how their tools fared.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::derive::derived;
use crate::transcript::ReadBack;
use crate::{Expected, From, Key, Log, Record, StoreError, Stream, check_own};

/// The `requestId` of a line that stands for many.
pub const COMPACTED: &str = "compacted";

/// The form of a line that this program writes and reads.
const FORM: u64 = 1;
/// The most times that a run is written anew because others write the same memory.
const MAX_TRIES: usize = 32;
const PREVIEW: usize = 2_000;
const ERROR: usize = 200;

/// One run, or all that came before.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// The form of the line.
    pub v: u64,
    /// When, in RFC 3339.
    pub ts: String,
    /// In which chat.
    pub chat_key: String,
    /// Which run, or [`COMPACTED`].
    pub request_id: String,
    /// The beginning of what the user asked.
    #[serde(default)]
    pub user_preview: String,
    /// The beginning of what came out.
    #[serde(default)]
    pub output_preview: String,
    /// The tools that ran.
    #[serde(default)]
    pub tool_calls: Vec<ToolOutcome>,
    /// What a line stands for that stands for many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted: Option<Compacted>,
    /// Fields we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A tool that ran.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolOutcome {
    /// Its name.
    pub tool: String,
    /// Whether it worked, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// The beginning of what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Many runs in one line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Compacted {
    /// How many.
    pub count: usize,
    /// The first one's time.
    pub from: String,
    /// The last one's time.
    pub to: String,
    /// How often each tool ran, and how often it failed.
    pub tools: BTreeMap<String, ToolCount>,
}

/// How often a tool ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolCount {
    /// In all.
    pub calls: usize,
    /// In vain.
    pub failures: usize,
}

/// The execution memories of a log.
#[derive(Clone)]
pub struct Memories {
    log: Arc<dyn Log>,
    window: usize,
}

impl Memories {
    /// The memories of this log, each of at most `window` lines.
    pub fn new(log: Arc<dyn Log>, window: usize) -> Self {
        Self {
            log,
            window: window.max(2),
        }
    }

    /// Adds a run, or writes it anew where the memory has it already: a run is remembered while it goes on. Texts are
    /// cut to what a memory keeps.
    pub fn put(&self, key: &Key, run: Execution) -> Result<(), StoreError> {
        let stream = Stream::memory(key.clone());
        let run = Execution {
            v: FORM,
            chat_key: key.as_str().to_owned(),
            user_preview: beginning(&run.user_preview, PREVIEW),
            output_preview: beginning(&run.output_preview, PREVIEW),
            tool_calls: run.tool_calls.into_iter().map(ToolOutcome::cut).collect(),
            ..run
        };
        // A run stands for itself, wherever the memory ends by now.
        let record = derived(None, &run)?;
        let mut tries = 0;
        loop {
            match self.rewrite(&stream, &run.request_id, &record) {
                // Somebody else wrote while we looked.
                Err(StoreError::WrongTail { .. } | StoreError::Replaced { .. })
                    if tries < MAX_TRIES =>
                {
                    tries += 1;
                }
                Err(error) => return Err(error),
                Ok(true) => return Ok(()),
                Ok(false) => return self.append(key, &stream, record),
            }
        }
    }

    /// Puts the record in the place of the run's earlier one. Whether there is one.
    fn rewrite(&self, stream: &Stream, run: &str, record: &Record) -> Result<bool, StoreError> {
        let kept = self.records(stream)?;
        let is_run = |(_, known): &(Record, Option<Execution>)| {
            known.as_ref().is_some_and(|known| known.request_id == run)
        };
        let Some(at) = kept.iter().rposition(is_run) else {
            return Ok(false);
        };
        let last = kept.last().map(|(record, _)| record.id().clone());
        let mut records: Vec<Record> = kept.into_iter().map(|(record, _)| record).collect();
        if records[at].id() != record.id() {
            records[at] = record.clone();
            self.log
                .replace(stream, Expected::Tail(last.as_ref()), &records)?;
        }
        Ok(true)
    }

    fn append(&self, key: &Key, stream: &Stream, record: Record) -> Result<(), StoreError> {
        let last = self.log.append(stream, Expected::Any, &[record])?;
        let kept = match self.records(stream) {
            // Somebody made room while we looked.
            Err(StoreError::Replaced { .. }) => return Ok(()),
            kept => kept?,
        };
        let newer = |(record, run): &(Record, Option<Execution>)| run.is_none() && is_newer(record);
        if kept.len() <= self.window || kept.iter().any(newer) {
            return Ok(());
        }
        // Lines that are no runs do not take up room, nor come to be counted.
        let runs: Vec<(Record, Execution)> = kept
            .into_iter()
            .filter_map(|(record, run)| Some((record, run?)))
            .collect();
        let (old, new) = runs.split_at(runs.len().saturating_sub(self.window - 1));
        let mut records = Vec::with_capacity(self.window);
        if !old.is_empty() {
            records.push(derived(None, &summary(key, old))?);
        }
        records.extend(new.iter().map(|(record, _)| record.clone()));
        let done = self
            .log
            .replace(stream, Expected::Tail(last.as_ref()), &records);
        match done {
            // Somebody added a run in the meantime: the next one makes room.
            Err(StoreError::WrongTail { .. }) => Ok(()),
            other => other,
        }
    }

    /// What is remembered of a chat, oldest first. A memory that is somebody else's is refused.
    pub fn load(&self, key: &Key) -> Result<ReadBack<Execution>, StoreError> {
        let stream = Stream::memory(key.clone());
        check_own(self.log.as_ref(), &stream)?;
        let mut out = ReadBack {
            lines: Vec::new(),
            skipped: 0,
        };
        let records = match self.records(&stream) {
            // Once more: what it was replaced by is there now.
            Err(StoreError::Replaced { .. }) => self.records(&stream)?,
            records => records?,
        };
        for (_, run) in records {
            match run {
                Some(run) => out.lines.push(run),
                None => out.skipped += 1,
            }
        }
        Ok(out)
    }

    /// The lines, each with what it says; nothing for one of another chat, of a form that came after
    /// this program, or that is no run at all.
    fn records(&self, stream: &Stream) -> Result<Vec<(Record, Option<Execution>)>, StoreError> {
        let records = self.log.read(stream, From::Start)?;
        let read = records.map(|record| {
            let record = record?;
            let run = record.read::<Execution>().ok();
            let run = run.filter(|run| run.v == FORM && run.chat_key == stream.key.as_str());
            Ok((record, run))
        });
        read.collect()
    }
}

impl ToolOutcome {
    fn cut(self) -> Self {
        Self {
            error: self.error.map(|error| beginning(&error, ERROR)),
            ..self
        }
    }
}

/// Whether a newer program wrote the line: it is not ours to put into another.
fn is_newer(record: &Record) -> bool {
    let value = record.value().ok();
    let form = value.as_ref().and_then(|value| value.get("v")?.as_u64());
    form.is_some_and(|form| form > FORM)
}

/// One line for many.
fn summary(key: &Key, old: &[(Record, Execution)]) -> Execution {
    let mut all = Compacted::default();
    for (_, run) in old {
        let (count, from, to) = match &run.compacted {
            Some(earlier) => {
                for (tool, counted) in &earlier.tools {
                    let tool = all.tools.entry(tool.clone()).or_default();
                    tool.calls += counted.calls;
                    tool.failures += counted.failures;
                }
                (earlier.count, &earlier.from, &earlier.to)
            }
            None => (1, &run.ts, &run.ts),
        };
        if all.count == 0 {
            all.from.clone_from(from);
        }
        all.to.clone_from(to);
        all.count += count;
        for call in &run.tool_calls {
            let tool = all.tools.entry(call.tool.clone()).or_default();
            tool.calls += 1;
            if call.success == Some(false) {
                tool.failures += 1;
            }
        }
    }
    let text = format!(
        "{} earlier runs, from {} to {}",
        all.count, all.from, all.to
    );
    Execution {
        v: FORM,
        ts: all.to.clone(),
        chat_key: key.as_str().to_owned(),
        request_id: COMPACTED.to_owned(),
        user_preview: String::new(),
        output_preview: text,
        tool_calls: Vec::new(),
        compacted: Some(all),
        extra: Map::new(),
    }
}

/// The first `most` characters.
fn beginning(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
