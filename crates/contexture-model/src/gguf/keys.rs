//! The keys and values of a header. All values are read over; of few more is kept than their type.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::io::{Read, Seek};

use super::error::{Fault, GgufError, Place, grouped};
use super::source::Source;
use super::tokens;

/// The longest name of a key, from the format's own specification.
const LONGEST_NAME: u64 = 65_535;
/// The most layers that the engine takes: it ends the process when there are more.
pub(super) const MOST_LAYERS: u32 = 512;
/// The most texts that an array may have: the largest vocabularies known have 300,000 tokens, and
/// twice as many merges of them.
const MOST_TEXTS: u64 = 1 << 22;
/// The longest text that is kept. The longest templates known have 100 KB.
const LONGEST_KEPT: u64 = 1 << 20;
/// What a key takes in a file at least: the length of its name, a byte of it, a type, a value.
pub(super) const SMALLEST_KEY: u64 = 8 + 1 + 4 + 1;
/// What one takes in memory, besides its name.
const KEPT_FOR_A_KEY: u64 = 128;

/// The type of a single value, or of those in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ValueType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    Text,
    U64,
    I64,
    F64,
}

/// What stands behind a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// One value.
    One(ValueType),
    /// So many values.
    Array(ValueType, u64),
}

/// The keys of a header, by name.
pub(super) struct Keys(BTreeMap<String, (ValueKind, Value)>);

enum Value {
    /// Nothing here asks for it.
    Unkept,
    /// A number's bits.
    Bits(u64),
    Text(String),
    /// One number a layer.
    Layers(Vec<u32>),
}

impl Keys {
    pub fn read<R: Read + Seek>(source: &mut Source<'_, R>, count: u64) -> Result<Self, GgufError> {
        let mut keys = BTreeMap::new();
        for n in 1..=count {
            source.place = Place::NthKey(n);
            let name = source.name(LONGEST_NAME)?;
            source.keep(name.len() as u64 + KEPT_FOR_A_KEY)?;
            source.place = Place::Key(name.clone());
            let Entry::Vacant(entry) = keys.entry(name) else {
                return Err(source.broken("it is there twice"));
            };
            let value = value(source, entry.key())?;
            entry.insert(value);
        }
        Ok(Self(keys))
    }

    /// The names, with the kinds of what stands behind them.
    pub fn into_kinds(self) -> BTreeMap<String, ValueKind> {
        let kinds = self.0.into_iter().map(|(name, (kind, _))| (name, kind));
        kinds.collect()
    }

    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub fn kind(&self, key: &str) -> Option<ValueKind> {
        self.0.get(key).map(|(kind, _)| *kind)
    }

    /// How many values an array has.
    pub fn len(&self, key: &str) -> Option<u64> {
        match self.kind(key)? {
            ValueKind::Array(_, len) => Some(len),
            ValueKind::One(_) => None,
        }
    }

    pub fn u32(&self, key: &str) -> Result<Option<u32>, GgufError> {
        let bits = self.bits(key, ValueType::U32)?;
        Ok(bits.map(|bits| bits as u32))
    }

    pub fn u16(&self, key: &str) -> Result<Option<u16>, GgufError> {
        let bits = self.bits(key, ValueType::U16)?;
        Ok(bits.map(|bits| bits as u16))
    }

    pub fn f32(&self, key: &str) -> Result<Option<f32>, GgufError> {
        let bits = self.bits(key, ValueType::F32)?;
        Ok(bits.map(|bits| f32::from_bits(bits as u32)))
    }

    pub fn flag(&self, key: &str) -> Result<Option<bool>, GgufError> {
        let bits = self.bits(key, ValueType::Bool)?;
        Ok(bits.map(|bits| bits != 0))
    }

    /// A text, of those that are kept.
    pub fn text(&self, key: &str) -> Result<Option<&str>, GgufError> {
        match self.0.get(key) {
            None => Ok(None),
            Some((_, Value::Text(text))) => Ok(Some(text)),
            Some((kind, _)) => Err(wrong_type(key, *kind, "str")),
        }
    }

    /// The texts whose key begins like this, by the rest of it.
    pub fn texts(&self, prefix: &str) -> BTreeMap<String, String> {
        let texts = self.0.iter().filter_map(|(key, (_, value))| {
            let rest = key.strip_prefix(prefix)?;
            match value {
                Value::Text(text) => Some((rest.to_owned(), text.clone())),
                _ => None,
            }
        });
        texts.collect()
    }

    /// A number for each layer: one for all, or an array with one for each.
    pub fn layers(&self, key: &str, layers: u32) -> Result<Option<Vec<u32>>, GgufError> {
        match self.0.get(key) {
            None => Ok(None),
            Some((ValueKind::One(ValueType::U32), Value::Bits(bits))) => {
                Ok(Some(vec![*bits as u32; layers as usize]))
            }
            Some((_, Value::Layers(each))) if each.len() == layers as usize => {
                Ok(Some(each.clone()))
            }
            Some((ValueKind::Array(ValueType::U32 | ValueType::I32, len), _)) => {
                let len = grouped(*len);
                Err(GgufError::key(
                    key,
                    format!("it has {len} numbers for {layers} layers"),
                ))
            }
            Some((kind, _)) => Err(wrong_type(key, *kind, "u32, nor an array of them")),
        }
    }

    fn bits(&self, key: &str, of: ValueType) -> Result<Option<u64>, GgufError> {
        match self.0.get(key) {
            None => Ok(None),
            Some((ValueKind::One(kind), Value::Bits(bits))) if *kind == of => Ok(Some(*bits)),
            Some((kind, _)) => Err(wrong_type(key, *kind, of.name())),
        }
    }
}

fn value<R: Read + Seek>(
    source: &mut Source<'_, R>,
    key: &str,
) -> Result<(ValueKind, Value), GgufError> {
    let number = source.u32()?;
    if number == ARRAY {
        return array(source, key);
    }
    let of = value_type(source, number)?;
    let value = match of.size() {
        None => {
            let kept = is_kept_text(key);
            let text = source.text(if kept { LONGEST_KEPT } else { u64::MAX })?;
            match kept {
                true => {
                    // There and in what is made of it.
                    source.keep(2 * text.len() as u64)?;
                    Value::Text(text)
                }
                false => Value::Unkept,
            }
        }
        Some(size) => match source.bits(size)? {
            bits if of == ValueType::Bool && bits > 1 => {
                return Err(source.broken(format!("a bool is 0 or 1, and this is {bits}")));
            }
            bits => Value::Bits(bits),
        },
    };
    Ok((ValueKind::One(of), value))
}

fn array<R: Read + Seek>(
    source: &mut Source<'_, R>,
    key: &str,
) -> Result<(ValueKind, Value), GgufError> {
    let number = source.u32()?;
    if number == ARRAY {
        return Err(source.broken("it is an array of arrays"));
    }
    let of = value_type(source, number)?;
    let len = source.u64()?;
    // A string has its length before it.
    let size = of.size().unwrap_or(8);
    source.claim(len.saturating_mul(size))?;
    let mut value = Value::Unkept;
    match of {
        ValueType::Text if len > MOST_TEXTS => {
            let (len, most) = (grouped(len), grouped(MOST_TEXTS));
            let what = format!("it has {len} strings, and {most} are possible");
            return Err(source.error(Fault::TooLarge(what)));
        }
        ValueType::Text if key == tokens::KEY => tokens::read(source, len)?,
        ValueType::Text => {
            for _ in 0..len {
                let len = source.u64()?;
                source.skip(len)?;
            }
        }
        ValueType::U32 | ValueType::I32
            if is_kept_for_layers(key) && len <= u64::from(MOST_LAYERS) =>
        {
            source.keep(len * size)?;
            let each: Result<_, _> = (0..len).map(|_| source.u32()).collect();
            value = Value::Layers(each?);
        }
        _ => source.skip(len * size)?,
    }
    Ok((ValueKind::Array(of, len), value))
}

/// Texts that somebody here asks for. The architecture may come after a key that has it in its name.
fn is_kept_text(key: &str) -> bool {
    const KEPT: [&str; 6] = [
        "general.architecture",
        "general.name",
        "general.type",
        "tokenizer.chat_template",
        "tokenizer.ggml.model",
        "tokenizer.ggml.pre",
    ];
    KEPT.contains(&key)
        || key.starts_with("tokenizer.chat_template.")
        || key.ends_with(".rope.scaling.type")
}

/// Arrays with a number for each layer that somebody here asks for.
fn is_kept_for_layers(key: &str) -> bool {
    [
        ".attention.head_count",
        ".attention.head_count_kv",
        ".expert_used_count",
    ]
    .iter()
    .any(|end| key.ends_with(end))
}

const ARRAY: u32 = 9;

fn value_type<R: Read + Seek>(source: &Source<'_, R>, number: u32) -> Result<ValueType, GgufError> {
    use ValueType::*;
    Ok(match number {
        0 => U8,
        1 => I8,
        2 => U16,
        3 => I16,
        4 => U32,
        5 => I32,
        6 => F32,
        7 => Bool,
        8 => Text,
        10 => U64,
        11 => I64,
        12 => F64,
        _ => {
            return Err(source.broken(format!(
                "its type has the number {number}, which no type has"
            )));
        }
    })
}

impl ValueType {
    /// How many bytes a value takes, where that is always the same.
    fn size(self) -> Option<u64> {
        match self {
            Self::U8 | Self::I8 | Self::Bool => Some(1),
            Self::U16 | Self::I16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::Text => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::Bool => "bool",
            Self::Text => "str",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F64 => "f64",
        }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(of) => f.write_str(of.name()),
            Self::Array(of, len) => write!(f, "array of {} {}", grouped(*len), of.name()),
        }
    }
}

fn wrong_type(key: &str, is: ValueKind, wanted: &str) -> GgufError {
    let what = Fault::Broken(format!("its value is {is}, not {wanted}"));
    GgufError::new(Place::Key(key.to_owned()), what)
}
