//! Session files of other tools: what the model sees of each, that nothing of them is lost, and that
//! whatever comes in, what comes out folds.

mod folds;
mod lossless;
mod places;
mod requests;
mod shape;
mod shapes;
mod transcripts;

use crate::anthropic::check;
use crate::responses::check as responses;
use contexture::import::Imported;

macro_rules! fixture {
    ($name:literal) => {
        ($name, include_str!(concat!("fixtures/", $name, ".jsonl")))
    };
}

/// Every fixture, by its name.
const FIXTURES: [(&str, &str); 12] = [
    fixture!("claude-code-1.0"),
    fixture!("claude-code-2.1"),
    fixture!("claude-code-2.1-helper"),
    fixture!("claude-code-compacted"),
    fixture!("claude-code-tree"),
    fixture!("codex-0.20"),
    fixture!("codex-0.50"),
    fixture!("codex-0.166"),
    fixture!("codex-turns"),
    fixture!("pi-1"),
    fixture!("pi-3"),
    fixture!("pi-tree"),
];

fn text(name: &str) -> &'static str {
    FIXTURES.iter().find(|(n, _)| *n == name).unwrap().1
}

#[track_caller]
fn read(name: &str) -> Imported {
    Imported::read(text(name).as_bytes()).unwrap()
}
