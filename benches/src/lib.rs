//! The little that the benches share.
//!
//! A bench here times two things that do comparable work, in turns, and prints the ratio of their
//! medians: on a busy machine a time says little and a ratio much. Nothing fails for being slow; a
//! bar that is not met says so in its line.
#![allow(clippy::print_stdout, clippy::expect_used)]

mod data;

use std::time::{Duration, Instant};

pub use data::{Transcript, long, strings, texts, turns};

/// Whether this is `cargo bench`. `cargo test --all-targets` starts bench targets as well, to see
/// that they run, and should not wait for them.
pub fn asked(bench: &str) -> bool {
    let asked = std::env::args().any(|arg| arg == "--bench");
    if asked {
        println!("\n{bench}");
    } else {
        println!("{bench}: run with `cargo bench -p contexture-benches`");
    }
    asked
}

/// What a ratio has to be.
#[derive(Debug, Clone, Copy)]
pub enum Bar {
    /// At most this.
    Most(f64),
    /// At least this.
    Least(f64),
    /// It is only shown.
    None,
}

/// Prints `a` against `b`.
pub fn row(what: &str, a: Duration, b: Duration, bar: Bar) {
    let ratio = a.as_secs_f64() / b.as_secs_f64().max(f64::MIN_POSITIVE);
    let verdict = match bar {
        Bar::Most(bar) => judged(bar, ratio <= bar),
        Bar::Least(bar) => judged(bar, ratio >= bar),
        Bar::None => String::new(),
    };
    println!(
        "  {what:<52} {:>10} : {:>10}  ratio {ratio:.2}{verdict}",
        shown(a),
        shown(b)
    );
}

/// Prints something that goes with the rows.
pub fn note(text: &str) {
    println!("  {text}");
}

fn judged(bar: f64, holds: bool) -> String {
    format!(" (bar {bar:.2}) {}", if holds { "ok" } else { "MISSED" })
}

/// A time, in the unit that fits it.
pub fn shown(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// Times of one side.
#[derive(Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Times `work` once. What it returns is dropped after the clock has stopped.
    pub fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let out = std::hint::black_box(work());
        self.0.push(start.elapsed());
        out
    }

    /// Takes a time that somebody else measured.
    pub fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// The middle one.
    pub fn median(&self) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }

    /// The one that so many in a hundred are not above.
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        sorted.get(at).copied().unwrap_or_default()
    }

    /// All of them, shared out evenly: what rare, dear runs cost each of the others.
    pub fn mean(&self) -> Duration {
        let runs = u32::try_from(self.0.len().max(1)).unwrap_or(u32::MAX);
        self.0.iter().sum::<Duration>() / runs
    }

    /// The dearest one.
    pub fn max(&self) -> Duration {
        self.0.iter().max().copied().unwrap_or_default()
    }
}

/// Runs both `runs` times in turns, once each before that, and gives their medians.
pub fn compare<A, B>(
    runs: usize,
    mut a: impl FnMut() -> A,
    mut b: impl FnMut() -> B,
) -> (Duration, Duration) {
    let (mut of_a, mut of_b) = (Times::default(), Times::default());
    drop((a(), b()));
    for _ in 0..runs {
        of_a.time(&mut a);
        of_b.time(&mut b);
    }
    (of_a.median(), of_b.median())
}
