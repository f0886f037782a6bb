//! What is taken out, undone, or on another branch.

use crate::common::scenario::Scenario;
use crate::scenarios::work;
use contexture::Message;
use contexture::Payload;
use contexture::Role;
use contexture::prompt::Section;
use insta::assert_snapshot;
use serde_json::json;

#[test]
fn a_redaction_withholds_the_summary_that_may_quote_it() {
    let s = Scenario::new(1_000)
        .user("My password is hunter2")
        .assistant("Noted.")
        .user("Go on")
        .summary("e2", "The user's password is hunter2.")
        .build();
    assert_snapshot!(s.shape(), @r#"
    00 user summary 59 "<summary>The user's password is hunter2.\n</summary>"
    01 user kept 7 "Go on"
    -- summarised e0 e1
    "#);
    let s = s.redact("e0").build();
    assert_snapshot!(s.shape(), @r#"
    00 user kept 7 "Go on"
    -- dropped e0 e1
    -- redacted e3
    "#);
    assert!(!String::from_utf8_lossy(s.bytes()).contains("hunter2"));
}

#[test]
fn a_redaction_reaches_every_kind_of_entry() {
    let s = Scenario::new(1_000)
        .runtime_init(json!({"key": "hunter2"}))
        .user("hunter2")
        .tool("call_1", "hunter2")
        .injection(Role::User, "hunter2", "f")
        .branch_summary("hunter2")
        .entry(Payload::Sections {
            sections: vec![
                Section::stable("role", "t", "hunter2"),
                Section::volatile("pool", "t", "hunter2"),
            ],
        })
        .user("Go")
        .build();
    assert_eq!(
        String::from_utf8_lossy(s.bytes())
            .matches("hunter2")
            .count(),
        7
    );
    let redacted = ["e0", "e1", "e3", "e4", "e5", "e6"];
    let s = redacted.into_iter().fold(s, Scenario::redact).build();
    assert_snapshot!(s.shape(), @r#"
    00 assistant→call_1 kept 23 ""
    01 tool(call_1) redacted 12 "[redacted]"
    02 user kept 6 "Go"
    -- redacted e0 … e6 (5)
    "#);
    assert!(!String::from_utf8_lossy(s.bytes()).contains("hunter2"));
}

#[test]
fn a_redaction_reaches_fields_that_we_do_not_know() {
    let s = Scenario::new(1_000)
        .user("Go")
        .calls(&["call_1"])
        .json(json!({
            "role": "tool",
            "tool_call_id": "call_1",
            "content": "hunter2",
            "artifact": {"raw": "hunter2"},
        }))
        .redact("e2")
        .build();
    assert!(!String::from_utf8_lossy(s.bytes()).contains("hunter2"));
}

#[test]
fn a_redacted_stable_section_is_gone() {
    let s = Scenario::new(1_000)
        .entry(Payload::Sections {
            sections: vec![Section::stable("role", "t", "The key is hunter2.")],
        })
        .entry(Payload::Sections {
            sections: vec![Section::stable("tone", "t", "Be terse.")],
        })
        .user("Go")
        .redact("e0")
        .build();
    assert_snapshot!(s.shape(), @r#"
    00 system kept 8 §tone
    01 user kept 6 "Go"
    "#);
}

#[test]
fn a_branch_leaves_the_other_one_out() {
    let s = Scenario::new(1_000)
        .user("Go")
        .assistant("Left or right?")
        .user("Left")
        .assistant("Dead end.")
        .user("Right")
        .after("e1")
        .branch_summary("Left is a dead end.")
        .assistant("There we are.");
    assert_snapshot!(s.build().shape(), @r#"
    00 user kept 6 "Go"
    01 assistant kept 9 "Left or right?"
    02 user kept 6 "Right"
    03 user summary 40 "<branch-summary>\nWhat was tried on another branch of this conversation…
    04 assistant kept 9 "There we are."
    -- reverted e2 e3
    "#);
}

#[test]
fn a_revert_goes_back_to_a_message_and_forward_again() {
    let s = Scenario::new(1_000)
        .user("One")
        .assistant("1")
        .user("Two")
        .assistant("2")
        .revert("e1");
    let s = s.build();
    assert_snapshot!(s.shape(), @r#"
    00 user kept 6 "One"
    01 assistant kept 6 "1"
    -- reverted e2 e3
    "#);
    let s = s.revert("e4").build();
    assert_snapshot!(s.shape(), @r#"
    00 user kept 6 "One"
    01 assistant kept 6 "1"
    02 user kept 6 "Two"
    03 assistant kept 6 "2"
    "#);
}

#[test]
fn what_was_undone_can_be_said_again() {
    let s = Scenario::new(1_000)
        .user("One")
        .assistant("1")
        .user("Two")
        .revert("e1");
    let s = s.input(Message::user("Two")).build();
    assert_snapshot!(s.shape(), @r#"
    00 user kept 6 "One"
    01 assistant kept 6 "1"
    02 user kept 6 "Two"
    -- reverted e2
    "#);
    // Said once and not undone, it is not doubled.
    let s = s.input(Message::user("Two")).build();
    assert!(s.appended().is_empty());
    // By its id as well.
    let named = Message {
        id: Some("m1".to_owned()),
        ..Message::user("Three")
    };
    let s = s.input(named.clone()).build().input(named.clone()).build();
    assert!(s.appended().is_empty());
    let s = s.revert("e1").input(named.clone()).build();
    assert_eq!(s.messages().last(), Some(&named));
    let other = Message {
        id: Some("m1".to_owned()),
        ..Message::user("Four")
    };
    assert_snapshot!(s.input(other).invalid(), @"entry m1: the id was used before, at entry 6 of the log, for something else (ids are unique: give one of the two another id, or leave ids out)");
}

#[test]
fn what_is_undone_is_shared_again() {
    let s = work(Scenario::new(2_000)).build().sent(None);
    let whole = s.receipt().budget.used;
    let s = s.overflow().build();
    assert_ne!(s.receipt().cache.shared_prefix_tokens, whole);
    let s = s.revert_build().build();
    assert_eq!(s.receipt().cache.shared_prefix_tokens, whole);
    assert_snapshot!(s.cache(), @"741 shared");
}
