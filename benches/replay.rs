//! Every request of a long session, one after another, and how the cost grows with it.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use contexture::build::BuildInput;
use contexture::replay::replay;
use contexture::{ContextConfig, Message, Settings};
use contexture_benches::{Bar, Times, asked, long, note, row, shown};

const RUNS: usize = 3;

fn main() {
    if !asked("replay: every request of a session of 10,000 messages") {
        return;
    }
    let messages = long().messages;
    whole(&messages);
    for budget in [32_000, 2_000_000] {
        growth(&messages, budget);
    }
}

/// The whole session, against copying each request once.
fn whole(messages: &[Message]) {
    let mut copied = Times::default();
    let mut buffer = Vec::new();
    let (mut requests, mut input, mut shared, mut compactions, mut bytes) = (0, 0, 0, 0, 0);
    let mut all = Times::default();
    let build_input = BuildInput::from_messages(messages.iter().cloned());
    all.time(|| {
        replay(settings(32_000), build_input, |step, built| {
            copied.time(|| {
                buffer.clear();
                buffer.extend_from_slice(built.body());
            });
            requests += 1;
            bytes += built.body().len();
            input += step.input_tokens;
            shared += step.shared_prefix_tokens;
            compactions += usize::from(step.compacted);
            Ok(())
        })
        .unwrap();
    });
    let copying = copied.mean() * requests;
    let ours = all.mean().saturating_sub(copying);
    note(&format!(
        "32000: {requests} requests in {} ({} each), {input} tokens in {bytes} bytes, \
         {compactions} compactions, shared prefix {:.4}",
        shown(ours),
        shown(ours / requests.max(1)),
        f64::from(u32::try_from(shared / 1_000).unwrap_or(u32::MAX))
            / f64::from(u32::try_from(input / 1_000).unwrap_or(u32::MAX)),
    ));
    row("replay : copying every request", ours, copying, Bar::None);
}

/// The time a message takes in replays of ever more of the session.
fn growth(messages: &[Message], budget: usize) {
    let sizes = [2_500, 5_000, 10_000].map(|size| size.min(messages.len()));
    let mut times = <[Times; 3]>::default();
    for _ in 0..RUNS {
        for (times, size) in times.iter_mut().zip(sizes) {
            let input = BuildInput::from_messages(messages[..size].iter().cloned());
            times.time(|| replay(settings(budget), input, |_, _| Ok(())).unwrap());
        }
    }
    let each: Vec<Duration> = times
        .iter()
        .zip(sizes)
        .map(|(times, size)| times.median() / u32::try_from(size).unwrap_or(1))
        .collect();
    let all: Vec<String> = each.iter().map(|time| shown(*time)).collect();
    note(&format!(
        "{budget}: time a message, of {sizes:?} messages: {}",
        all.join(", ")
    ));
    row(
        &format!("{budget}: a message in 10,000 : in 2,500"),
        each[2],
        each[0],
        Bar::Most(1.5),
    );
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
