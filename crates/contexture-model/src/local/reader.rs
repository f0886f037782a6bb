//! What the engine has read, and reading on from there.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use llama_cpp_2::{LlamaStateSeqFlags, SeqState};

use super::engine::backend;
use super::slots::{Cells, Id, Slots, common};
use super::{LocalError, Size, memory};
use crate::ModelError;

/// How many tokens are read at once. More is hardly faster, and between two a request can be called off.
const CHUNK: usize = 128;

/// The one sequence that the cells hold.
const LIVE: i32 = 0;

/// All of a sequence, in memory of our own.
const WHOLE: LlamaStateSeqFlags = LlamaStateSeqFlags::empty();

/// The engine's memory.
pub(super) struct Reader<'m> {
    context: LlamaContext<'m>,
    batch: LlamaBatch<'static>,
    slots: Slots<SeqState>,
    stop: &'m AtomicBool,
}

/// Why reading ended before it was done.
pub(super) enum Broken {
    /// Nobody waits for it.
    CalledOff,
    Failed(ModelError),
}

impl From<ModelError> for Broken {
    fn from(error: ModelError) -> Self {
        Self::Failed(error)
    }
}

impl<'m> Reader<'m> {
    pub fn new(
        model: &'m LlamaModel,
        size: Size,
        stop: &'m AtomicBool,
    ) -> Result<Self, LocalError> {
        let threads = i32::try_from(size.threads).unwrap_or(1);
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(few(size.window)))
            .with_n_batch(few(CHUNK))
            .with_n_ubatch(few(CHUNK))
            // Going back to an earlier place needs what a sliding window has passed.
            .with_swa_full(true)
            .with_n_threads(threads)
            .with_n_threads_batch(threads)
            .with_no_perf(true);
        let context = model
            .new_context(backend()?, params)
            .map_err(|error| LocalError::engine("the engine did not start", error))?;
        Ok(Self {
            context,
            batch: LlamaBatch::new(CHUNK, 1),
            slots: Slots::new(size.resting),
            stop,
        })
    }

    /// Whether the engine is to end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Makes the cells hold as much of a prompt's beginning as was read before, at most `reusable`
    /// tokens. Gives how many that is.
    pub fn place(&mut self, prompt: &[Id], reusable: usize) -> usize {
        // The last token is read in any case: the odds of the next come from it.
        let reusable = reusable.min(prompt.len().saturating_sub(1));
        self.slots.place(&mut self.context, &prompt[..reusable])
    }

    /// Makes the cells hold these tokens, and reads what is not there yet. With `odds` the last one is
    /// read again if need be: the odds of the next come from it.
    pub fn hold(
        &mut self,
        want: &[Id],
        odds: bool,
        waits: &dyn Fn() -> bool,
    ) -> Result<(), Broken> {
        let most = want.len().saturating_sub(usize::from(odds));
        let same = common(self.slots.live(), want).min(most);
        let keep = self.slots.cut(&mut self.context, same);
        self.read(&want[keep..], odds, waits)
    }

    /// Cuts what the cells hold to what it has in common with these tokens.
    pub fn trim(&mut self, want: &[Id]) {
        let same = common(self.slots.live(), want);
        self.slots.cut(&mut self.context, same);
    }

    /// Reads tokens behind those that the cells hold.
    pub fn read(&mut self, ids: &[Id], odds: bool, waits: &dyn Fn() -> bool) -> Result<(), Broken> {
        let failed = |what: String| ModelError::Transient {
            what: format!("the engine: {what}"),
            retry_after: None,
        };
        for chunk in ids.chunks(CHUNK) {
            if self.stopped() || !waits() {
                return Err(Broken::CalledOff);
            }
            let begin = self.slots.live().len();
            self.batch.clear();
            for (n, &id) in chunk.iter().enumerate() {
                let position = i32::try_from(begin + n).unwrap_or(i32::MAX);
                let wanted = odds && n + 1 == chunk.len();
                self.batch
                    .add(LlamaToken(id), position, &[LIVE], wanted)
                    .map_err(|error| failed(error.to_string()))?;
            }
            self.context
                .decode(&mut self.batch)
                .map_err(|error| failed(error.to_string()))?;
            self.slots.push(chunk);
        }
        Ok(())
    }

    /// What may come next, behind what was read last.
    pub fn next(&self) -> LlamaTokenDataArray {
        self.context.token_data_array_ith(self.batch.n_tokens() - 1)
    }
}

impl Cells for LlamaContext<'_> {
    type State = SeqState;

    fn bytes(&self) -> usize {
        self.state_seq_get_size_ext(LIVE, WHOLE)
    }

    fn save(&self) -> Option<SeqState> {
        match memory::allows(self.bytes()) {
            true => self.state_seq_get(LIVE, WHOLE).ok(),
            false => None,
        }
    }

    fn restore(&mut self, state: &SeqState) -> bool {
        self.state_seq_set(state, LIVE).is_ok()
    }

    fn reach_back(&self) -> bool {
        self.kv_cache_seq_pos_min(LIVE) == 0
    }

    fn cut(&mut self, keep: usize) -> bool {
        self.kv_cache_seq_rm(LIVE, Some(few(keep)), None).is_ok()
    }
}

fn few(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
