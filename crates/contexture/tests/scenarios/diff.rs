//! What changed between two requests, and what broke the prefix.

use std::fmt::Write;

use contexture::diff::{Diff, DiffItem, Side};
use contexture::entry::RequestRecord;
use contexture::prompt::Section;
use contexture::{ContextConfig, Message, Payload, Session, Settings, Turn};
use insta::assert_snapshot;
use serde_json::json;

use crate::common::scenario::Scenario;
use crate::scenarios::long;

/// A short request with a tool's result in it.
fn start() -> Scenario {
    Scenario::new(5_000)
        .system("You are terse.")
        .user("Fix the build")
        .tool("call_1", &long("one", 50))
        .assistant("Done.")
}

/// The diff as people would put it, a line a fact.
fn shape(diff: &Diff) -> String {
    let mut out = String::new();
    let Diff {
        a,
        b,
        added,
        removed,
        changed,
        tools,
        prefix,
        rebilled_tokens,
        new_tokens,
    } = diff;
    let total = prefix.shared_tokens + rebilled_tokens + new_tokens;
    assert_eq!(total, b.input_tokens);
    writeln!(out, "{} → {} tokens", a.input_tokens, b.input_tokens).unwrap();
    let mut items = |sign: &str, items: &[DiffItem]| {
        for DiffItem { origin, form, .. } in items {
            writeln!(
                out,
                "{sign} {origin} {} {}",
                form.rule.as_str(),
                form.tokens
            )
            .unwrap();
        }
    };
    items("-", removed);
    items("+", added);
    for c in changed {
        let (old, new) = (c.before, c.after);
        let (was, is) = (old.rule.as_str(), new.rule.as_str());
        let origin = &c.origin;
        writeln!(out, "~ {origin} {was} {} → {is} {}", old.tokens, new.tokens).unwrap();
    }
    if *tools != Default::default() {
        writeln!(out, "tools {}", serde_json::to_string(tools).unwrap()).unwrap();
    }
    let shared = (prefix.shared_items, prefix.shared_tokens);
    writeln!(
        out,
        "shared {shared:?} again {rebilled_tokens} new {new_tokens}"
    )
    .unwrap();
    if let Some(broken) = &prefix.broken_by {
        let cause = broken.cause.as_ref().map_or("?", |id| id.as_str());
        let (index, origin, component) = (broken.index, &broken.origin, &broken.component);
        writeln!(out, "broken at {index} {origin}: {component} by {cause}").unwrap();
        writeln!(out, "{}", broken.why).unwrap();
    }
    out
}

/// The two requests, there and back.
#[track_caller]
fn both(s: &Scenario, a: &Side, b: &Side) -> String {
    format!("{}--\n{}", shape(&s.diff(a, b)), shape(&s.diff(b, a)))
}

#[test]
fn growth_breaks_nothing() {
    let s = start().build();
    let a = s.side();
    let s = s.user("And the tests").build();
    let b = s.side();
    assert_snapshot!(both(&s, &a, &b), @"
    109 → 117 tokens
    + entry:e5 kept 8
    shared (5, 109) again 0 new 8
    --
    117 → 109 tokens
    - entry:e5 kept 8
    shared (5, 109) again 0 new 0
    broken at 5 entry:e5: message by e5
    entry e5 was logged; B is from before that
    ");
    let same = s.diff(&a, &a);
    assert_eq!((same.prefix.broken_by, same.new_tokens), (None, 0));
}

#[test]
fn a_mask() {
    let s = start().build();
    let a = s.side();
    let s = s.mask("e3", "old tool result").user("Go on").build();
    assert_snapshot!(both(&s, &a, &s.side()), @"
    109 → 79 tokens
    + entry:e6 kept 7
    ~ entry:e3 kept 59 → masked 22
    shared (3, 43) again 7 new 29
    broken at 3 entry:e3: mask by e5
    entry e3 was masked by e5: old tool result
    --
    79 → 109 tokens
    - entry:e6 kept 7
    ~ entry:e3 masked 22 → kept 59
    shared (3, 43) again 7 new 59
    broken at 3 entry:e3: mask by e5
    entry e3 was masked by e5: old tool result; B is from before that
    ");
}

#[test]
fn a_mask_that_is_undone() {
    let s = start().mask("e3", "").user("Go on").build();
    let a = s.side();
    let s = s.revert("e5").build();
    assert_snapshot!(shape(&s.diff(&a, &s.side())), @"
    79 → 116 tokens
    ~ entry:e3 masked 22 → kept 59
    shared (3, 43) again 14 new 59
    broken at 3 entry:e3: revert by e7
    e7 undid the mask e5
    ");
}

#[test]
fn a_compaction() {
    let s = start().user("Go on").build();
    let a = s.side();
    let s = s.summary("e5", "The build was fixed.").build();
    assert_snapshot!(both(&s, &a, &s.side()), @"
    116 → 76 tokens
    - entry:e1 kept 8
    - entry:e2 kept 23
    - entry:e3 kept 59
    - entry:e4 kept 7
    + entry:e6 summary 57
    shared (1, 12) again 7 new 57
    broken at 1 entry:e1: compaction_summary by e6
    the summary e6 stands where entry e1 stood
    --
    76 → 116 tokens
    - entry:e6 summary 57
    + entry:e1 kept 8
    + entry:e2 kept 23
    + entry:e3 kept 59
    + entry:e4 kept 7
    shared (1, 12) again 7 new 97
    broken at 1 entry:e6: compaction_summary by e6
    the summary e6 stands where entry e1 stood; B is from before that
    ");
    let b = s.side();
    let s = s.revert("e6").build();
    assert_snapshot!(shape(&s.diff(&b, &s.side())), @"
    76 → 116 tokens
    - entry:e6 summary 57
    + entry:e1 kept 8
    + entry:e2 kept 23
    + entry:e3 kept 59
    + entry:e4 kept 7
    shared (1, 12) again 7 new 97
    broken at 1 entry:e6: revert by e7
    e7 undid the compaction e6
    ");
}

#[test]
fn a_section_that_is_edited() {
    let role = Section::stable("role", "t", "You fix builds.");
    let sections = |tone: &str| [role.clone(), Section::stable("tone", "t", tone)];
    let s = Scenario::new(5_000)
        .user("Go")
        .sections(&sections("Be terse."))
        .build();
    let a = s.side();
    let s = s.sections(&sections("Be kind.")).build();
    let mut diff = s.diff(&a, &s.side());
    let broken = diff.prefix.broken_by.as_mut().unwrap();
    let cause = broken.cause.take().unwrap();
    broken.why = broken.why.replace(cause.as_str(), "MADE");
    let position = s.view().position(&cause).unwrap();
    let logged = &s.view().log()[position].payload;
    assert!(matches!(logged, Payload::Sections { sections } if sections.len() == 1));
    assert_snapshot!(shape(&diff), @"
    22 → 22 tokens
    ~ section:tone kept 4 → kept 4
    shared (0, 3) again 15 new 4
    broken at 0 section:tone: section:tone by ?
    section tone was changed by MADE
    ");
}

#[test]
fn sections_where_there_were_none() {
    let s = start().build();
    let a = s.side();
    let s = s
        .entry(Payload::Sections {
            sections: vec![Section::stable("role", "t", "You fix builds.")],
        })
        .build();
    assert_snapshot!(shape(&s.diff(&a, &s.side())), @"
    109 → 109 tokens
    - entry:e0 kept 9
    + section:role kept 9
    shared (0, 3) again 97 new 9
    broken at 0 entry:e0: section:role by e5
    section role was added by e5
    ");
}

#[test]
fn a_tool_that_comes() {
    let s = start().tools(&["read", "grep"], &[]).build();
    let a = s.side();
    let s = s.tools(&["write"], &["grep"]).build();
    assert_snapshot!(both(&s, &a, &s.side()), @r#"
    145 → 145 tokens
    tools {"added":["write"],"removed":["grep"],"changed":[]}
    shared (0, 0) again 124 new 21
    broken at 0 tools: tools by e6
    tools: added write; removed grep (by e6)
    --
    145 → 145 tokens
    tools {"added":["grep"],"removed":["write"],"changed":[]}
    shared (0, 0) again 124 new 21
    broken at 0 tools: tools by e6
    tools: added write; removed grep (by e6); B is from before that
    "#);
}

#[test]
fn a_pin_that_brings_something_back() {
    let s = start()
        .user("Go on")
        .summary("e5", "The build was fixed.")
        .build();
    let a = s.side();
    let s = s.pin("e1").build();
    let b = s.side();
    assert_snapshot!(shape(&s.diff(&a, &b)), @"
    76 → 84 tokens
    + entry:e1 pinned 8
    shared (2, 69) again 7 new 8
    broken at 2 entry:e5: pin by e7
    e7 pinned e1, which is shown again
    ");
    let s = s.unpin("e1").build();
    assert_snapshot!(shape(&s.diff(&b, &s.side())), @"
    84 → 76 tokens
    - entry:e1 pinned 8
    shared (2, 69) again 7 new 0
    broken at 2 entry:e1: unpin by e8
    e8 ended the pin of e1
    ");
}

#[test]
fn a_pin_of_a_stored_prompt_that_a_given_one_overrides() {
    let role = Section::stable("role", "test", "You are terse.");
    let s = Scenario::new(1_000)
        .system("Never delete.")
        .user("Go")
        .sections(&[role])
        .build();
    let a = s.side();
    let s = s.pin("e0").build();
    assert_snapshot!(shape(&s.diff(&a, &s.side())), @r#"
    18 → 26 tokens
    + entry:e0 pinned 8
    shared (1, 12) again 6 new 8
    broken at 1 entry:e1: pin by e2
    e2 pinned e0, which is shown again
    "#);
}

#[test]
fn a_redaction() {
    let s = start().build();
    let a = s.side();
    let s = s.redact("e1").redact("e3").build();
    assert_snapshot!(shape(&s.diff(&a, &s.side())), @"
    109 → 54 tokens
    - entry:e1 kept 8
    ~ entry:e3 kept 59 → redacted 12
    shared (1, 12) again 30 new 12
    broken at 1 entry:e1: redaction by e5
    entry e1 was redacted by e5
    ");
}

#[test]
fn a_redaction_that_withholds_a_summary() {
    let s = start()
        .user("Go on")
        .summary("e5", "The build was fixed.")
        .build();
    let a = s.side();
    let s = s.redact("e1").build();
    assert_snapshot!(shape(&s.diff(&a, &s.side())), @"
    76 → 19 tokens
    - entry:e6 summary 57
    shared (1, 12) again 7 new 0
    broken at 1 entry:e6: redaction by e7
    entry e6 left because e7 redacted e1
    ");
}

#[test]
fn an_undo() {
    let s = start().user("Left").assistant("Dead end.").build();
    let a = s.side();
    let s = s.revert("e4").user("Right").build();
    assert_snapshot!(both(&s, &a, &s.side()), @"
    123 → 115 tokens
    - entry:e5 kept 6
    - entry:e6 kept 8
    + entry:e8 kept 6
    shared (5, 109) again 0 new 6
    broken at 5 entry:e5: revert by e7
    e7 undid everything after entry e4
    --
    115 → 123 tokens
    - entry:e8 kept 6
    + entry:e5 kept 6
    + entry:e6 kept 8
    shared (5, 109) again 0 new 14
    broken at 5 entry:e8: revert by e7
    e7 undid everything after entry e4; B is from before that
    ");
}

#[test]
fn a_branch() {
    let s = start().user("Left").assistant("Dead end.").build();
    let a = s.side();
    let s = s.user("Right").after("e4").build();
    assert_snapshot!(shape(&s.diff(&a, &s.side())), @"
    123 → 115 tokens
    - entry:e5 kept 6
    - entry:e6 kept 8
    + entry:e7 kept 6
    shared (5, 109) again 0 new 6
    broken at 5 entry:e5: branch by e7
    e7 took another branch, behind e4, without entry e5
    ");
}

#[test]
fn facts_of_the_session_that_come_late() {
    let s = start().build();
    let a = s.side();
    let s = s.runtime_init(json!({"cwd": "/srv"})).build();
    assert_snapshot!(shape(&s.diff(&a, &s.side())), @"
    109 → 121 tokens
    + entry:e5 kept 12
    shared (1, 12) again 97 new 12
    broken at 1 entry:e1: runtime_init by e5
    e5 gave the session's facts, which stand before the conversation
    ");
}

#[test]
fn a_result_that_comes_late() {
    let s = Scenario::new(5_000)
        .user("Look")
        .calls(&["call_1", "call_2"])
        .user("Well?")
        .build();
    let a = s.side();
    let s = s.result("call_2", "two").build();
    assert_snapshot!(shape(&s.diff(&a, &s.side())), @"
    91 → 83 tokens
    - entry:e1 repaired 17
    + entry:e3 repaired 9
    shared (2, 50) again 24 new 9
    broken at 2 entry:e1: message by e3
    entry e3 stands where entry e1 stood
    ");
}

#[test]
fn another_model_shares_nothing() {
    let settings = Settings {
        config: ContextConfig::default(),
        model: Some("small".to_owned()),
        ..Settings::default()
    };
    let mut session = Session::new(settings).unwrap();
    let turn = Turn {
        messages: vec![Message::user("Go")],
        ..Turn::default()
    };
    let a = Side::of(&session.build(turn).unwrap());
    session.address(&RequestRecord {
        model: Some("large".to_owned()),
        ..RequestRecord::default()
    });
    let b = Side::of(&session.current().unwrap());
    assert_snapshot!(shape(&Diff::between(session.view(), &a, &b)), @"
    9 → 9 tokens
    shared (0, 0) again 6 new 3
    broken at 0 model: model by ?
    the model went from `small` to `large`
    ");
}

#[test]
fn a_parameter_counts_where_a_provider_keys_its_cache_by_it() {
    let side = |params: serde_json::Value| {
        let settings = Settings {
            params: params.as_object().unwrap().clone(),
            ..Settings::default()
        };
        let mut session = Session::new(settings).unwrap();
        let turn = Turn {
            messages: vec![Message::user("Go")],
            ..Turn::default()
        };
        let side = Side::of(&session.build(turn).unwrap());
        (side, session)
    };
    let (a, session) = side(json!({"temperature": 0, "response_format": {"type": "text"}}));
    let (warm, _) = side(json!({"temperature": 1, "response_format": {"type": "text"}}));
    let (other, _) = side(json!({"temperature": 0, "response_format": {"type": "json_object"}}));
    let broken = |b: &Side| Diff::between(session.view(), &a, b).prefix.broken_by;
    assert_eq!(broken(&warm), None);
    assert_eq!(broken(&other).unwrap().component, "params");
}
