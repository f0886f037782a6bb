use super::Tokenizer;
use super::chunks::{FORCED, chunks};

/// OpenAI's byte-pair vocabularies, bundled: nothing is downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bpe {
    /// GPT-4o and everything since.
    O200k,
    /// GPT-4 and GPT-3.5.
    Cl100k,
}

impl Tokenizer for Bpe {
    fn name(&self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
        }
    }

    fn exact(&self) -> bool {
        true
    }

    /// Exact, but for a stretch of more than 64 KiB in which no two tokens must part: random letters
    /// or one character repeated. There it is an upper bound, by a handful of tokens.
    fn count(&self, text: &str) -> usize {
        match tiktoken::get_encoding(self.name()) {
            Some(vocabulary) => chunks(text)
                .map(|(chunk, forced)| vocabulary.count(chunk) + usize::from(forced) * FORCED)
                .sum(),
            // Both are compiled in by feature. A byte never makes more than one token, so even
            // the impossible case stays a bound.
            None => text.len(),
        }
    }
}
