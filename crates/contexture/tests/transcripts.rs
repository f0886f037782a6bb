//! The promises of the build, on real transcripts, counted independently of the code under test.
//!
//! The transcripts lie beside the repository, in `../shared/data`; without them these tests say
//! that they were skipped.

use crate::common::{Case, check, sessions};
use contexture::build::{BuildInput, Extract};
use contexture::replay::replay;
use contexture::{ContextConfig, ContextError, Message, Session, Settings, Turn};

const BUDGETS: [usize; 7] = [2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000];

fn settings(budget: usize, compactor: bool) -> Settings {
    Settings {
        config: ContextConfig {
            max_input_tokens: budget,
            ..ContextConfig::default()
        },
        compactors: match compactor {
            true => vec![std::sync::Arc::new(Extract)],
            false => Vec::new(),
        },
        ..Settings::default()
    }
}

fn build(messages: &[Message], settings: Settings) -> Result<Vec<u8>, ContextError> {
    let input = BuildInput::from_messages(messages.iter().cloned());
    let mut session = Session::open(settings, input.session_entries)?;
    Ok(session.build(Turn::default())?.body().to_vec())
}

// needs: data
#[test]
fn every_transcript_fits_every_budget() {
    let Some(sessions) = sessions(&["sessions.jsonl", "dirty.jsonl"]) else {
        return;
    };
    let (mut built, mut refused) = (0, 0);
    for case in sessions.iter() {
        for budget in BUDGETS {
            for compactor in [true, false] {
                match build(case.messages, settings(budget, compactor)) {
                    Ok(body) => {
                        check(case, budget, &body);
                        built += 1;
                        let again = build(case.messages, settings(budget, compactor)).unwrap();
                        assert_eq!(body, again, "{} at {budget}: two runs differ", case.name);
                    }
                    Err(ContextError::Overflow(overflow)) => {
                        let floor = case.floor();
                        assert!(
                            floor > budget,
                            "{} at {budget}: refused ({overflow}), but the floor is {floor}",
                            case.name
                        );
                        println!("{} at {budget}: {overflow}", case.name);
                        refused += 1;
                    }
                    Err(error) => panic!("{} at {budget}: {error}", case.name),
                }
            }
        }
    }
    println!(
        "{built} built, {refused} refused because system side and user message alone are larger"
    );
    assert!(built > 1_000);
}

// needs: data
#[test]
fn a_long_session_keeps_its_prefix() {
    let Some(sessions) = sessions(&["long.json"]) else {
        return;
    };
    for (compactor, name) in [(true, "extract"), (false, "none")] {
        let (mut input, mut shared, mut compactions, mut rebilled) =
            (0usize, 0usize, 0usize, 0usize);
        let mut last: Vec<serde_json::Value> = Vec::new();
        let case = sessions.iter().next().unwrap();
        let points = case.request_points();
        let mut at = 0;
        let build_input = BuildInput::from_messages(case.messages.iter().cloned());
        replay(settings(32_000, compactor), build_input, |step, built| {
            let body: serde_json::Value = serde_json::from_slice(built.body()).unwrap();
            let messages = body["messages"].as_array().unwrap().clone();
            let prefix = Case {
                messages: &case.messages[..points[at]],
                ..case
            };
            check(prefix, 32_000, built.body());
            crate::common::check_tail(prefix, &messages);
            at += 1;
            let same = messages
                .iter()
                .zip(&last)
                .take_while(|(a, b)| a == b)
                .count();
            let price =
                |m: &[serde_json::Value]| m.iter().map(crate::common::count_message).sum::<usize>();
            let independent = if last.is_empty() {
                0
            } else {
                3 + price(&messages[..same])
            };
            assert_eq!(
                independent, step.shared_prefix_tokens,
                "request {}",
                step.request
            );
            // What both have, but no longer at the same place.
            let moved: Vec<_> = messages[same..]
                .iter()
                .filter(|m| last[same..].contains(m))
                .cloned()
                .collect();
            rebilled += price(&moved);
            input += step.input_tokens;
            shared += step.shared_prefix_tokens;
            compactions += usize::from(step.compacted);
            last = messages;
            Ok(())
        })
        .unwrap();
        assert_eq!(at, points.len());
        let share = shared as f64 / input as f64;
        let again = rebilled as f64 / input as f64;
        println!(
            "{name}: {at} requests, {input} tokens, shared {share:.4}, billed again {again:.4}, {compactions} compactions"
        );
        assert!(share >= 0.97, "{name}: shared prefix {share:.4}");
        assert!(again <= 0.01, "{name}: billed again {again:.4}");
    }
}
