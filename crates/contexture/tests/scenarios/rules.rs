//! Rules that users gave: they stay at every budget that can hold them, whatever else has to leave.

use contexture::build::BuildInput;
use contexture::{ContextConfig, Session, Settings};

use crate::common::scenario::Scenario;
use crate::scenarios::long;

const DEMO: &str = include_str!("../../../../examples/demo.jsonl");
const RULES: [&str; 2] = [
    "Never switch off Heron before Monday",
    "Never copy the database while it is open",
];

/// The text of the demo's request, where it fits at all.
fn demo(budget: usize) -> Option<String> {
    let input = BuildInput::read(DEMO.as_bytes()).unwrap();
    let config = ContextConfig {
        max_input_tokens: budget,
        ..ContextConfig::default()
    };
    let settings = Settings {
        config,
        ..Settings::default()
    };
    let mut session = Session::open(settings, input.session_entries).unwrap();
    let built = session.build(input.turn).ok()?;
    Some(
        built
            .messages()
            .map(|m| m.text())
            .collect::<Vec<_>>()
            .join("\n"),
    )
}

#[test]
fn the_demos_rules_are_there_at_every_budget_that_holds_them() {
    // What stays in any case has 116 tokens, the message with the second rule 29.
    for budget in (145..1_200).step_by(5) {
        let text = demo(budget).unwrap();
        for rule in RULES {
            assert!(text.contains(rule), "{budget} without `{rule}`: {text}");
        }
    }
}

#[test]
fn more_rules_than_a_third_of_the_summary_all_stay() {
    let mut s = Scenario::new(3_000).system("You are terse.");
    for n in 0..20 {
        s = s
            .user(&format!("Never touch table number {n} of the shop."))
            .assistant(&long("Noted", 200));
    }
    let s = s.user("Go on").build();
    let text: String = s.messages().iter().map(|m| m.text()).collect();
    for n in 0..20 {
        assert!(
            text.contains(&format!("table number {n} of")),
            "{n}: {}",
            s.shape()
        );
    }
}

#[test]
fn rules_stay_when_every_compactor_fails() {
    for budget in [400, 600, 1_000] {
        let mut s = Scenario::new(budget)
            .compactors(&[std::sync::Arc::new(Silent)])
            .system("You are terse.");
        s = s.user("Never push to main.").assistant("Noted.");
        for n in 0..10 {
            s = s.user(&format!("Fix {n}")).assistant(&long("Done", 150));
        }
        let s = s.user("Go on").build();
        let text: String = s.messages().iter().map(|m| m.text()).collect();
        assert!(
            text.contains("Never push to main."),
            "{budget}: {}",
            s.shape()
        );
    }
}

/// A compactor that never has an answer.
struct Silent;

impl contexture::build::Compactor for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn summarise(&self, _: &contexture::build::Span<'_>) -> Result<String, String> {
        Err("nothing to say".to_owned())
    }
}
