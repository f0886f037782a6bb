//! Writes a run into the transcript and the execution memory while it goes on, so that they tell the same as the log
//! when the process is killed.

use contexture::ToolCall;
use contexture_store::{Execution, Key, Said as SaidLine, StoreError, ToolOutcome};
use contexture_tools::Secrets;
use serde_json::Map;

use crate::work::blocking;
use crate::{Stores, ToolRun, clock};

/// A run as transcript and execution memory have it.
pub(crate) struct Remembered<'a> {
    stores: &'a Stores,
    secrets: &'a Secrets,
    key: Key,
    run: Execution,
    /// The calls behind the run's tools.
    calls: Vec<String>,
    /// There are results that the memory does not have.
    is_behind: bool,
    /// The first error: nothing is written after it, and the run's end tells of it.
    error: Option<StoreError>,
}

impl<'a> Remembered<'a> {
    pub(crate) fn new(stores: &'a Stores, secrets: &'a Secrets, key: Key, run_id: &str) -> Self {
        Self {
            stores,
            secrets,
            key,
            run: Execution {
                request_id: run_id.to_owned(),
                ..Execution::default()
            },
            calls: Vec::new(),
            is_behind: false,
            error: None,
        }
    }

    /// The user's message is in the log.
    pub(crate) fn asked(&mut self, text: &str) {
        self.run.user_preview = self.secrets.hide(text);
        self.tell("user", text);
        self.note();
    }

    /// The user was told this.
    pub(crate) fn said(&mut self, text: &str) {
        text.clone_into(&mut self.run.output_preview);
        self.tell("assistant", text);
    }

    /// These tools are about to run.
    pub(crate) fn starts<'c>(&mut self, calls: impl Iterator<Item = (&'c ToolCall, String)>) {
        for (call, tool) in calls {
            self.calls.push(call.id.clone());
            self.run.tool_calls.push(ToolOutcome {
                tool,
                ..ToolOutcome::default()
            });
        }
        self.note();
    }

    /// One of them has its result, which [`Self::keep`] writes.
    pub(crate) fn ran(&mut self, run: &ToolRun) {
        let Some(at) = self.calls.iter().rposition(|call| *call == run.id) else {
            return;
        };
        self.run.tool_calls[at] = ToolOutcome {
            tool: run.tool.clone(),
            success: Some(run.success),
            error: (!run.success).then(|| run.summary.clone()),
        };
        self.is_behind = true;
    }

    /// Writes the results that are not in the memory yet.
    pub(crate) fn keep(&mut self) {
        if self.is_behind {
            self.note();
        }
    }

    /// The run is over, with this text at its end.
    pub(crate) fn ended(mut self, text: &str) -> Result<(), StoreError> {
        // One whose request was never made has left nothing in the log.
        if self.run.ts.is_empty() {
            return Ok(());
        }
        if self.run.output_preview.is_empty() {
            text.clone_into(&mut self.run.output_preview);
        }
        self.note();
        self.error.map_or(Ok(()), Err)
    }

    fn tell(&mut self, role: &str, text: &str) {
        let line = SaidLine {
            v: 1,
            ts: clock::now(),
            chat_key: self.key.as_str().to_owned(),
            role: role.to_owned(),
            text: text.to_owned(),
            request_id: Some(self.run.request_id.clone()),
            extra: Map::new(),
        };
        self.write(|of| of.stores.transcripts.append(&of.key, &[line]));
    }

    fn note(&mut self) {
        self.is_behind = false;
        self.run.ts = clock::now();
        self.write(|of| of.stores.memories.put(&of.key, of.run.clone()));
    }

    fn write(&mut self, write: impl FnOnce(&Self) -> Result<(), StoreError>) {
        if self.error.is_none() {
            self.error = blocking(|| write(self)).err();
        }
    }
}
