//! Headers of GGUF files: what is read of a good one, and that no other gets past.

mod hostile;
mod keys;
mod models;
mod numbers;
mod real;
mod seeds;
mod tensors;
mod writer;

use std::io::Cursor;

use contexture_model::gguf::{GgufError, Header};

fn read(bytes: &[u8]) -> Result<Header, GgufError> {
    Header::read(&mut Cursor::new(bytes), bytes.len() as u64)
}

/// That each file is refused with these words.
#[track_caller]
fn refused<const N: usize>(table: [(writer::Gguf, &str); N]) {
    for (file, words) in table {
        refused_bytes(&file.bytes(), words);
    }
}

#[track_caller]
fn refused_bytes(bytes: &[u8], words: &str) {
    let error = read(bytes).expect_err(words);
    assert_eq!(error.to_string(), words);
    assert!(!error.hint().is_empty());
}
