//! The vocabulary. It is not kept, but the engine ends the process when a token is there twice, or
//! when one shall be added that there is not.

use std::hash::{DefaultHasher, Hasher};
use std::io::{Read, Seek};

use super::error::{GgufError, grouped, shown};
use super::keys::{Keys, ValueKind, ValueType};
use super::source::Source;

pub(super) const KEY: &str = "tokenizer.ggml.tokens";

/// The most bytes that a token may have.
const LONGEST: u64 = 65_535;

/// How a model's tokens are made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tokenizer {
    /// The method: `gpt2`, `llama` and others.
    pub model: String,
    /// How text is taken apart before that.
    pub pre: Option<String>,
    /// The number of tokens.
    pub tokens: u32,
    /// The token that begins a text.
    pub bos: Option<u32>,
    /// The token that ends one.
    pub eos: Option<u32>,
    /// The token that ends a turn.
    pub eot: Option<u32>,
    /// Whether a text is to begin with `bos`, where the file says so.
    pub add_bos: Option<bool>,
    /// Whether a text is to end with `eos`, where the file says so.
    pub add_eos: Option<bool>,
}

impl Tokenizer {
    pub(super) fn of(keys: &Keys) -> Result<Self, GgufError> {
        let model = keys.text(MODEL)?;
        let model = model.ok_or_else(|| GgufError::key(MODEL, "it is missing"))?;
        let Some(method) = METHODS.iter().find(|method| method.name == model) else {
            let what = format!(
                "\"{}\" is no tokenizer that this version knows",
                shown(model)
            );
            return Err(GgufError::key(MODEL, what));
        };
        let tokens = match keys.kind(KEY) {
            // No more than fit: that was checked when they were read.
            Some(ValueKind::Array(ValueType::Text, count)) => count as u32,
            Some(kind) => return Err(GgufError::key(KEY, format!("its value is {kind}"))),
            None => {
                return Err(GgufError::key(
                    KEY,
                    "it is missing: the file has no vocabulary",
                ));
            }
        };
        let id = |key: &str| match keys.u32(key)? {
            Some(id) if id >= tokens => {
                let (id, tokens) = (grouped(id.into()), grouped(tokens.into()));
                let what = format!("it is {id}, and there are {tokens} tokens");
                Err(GgufError::key(key, what))
            }
            id => Ok(id),
        };
        let tokenizer = Self {
            model: model.to_owned(),
            pre: keys.text("tokenizer.ggml.pre")?.map(str::to_owned),
            tokens,
            bos: id(BOS)?,
            eos: id(EOS)?,
            eot: id("tokenizer.ggml.eot_token_id")?,
            add_bos: keys.flag("tokenizer.ggml.add_bos_token")?,
            add_eos: keys.flag("tokenizer.ggml.add_eos_token")?,
        };
        // The engine adds it here whatever the file says.
        let forced = [
            tokenizer.model.as_str(),
            tokenizer.pre.as_deref().unwrap_or_default(),
        ];
        let add_bos = tokenizer.add_bos.filter(|_| !forced.contains(&"gemma4"));
        let missing = |add: Option<bool>, adds: bool, id: Option<u32>, other: Option<u32>| {
            let other = other.filter(|id| *id < tokens);
            add.unwrap_or(adds) && id.or(other).is_none()
        };
        if missing(add_bos, method.adds_bos, tokenizer.bos, method.bos) {
            return Err(GgufError::key(
                BOS,
                "it is missing, and every text begins with it",
            ));
        }
        if missing(
            tokenizer.add_eos,
            method.adds_eos,
            tokenizer.eos,
            method.eos,
        ) {
            return Err(GgufError::key(
                EOS,
                "it is missing, and every text ends with it",
            ));
        }
        Ok(tokenizer)
    }
}

const MODEL: &str = "tokenizer.ggml.model";
const BOS: &str = "tokenizer.ggml.bos_token_id";
const EOS: &str = "tokenizer.ggml.eos_token_id";

/// A method, with the tokens that it takes where the file names none, and whether it may add them
/// where the file does not say.
struct Method {
    name: &'static str,
    bos: Option<u32>,
    eos: Option<u32>,
    adds_bos: bool,
    adds_eos: bool,
}

const fn method(
    name: &'static str,
    (bos, adds_bos): (Option<u32>, bool),
    (eos, adds_eos): (Option<u32>, bool),
) -> Method {
    Method {
        name,
        bos,
        eos,
        adds_bos,
        adds_eos,
    }
}

const METHODS: [Method; 8] = [
    method("gemma4", (None, true), (None, false)),
    method("gpt2", (Some(11), true), (Some(11), false)),
    method("hybriddna", (Some(11), true), (Some(11), false)),
    method("llama", (Some(1), true), (Some(2), false)),
    method("plamo2", (Some(1), false), (Some(2), false)),
    method("rwkv", (None, false), (None, false)),
    method("t5", (None, false), (Some(1), true)),
    method("whitespace", (Some(11), true), (Some(11), false)),
];

/// Reads over the tokens, which may be any bytes, and refuses what is there twice.
pub(super) fn read<R: Read + Seek>(
    source: &mut Source<'_, R>,
    count: u64,
) -> Result<(), GgufError> {
    if count == 0 {
        return Err(source.broken("it has no tokens"));
    }
    // A digest of each instead of its text, and the order of them.
    source.has_room(count * (8 + 4))?;
    let mut digests = Vec::with_capacity(count as usize);
    let mut token = Vec::new();
    for n in 0..count {
        source.string(LONGEST, &mut token)?;
        if token.is_empty() {
            // The name that the engine gives to it.
            token.extend_from_slice(format!("[EMPTY_{n}]").as_bytes());
        }
        digests.push(digest(&token));
    }
    let mut order: Vec<u32> = (0..count as u32).collect();
    order.sort_unstable_by_key(|n| (digests[*n as usize], *n));
    let same = order.windows(2).find(|two| {
        let [one, other] = [two[0], two[1]];
        digests[one as usize] == digests[other as usize]
    });
    match same {
        Some(two) => {
            let what = format!("tokens {} and {} are the same", two[0], two[1]);
            Err(source.broken(what))
        }
        None => Ok(()),
    }
}

fn digest(token: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(token);
    hasher.finish()
}
