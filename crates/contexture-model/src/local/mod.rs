//! A model in this process: a GGUF file on llama.cpp's engine.
//!
//! It takes the same bodies as any other model, in the chat form, so its requests are in the log like
//! theirs. What the file holds decides how it is spoken to: the chat template and the vocabulary are
//! read from it, and [`Vocabulary`] counts exactly what the engine reads.
//!
//! The keys and values of what was read are kept, and a request that begins like an earlier one is
//! read from where it differs. `usage` says how many tokens that saved. The conversation that is being
//! read or written is in the engine's cells, and the others rest in memory beside it.

mod ask;
mod calls;
mod constraint;
mod engine;
mod form;
mod memory;
mod reader;
mod said;
mod shield;
mod slots;
mod template;
mod vocabulary;
mod words;
mod worker;

use std::path::Path;
use std::sync::Arc;

use contexture::tokens::Tokenizer;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;

use self::ask::Ask;
use self::engine::{Engine, News, backend};
use self::memory::Room;
pub use self::vocabulary::Vocabulary;
use crate::gguf::{GgufError, Header};
use crate::{Api, Called, Delta, Model, ModelError};

/// How much of the machine a model may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LocalOptions {
    /// The most tokens of a request and its answer; what the model was trained for unless given,
    /// and no more than 32,768.
    pub window: Option<usize>,
    /// Tokens that other conversations together keep while they rest; two windows unless given, so
    /// that two which fill theirs can take turns.
    pub resting: Option<usize>,
    /// Threads; one for each core unless given.
    pub threads: Option<usize>,
}

/// What an engine is given.
#[derive(Debug, Clone, Copy)]
struct Size {
    window: usize,
    /// The bytes that conversations at rest may take.
    resting: usize,
    threads: usize,
}

/// The largest window unless somebody asks for more: its memory is taken at the start.
const WINDOW: usize = 32_768;

/// Fewer weights than this make a small model.
const SMALL: u64 = 1_000_000_000;

/// A model in this process.
pub struct LocalModel {
    name: String,
    engine: Engine,
    vocabulary: Arc<Vocabulary>,
    window: usize,
    small: bool,
}

/// Why a model's file is of no use here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// The file is damaged, or no model that the engine knows.
    #[error(transparent)]
    File(#[from] GgufError),
    /// How it wants to be spoken to cannot be followed.
    #[error("the model's chat template cannot be used: {what}")]
    Template {
        /// What is wrong with it.
        what: String,
    },
    /// There is not enough memory.
    #[error("the model needs {} MB of memory, and {} MB are free", .needed >> 20, .free >> 20)]
    Memory {
        /// What it takes, in bytes.
        needed: u64,
        /// What there is.
        free: u64,
    },
    /// The engine refused.
    #[error("{what}: {why}")]
    Engine {
        /// What it was to do.
        what: String,
        /// What it said.
        why: String,
    },
}

impl LocalError {
    #[expect(clippy::needless_pass_by_value, reason = "as map_err gives it")]
    fn engine(what: &str, why: impl ToString) -> Self {
        Self::Engine {
            what: what.to_owned(),
            why: why.to_string(),
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::File(error) => error.hint().to_owned(),
            Self::Template { .. } => "use a build of the model made for conversations".to_owned(),
            Self::Memory { .. } => "end other programs, or take a smaller model".to_owned(),
            Self::Engine { .. } => "try another file of the model, or a newer version".to_owned(),
        }
    }
}

impl LocalModel {
    /// Loads a model. `name` is what requests call it.
    pub fn open(name: &str, path: &Path, options: LocalOptions) -> Result<Self, LocalError> {
        let header = Header::of_file(path)?;
        let size = size(&header, options)?;
        let params = LlamaModelParams::default();
        let model = LlamaModel::load_from_file(backend()?, path, &params)
            .map_err(|error| LocalError::engine("the model cannot be loaded", error))?;
        let model = Arc::new(model);
        let vocabulary = Arc::new(Vocabulary::of(name, Arc::clone(&model), &header)?);
        let engine = Engine::start(model, Arc::clone(&vocabulary), size)?;
        Ok(Self {
            name: name.to_owned(),
            engine,
            vocabulary,
            window: size.window,
            small: header.parameters() < SMALL,
        })
    }
}

/// The window that a model has where there is memory for it: the one asked for, and no more than it was made for.
pub fn window(header: &Header, options: LocalOptions) -> usize {
    let trained = usize::try_from(header.context_length).unwrap_or(usize::MAX);
    options.window.unwrap_or(WINDOW).min(trained)
}

/// What the model and the machine allow.
fn size(header: &Header, options: LocalOptions) -> Result<Size, LocalError> {
    let wanted = window(header, options);
    let wanted = Room {
        window: wanted,
        resting: options.resting.unwrap_or(2 * wanted),
    };
    let cell = header.kv_bytes_per_token();
    let room = memory::fitting(header.weight_bytes(), cell, wanted)?;
    Ok(Size {
        window: room.window,
        resting: room.resting_bytes(cell),
        threads: options.threads.unwrap_or_else(free_cores).clamp(1, 64),
    })
}

/// The cores that nobody uses: the engine's threads wait for one another, and on a core that is shared
/// all wait for the slowest.
fn free_cores() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load
        .split(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or_default();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small number"
    )]
    let busy = load.clamp(0.0, 1e3) as usize;
    cores.saturating_sub(busy).max(1)
}

impl Model for LocalModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn api(&self) -> Api {
        Api::Chat
    }

    fn tokenizer(&self) -> Option<Arc<dyn Tokenizer>> {
        Some(Arc::clone(&self.vocabulary) as _)
    }

    fn window(&self) -> Option<usize> {
        Some(self.window)
    }

    fn is_small(&self) -> bool {
        self.small
    }

    fn call<'a>(
        &'a self,
        body: Vec<u8>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> Called<'a> {
        Box::pin(async move {
            let ask = Ask::read(&body)?;
            let (news, mut heard) = tokio::sync::mpsc::unbounded_channel();
            self.engine.ask(ask, news);
            while let Some(news) = heard.recv().await {
                match news {
                    News::Delta(delta) => on_delta(delta),
                    News::Done(done) => return *done,
                }
            }
            Err(ModelError::Transient {
                what: "the engine ended".to_owned(),
                retry_after: None,
            })
        })
    }
}
