//! The engine on its thread: it takes requests one by one, and tells what comes of them.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use contexture::Message;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use llama_cpp_2::{DecodeError, LogOptions, send_logs_to_tracing};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::ask::{Ask, Taste, Wanted, name};
use super::constraint::{Constraint, Constraints};
use super::said::{self, Met, Said};
use super::slots::{Id, Slots, common};
use super::vocabulary::Vocabulary;
use super::words::CALL;
use super::{LocalError, Size};
use crate::{Delta, ModelError, Reply, Stop, Usage};

/// How many tokens are read at once. More is no faster, and between two a request can be called off.
const CHUNK: usize = 128;

/// Conversations that are kept at once, within the cells that there are.
const SEQUENCES: usize = 8;

/// The longest answer where the request does not say: a small model that has lost its way goes round
/// in circles.
const REPLY: usize = 1_024;

/// llama.cpp, which is set up once for the process.
pub(super) fn backend() -> Result<&'static LlamaBackend, LocalError> {
    static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();
    let made = BACKEND.get_or_init(|| {
        send_logs_to_tracing(LogOptions::default().with_logs_enabled(false));
        LlamaBackend::init().map_err(|error| error.to_string())
    });
    made.as_ref()
        .map_err(|what| LocalError::engine("llama.cpp cannot be set up", what))
}

/// What an engine says while it works.
pub(super) enum News {
    Delta(Delta),
    Done(Box<Result<Reply, ModelError>>),
}

struct Job {
    ask: Ask,
    news: UnboundedSender<News>,
}

/// A model at work on a thread of its own.
pub(super) struct Engine {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Engine {
    /// Starts one, and waits until it is ready.
    pub fn start(
        model: Arc<LlamaModel>,
        vocabulary: Arc<Vocabulary>,
        size: Size,
    ) -> Result<Self, LocalError> {
        let (jobs, todo) = mpsc::channel::<Job>();
        let (ready, is_ready) = mpsc::sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("model".to_owned())
            .spawn(move || {
                let made = Worker::new(&model, &vocabulary, size, &stopped);
                let mut worker = match made {
                    Ok(worker) => {
                        let _ = ready.send(Ok(()));
                        worker
                    }
                    Err(error) => {
                        let _ = ready.send(Err(error));
                        return;
                    }
                };
                while let Ok(job) = todo.recv() {
                    worker.work(&job);
                }
            })
            .map_err(|error| LocalError::engine("no thread for it", error))?;
        let gone = |error| LocalError::engine("the engine ended", error);
        is_ready.recv().map_err(gone)??;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            stop,
        })
    }

    /// Has a request answered. Whoever no longer listens calls it off.
    pub fn ask(&self, ask: Ask, news: UnboundedSender<News>) {
        // An engine that is gone drops the request, and whoever listens hears that.
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(Job { ask, news });
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.jobs = None;
        // It ends between two chunks. A process that exits while it computes would tear the ground
        // from under it.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Worker<'m> {
    model: &'m LlamaModel,
    vocabulary: &'m Vocabulary,
    context: LlamaContext<'m>,
    batch: LlamaBatch<'static>,
    slots: Slots,
    constraints: Option<Constraints>,
    window: usize,
    stop: &'m AtomicBool,
}

/// Why an answer ended before it was whole.
enum Broken {
    /// Nobody listens.
    CalledOff,
    Failed(ModelError),
}

impl From<ModelError> for Broken {
    fn from(error: ModelError) -> Self {
        Self::Failed(error)
    }
}

/// An answer that is growing in a slot.
struct Growing {
    slot: usize,
    cached: usize,
    prompt: Vec<Id>,
    /// Where in the last batch the next token's odds are.
    at: i32,
    began: Instant,
    reading: Duration,
}

impl<'m> Worker<'m> {
    fn new(
        model: &'m LlamaModel,
        vocabulary: &'m Vocabulary,
        size: Size,
        stop: &'m AtomicBool,
    ) -> Result<Self, LocalError> {
        let few = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
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
            model,
            vocabulary,
            context,
            batch: LlamaBatch::new(CHUNK, 1),
            slots: Slots::new(SEQUENCES, size.cells),
            constraints: None,
            window: size.window,
            stop,
        })
    }

    fn work(&mut self, job: &Job) {
        let alive = || !job.news.is_closed() && !self.stop.load(Ordering::Relaxed);
        if !alive() {
            return;
        }
        let mut tell = |delta| drop(job.news.send(News::Delta(delta)));
        let mut slot = None;
        let answered = self.answer(&job.ask, &mut slot, &job.news, &mut tell);
        let said = match answered {
            Ok(reply) => {
                let message = reply.message.clone();
                let _ = job.news.send(News::Done(Box::new(Ok(reply))));
                Some(message)
            }
            Err(Broken::CalledOff) => None,
            Err(Broken::Failed(error)) => {
                let _ = job.news.send(News::Done(Box::new(Err(error))));
                None
            }
        };
        if let Some(slot) = slot {
            self.settle(slot, &job.ask, said.as_ref());
        }
    }

    fn answer(
        &mut self,
        ask: &Ask,
        place: &mut Option<usize>,
        news: &UnboundedSender<News>,
        tell: &mut dyn FnMut(Delta),
    ) -> Result<Reply, Broken> {
        let invalid = |error: LocalError| ModelError::Invalid {
            what: error.to_string(),
        };
        let (prompt, plain) = self
            .vocabulary
            .prompt_ids(&ask.messages, &ask.tools)
            .map_err(invalid)?;
        if prompt.is_empty() || prompt.len() >= self.window {
            return Err(Broken::Failed(ModelError::Overflow {
                what: format!(
                    "it has {} tokens, and {} are read",
                    prompt.len(),
                    self.window
                ),
                limit: Some(self.window as u64),
            }));
        }
        let most = ask
            .max_tokens
            .unwrap_or(REPLY)
            .min(self.window - prompt.len());
        let native = self.vocabulary.calls_natively();
        let mut constraint = match &ask.wanted {
            Wanted::Json(schema) => Some(self.constraints()?.json(schema)?),
            Wanted::Call(_) if !native => Some(self.constraints()?.call(ask.callable())?),
            _ => None,
        };
        let mut growing = self.begin(prompt, plain, most, place, news)?;
        let mut call = None;
        let mut said = Said::new(
            ask.stop.clone(),
            (ask.wanted == Wanted::Any && !native).then_some(CALL.0),
        );
        if constraint.is_some() && matches!(ask.wanted, Wanted::Call(_)) {
            said.push(CALL.0.as_bytes());
            self.align(&mut growing, &said, news)?;
            call = Some(Vec::new());
        }
        let mut sampler = sampler(ask.taste);
        let mut made = 0;
        let stop = loop {
            if made >= most {
                break Stop::Length;
            }
            let token = self.choose(growing.at, &mut sampler, constraint.as_mut())?;
            made += 1;
            let ended = self.model.vocab().is_eog(token);
            let bytes = self.model.vocab().token_to_piece(token, native, None);
            if let Some(held) = &mut constraint {
                let whole = ended || held.take(token.0)?;
                match &mut call {
                    Some(json) if !ended => json.extend_from_slice(&bytes),
                    None if !ended => drop(said.push(&bytes)),
                    _ => {}
                }
                if whole {
                    break if call.is_some() {
                        Stop::Tools
                    } else {
                        Stop::End
                    };
                }
            } else if ended {
                break Stop::End;
            } else {
                match said.push(&bytes) {
                    Met::Nothing => {}
                    Met::Stop => break Stop::End,
                    Met::Call => {
                        constraint = Some(self.constraints()?.call(ask.callable())?);
                        call = Some(Vec::new());
                        self.align(&mut growing, &said, news)?;
                        continue;
                    }
                }
            }
            if call.is_none()
                && !native
                && let Some(text) = said.fresh()
            {
                tell(Delta::Text(text.to_owned()));
            }
            self.read(growing.slot, &[token.0], true, news)?;
            growing.at = 0;
        };
        Ok(self.reply(ask, &growing, &mut said, call, stop, made, tell))
    }

    /// Finds a place for the prompt, and reads what is not there yet.
    fn begin(
        &mut self,
        prompt: Vec<Id>,
        plain: usize,
        most: usize,
        place: &mut Option<usize>,
        news: &UnboundedSender<News>,
    ) -> Result<Growing, Broken> {
        let began = Instant::now();
        // The last token is read in any case: the odds of the next come from it.
        let reusable = plain.min(prompt.len() - 1);
        let plan = self.slots.plan(&prompt, reusable, most);
        *place = Some(plan.slot);
        if plan.evict.contains(&plan.slot) {
            self.forget(plan.slot, 0);
        }
        if let Some(from) = plan.copy_from {
            let to = few(plan.keep);
            let _ = self
                .context
                .copy_kv_cache_seq(seq(from), seq(plan.slot), Some(0), Some(to));
        }
        for gone in plan.evict.iter().filter(|gone| **gone != plan.slot) {
            self.forget(*gone, 0);
        }
        let keep = self.forget(plan.slot, plan.keep);
        self.slots.truncate(plan.slot, keep);
        self.read(plan.slot, &prompt[keep..], true, news)?;
        Ok(Growing {
            slot: plan.slot,
            cached: keep,
            prompt,
            at: self.batch.n_tokens() - 1,
            began,
            reading: began.elapsed(),
        })
    }

    /// Cuts a sequence to so many tokens. A model that cannot forget its end forgets everything.
    fn forget(&mut self, slot: usize, keep: usize) -> usize {
        let cut = |context: &mut LlamaContext<'_>, from: u32| {
            context.kv_cache_seq_rm(seq(slot), Some(from), None).is_ok()
        };
        if cut(&mut self.context, few(keep)) {
            return keep;
        }
        cut(&mut self.context, 0);
        0
    }

    /// Reads tokens behind those of a sequence.
    fn read(
        &mut self,
        slot: usize,
        ids: &[Id],
        odds: bool,
        news: &UnboundedSender<News>,
    ) -> Result<(), Broken> {
        let failed = |what: String| ModelError::Transient {
            what: format!("the engine: {what}"),
            retry_after: None,
        };
        for chunk in ids.chunks(CHUNK) {
            if news.is_closed() || self.stop.load(Ordering::Relaxed) {
                return Err(Broken::CalledOff);
            }
            let begin = self.slots.held(slot).len();
            self.batch.clear();
            for (n, &id) in chunk.iter().enumerate() {
                let position = i32::try_from(begin + n).unwrap_or(i32::MAX);
                let wanted = odds && n + 1 == chunk.len();
                self.batch
                    .add(LlamaToken(id), position, &[seq(slot)], wanted)
                    .map_err(|error| failed(error.to_string()))?;
            }
            let mut done = self.context.decode(&mut self.batch);
            if done == Err(DecodeError::NoKvCacheSlot) {
                for other in self.slots.clear_others(slot) {
                    self.forget(other, 0);
                }
                done = self.context.decode(&mut self.batch);
            }
            done.map_err(|error| failed(error.to_string()))?;
            self.slots.push(slot, chunk);
        }
        Ok(())
    }

    /// Makes the sequence hold what was said, token by token as it would be read again. A call
    /// begins at a clean edge so.
    fn align(
        &mut self,
        growing: &mut Growing,
        said: &Said,
        news: &UnboundedSender<News>,
    ) -> Result<(), Broken> {
        let mut want = growing.prompt.clone();
        want.extend(self.vocabulary.plain(said.text()));
        // The last is read again where all is there: the odds of the next come from it.
        let same = common(self.slots.held(growing.slot), &want).min(want.len() - 1);
        let keep = self.forget(growing.slot, same);
        self.slots.truncate(growing.slot, keep);
        self.read(growing.slot, &want[keep..], true, news)?;
        growing.at = self.batch.n_tokens() - 1;
        Ok(())
    }

    fn choose(
        &mut self,
        at: i32,
        sampler: &mut LlamaSampler,
        constraint: Option<&mut Constraint>,
    ) -> Result<LlamaToken, ModelError> {
        let mut next: LlamaTokenDataArray = self.context.token_data_array_ith(at);
        if let Some(constraint) = constraint {
            constraint.mask(&mut next)?;
        }
        next.apply_sampler(sampler);
        let token = next.selected_token().ok_or_else(|| ModelError::Garbage {
            what: "no token can come next".to_owned(),
        })?;
        sampler.accept(token);
        Ok(token)
    }

    fn constraints(&mut self) -> Result<&Constraints, ModelError> {
        if self.constraints.is_none() {
            let made = Constraints::new(self.model).map_err(|error| ModelError::Invalid {
                what: error.to_string(),
            })?;
            self.constraints = Some(made);
        }
        self.constraints.as_ref().ok_or(ModelError::Cut)
    }

    #[expect(clippy::too_many_arguments, reason = "all that an answer came to")]
    fn reply(
        &self,
        ask: &Ask,
        growing: &Growing,
        said: &mut Said,
        call: Option<Vec<u8>>,
        mut stop: Stop,
        made: usize,
        tell: &mut dyn FnMut(Delta),
    ) -> Reply {
        let id = format!("call_{}", growing.prompt.len());
        let message = match call {
            Some(json) if stop == Stop::Tools => {
                let json = String::from_utf8_lossy(&json);
                let text = said.text().strip_suffix(CALL.0).unwrap_or_default();
                said::message(text, Some(&json), &id)
            }
            Some(json) => {
                let text = format!("{}{}", said.text(), String::from_utf8_lossy(&json));
                Message::assistant(text)
            }
            None => {
                if let Some(text) = said.rest() {
                    tell(Delta::Text(text.to_owned()));
                }
                let known = |wish: &str| ask.tools.iter().any(|tool| name(tool) == Some(wish));
                match self.vocabulary.calls_natively() && !ask.tools.is_empty() {
                    true => said::native(said.text(), &known, &id),
                    false => Message::assistant(said.text()),
                }
            }
        };
        for call in &message.tool_calls {
            tell(Delta::Call {
                name: call.name.clone(),
            });
            stop = Stop::Tools;
        }
        Reply {
            message,
            stop,
            usage: Some(usage(growing, made)),
            model: None,
        }
    }

    /// Leaves in the cache what the next request of this conversation begins with: the request, and
    /// the answer as it will be read again. Nobody waits for it.
    fn settle(&mut self, slot: usize, ask: &Ask, said: Option<&Message>) {
        let all = ask.messages.iter().chain(said);
        let Ok(want) = self.vocabulary.ids(all, &ask.tools, false) else {
            return;
        };
        let want = &want[..want.len().min(self.window)];
        let keep = self.forget(slot, common(self.slots.held(slot), want));
        self.slots.truncate(slot, keep);
        if said.is_some() {
            let (listening, _heard) = tokio::sync::mpsc::unbounded_channel();
            // What cannot be read now is read with the next request.
            let _ = self.read(slot, &want[keep..], false, &listening);
        }
    }
}

fn sampler(taste: Taste) -> LlamaSampler {
    if taste.temperature <= 0.0 {
        return LlamaSampler::greedy();
    }
    LlamaSampler::chain_simple([
        LlamaSampler::top_k(40),
        LlamaSampler::top_p(taste.top_p, 1),
        LlamaSampler::temp(taste.temperature),
        LlamaSampler::dist(taste.seed),
    ])
}

/// What it cost, as llama.cpp's own server says it.
fn usage(growing: &Growing, made: usize) -> Usage {
    let millis = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    let writing = growing.began.elapsed().saturating_sub(growing.reading);
    let all = json!({
        "prompt_tokens": growing.prompt.len(),
        "completion_tokens": made,
        "total_tokens": growing.prompt.len() + made,
        "prompt_tokens_details": {"cached_tokens": growing.cached},
        "timings": {"prompt_ms": millis(growing.reading), "predicted_ms": millis(writing)},
    });
    Usage(match all {
        Value::Object(all) => all,
        _ => Map::new(),
    })
}

fn few(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn seq(slot: usize) -> i32 {
    i32::try_from(slot).unwrap_or(i32::MAX)
}
