use std::sync::Arc;

use super::{Bpe, Estimate, Tokenizer};

/// The tokenizer for a model's name, with or without its provider (`openai:gpt-4o`).
///
/// No name means `o200k_base`, as the contract says; a name of a vocabulary means itself; a model
/// whose tokenizer is not public gets an estimate, and the receipt says so.
pub fn for_model(model: Option<&str>) -> Arc<dyn Tokenizer> {
    let Some(model) = model else {
        return Arc::new(Bpe::O200k);
    };
    let name = model.rsplit([':', '/']).next().unwrap_or(model);
    let is = |families: &[&str]| families.iter().any(|f| name.starts_with(f));
    if is(&[
        "o200k_base",
        "gpt-4o",
        "gpt-4.1",
        "gpt-4.5",
        "gpt-5",
        "gpt-6",
        "gpt-oss",
        "chatgpt-",
        "o1",
        "o3",
        "o4",
        "codex",
    ]) {
        Arc::new(Bpe::O200k)
    } else if is(&[
        "cl100k_base",
        "gpt-4",
        "gpt-3.5",
        "gpt-35",
        "text-embedding-",
    ]) {
        Arc::new(Bpe::Cl100k)
    } else {
        Arc::new(Estimate)
    }
}
