//! What an agent said and did, as our log has it.

use contexture::{Message, Payload, Role};
use contexture_fleet::acp::record::Transcript;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::acp::common::*;

/// One line an item, as a reader would tell it.
pub fn shape(payloads: &[Payload]) -> Vec<String> {
    let line = |payload: &Payload| match payload {
        Payload::Message { message } => {
            let role = message.role.as_str();
            let parts = message.parts();
            let thought = parts.iter().any(|part| part.is_thinking());
            let mut line = format!("{role}{}", if thought { " (thinking)" } else { "" });
            if !message.text().is_empty() {
                line += &format!(": {}", message.text());
            }
            for call in &message.tool_calls {
                line += &format!(" → {}#{} {}", call.name, call.id, call.arguments);
            }
            if let Some(id) = &message.tool_call_id {
                let failed = if message.failed() { " failed" } else { "" };
                line += &format!(" ← #{id}{failed}");
            }
            line
        }
        Payload::Custom(map) => format!("custom {}", map["kind"].as_str().unwrap()),
        other => panic!("{other:?}"),
    };
    payloads.iter().map(line).collect()
}

fn say(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
}

fn think(text: &str) -> Value {
    json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}})
}

fn call(id: &str, name: &str) -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": name, "kind": "other", "status": "pending", "rawInput": {"a": 1}})
}

fn done(id: &str, status: &str, text: &str) -> Value {
    let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "content": content})
}

fn all(transcript: &mut Transcript, updates: &[Value]) -> Vec<Payload> {
    updates
        .iter()
        .flat_map(|update| transcript.push(update))
        .collect()
}

#[tokio::test]
async fn a_turn_of_a_running_agent() {
    let scene = Scene::new("good");
    let mut transcript = Transcript::new();
    let mut log = transcript.prompt(&text_blocks("look"));
    scene.once("look").await.unwrap();
    for (_, update) in scene.host.updates.lock().unwrap().iter() {
        log.extend(transcript.push(update));
    }
    log.extend(transcript.finish("end_turn"));
    assert_eq!(
        shape(&log),
        [
            "user: look",
            "custom acp_plan",
            "assistant (thinking): Looking now. → read#c1 {\"path\":\"a.txt\"}",
            "tool: alpha ← #c1",
            "assistant: It says alpha.",
        ]
    );
}

#[test]
fn steps_come_as_soon_as_they_are_whole() {
    let mut transcript = Transcript::new();
    assert!(
        all(
            &mut transcript,
            &[say("I "), say("look."), call("1", "a"), call("2", "b")]
        )
        .is_empty()
    );
    assert!(all(&mut transcript, &[done("2", "failed", "no")]).is_empty());
    let step = transcript.push(&done("1", "completed", "yes"));
    assert_eq!(
        shape(&step),
        [
            "assistant: I look. → a#1 {\"a\":1} → b#2 {\"a\":1}",
            "tool: yes ← #1",
            "tool: no ← #2 failed",
        ]
    );
    // What is told of a call later changes nothing; the same id again is another call.
    assert!(
        transcript
            .push(&done("1", "completed", "yes, indeed"))
            .is_empty()
    );
    assert!(transcript.push(&call("1", "c")).is_empty());
    assert_eq!(
        shape(&transcript.push(&done("1", "completed", "again"))),
        ["assistant → c#1 {\"a\":1}", "tool: again ← #1"]
    );
}

#[test]
fn what_is_said_while_a_call_runs_stands_behind_it() {
    let mut transcript = Transcript::new();
    assert!(
        all(
            &mut transcript,
            &[call("1", "a"), think("hm"), say("meanwhile")]
        )
        .is_empty()
    );
    let step = transcript.push(&done("1", "completed", "yes"));
    assert_eq!(
        shape(&step),
        ["assistant → a#1 {\"a\":1}", "tool: yes ← #1"]
    );
    assert_eq!(
        shape(&transcript.finish("end_turn")),
        ["assistant (thinking): meanwhile"]
    );
}

#[test]
fn a_turn_that_is_called_off_leaves_no_call_open() {
    let mut transcript = Transcript::new();
    all(&mut transcript, &[call("1", "a"), say("meanwhile")]);
    assert_eq!(
        shape(&transcript.finish("cancelled")),
        [
            "assistant → a#1 {\"a\":1}",
            "tool: It did not end: cancelled. ← #1 failed",
            "assistant: meanwhile",
        ]
    );
    assert!(transcript.finish("cancelled").is_empty());
}

#[test]
fn an_earlier_session_is_told_with_the_users_words() {
    let mut transcript = Transcript::replay();
    let user = |text: &str| json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}});
    let mut log = all(
        &mut transcript,
        &[user("he"), user("llo"), say("hi"), user("bye"), say("b")],
    );
    log.extend(transcript.finish("end_turn"));
    assert_eq!(
        shape(&log),
        ["user: hello", "assistant: hi", "user: bye", "assistant: b"]
    );
    // One that is under way has them already.
    let mut transcript = Transcript::new();
    assert!(all(&mut transcript, &[user("hello")]).is_empty());
    assert!(transcript.finish("end_turn").is_empty());
}

#[test]
fn names_arguments_and_results_of_all_kinds() {
    let mut transcript = Transcript::new();
    let update = json!({
        "sessionUpdate": "tool_call_update", "toolCallId": "x", "status": "completed",
        "title": "Edit a.txt", "kind": "edit", "locations": [{"path": "/w/a.txt", "line": 3}],
        "content": [
            {"type": "diff", "path": "/w/a.txt", "oldText": "a", "newText": "b"},
            {"type": "terminal", "terminalId": "term-1"},
        ],
    });
    assert_eq!(
        shape(&transcript.push(&update)),
        [
            "assistant → edit#x {\"title\":\"Edit a.txt\",\"paths\":[\"/w/a.txt\"]}",
            "tool: /w/a.txt, before:\na\n/w/a.txt, now:\nb ← #x",
        ]
    );
    let mut named = call("y", "Run it");
    named["_meta"] = json!({"claudeCode": {"toolName": "Bash"}});
    named["rawInput"] = json!("ls");
    transcript.push(&named);
    let mut end = done("y", "completed", "");
    end["rawOutput"] = json!({"output": "a.txt"});
    assert_eq!(
        shape(&transcript.push(&end)),
        ["assistant → Bash#y {\"input\":\"ls\"}", "tool: a.txt ← #y"]
    );
}

#[test]
fn what_terminals_printed_stands_where_they_were_shown() {
    let piece = |key: &str, terminal: &str, data: &str| {
        json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "x",
            "_meta": {key: {"terminal_id": terminal, "data": data}},
        })
    };
    let shown = json!({
        "sessionUpdate": "tool_call", "toolCallId": "x", "title": "ls", "kind": "execute",
        "content": [
            {"type": "terminal", "terminalId": "t2"},
            {"type": "content", "content": {"type": "text", "text": "between"}},
            {"type": "terminal", "terminalId": "t1"},
        ],
    });
    let mut transcript = Transcript::new();
    all(
        &mut transcript,
        &[
            shown,
            piece("terminal_output", "t1", "on"),
            piece("terminal_output_delta", "t2", "two\n"),
            piece("terminal_output", "t1", "e\n"),
            piece("terminal_output_delta", "unseen", "three"),
        ],
    );
    let end = json!({"sessionUpdate": "tool_call_update", "toolCallId": "x", "status": "completed", "rawOutput": {"exit_code": 0}});
    assert_eq!(
        shape(&transcript.push(&end)),
        [
            "assistant → ls#x {\"title\":\"ls\"}",
            "tool: two\nbetween\none\nthree ← #x"
        ]
    );
    // Of much, the end is kept.
    transcript.push(&call("y", "a"));
    for n in 0..10_000 {
        let mut line = piece("terminal_output_delta", "y", &format!("line {n} äöü\n"));
        line["toolCallId"] = json!("y");
        transcript.push(&line);
    }
    let log = transcript
        .push(&json!({"sessionUpdate": "tool_call_update", "toolCallId": "y", "status": "failed"}));
    let Payload::Message { message } = &log[1] else {
        panic!("{log:?}");
    };
    let text = message.text();
    assert!(
        text.starts_with('[') && text.contains("bytes were cut]\n"),
        "{text}"
    );
    assert!(
        text.ends_with("line 9999 äöü") && text.len() <= 33_000,
        "{}",
        text.len()
    );
}

#[test]
fn names_of_tools_are_such_as_providers_take() {
    for (told, name) in [
        ("fs:read_file", "fs__read_file"),
        ("mcp.shop.list", "mcp__shop__list"),
        ("read", "read"),
        ("Read a file", "other"),
        ("", "other"),
    ] {
        let mut transcript = Transcript::new();
        transcript.push(&call("1", told));
        let log = transcript.push(&done("1", "completed", "x"));
        let expected = format!("assistant → {name}#1 {{\"a\":1}}");
        assert_eq!(shape(&log)[0], expected, "{told}");
    }
}

#[test]
fn long_results_and_arguments_are_cut() {
    let mut transcript = Transcript::new();
    let mut begin = call("1", "a");
    begin["rawInput"] = json!({"text": "ä".repeat(100_000)});
    transcript.push(&begin);
    let log = transcript.push(&done("1", "completed", &"ö".repeat(100_000)));
    let [
        Payload::Message { message: said },
        Payload::Message { message: result },
    ] = log.as_slice()
    else {
        panic!("{log:?}");
    };
    let arguments = said.tool_calls[0].arguments_object().expect("JSON");
    assert!(
        arguments["beginning"]
            .as_str()
            .unwrap()
            .starts_with("{\"text\":\"ää")
    );
    let text = result.text();
    assert!(
        text.len() < 33_000 && text.ends_with("[167232 bytes were cut]"),
        "{}",
        text.len()
    );
}

/// A call that never ends keeps nothing from being told for ever.
#[test]
fn an_open_call_holds_only_so_much_back() {
    let mut transcript = Transcript::new();
    transcript.push(&call("0", "open"));
    let mut log = Vec::new();
    for number in 1..=200 {
        let id = number.to_string();
        log.extend(transcript.push(&say("x")));
        log.extend(transcript.push(&call(&id, "a")));
        log.extend(transcript.push(&done(&id, "completed", "y")));
    }
    assert!(!log.is_empty());
    check_order(&log);
}

#[test]
fn a_picture_and_a_resource_in_a_prompt() {
    let mut transcript = Transcript::new();
    let log = transcript.prompt(&[
        json!({"type": "text", "text": "see "}),
        json!({"type": "resource_link", "uri": "file:///a", "name": "a"}),
        json!({"type": "resource", "resource": {"uri": "file:///b", "text": "beta"}}),
        json!({"type": "image", "mimeType": "image/png", "data": "AAAA"}),
        json!({"type": "unheard_of"}),
    ]);
    assert_eq!(shape(&log), ["user: see [a](file:///a)file:///b:\nbeta"]);
    let Payload::Message { message } = &log[0] else {
        panic!("{log:?}");
    };
    assert_eq!(message.parts().len(), 2);
}

/// Every call is answered right behind the message that makes it, and nothing else is.
fn check_order(log: &[Payload]) {
    let messages: Vec<&Message> = log
        .iter()
        .filter_map(|payload| match payload {
            Payload::Message { message } => Some(message),
            _ => None,
        })
        .collect();
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        if message.role == Role::Tool {
            let id = message.tool_call_id.as_deref().unwrap();
            let at = open.iter().position(|known| *known == id);
            open.remove(at.expect("a result without its call"));
        } else {
            assert!(open.is_empty(), "{open:?} are not answered");
            open = message
                .tool_calls
                .iter()
                .map(|call| call.id.as_str())
                .collect();
            let mut ids = open.clone();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), open.len(), "an id twice in a message");
        }
    }
    assert!(open.is_empty(), "{open:?} are not answered");
}

fn any_update() -> impl Strategy<Value = Value> {
    let id = "[abc]";
    let status = prop_oneof![
        Just("pending"),
        Just("in_progress"),
        Just("completed"),
        Just("failed"),
        Just("odd")
    ];
    prop_oneof![
        "[a-z ]{0,8}".prop_map(|text| say(&text)),
        "[a-z]{0,8}".prop_map(|text| think(&text)),
        id.prop_map(|id| call(&id, "tool")),
        (id, status).prop_map(|(id, status)| done(&id, status, "r")),
        Just(json!({"sessionUpdate": "plan", "entries": []})),
        Just(json!({"sessionUpdate": "usage_update", "used": 1, "size": 2})),
        Just(
            json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "u"}})
        ),
        Just(json!({"sessionUpdate": 5})),
        Just(json!(null)),
    ]
}

proptest! {
    #[test]
    fn whatever_comes_the_order_is_valid(
        updates in proptest::collection::vec(any_update(), 0..60),
        replays in any::<bool>(),
    ) {
        let mut transcript = if replays { Transcript::replay() } else { Transcript::new() };
        let mut log = transcript.prompt(&text_blocks("go"));
        log.extend(all(&mut transcript, &updates));
        log.extend(transcript.finish("end_turn"));
        check_order(&log);
        let calls = updates.iter().filter(|update| update["sessionUpdate"] == "tool_call").count();
        let made = shape(&log).iter().map(|line| line.matches('→').count()).sum::<usize>();
        prop_assert!(made <= calls + 3, "{made} of {calls}");
    }
}
