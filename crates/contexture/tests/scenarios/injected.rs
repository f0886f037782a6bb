//! What a run injects stands before the message that the run answers, and leaves as all else does.

use crate::common::scenario::Scenario;
use crate::scenarios::{long, tasks};
use contexture::Role::{Assistant, System, User};
use contexture::build::Wire;
use insta::assert_snapshot;

#[test]
fn injections_stand_before_the_users_message_the_systems_first() {
    let s = Scenario::new(1_000)
        .system("You are terse.")
        .user("Hello")
        .assistant("Hi")
        .user("Deploy it")
        .calls(&["call_1"])
        .inject(Assistant, "Last week we deployed.", "e3")
        .inject(System, "Rule one", "e3")
        .result("call_1", "done")
        .inject(Assistant, "It failed twice.", "e3")
        .inject(System, "Rule two", "e3")
        .build();
    assert_snapshot!(s.shape(), @r#"
    00 system kept 9 "You are terse."
    01 user kept 6 "Hello"
    02 assistant kept 6 "Hi"
    03 system kept 7 "Rule one"
    04 system kept 7 "Rule two"
    05 assistant kept 10 "Last week we deployed."
    06 assistant kept 9 "It failed twice."
    07 user kept 7 "Deploy it"
    08 assistant→call_1 kept 23 ""
    09 tool(call_1) kept 9 "done"
    "#);
    assert_eq!(s.messages()[7].text(), "Deploy it");
}

#[test]
fn one_that_comes_later_breaks_the_prefix_and_is_named() {
    let s = Scenario::new(1_000)
        .user("Deploy it")
        .calls(&["call_1"])
        .build()
        .sent(None);
    let before = s.side();
    let s = s
        .inject(System, "Rule one", "e0")
        .inject(System, "Rule two", "e0")
        .result("call_1", "done")
        .build();
    assert_snapshot!(s.cache(), @"3 shared, then entry:e3");
    let broken = s.diff(&before, &s.side()).prefix.broken_by.unwrap();
    assert_snapshot!(format!("{} {} {}", broken.index, broken.component, broken.why), @"0 injection e3 was injected before entry e0");
    // The same again, and all is shared.
    let s = s.sent(None).build();
    assert_snapshot!(s.cache(), @"56 shared");
}

#[test]
fn where_its_message_is_not_shown_it_stands_where_it_was_logged() {
    let told = |s: Scenario| {
        s.assistant("So far.")
            .inject(System, "Rule", "e1")
            .user("Now")
    };
    let base = || {
        Scenario::new(1_000)
            .user("One")
            .user("Two")
            .assistant("Three")
    };
    assert_snapshot!(told(base()).build().shape(), @r#"
    00 user kept 6 "One"
    01 system kept 6 "Rule"
    02 user kept 6 "Two"
    03 assistant kept 6 "Three"
    04 assistant kept 8 "So far."
    05 user kept 6 "Now"
    "#);
    let covered = told(base().summary("e2", "One and two.")).build();
    assert_snapshot!(covered.shape(), @r#"
    00 user summary 56 "<summary>One and two.\n</summary>"
    01 assistant kept 6 "Three"
    02 assistant kept 8 "So far."
    03 system kept 6 "Rule"
    04 user kept 6 "Now"
    -- summarised e0 e1
    "#);
    // Undone, it moves to its message.
    assert_snapshot!(covered.revert("e3").build().shape(), @r#"
    00 user kept 6 "One"
    01 system kept 6 "Rule"
    02 user kept 6 "Two"
    03 assistant kept 6 "Three"
    04 assistant kept 8 "So far."
    05 user kept 6 "Now"
    -- reverted e3
    "#);
    let elsewhere = base().user("Other").after("e0");
    assert_snapshot!(told(elsewhere).build().shape(), @r#"
    00 user kept 6 "One"
    01 user kept 6 "Other"
    02 assistant kept 8 "So far."
    03 system kept 6 "Rule"
    04 user kept 6 "Now"
    -- reverted e1 e2
    "#);
    let unknown = base().inject(System, "Rule", "nowhere").user("Now").build();
    assert_snapshot!(unknown.shape(), @r#"
    00 user kept 6 "One"
    01 user kept 6 "Two"
    02 assistant kept 6 "Three"
    03 system kept 6 "Rule"
    04 user kept 6 "Now"
    "#);
    // What comes only later is no place yet.
    let later = base().inject(System, "Rule", "e5").assistant("Four");
    assert_snapshot!(later.user("Now").build().shape(), @r#"
    00 user kept 6 "One"
    01 user kept 6 "Two"
    02 assistant kept 6 "Three"
    03 system kept 6 "Rule"
    04 assistant kept 6 "Four"
    05 user kept 6 "Now"
    "#);
}

#[test]
fn nothing_comes_between_a_call_and_its_result_or_before_the_system_prompt() {
    let s = Scenario::new(1_000)
        .system("You are terse.")
        .user("Go")
        .tool("call_1", "done")
        .inject(System, "Before a result", "e3")
        .inject(System, "Before the prompt", "e0")
        .inject(System, "Before a call", "e2")
        .build();
    assert_snapshot!(s.shape(), @r#"
    00 system kept 9 "You are terse."
    01 user kept 6 "Go"
    02 system kept 8 "Before a call"
    03 assistant→call_1 kept 23 ""
    04 tool(call_1) kept 9 "done"
    05 system kept 8 "Before a result"
    06 system kept 8 "Before the prompt"
    "#);
}

#[test]
fn it_leaves_with_its_turn_and_may_come_again() {
    let s = Scenario::new(4_000)
        .system("You are terse.")
        .user("Learn to fly")
        .inject(System, "Skill: fly", "e1")
        .inject(Assistant, "We flew once.", "e1")
        .assistant("I can fly.");
    let s = tasks(s, 24).user("Go on").build();
    assert_snapshot!(s.shape(), @r#"
    00 system kept 9 "You are terse."
    01 user summary 206 "<summary>Asked:\n- [e27] Fix src/file_11.rs\n- [e29] Fix src/file_12.rs…
    02 user kept 11 "Fix src/file_19.rs"
    03 assistant kept 148 "Fixed 19 word word word word word word word word word word word word wo…
    04 user kept 11 "Fix src/file_20.rs"
    05 assistant kept 148 "Fixed 20 word word word word word word word word word word word word wo…
    06 user kept 11 "Fix src/file_21.rs"
    07 assistant kept 148 "Fixed 21 word word word word word word word word word word word word wo…
    08 user kept 11 "Fix src/file_22.rs"
    09 assistant kept 148 "Fixed 22 word word word word word word word word word word word word wo…
    10 user kept 11 "Fix src/file_23.rs"
    11 assistant kept 148 "Fixed 23 word word word word word word word word word word word word wo…
    12 user kept 7 "Go on"
    -- summarised e1 … e42 (42)
    "#);
    let s = s.inject(System, "Skill: fly", "e53").build();
    assert_snapshot!(s.shape(), @r#"
    00 system kept 9 "You are terse."
    01 user summary 206 "<summary>Asked:\n- [e27] Fix src/file_11.rs\n- [e29] Fix src/file_12.rs…
    02 user kept 11 "Fix src/file_19.rs"
    03 assistant kept 148 "Fixed 19 word word word word word word word word word word word word wo…
    04 user kept 11 "Fix src/file_20.rs"
    05 assistant kept 148 "Fixed 20 word word word word word word word word word word word word wo…
    06 user kept 11 "Fix src/file_21.rs"
    07 assistant kept 148 "Fixed 21 word word word word word word word word word word word word wo…
    08 user kept 11 "Fix src/file_22.rs"
    09 assistant kept 148 "Fixed 22 word word word word word word word word word word word word wo…
    10 user kept 11 "Fix src/file_23.rs"
    11 assistant kept 148 "Fixed 23 word word word word word word word word word word word word wo…
    12 system kept 8 "Skill: fly"
    13 user kept 7 "Go on"
    -- summarised e1 … e42 (42)
    "#);
}

#[test]
fn a_span_that_begins_at_a_message_takes_what_was_injected_before_it() {
    let s = Scenario::new(1_000)
        .user("One")
        .user("Two")
        .inject(System, "Rule", "e1")
        .assistant("Done")
        .user("Three")
        .summary_of("e1", "e4", "Two was done.")
        .build();
    assert_snapshot!(s.shape(), @r#"
    00 user kept 6 "One"
    01 user summary 56 "<summary>Two was done.\n</summary>"
    02 user kept 6 "Three"
    -- summarised e1 e2 e3
    "#);
    // A second span whose beginning is gone finds its place all the same.
    let s = s
        .assistant("Yes")
        .inject(System, "Late rule", "e4")
        .user("Four")
        .summary_of("e3", "e8", "Two and three were done.")
        .build();
    assert_snapshot!(s.shape(), @r#"
    00 user kept 6 "One"
    01 user summary 56 "<summary>Two was done.\n</summary>"
    02 user summary 58 "<summary>Two and three were done.\n</summary>"
    03 user kept 6 "Four"
    -- summarised e1 … e7 (6)
    "#);
    // And undone, all is as it was.
    let s = s.revert("e9").revert("e5").build();
    assert_snapshot!(s.shape(), @r#"
    00 user kept 6 "One"
    01 system kept 6 "Rule"
    02 user kept 6 "Two"
    03 assistant kept 6 "Done"
    04 system kept 7 "Late rule"
    05 user kept 6 "Three"
    06 assistant kept 6 "Yes"
    07 user kept 6 "Four"
    -- reverted e5 e9
    "#);
}

#[test]
fn a_span_that_ends_where_something_stood_ends_there() {
    // The injection was logged last and stands first.
    let s = Scenario::new(1_000)
        .user("One")
        .assistant("1")
        .user("Two")
        .assistant("2")
        .inject(System, "Rule", "e0")
        .summary_of("e1", "e3", "One was answered, two was asked.")
        .summary("e1", "One was asked.")
        .build();
    assert_snapshot!(s.shape(), @r#"
    00 user summary 56 "<summary>One was asked.\n</summary>"
    01 assistant kept 6 "2"
    -- summarised e0 … e5 (5)
    "#);
}

#[test]
fn undoing_to_the_message_takes_its_injections_back() {
    let s = Scenario::new(1_000)
        .user("One")
        .inject(System, "Rule", "e0")
        .assistant("Done")
        .revert("e0")
        .build();
    assert_snapshot!(s.shape(), @r#"
    00 user kept 6 "One"
    -- reverted e1 e2
    "#);
    let s = s.inject(System, "Rule", "e0").build();
    assert_snapshot!(s.shape(), @r#"
    00 system kept 6 "Rule"
    01 user kept 6 "One"
    -- reverted e1 e2
    "#);
}

#[test]
fn an_injection_is_never_the_latest_message_of_the_user() {
    let s = Scenario::new(600)
        .user("The task")
        .assistant(&long("Working", 200))
        .inject(User, &long("As if the user said", 200), "e0")
        .injection(User, &long("As if the user said it last", 200), "f")
        .assistant("Nearly")
        .build();
    assert_snapshot!(s.shape(), @r#"
    00 user summary 89 "<summary>Said:\n- [e1] Working word word word word word word word word …
    01 user kept 7 "The task"
    02 assistant kept 6 "Nearly"
    -- summarised e1 e2 e3
    "#);
}

#[test]
fn every_wire_has_them_in_this_order() {
    for wire in [Wire::OpenAi, Wire::Anthropic, Wire::Responses] {
        let s = Scenario::new(1_000)
            .wire(wire)
            .user("The task")
            .inject(Assistant, "Earlier words", "e0")
            .inject(System, "A rule", "e0")
            .build();
        let body = String::from_utf8(s.bytes().to_vec()).unwrap();
        let at = |text: &str| body.find(text).unwrap();
        assert!(at("A rule") < at("Earlier words"), "{body}");
        assert!(at("Earlier words") < at("The task"), "{body}");
    }
}
