use std::fmt;

use super::Tokenizer;
use crate::ContextError;

/// A tokenizer read from a model's `tokenizer.json`.
pub struct FileTokenizer {
    name: String,
    inner: kitoken::Kitoken,
}

impl FileTokenizer {
    /// From the file's bytes. The core reads no files: the caller does, and says where from.
    pub fn from_json(name: impl Into<String>, bytes: &[u8]) -> Result<Self, ContextError> {
        let name = name.into();
        match read(bytes) {
            Ok(inner) => Ok(Self { name, inner }),
            Err(why) => Err(ContextError::invalid(
                name,
                format!("is no tokenizer that can be read: {why}"),
                "give a Hugging Face `tokenizer.json`",
            )),
        }
    }
}

fn read(bytes: &[u8]) -> Result<kitoken::Kitoken, String> {
    let definition =
        kitoken::Definition::from_tokenizers_slice(bytes).map_err(|error| error.to_string())?;
    // An empty vocabulary makes `kitoken` 0.11 panic.
    if definition.model.vocab().is_empty() {
        return Err("its vocabulary is empty".to_owned());
    }
    kitoken::Kitoken::from_definition(definition).map_err(|error| error.to_string())
}

impl Tokenizer for FileTokenizer {
    fn name(&self) -> &str {
        &self.name
    }

    fn exact(&self) -> bool {
        true
    }

    fn count(&self, text: &str) -> usize {
        // Special tokens in the text are data here, never control.
        match self.inner.encode(text, false) {
            Ok(tokens) => tokens.len(),
            // Text that the vocabulary has no token for: every byte is at most one token.
            Err(_) => text.len(),
        }
    }
}

impl fmt::Debug for FileTokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileTokenizer").field(&self.name).finish()
    }
}
