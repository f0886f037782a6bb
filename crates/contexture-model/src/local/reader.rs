//! What the engine has read, sequence by sequence, and reading on from there.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};

use llama_cpp_2::DecodeError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;

use super::engine::backend;
use super::slots::{Id, Slots, common};
use super::{LocalError, Size};
use crate::ModelError;

/// How many tokens are read at once. More is hardly faster, and between two a request can be called off.
const CHUNK: usize = 128;

/// Conversations that are kept at once, within the cells that there are.
const SEQUENCES: usize = 8;

/// The engine's memory.
pub(super) struct Reader<'m> {
    context: LlamaContext<'m>,
    batch: LlamaBatch<'static>,
    slots: Slots,
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
            .with_n_ctx(NonZeroU32::new(few(size.cells)))
            .with_n_seq_max(few(SEQUENCES))
            .with_n_batch(few(CHUNK))
            .with_n_ubatch(few(CHUNK))
            // One pool of cells for all, in which a copied beginning costs nothing.
            .with_kv_unified(true)
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
            slots: Slots::new(SEQUENCES, size.cells),
            stop,
        })
    }

    /// Whether the engine is to end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Finds a place for a prompt, of which at most `reusable` tokens may be taken from the cache, with
    /// room for `more` behind it. Gives the place and how many tokens are there already.
    pub fn place(&mut self, prompt: &[Id], reusable: usize, more: usize) -> (usize, usize) {
        // The last token is read in any case: the odds of the next come from it.
        let reusable = reusable.min(prompt.len().saturating_sub(1));
        let plan = self.slots.plan(prompt, reusable, more);
        if plan.evict.contains(&plan.slot) {
            self.cut(plan.slot, 0);
        }
        if let Some(from) = plan.copy_from {
            let (from, to) = (sequence(from), sequence(plan.slot));
            // Only a length that does not fit 31 bits would fail.
            let _ = self
                .context
                .copy_kv_cache_seq(from, to, Some(0), Some(few(plan.keep)));
        }
        for gone in plan.evict.iter().filter(|gone| **gone != plan.slot) {
            self.cut(*gone, 0);
        }
        (plan.slot, self.forget(plan.slot, plan.keep))
    }

    /// Makes a sequence hold these tokens, and reads what is not there yet. With `odds` the last one is
    /// read again if need be: the odds of the next come from it.
    pub fn hold(
        &mut self,
        slot: usize,
        want: &[Id],
        odds: bool,
        waits: &dyn Fn() -> bool,
    ) -> Result<(), Broken> {
        let most = want.len().saturating_sub(usize::from(odds));
        let same = common(self.slots.held(slot), want).min(most);
        let keep = self.forget(slot, same);
        self.read(slot, &want[keep..], odds, waits)
    }

    /// Cuts a sequence to what it has in common with these tokens.
    pub fn trim(&mut self, slot: usize, want: &[Id]) {
        let same = common(self.slots.held(slot), want);
        self.forget(slot, same);
    }

    /// Reads tokens behind those of a sequence.
    pub fn read(
        &mut self,
        slot: usize,
        ids: &[Id],
        odds: bool,
        waits: &dyn Fn() -> bool,
    ) -> Result<(), Broken> {
        let failed = |what: String| ModelError::Transient {
            what: format!("the engine: {what}"),
            retry_after: None,
        };
        for chunk in ids.chunks(CHUNK) {
            if self.stopped() || !waits() {
                return Err(Broken::CalledOff);
            }
            let begin = self.slots.held(slot).len();
            self.batch.clear();
            for (n, &id) in chunk.iter().enumerate() {
                let position = i32::try_from(begin + n).unwrap_or(i32::MAX);
                let wanted = odds && n + 1 == chunk.len();
                self.batch
                    .add(LlamaToken(id), position, &[sequence(slot)], wanted)
                    .map_err(|error| failed(error.to_string()))?;
            }
            let mut done = self.context.decode(&mut self.batch);
            if done == Err(DecodeError::NoKvCacheSlot) {
                for other in self.slots.clear_others(slot) {
                    self.cut(other, 0);
                }
                done = self.context.decode(&mut self.batch);
            }
            done.map_err(|error| failed(error.to_string()))?;
            self.slots.push(slot, chunk);
        }
        Ok(())
    }

    /// What may come next, behind what was read last.
    pub fn next(&self) -> LlamaTokenDataArray {
        self.context.token_data_array_ith(self.batch.n_tokens() - 1)
    }

    /// Cuts a sequence to so many tokens, and gives how many are left.
    fn forget(&mut self, slot: usize, keep: usize) -> usize {
        let left = match self.cut(slot, keep) {
            true => keep,
            // A model that cannot forget its end forgets everything.
            false => {
                self.cut(slot, 0);
                0
            }
        };
        self.slots.truncate(slot, left);
        left
    }

    fn cut(&mut self, slot: usize, keep: usize) -> bool {
        let cut = self
            .context
            .kv_cache_seq_rm(sequence(slot), Some(few(keep)), None);
        cut.is_ok()
    }
}

fn few(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn sequence(slot: usize) -> i32 {
    i32::try_from(slot).unwrap_or(i32::MAX)
}
