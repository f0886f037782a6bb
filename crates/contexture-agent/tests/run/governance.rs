//! Rules that were stated early, in a conversation that is compacted again and again.

use contexture::entry::Target;
use contexture::{EntryId, Payload};
use contexture_agent::Event;
use serde_json::json;

use crate::model_server::{Answer, ModelServer, Piece, Seen};
use crate::run::harness::{Bench, MODELS, Setup, Summaries};

const RULES: [&str; 10] = [
    "Never touch the production database db-prod-7.",
    "Always write commit messages in French.",
    "You must not use more than 3 worker threads.",
    "Do not rename the function compute_ledger.",
    "Only use port 8443 for the gateway.",
    "Never log the customer id CUST-4471.",
    "Always run the linter before committing.",
    "You must keep the file NOTICE.txt unchanged.",
    "Do not add any new dependencies.",
    "Dates are written as 2026-11-15, always.",
];

/// Every second rule is pinned.
fn is_pinned(rule: usize) -> bool {
    rule.is_multiple_of(2)
}

fn is_summary(request: &Seen) -> bool {
    String::from_utf8_lossy(&request.body).contains("Pause the work here.")
}

fn says(text: &'static str) -> Answer {
    Answer::Says(vec![Piece::Text(text)])
}

/// A model that calls a tool with a long result, then answers; and writes summaries when asked.
fn worker(summary: Answer) -> ModelServer {
    // Words of its own, which no mask can take away as it takes old results.
    let looked: &'static str = Box::leak(
        "Looked at it, and it is as it should be there. "
            .repeat(60)
            .into_boxed_str(),
    );
    ModelServer::answering(move |request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        if is_summary(request) {
            return summary.clone();
        }
        let called = body.rfind("lorem ipsum").or(body.rfind("masked"));
        let asked = body.rfind("Step ");
        match called > asked && asked.is_some() {
            true => says(looked),
            false if asked.is_none() => says("Understood."),
            false => Answer::Says(vec![Piece::Call("c", "long", json!({}))]),
        }
    })
}

fn stated(model: &'static str, compactor: Summaries, server: ModelServer) -> (Bench, Vec<EntryId>) {
    let mut setup = Setup::new(model, []);
    setup.budget = 9_000;
    setup.reserved = 500;
    setup.compactor = compactor;
    let bench = setup.start_with(server);
    let mut chat = bench.chat();
    let mut ids = Vec::new();
    for (i, rule) in RULES.iter().enumerate() {
        bench.run_in(&mut chat, rule).unwrap();
        let user = chat.view().live(0).find(|live| {
            matches!(&live.entry.payload, Payload::Message { message } if message.text() == *rule)
        });
        let id = user.unwrap().entry.id.clone();
        if is_pinned(i) {
            let entry_id = id.clone();
            chat.say(Payload::Pin(Target { entry_id })).unwrap();
        }
        ids.push(id);
    }
    (bench, ids)
}

fn compactions(bench: &Bench) -> Vec<String> {
    let events = bench.events.lock().unwrap();
    let all = events.iter().filter_map(|event| match event {
        Event::Compaction { strategy, .. } => Some(strategy.clone()),
        _ => None,
    });
    all.collect()
}

#[test]
fn pinned_rules_are_verbatim_in_every_request_and_receipts_tell_of_the_others() {
    let summary = "The user set rules. Work went on: files were looked at, results were long.";
    for model in MODELS {
        for compactor in [Summaries::Extracted, Summaries::ByModel, Summaries::None] {
            let (bench, ids) = stated(model, compactor, worker(says(summary)));
            let before = bench.server.seen().len();
            let mut step = 0;
            while compactions(&bench).len() < 5 {
                step += 1;
                assert!(
                    step < 60,
                    "{model} {compactor:?}: {:?}",
                    compactions(&bench)
                );
                bench
                    .run(&format!("Step {step}: look at part {step}."))
                    .unwrap();
            }
            for request in bench.server.seen()[before..]
                .iter()
                .filter(|r| !is_summary(r))
            {
                let body = String::from_utf8_lossy(&request.body);
                for (i, rule) in RULES.iter().enumerate().filter(|(i, _)| is_pinned(*i)) {
                    assert!(
                        body.contains(rule),
                        "{model} {compactor:?}: rule {i} is not in {body}"
                    );
                }
            }
            // What happened to the others: shown, or left out with a reason.
            let mut chat = bench.chat();
            let receipt = chat.session().current().unwrap().receipt();
            let mut left = 0;
            for id in &ids {
                let origin = format!("entry:{id}");
                let shown = receipt.items.iter().find(|item| item.origin == origin);
                let out = receipt.excluded.iter().find(|item| item.origin == origin);
                match (shown, out) {
                    (Some(_), None) => {}
                    (None, Some(out)) => {
                        assert!(["summarised", "dropped"].contains(&out.rule.as_str()));
                        left += 1;
                    }
                    other => panic!("{origin} is told of as {other:?}"),
                }
            }
            assert!(
                left > 0,
                "{model} {compactor:?}: nothing left, so nothing was shown"
            );
            assert!(left <= RULES.len() / 2);
            bench.verify_all_but(is_summary);
        }
    }
}

#[test]
fn rules_that_nobody_pinned_survive_summaries_in_the_users_words() {
    // It names what was spoken of, and none of the rules.
    let summary = "The user spoke of db-prod-7, compute_ledger, NOTICE.txt and CUST-4471. Each step: look at a part.";
    for (compactor, strategy) in [
        (Summaries::Extracted, "extract"),
        (Summaries::ByModel, "model"),
    ] {
        let (bench, _) = stated(MODELS[0], compactor, worker(says(summary)));
        for step in 1..=8 {
            bench
                .run(&format!("Step {step}: look at part {step}."))
                .unwrap();
        }
        let all = compactions(&bench);
        assert!(all.len() >= 2, "{all:?}");
        assert!(all.iter().all(|made| made == strategy), "{all:?}");
        let seen = bench.server.seen();
        let last = seen
            .iter()
            .rev()
            .find(|request| !is_summary(request))
            .unwrap();
        let body = String::from_utf8_lossy(&last.body);
        let kept = RULES.iter().filter(|rule| body.contains(**rule)).count();
        assert_eq!(kept, RULES.len(), "{compactor:?}: {body}");
    }
}

#[test]
fn a_summary_by_the_model_rides_the_cached_prefix_and_is_recorded() {
    let summary = "The user set rules about db-prod-7, compute_ledger, NOTICE.txt and CUST-4471.";
    let (bench, _) = stated(MODELS[0], Summaries::ByModel, worker(says(summary)));
    for step in 1..=4 {
        bench
            .run(&format!("Step {step}: look at part {step}."))
            .unwrap();
    }
    assert!(
        compactions(&bench).contains(&"model".to_owned()),
        "{:?}",
        compactions(&bench)
    );
    let seen = bench.server.seen();
    let at = seen.iter().position(is_summary).unwrap();
    let shared = seen[at]
        .body
        .iter()
        .zip(&seen[at - 1].body)
        .take_while(|(a, b)| a == b)
        .count();
    let instruction = String::from_utf8_lossy(&seen[at].body)
        .find("Pause the work")
        .unwrap();
    assert!(
        shared + 200 > instruction,
        "it shares {shared} of the {instruction} bytes before its instruction"
    );
    let recorded = bench.entries().iter().any(|entry| {
        matches!(&entry.payload, Payload::Custom(data) if data.get("kind") == Some(&json!("summary_request")) && data.contains_key("usage"))
    });
    assert!(recorded);
}

#[test]
fn f10_a_summariser_that_fails_leaves_the_deterministic_one() {
    let too_much: &'static str = Box::leak("more and more ".repeat(4_000).into_boxed_str());
    for bad in [
        Answer::Status(500, vec![], String::new()),
        Answer::Says(vec![]),
        Answer::Says(vec![Piece::Text(too_much)]),
        Answer::Says(vec![Piece::Text("I'm sorry, I cannot help with that.")]),
        Answer::Says(vec![Piece::Call("x", "look", json!({}))]),
        Answer::Garbage("<html>"),
        Answer::Stalls(vec![Piece::Text("The user")], 2),
    ] {
        let (bench, _) = stated(MODELS[0], Summaries::ByModel, worker(bad.clone()));
        for step in 1..=4 {
            let result = bench.run(&format!("Step {step}: look at part {step}."));
            assert!(result.is_ok(), "{bad:?}: {result:?}");
        }
        let strategies = compactions(&bench);
        assert!(
            strategies.contains(&"extract".to_owned()),
            "{bad:?}: {strategies:?}"
        );
        assert!(
            !strategies.contains(&"model".to_owned()),
            "{bad:?}: {strategies:?}"
        );
        let why = bench.entries().iter().any(|entry| {
            matches!(&entry.payload, Payload::CompactionSummary(made) if made.refused.iter().any(|r| r.strategy == "model"))
        });
        assert!(why, "{bad:?}: the log does not say why");
        bench.verify_all_but(is_summary);
    }
}
