//! The vocabularies the bounds are held against.

use contexture::tokens::{ClaudeEstimate, Estimate, Tokenizer};

/// Those of `tiktoken`. GPT-2's is left out: the bound does not hold for it, and says so.
const NAMES: [&str; 10] = [
    "o200k_base",
    "cl100k_base",
    "p50k_base",
    "llama3",
    "qwen2",
    "mistral_v3",
    "kimi_k2",
    "glm4",
    "minimax_m2",
    "deepseek_v3",
];

/// Holds if both estimates are a bound for `text` in every vocabulary, and no absurd one.
pub fn check(text: &str) -> Result<(), String> {
    let (bound, claude) = (Estimate.count(text), ClaudeEstimate.count(text));
    if claude < bound || claude > text.len() + 1 {
        return Err(format!("Claude's {claude} against {bound}: {text:?}"));
    }
    for name in NAMES {
        let count = tiktoken::get_encoding(name).expect("a feature").count(text);
        if count > bound {
            return Err(format!(
                "{name} has {count}, the bound is {bound}: {text:?}"
            ));
        }
    }
    Ok(())
}
