//! The way that most build a request, to count everything again and drop from the front, against a
//! turn of ours on the same long session.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use contexture::build::BuildInput;
use contexture::message::openai;
use contexture::{ContextConfig, Entry, Message, Session, Settings, Turn};
use contexture_benches::{Bar, Times, asked, long, note, row, strings, turns};

const TURNS: usize = 12;

fn main() {
    if !asked("peer: count all, drop from the front : append a turn at 10,000 messages") {
        return;
    }
    let messages = long().messages;
    for budget in [2_000_000, 32_000] {
        let input = BuildInput::from_messages(messages.iter().cloned());
        let mut session = Session::open(settings(budget), input.session_entries).unwrap();
        session.build(Turn::default()).unwrap();
        let mut history = messages.clone();
        let (mut ours, mut peers) = <(Times, Times)>::default();
        for new in turns(&messages, TURNS) {
            history.extend(new.clone());
            ours.time(|| take(&mut session, new));
            peers.time(|| naive(&history, budget));
        }
        row(
            &format!("budget {budget}: naive : Contexture"),
            peers.median(),
            ours.median(),
            Bar::None,
        );
    }
    note("(the naive request may begin with a result that lost its call)");
}

fn naive(history: &[Message], budget: usize) -> Vec<u8> {
    let o200k = tiktoken::get_encoding("o200k_base").unwrap();
    let count = |m: &Message| 4 + strings(m).iter().map(|t| o200k.count(t)).sum::<usize>();
    let counts: Vec<usize> = history.iter().map(count).collect();
    let mut tokens: usize = counts.iter().sum();
    let mut start = 1;
    while tokens > budget {
        tokens -= counts[start];
        start += 1;
    }
    let mut body = Vec::new();
    for message in history[..1].iter().chain(&history[start..]) {
        openai::write(message, &mut body);
    }
    body
}

fn take(session: &mut Session, [call, result, user]: [Message; 3]) -> usize {
    for message in [call, result] {
        let entry = Entry::message(session.view().tail(), "", message);
        session.append([entry]).unwrap();
    }
    let turn = Turn {
        messages: vec![user],
        ..Turn::default()
    };
    session.build(turn).unwrap().body().len()
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
