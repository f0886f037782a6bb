//! The limit on the messages of the history: it costs no content while there is room for tokens.

use contexture::entry::Compaction;
use contexture::{Payload, Role};
use serde_json::json;

use crate::common::scenario::Scenario;
use crate::scenarios::long;

/// Questions and answers, each in words of its own.
fn talk(mut scenario: Scenario, pairs: usize) -> Scenario {
    for n in 0..pairs {
        scenario = scenario
            .user(&format!("Where is part {n} kept?"))
            .assistant(&format!("Part {n} is on shelf {}.", 100 + n));
    }
    scenario
}

fn summary(scenario: &Scenario) -> String {
    scenario.messages()[0].text().into_owned()
}

#[test]
fn short_messages_are_quoted_whole_in_the_summary() {
    let s = Scenario::new(128_000).config(|c| c.max_history_messages = Some(59));
    let s = talk(s, 30).build();
    let text: String = s.messages().iter().map(|m| m.text()).collect();
    for n in 0..30 {
        assert!(
            text.contains(&format!("Where is part {n} kept?")),
            "{n}: {text}"
        );
        assert!(
            text.contains(&format!("on shelf {}.", 100 + n)),
            "{n}: {text}"
        );
    }
    assert_eq!(s.appended(), ["compaction_summary"]);
    assert!(s.result_of_build().compacted && s.result_of_build().drop_entry.is_none());
    // Three quarters of 59 are 44, and a summary for the others.
    assert_eq!(s.messages().len(), 45);
    assert!(summary(&s).starts_with("<summary>"));
}

#[test]
fn the_system_side_hints_and_summaries_do_not_count() {
    let s = Scenario::new(100_000)
        .config(|c| c.max_history_messages = Some(4))
        .system("You are terse.")
        .runtime_init(json!({"cwd": "/w"}))
        .user("Count the shelves.")
        .user("a")
        .summary("e3", "Earlier, shelves were counted.");
    let s = s
        .assistant("b")
        .user("c")
        .hints(json!({"time": "12:00"}))
        .build();
    assert!(
        s.appended()
            .iter()
            .all(|&kind| kind != "compaction_summary"),
        "{}",
        s.shape()
    );
    let s = talk(s, 2).build();
    let counted = s.messages().iter().filter(|m| !m.role.is_system()).count();
    assert!(counted <= 4 + 2, "{}", s.shape());
}

#[test]
fn the_last_messages_asked_for_are_kept() {
    // The last user message stays in any case.
    for keep in 2..8 {
        let s = talk(Scenario::new(128_000).system("You are terse."), 10)
            .keep(keep)
            .build();
        let kept: Vec<String> = s
            .messages()
            .iter()
            .rev()
            .take(keep)
            .map(|m| m.text().into_owned())
            .collect();
        for (back, text) in kept.iter().enumerate() {
            let n = 9 - back / 2;
            let of = if back % 2 == 0 {
                format!("Part {n} is")
            } else {
                format!("part {n} kept")
            };
            assert!(text.contains(&of), "{keep}: {}", s.shape());
        }
        assert_eq!(s.messages().len(), keep + 2, "{}", s.shape());
    }
}

#[test]
fn a_group_of_calls_stays_whole_at_the_edge() {
    let s = talk(Scenario::new(128_000), 6)
        .tool("call_1", "ok")
        .tool("call_2", "ok")
        .user("And?")
        .keep(4)
        .build();
    let roles: Vec<Role> = s.messages().iter().map(|m| m.role).collect();
    assert!(
        roles.ends_with(&[
            Role::Assistant,
            Role::Tool,
            Role::Assistant,
            Role::Tool,
            Role::User
        ]),
        "{}",
        s.shape()
    );
}

#[test]
fn where_tokens_are_short_too_the_summary_is_short() {
    let mut s = Scenario::new(4_000).config(|c| c.max_history_messages = Some(12));
    for n in 0..16 {
        s = s
            .user(&format!("Fix src/file_{n}.rs"))
            .assistant(&long(&format!("Fixed {n}"), 200));
    }
    let s = s.user("Go on").build();
    assert!(s.receipt().budget.used <= 4_000);
    assert!(s.messages().len() <= 14, "{}", s.shape());
}

#[test]
fn without_a_compactor_drops_are_called_drops() {
    let plain = |s: Scenario| talk(s.config(|c| c.max_history_messages = Some(6)), 8);
    let off = plain(Scenario::new(128_000).config(|c| c.enable_compaction = false)).build();
    let none = plain(Scenario::new(128_000).no_compactor()).build();
    for s in [off, none] {
        let built = s.result_of_build();
        assert!(!built.compacted);
        assert!(built.compaction_summary_entry.is_none());
        let drop = built.drop_entry.as_ref().unwrap();
        let Payload::CompactionSummary(Compaction {
            summary, strategy, ..
        }) = &drop.payload
        else {
            panic!("{drop:?}");
        };
        assert_eq!((summary.as_str(), strategy.as_str()), ("", "drop"));
        assert!(built.stats.dropped_messages_count > 0);
    }
}
