use super::{Bpe, Tokenizer};

/// An upper bound for models whose tokenizer is not public.
#[derive(Debug, Clone, Copy, Default)]
pub struct Estimate;

impl Tokenizer for Estimate {
    fn name(&self) -> &str {
        "estimate"
    }

    fn exact(&self) -> bool {
        false
    }

    fn count(&self, text: &str) -> usize {
        Bpe::O200k.count(text)
    }
}
