//! Calls and results that came in broken.

use crate::common::scenario::Scenario;
use insta::assert_snapshot;
use serde_json::Value;
use serde_json::json;

#[test]
fn an_unanswered_call_gets_a_stable_answer() {
    let s = Scenario::new(1_000)
        .user("Go")
        .calls(&["call_1", "call_2"])
        .result("call_2", "b");
    let s = s.user("Still there?").build();
    assert_snapshot!(s.shape(), @r#"
    00 user kept 6 "Go"
    01 assistant→call_1+call_2 kept 41 ""
    02 tool(call_2) kept 9 "b"
    03 tool(call_1) repaired 17 "[no result: the call was interrupted]"
    04 user kept 8 "Still there?"
    "#);
}

#[test]
fn a_late_result_moves_to_its_call() {
    let s = Scenario::new(1_000)
        .user("Go")
        .calls(&["call_1"])
        .user("Hurry")
        .build()
        .sent(None);
    assert_snapshot!(s.shape(), @r#"
    00 user kept 6 "Go"
    01 assistant→call_1 kept 23 ""
    02 tool(call_1) repaired 17 "[no result: the call was interrupted]"
    03 user kept 7 "Hurry"
    "#);
    let s = s.result("call_1", "done").build();
    assert_snapshot!(s.shape(), @r#"
    00 user kept 6 "Go"
    01 assistant→call_1 kept 23 ""
    02 tool(call_1) repaired 9 "done"
    03 user kept 7 "Hurry"
    "#);
    assert_snapshot!(s.cache(), @"32 shared, then entry:e4");
}

#[test]
fn a_doubled_result_counts_once() {
    let s = Scenario::new(1_000)
        .user("Go")
        .tool("call_1", "a")
        .result("call_1", "a again");
    assert_snapshot!(s.build().shape(), @r#"
    00 user kept 6 "Go"
    01 assistant→call_1 kept 23 ""
    02 tool(call_1) kept 9 "a"
    -- duplicate e3
    "#);
}

#[test]
fn an_orphan_is_left_out() {
    let s = Scenario::new(1_000)
        .result("call_0", "lost")
        .user("Go")
        .result("call_9", "lost, too");
    assert_snapshot!(s.build().shape(), @r#"
    00 user kept 6 "Go"
    -- orphan e0 e2
    "#);
}

#[test]
fn reused_ids_are_paired_by_position() {
    let s = Scenario::new(1_000)
        .user("Go")
        .calls(&["call_1", "call_1"])
        .result("call_1", "a")
        .result("call_1", "b")
        .calls(&["call_1"])
        .result("call_1", "c");
    assert_snapshot!(s.build().shape(), @r#"
    00 user kept 6 "Go"
    01 assistant→call_1+call_1 kept 41 ""
    02 tool(call_1) kept 9 "a"
    03 tool(call_1) kept 9 "b"
    04 assistant→call_1 kept 23 ""
    05 tool(call_1) kept 9 "c"
    "#);
}

#[test]
fn results_without_an_id_answer_in_order() {
    let call =
        |name: &str| json!({"type": "function", "function": {"name": name, "arguments": "{}"}});
    let mut empty = call("b");
    empty["id"] = json!("");
    let s = Scenario::new(1_000)
        .user("Go")
        .json(json!({"role": "assistant", "content": null, "tool_calls": [call("a"), empty]}))
        .json(json!({"role": "tool", "content": "from a"}))
        .json(json!({"role": "tool", "tool_call_id": "", "content": "from b"}))
        .build();
    assert_snapshot!(s.shape(), @r#"
    00 user kept 6 "Go"
    01 assistant→call_e1_0+call_e1_1 repaired 27 ""
    02 tool(call_e1_0) repaired 12 "from a"
    03 tool(call_e1_1) repaired 12 "from b"
    "#);
}

#[test]
fn a_result_without_an_id_tells_when_it_is_masked_or_redacted() {
    let s = Scenario::new(1_000)
        .user("Go")
        .calls(&["call_1"])
        .json(json!({"role": "tool", "content": "secret"}))
        .redact("e2")
        .build();
    assert_snapshot!(s.shape(), @r#"
    00 user kept 6 "Go"
    01 assistant→call_1 kept 23 ""
    02 tool(call_1) redacted 12 "[redacted]"
    "#);
}

#[test]
fn arguments_that_are_no_object_are_wrapped() {
    let call = |n: usize, arguments: &str| json!({"id": format!("call_{n}"), "function": {"name": "f", "arguments": arguments}});
    let broken = [
        "",
        "[1]",
        "{\"a\": ",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":1e400}",
        "{\"a\":1}",
    ];
    let calls: Vec<Value> = broken.iter().enumerate().map(|(n, a)| call(n, a)).collect();
    let s = Scenario::new(1_000)
        .json(json!({"role": "assistant", "tool_calls": calls}))
        .build();
    let shown: Vec<&str> = s.messages()[0]
        .tool_calls
        .iter()
        .map(|call| call.arguments.as_str())
        .collect();
    assert_snapshot!(shown.join("\n"), @r#"
    {}
    {"_invalid":"[1]"}
    {"_invalid":"{\"a\": "}
    {"_invalid":"{\"a\":\"\\ud800\"}"}
    {"_invalid":"{\"a\":1e400}"}
    {"a":1}
    "#);
}

#[test]
fn empty_and_hidden_messages_are_left_out() {
    let s = Scenario::new(1_000)
        .user("Go")
        .assistant(" \n")
        .json(json!({"role": "assistant", "content": []}))
        .json(json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}))
        .json(json!({"role": "user", "content": "aside", "includeInContext": false}));
    assert_snapshot!(s.build().shape(), @r#"
    00 user kept 6 "Go"
    -- empty e1 e2 e3
    -- filtered e4
    "#);
}
