//! Reads the header of a GGUF file: what a model is, and whether its file can be trusted with the
//! engine.
//!
//! llama.cpp ends the process, or reserves memory without bound, on some broken files. So a file is
//! read here first, and only what passes reaches it. Nothing is reserved for a length before it is
//! known that the file can hold it, and all that is kept has a bound. The checks are of what is known
//! to bring the engine down; what it refuses by itself with an error is left to it where that is
//! simpler.
//!
//! Versions 2 and 3 of the format are read, little-endian.

mod arch;
mod error;
mod keys;
mod shape;
mod source;
mod tensor;
mod tokens;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

pub use error::{Fault, GgufError, Place};
pub use keys::{ValueKind, ValueType};
pub use tensor::Tensor;
pub use tokens::Tokenizer;

use error::{grouped, shown};
use keys::Keys;
use shape::Shape;
use source::Source;

/// What the header of a GGUF file says of the model in it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// The version of the format.
    pub version: u32,
    /// The kind of network, as `llama` or `qwen3`.
    pub architecture: String,
    /// The model's name.
    pub name: Option<String>,
    /// The number of the type that most weights have.
    pub file_type: Option<u32>,
    /// The most tokens that the model was made for.
    pub context_length: u32,
    /// The number of layers.
    pub block_count: u32,
    /// The width of the network.
    pub embedding_length: u32,
    /// The heads of each layer's attention; 0 where a layer has none.
    pub head_count: Vec<u32>,
    /// Those of them that have keys and values of their own.
    pub head_count_kv: Vec<u32>,
    /// The length of a head's key.
    pub key_length: u32,
    /// The length of a head's value.
    pub value_length: u32,
    /// The number of experts; 0 where there are none.
    pub expert_count: u32,
    /// The template that makes a text of messages.
    pub chat_template: Option<String>,
    /// More such templates by name, as `tool_use`.
    pub chat_templates: BTreeMap<String, String>,
    /// How tokens are made.
    pub tokenizer: Tokenizer,
    /// All keys, with the kinds of their values.
    pub keys: BTreeMap<String, ValueKind>,
    /// The weights.
    pub tensors: Vec<Tensor>,
    attention_every: u32,
}

impl Header {
    /// Reads the header of a file. What is not a regular file is not opened: a pipe could hang.
    pub fn of_file(path: &Path) -> Result<Self, GgufError> {
        let unreadable = |error: std::io::Error| {
            GgufError::new(Place::File, Fault::Unreadable(error.to_string())).of_path(path)
        };
        let not_a_file = || GgufError::new(Place::File, Fault::NotAFile).of_path(path);
        if !path.metadata().map_err(unreadable)?.is_file() {
            return Err(not_a_file());
        }
        let mut file = File::open(path).map_err(unreadable)?;
        let about = file.metadata().map_err(unreadable)?;
        if !about.is_file() {
            return Err(not_a_file());
        }
        Self::read(&mut file, about.len()).map_err(|error| error.of_path(path))
    }

    /// Reads a header from the beginning of something that has `file_len` bytes.
    pub fn read(reader: &mut (impl Read + Seek), file_len: u64) -> Result<Self, GgufError> {
        let mut source = Source::new(reader, file_len)?;
        let version = version(&mut source)?;
        let tensor_count = source.u64()?;
        let key_count = source.u64()?;
        let least_of_tensors = tensor_count.saturating_mul(tensor::SMALLEST_TENSOR);
        let least_of_keys = key_count.saturating_mul(keys::SMALLEST_KEY);
        source.claim(least_of_tensors.saturating_add(least_of_keys))?;
        let keys = Keys::read(&mut source, key_count)?;
        let architecture = architecture(&keys)?;
        let mut tensors = tensor::read(&mut source, tensor_count)?;
        let alignment = alignment(&keys)?;
        tensor::place(&mut tensors, source.at(), alignment, source.len())?;
        let shape = Shape::of(&keys, &architecture)?;
        let tokenizer = Tokenizer::of(&keys)?;
        check_embeddings(&tensors, &tokenizer)?;
        // Names come to terminals: nothing in them may do more than be shown.
        let plain = |text: &str| text.replace(char::is_control, "\u{fffd}");
        Ok(Self {
            version,
            architecture,
            name: keys.text("general.name")?.map(plain),
            file_type: keys.u32("general.file_type")?,
            context_length: shape.context_length,
            block_count: shape.block_count,
            embedding_length: shape.embedding_length,
            head_count: shape.head_count,
            head_count_kv: shape.head_count_kv,
            key_length: shape.key_length,
            value_length: shape.value_length,
            expert_count: shape.expert_count,
            chat_template: keys.text("tokenizer.chat_template")?.map(str::to_owned),
            chat_templates: keys.texts("tokenizer.chat_template."),
            tokenizer,
            keys: keys.into_kinds(),
            tensors,
            attention_every: shape.attention_every,
        })
    }

    /// Returns true if a template says how tools are called.
    pub fn knows_tools(&self) -> bool {
        let templates = self
            .chat_template
            .iter()
            .chain(self.chat_templates.values());
        templates.into_iter().any(|text| text.contains("tools"))
    }

    /// The number of parameters: the elements of all tensors.
    pub fn parameters(&self) -> u64 {
        let each = self.tensors.iter().map(Tensor::elements);
        each.fold(0, u64::saturating_add)
    }

    /// The bytes of all tensors, which is about what the model takes in memory.
    pub fn weight_bytes(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.bytes).sum()
    }

    /// The bytes that a token in the context takes at most, its keys and values having 16 bits. It
    /// takes fewer where the network forgets, or compresses them.
    pub fn kv_bytes_per_token(&self) -> u64 {
        let every = self.attention_every as usize;
        let attending = self.head_count_kv.iter().skip(every - 1).step_by(every);
        let heads: u64 = attending.map(|heads| u64::from(*heads)).sum();
        heads * (u64::from(self.key_length) + u64::from(self.value_length)) * 2
    }
}

/// The beginning: what kind of file this is at all.
fn version<R: Read + Seek>(source: &mut Source<'_, R>) -> Result<u32, GgufError> {
    const MAGIC: &[u8; 4] = b"GGUF";
    let mut begin = vec![0; source.len().min(4) as usize];
    source.exact(&mut begin)?;
    if !MAGIC.starts_with(&begin) {
        let begin = begin.escape_ascii().to_string();
        return Err(source.error(Fault::NotGguf(begin)));
    }
    let version = source.u32()?;
    match version {
        2 | 3 => Ok(version),
        _ if (1..=3).contains(&version.swap_bytes()) => Err(source.error(Fault::BigEndian)),
        _ => Err(source.error(Fault::Version(version))),
    }
}

fn architecture(keys: &Keys) -> Result<String, GgufError> {
    const ARCHITECTURE: &str = "general.architecture";
    let of_file = |fault| GgufError::new(Place::File, fault);
    // The engine would open the others without anybody having looked at them.
    if let Some(count @ 2..) = keys.u16("split.count")? {
        return Err(of_file(Fault::Split(count.into())));
    }
    let name = keys.text(ARCHITECTURE)?;
    let name = name.ok_or_else(|| GgufError::key(ARCHITECTURE, "it is missing"))?;
    arch::check(name).map_err(of_file)?;
    match keys.text("general.type")? {
        None | Some("model") => Ok(name.to_owned()),
        Some(other) => {
            let what = format!(
                "it is \"{}\", and only a whole model can be used",
                shown(other)
            );
            Err(GgufError::key("general.type", what))
        }
    }
}

/// On multiples of what the tensors lie.
fn alignment(keys: &Keys) -> Result<u64, GgufError> {
    const ALIGNMENT: &str = "general.alignment";
    const MOST: u32 = 1 << 20;
    match keys.u32(ALIGNMENT)? {
        None => Ok(32),
        Some(alignment) if alignment.is_power_of_two() && alignment <= MOST => Ok(alignment.into()),
        Some(other) => {
            let (other, most) = (grouped(other.into()), grouped(MOST.into()));
            let what = format!("it is {other}, and not a power of two up to {most}");
            Err(GgufError::key(ALIGNMENT, what))
        }
    }
}

/// The first thing that the engine looks up for a token is its row here.
fn check_embeddings(tensors: &[Tensor], tokenizer: &Tokenizer) -> Result<(), GgufError> {
    const EMBEDDINGS: &str = "token_embd.weight";
    let found = tensors.iter().find(|tensor| tensor.name == EMBEDDINGS);
    let found = found.ok_or_else(|| GgufError::tensor(EMBEDDINGS, "it is missing"))?;
    let rows: u64 = found.dimensions.iter().skip(1).product();
    if rows != u64::from(tokenizer.tokens) {
        let (rows, tokens) = (grouped(rows), grouped(tokenizer.tokens.into()));
        let what = format!("it has {rows} rows for {tokens} tokens");
        return Err(GgufError::tensor(EMBEDDINGS, what));
    }
    Ok(())
}
