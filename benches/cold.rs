//! The first request of a long session that was not in memory, against the least that it takes: to
//! tokenise every text once.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use contexture::build::BuildInput;
use contexture::tokens::{Bpe, Tokenizer};
use contexture::{ContextConfig, Session, Settings, Turn};
use contexture_benches::{Bar, Times, asked, long, note, row, strings};

const RUNS: usize = 9;

fn main() {
    if !asked("cold: build from nothing : tokenise every text once") {
        return;
    }
    let long = long();
    let texts: Vec<String> = long.messages.iter().flat_map(strings).collect();
    let tokenise = || texts.iter().map(|t| Bpe::O200k.count(t)).sum::<usize>();
    note(&format!(
        "{} messages, {} tokens in their texts",
        long.messages.len(),
        tokenise()
    ));
    let input = BuildInput::read(&long.bytes).unwrap();
    for budget in [2_000_000, 32_000] {
        let build = |input: BuildInput| {
            let mut session = Session::open(settings(budget), input.session_entries).unwrap();
            let bytes = session.build(Turn::default()).unwrap().body().len();
            (session, bytes)
        };
        let (mut once, mut cold, mut whole) = <(Times, Times, Times)>::default();
        for _ in 0..RUNS {
            let entries = input.clone();
            once.time(tokenise);
            drop(cold.time(|| build(entries)));
            drop(whole.time(|| build(BuildInput::read(&long.bytes).unwrap())));
        }
        let once = once.median();
        row(
            &format!("build at {budget} : tokenise"),
            cold.median(),
            once,
            Bar::Most(1.5),
        );
        row(
            &format!("read the JSON and build at {budget} : tokenise"),
            whole.median(),
            once,
            Bar::None,
        );
    }
}

fn settings(budget: usize) -> Settings {
    Settings {
        config: ContextConfig {
            max_input_tokens: budget,
            ..ContextConfig::default()
        },
        ..Settings::default()
    }
}
