//! A turn on a long session: three messages more, and the next request.
//!
//! Timed is all that an agent does with the core in a turn: entries for the assistant's message and
//! its tool's result, the build with the user's message, the record of the request. Against it,
//! copying the request that comes out. That needs each of its bytes once, so a build whose cost
//! depended on the length of the history in any other way would show.
//!
//! At 32,000 tokens the request is short and lies in the cache, so that copying it takes a few
//! microseconds, less than counting three messages does: the bar is out of reach there, and is printed
//! to show by how much. An Anthropic body is written anew each turn: it has no bar.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use contexture::build::BuildInput;
use contexture::entry::RequestRecord;
use contexture::tokens::{Bpe, Tokenizer};
use contexture::{ContextConfig, Entry, Message, Payload, Session, Settings, Turn, Wire};
use contexture_benches::{Bar, Times, asked, long, note, row, shown, turns};

const TURNS: usize = 400;

fn main() {
    if !asked("rebuild: append a turn at 10,000 messages : copy the request's bytes") {
        return;
    }
    let messages = long().messages;
    for (budget, wire) in [
        (2_000_000, Wire::OpenAi),
        (32_000, Wire::OpenAi),
        (2_000_000, Wire::Anthropic),
        (32_000, Wire::Anthropic),
        (2_000_000, Wire::Responses),
        (32_000, Wire::Responses),
    ] {
        measure(&messages, budget, wire);
    }
}

fn measure(messages: &[Message], budget: usize, wire: Wire) {
    let many = if wire != Wire::Anthropic {
        TURNS
    } else {
        TURNS / 8
    };
    let settings = Settings {
        config: ContextConfig {
            max_input_tokens: budget,
            ..ContextConfig::default()
        },
        wire,
        ..Settings::default()
    };
    let input = BuildInput::from_messages(messages.iter().cloned());
    let mut session = Session::open(settings, input.session_entries).unwrap();
    session.build(Turn::default()).unwrap();

    let (mut turn, mut tokenising) = (Times::default(), Times::default());
    let (mut fresh, mut reused) = (Times::default(), Times::default());
    let mut buffer = Vec::new();
    let (mut bytes, mut compactions) = (0, 0);
    for new in turns(messages, many) {
        tokenising.time(|| new.iter().map(|m| Bpe::O200k.message(m)).sum::<usize>());
        let (built_bytes, compacted) = turn.time(|| take(&mut session, new));
        bytes = built_bytes;
        compactions += usize::from(compacted);

        let built = session.current().unwrap();
        reused.time(|| {
            buffer.clear();
            buffer.extend_from_slice(built.body());
            buffer.len()
        });
        fresh.time(|| built.body().to_vec());
    }

    note(&format!(
        "{wire:?}, budget {budget}: {many} turns, body of {bytes} bytes, {compactions} compactions; \
         a turn costs {} (mean {}, worst {}), of which tokenising its texts {}",
        shown(turn.median()),
        shown(turn.mean()),
        shown(turn.max()),
        shown(tokenising.median()),
    ));
    let bar = if wire != Wire::Anthropic {
        Bar::Most(3.0)
    } else {
        Bar::None
    };
    row(
        "turn : copy into a fresh buffer",
        turn.median(),
        fresh.median(),
        bar,
    );
    row(
        "turn : copy into a reused buffer",
        turn.median(),
        reused.median(),
        bar,
    );
    let rest = turn.median().saturating_sub(tokenising.median());
    row(
        "turn without tokenising : copy, reused",
        rest,
        reused.median(),
        Bar::None,
    );
    row(
        "turn, mean : tokenising",
        turn.mean(),
        tokenising.mean(),
        Bar::None,
    );
}

/// One turn; how long its request is, and whether it compacted.
fn take(session: &mut Session, [call, result, user]: [Message; 3]) -> (usize, bool) {
    for message in [call, result] {
        let entry = Entry::message(session.view().tail(), "", message);
        session.append([entry]).unwrap();
    }
    let turn = Turn {
        messages: vec![user],
        ..Turn::default()
    };
    let built = session.build(turn).unwrap();
    let out = (built.body().len(), built.compacted());
    let record = RequestRecord {
        digest: built.digest().to_owned(),
        input_tokens: built.stats().input_tokens,
        ..RequestRecord::default()
    };
    let entry = Entry::derived(session.view().tail(), "", Payload::Request(record));
    session.append([entry]).unwrap();
    out
}
