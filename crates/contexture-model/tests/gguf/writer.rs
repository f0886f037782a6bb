//! A writer of small GGUF files, which lies where it is told to.

/// A value behind a key.
#[derive(Clone)]
pub enum Value {
    U8(u8),
    U16(u16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(u8),
    Text(Vec<u8>),
    U64(u64),
    U32s(Vec<u32>),
    Texts(Vec<Vec<u8>>),
    /// The number of a type, and the bytes behind it.
    Raw(u32, Vec<u8>),
}

pub fn text(text: &str) -> Value {
    Value::Text(text.as_bytes().to_vec())
}

/// So many tokens.
pub fn tokens(count: usize) -> Value {
    let each = (0..count).map(|n| format!("token {n}").into_bytes());
    Value::Texts(each.collect())
}

/// A string that claims to have so many bytes.
pub fn claim(len: u64) -> Vec<u8> {
    len.to_le_bytes().to_vec()
}

#[derive(Clone)]
pub struct Tensor {
    pub name: Vec<u8>,
    pub dimensions: Vec<u64>,
    pub number: u32,
    /// Where its data begins: by itself, behind the tensor before it.
    pub offset: Option<u64>,
    pub bytes: u64,
}

#[derive(Clone)]
pub struct Gguf {
    pub magic: [u8; 4],
    pub version: u32,
    pub keys: Vec<(Vec<u8>, Value)>,
    pub tensors: Vec<Tensor>,
    pub alignment: u64,
    /// What it claims to have.
    pub key_count: Option<u64>,
    pub tensor_count: Option<u64>,
}

pub const TOKENS: usize = 12;
pub const F32: u32 = 0;
pub const F16: u32 = 1;
pub const Q4_0: u32 = 2;

impl Gguf {
    /// A small model that is as it should be.
    pub fn llama() -> Self {
        Self::of("llama")
    }

    /// The same of another architecture.
    pub fn of(architecture: &str) -> Self {
        let file = Self {
            magic: *b"GGUF",
            version: 3,
            keys: Vec::new(),
            tensors: Vec::new(),
            alignment: 32,
            key_count: None,
            tensor_count: None,
        };
        let number =
            |file: Self, key: &str, n| file.with(&format!("{architecture}.{key}"), Value::U32(n));
        let file = file
            .with("general.architecture", text(architecture))
            .with("general.name", text("Small one"))
            .with("general.file_type", Value::U32(2));
        let file = number(file, "context_length", 4096);
        let file = number(file, "block_count", 2);
        let file = number(file, "embedding_length", 64);
        let file = number(file, "attention.head_count", 4);
        let file = number(file, "attention.head_count_kv", 2);
        file.with("tokenizer.ggml.model", text("gpt2"))
            .with("tokenizer.ggml.pre", text("smollm"))
            .with("tokenizer.ggml.tokens", tokens(TOKENS))
            .with("tokenizer.ggml.bos_token_id", Value::U32(1))
            .with("tokenizer.ggml.eos_token_id", Value::U32(2))
            .with("tokenizer.ggml.add_bos_token", Value::Bool(1))
            .with("tokenizer.chat_template", text("{{ messages }}"))
            .tensor(
                "token_embd.weight",
                &[64, TOKENS as u64],
                Q4_0,
                64 / 32 * 18 * 12,
            )
            .tensor("output_norm.weight", &[64], F32, 64 * 4)
            .tensor("blk.0.attn_q.weight", &[64, 64], F16, 64 * 64 * 2)
    }

    /// With a key, in the place of one of the same name.
    pub fn with(mut self, key: &str, value: Value) -> Self {
        match self
            .keys
            .iter_mut()
            .find(|(name, _)| name == key.as_bytes())
        {
            Some((_, old)) => *old = value,
            None => self.keys.push((key.as_bytes().to_vec(), value)),
        }
        self
    }

    /// With one more key, whatever there is.
    pub fn and(mut self, key: &[u8], value: Value) -> Self {
        self.keys.push((key.to_vec(), value));
        self
    }

    pub fn without(mut self, key: &str) -> Self {
        self.keys.retain(|(name, _)| name != key.as_bytes());
        self
    }

    /// With one more tensor.
    pub fn tensor(mut self, name: &str, dimensions: &[u64], number: u32, bytes: u64) -> Self {
        self.tensors.push(Tensor {
            name: name.as_bytes().to_vec(),
            dimensions: dimensions.to_vec(),
            number,
            offset: None,
            bytes,
        });
        self
    }

    /// With another first tensor.
    pub fn first(mut self, change: impl FnOnce(&mut Tensor)) -> Self {
        change(&mut self.tensors[0]);
        self
    }

    /// With another last tensor.
    pub fn last(mut self, change: impl FnOnce(&mut Tensor)) -> Self {
        change(self.tensors.last_mut().unwrap());
        self
    }

    /// The header.
    pub fn header(&self) -> Vec<u8> {
        let mut bytes = self.magic.to_vec();
        bytes.extend(self.version.to_le_bytes());
        let tensors = self.tensor_count.unwrap_or(self.tensors.len() as u64);
        bytes.extend(tensors.to_le_bytes());
        let keys = self.key_count.unwrap_or(self.keys.len() as u64);
        bytes.extend(keys.to_le_bytes());
        for (key, value) in &self.keys {
            string(&mut bytes, key);
            value.write(&mut bytes);
        }
        let mut end = 0u64;
        for tensor in &self.tensors {
            string(&mut bytes, &tensor.name);
            bytes.extend((tensor.dimensions.len() as u32).to_le_bytes());
            for dimension in &tensor.dimensions {
                bytes.extend(dimension.to_le_bytes());
            }
            bytes.extend(tensor.number.to_le_bytes());
            let next = end.next_multiple_of(self.alignment);
            bytes.extend(tensor.offset.unwrap_or(next).to_le_bytes());
            end = next + tensor.bytes;
        }
        bytes
    }

    /// All of it, up to the last byte of the last tensor.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.header();
        for tensor in &self.tensors {
            let begin = (bytes.len() as u64).next_multiple_of(self.alignment);
            bytes.resize((begin + tensor.bytes) as usize, 0);
        }
        bytes
    }
}

impl Value {
    fn write(&self, bytes: &mut Vec<u8>) {
        let mut put = |number: u32, value: &[u8]| {
            bytes.extend(number.to_le_bytes());
            bytes.extend(value);
        };
        match self {
            Self::U8(n) => put(0, &[*n]),
            Self::U16(n) => put(2, &n.to_le_bytes()),
            Self::U32(n) => put(4, &n.to_le_bytes()),
            Self::I32(n) => put(5, &n.to_le_bytes()),
            Self::F32(n) => put(6, &n.to_le_bytes()),
            Self::Bool(n) => put(7, &[*n]),
            Self::Text(text) => {
                put(8, &[]);
                string(bytes, text);
            }
            Self::U64(n) => put(10, &n.to_le_bytes()),
            Self::U32s(each) => {
                put(9, &4u32.to_le_bytes());
                bytes.extend((each.len() as u64).to_le_bytes());
                each.iter().for_each(|n| bytes.extend(n.to_le_bytes()));
            }
            Self::Texts(each) => {
                put(9, &8u32.to_le_bytes());
                bytes.extend((each.len() as u64).to_le_bytes());
                each.iter().for_each(|text| string(bytes, text));
            }
            Self::Raw(number, value) => put(*number, value),
        }
    }
}

fn string(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text);
}
