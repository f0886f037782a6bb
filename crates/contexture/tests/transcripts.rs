//! The promises of the build, on real transcripts, counted independently of the code under test.
//!
//! The transcripts lie beside the repository, in `../shared/data`; without them these tests say
//! that they were skipped.

use std::sync::Arc;

use crate::common::chatml::ChatMl;
use crate::common::{Case, check, sessions};
use contexture::build::{BuildInput, Extract, Receipt};
use contexture::diff::{Diff, Side};
use contexture::entry::RequestRecord;
use contexture::replay::{replay, verify};
use contexture::tokens::{Bpe, ClaudeEstimate, Estimate, Tokenizer};
use contexture::{ContextConfig, ContextError, Entry, Message, Payload, Session, Settings, Turn};
use serde_json::{Map, json};

const BUDGETS: [usize; 7] = [2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000];

fn settings(budget: usize, compactor: bool) -> Settings {
    Settings {
        config: ContextConfig {
            max_input_tokens: budget,
            ..ContextConfig::default()
        },
        compactors: match compactor {
            true => vec![Arc::new(Extract)],
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

/// Checks that the parts of a receipt add up to its total, and that nothing is more than the whole.
#[track_caller]
fn check_sums(receipt: &Receipt, what: &str) {
    let Receipt {
        budget,
        items,
        tools,
        cache,
        ..
    } = receipt;
    let items: usize = items.iter().map(|item| item.tokens).sum();
    let tools: usize = tools.iter().map(|tool| tool.tokens).sum();
    assert_eq!(budget.frame + items + tools, budget.used, "{what}");
    let whole = budget.used + budget.reserved + budget.free;
    assert_eq!(whole, budget.max_input_tokens, "{what}");
    assert!(cache.shared_prefix_tokens <= budget.used, "{what}");
}

/// Lives through a transcript with a provider that counts this share of what we do, and holds each request's numbers
/// against one another: in the receipt, in the diff to the request before, and made again. How many there were.
fn live_counted(case: Case<'_>, tokenizer: &Arc<dyn Tokenizer>, percent: Option<usize>) -> usize {
    let settings = Settings {
        tokenizer: Arc::clone(tokenizer),
        model: Some("m".to_owned()),
        ..settings(12_000, true)
    };
    let name = format!("{} by {} at {percent:?} %", case.name, tokenizer.name());
    let mut session = Session::new(settings.clone()).unwrap();
    let spec = json!({"type": "function", "function": {"name": "look", "description": "Looks.",
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}});
    let mut tools = Some(vec![spec]);
    let (mut said, mut before, mut lived) = (0, None, Vec::new());
    for point in case.request_points() {
        let turn = Turn {
            messages: case.messages[said..point].to_vec(),
            tools: tools.take(),
            ..Turn::default()
        };
        said = point;
        let (side, receipt) = match session.build(turn) {
            Ok(built) => {
                let receipt = built.receipt();
                assert_eq!(built.stats().input_tokens, receipt.budget.used, "{name}");
                (Side::of(&built), receipt)
            }
            Err(ContextError::Overflow(_)) => break,
            Err(error) => panic!("{name}: {error}"),
        };
        check_sums(&receipt, &name);
        let (used, shared) = (receipt.budget.used, receipt.cache.shared_prefix_tokens);
        if let Some(before) = &before {
            let diff = Diff::between(session.view(), before, &side);
            assert_eq!(diff.prefix.shared_tokens, shared, "{name}");
            let sum = diff.prefix.shared_tokens + diff.rebilled_tokens + diff.new_tokens;
            assert_eq!((sum, diff.b.input_tokens), (used, used), "{name}");
        }
        before = Some(side);
        lived.push((used, shared));
        let usage = percent.map(|percent| {
            Map::from_iter([("prompt_tokens".to_owned(), (used * percent / 100).into())])
        });
        let record = Payload::Request(RequestRecord {
            usage,
            ..session.record()
        });
        let record = Entry::derived(session.view().tail(), "", record);
        session.append([record]).unwrap();
    }
    let log = session.view().log().iter().cloned();
    let mut again = Vec::new();
    verify(
        |_| settings.clone(),
        log,
        |step, built| {
            check_sums(&built.receipt(), &name);
            again.push((step.input_tokens, step.shared_prefix_tokens));
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(again, lived, "{name}");
    lived.len()
}

// needs: data
#[test]
fn numbers_add_up_for_every_tokenizer() {
    let Some(sessions) = sessions(&["sessions.jsonl", "dirty.jsonl"]) else {
        return;
    };
    let tokenizers: [Arc<dyn Tokenizer>; 5] = [
        Arc::new(Bpe::O200k),
        Arc::new(Bpe::Cl100k),
        Arc::new(Estimate),
        Arc::new(ClaudeEstimate),
        Arc::new(ChatMl),
    ];
    let mut requests = 0;
    for (n, case) in sessions.iter().enumerate().filter(|(n, _)| n % 24 == 0) {
        for (m, tokenizer) in tokenizers.iter().enumerate() {
            // No count, fewer tokens than the bound, and more: what a provider adds of its own.
            let percent = [None, Some(55), Some(100), Some(130)][(n / 24 + m) % 4];
            requests += live_counted(case, tokenizer, percent);
        }
    }
    assert!(requests > 500, "{requests}");
}
