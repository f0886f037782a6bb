//! F8, F9 and F11 of the list of faults, and what else can go wrong in the middle of a run.

use std::sync::atomic::Ordering;
use std::time::Duration;

use contexture::{Message, Payload, ToolCall};
use contexture_agent::{AgentError, Ended, Event};
use contexture_model::ModelError;
use serde_json::json;

use crate::model_server::{Answer, Piece, event_count};
use crate::run::harness::{Bench, MODELS, Setup};

fn says(text: &'static str) -> Answer {
    Answer::Says(vec![Piece::Text(text)])
}

fn a_call() -> Vec<Piece> {
    vec![
        Piece::Text("Let me."),
        Piece::Call("c1", "write", json!({"n": 1})),
    ]
}

fn path(model: &str) -> &'static str {
    match model {
        "openai:m" => "chat/completions",
        "openai-responses:m" => "responses",
        _ => "messages",
    }
}

fn too_long(model: &str) -> Answer {
    let body = match model {
        "anthropic:m" => {
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 250000 tokens > 200000 maximum"}})
        }
        _ => {
            json!({"error": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}})
        }
    };
    Answer::Status(
        400,
        vec![("content-type", "application/json".to_owned())],
        body.to_string(),
    )
}

#[test]
fn f8_a_stream_cut_at_each_event_runs_the_tool_once() {
    for model in MODELS {
        let pieces = a_call();
        for after in 0..event_count(path(model), &pieces) {
            let bench = Setup::new(
                model,
                [
                    Answer::Cut(pieces.clone(), after),
                    Answer::Says(pieces.clone()),
                    says("Done."),
                ],
            )
            .start();
            let result = bench.run("go").unwrap();
            assert_eq!(result.ended, Ended::Answered, "{model} cut after {after}");
            assert_eq!(
                bench.spy.runs.load(Ordering::SeqCst),
                1,
                "{model} cut after {after}"
            );
            bench.verify();
        }
    }
}

#[test]
fn f8_statuses_that_pass_are_tried_again_and_those_that_do_not_end_the_run() {
    let busy =
        |status| Answer::Status(status, vec![("retry-after", "0".to_owned())], String::new());
    for model in MODELS {
        for status in [429, 500, 503, 529] {
            let bench = Setup::new(model, [busy(status), busy(status), says("ok")]).start();
            assert_eq!(bench.run("go").unwrap().text, "ok", "{model} {status}");
            bench.verify();
        }
        let bench = Setup::new(model, [busy(401)]).start();
        let failed = bench.run("go");
        assert!(
            matches!(failed, Err(AgentError::Model(ModelError::Auth { .. }))),
            "{model}: {failed:?}"
        );
        assert_eq!(bench.server.seen().len(), 1);
        assert_eq!(bench.shape().last().unwrap(), "request failed");
        bench.verify();
    }
}

#[test]
fn f8_garbage_and_silence_end_the_run_and_the_next_one_goes_on() {
    for fault in [
        Answer::Garbage("<html>busy</html>"),
        Answer::HangsUp,
        Answer::Stalls(a_call(), 3),
    ] {
        let script = [fault.clone(), fault.clone(), fault, says("Here I am.")];
        let bench = Setup::new(MODELS[0], script).start();
        assert!(bench.run("go").is_err());
        assert_eq!(bench.spy.runs.load(Ordering::SeqCst), 0);
        let result = bench.run("again").unwrap();
        assert_eq!(result.text, "Here I am.");
        bench.verify();
    }
}

#[test]
fn too_long_is_made_shorter_at_most_twice_and_nothing_is_lost() {
    for model in MODELS {
        let long = || Answer::Says(vec![Piece::Call("c", "long", json!({}))]);
        let script = [
            long(),
            long(),
            long(),
            says("So far."),
            too_long(model),
            too_long(model),
            says("Now it fits."),
        ];
        let bench = Setup::new(model, script).start();
        bench.run("first").unwrap();
        let before = bench.entries().len();
        let result = bench.run("second").unwrap();
        assert_eq!(result.text, "Now it fits.", "{model}");
        let sizes: Vec<usize> = bench.server.seen()[4..]
            .iter()
            .map(|s| s.body.len())
            .collect();
        assert!(
            sizes[0] > sizes[1] && sizes[1] >= sizes[2],
            "{model}: {sizes:?}"
        );
        assert!(bench.entries().len() > before);
        bench.verify();

        let script = [
            long(),
            says("So far."),
            too_long(model),
            too_long(model),
            too_long(model),
        ];
        let bench = Setup::new(model, script).start();
        bench.run("first").unwrap();
        let failed = bench.run("second");
        assert!(
            matches!(failed, Err(AgentError::Model(ModelError::Overflow { .. }))),
            "{model}"
        );
        assert_eq!(bench.server.seen().len(), 5);
        bench.verify();
    }
}

#[test]
fn stopped_while_the_model_speaks_keeps_what_was_read() {
    let bench = Setup::new(
        MODELS[0],
        [
            Answer::Stalls(vec![Piece::Text("Once upon a time there was")], 3),
            says("…a log."),
        ],
    )
    .start();
    let cancel = bench.cancel.clone();
    let events = bench.events.clone();
    std::thread::spawn(move || {
        while !events
            .lock()
            .unwrap()
            .iter()
            .any(|e| matches!(e, Event::Text(_)))
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        cancel.cancel();
    });
    let result = bench.run("tell me a story").unwrap();
    assert_eq!(result.ended, Ended::Cancelled);
    assert!(result.text.starts_with("Once"), "{}", result.text);
    let shape = bench.shape();
    assert_eq!(shape[shape.len() - 2..], ["request cancelled", "assistant"]);
    bench.verify();
}

#[test]
fn stopped_while_a_tool_runs_answers_every_call() {
    let bench = Setup::new(
        MODELS[0],
        [Answer::Says(vec![
            Piece::Call("a", "look", json!({})),
            Piece::Call("b", "hang", json!({})),
            Piece::Call("c", "write", json!({})),
        ])],
    )
    .start();
    let cancel = bench.cancel.clone();
    let runs = bench.spy.clone();
    std::thread::spawn(move || {
        while runs.runs.load(Ordering::SeqCst) < 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(100));
        cancel.cancel();
    });
    let result = bench.run("go").unwrap();
    assert_eq!(result.ended, Ended::Cancelled);
    assert_eq!(
        bench.spy.runs.load(Ordering::SeqCst),
        2,
        "what acts was not begun"
    );
    let shape = bench.shape();
    assert_eq!(
        shape[shape.len() - 4..],
        ["assistant+3", "tool", "tool!", "tool!"]
    );
    bench.verify();
}

/// A run that ended between a call and its result, as `kill -9` leaves it.
fn killed_between_call_and_result(model: &'static str, script: Vec<Answer>) -> Bench {
    let bench = Setup::new(model, script).start();
    let mut chat = bench.chat();
    for message in [
        Message::user("do it"),
        Message::calls([
            ToolCall::new("x", "write", "{}"),
            ToolCall::new("y", "look", "{}"),
        ]),
        Message::tool_result("y", "seen"),
    ] {
        chat.say(Payload::Message { message }).unwrap();
    }
    bench
}

#[test]
fn f9_a_call_without_a_result_is_never_run_again_and_the_next_request_is_valid() {
    for model in MODELS {
        let bench = killed_between_call_and_result(model, vec![says("I was interrupted.")]);
        let result = bench.run("go on").unwrap();
        assert_eq!(result.ended, Ended::Answered);
        assert_eq!(bench.spy.runs.load(Ordering::SeqCst), 0, "{model}");
        let sent = String::from_utf8(bench.server.seen()[0].body.clone()).unwrap();
        assert!(
            sent.contains("seen") && sent.contains("interrupted"),
            "{model}: {sent}"
        );
        bench.verify();
    }
}

#[test]
fn f11_history_of_another_provider_makes_a_valid_request() {
    for model in MODELS {
        let bench = Setup::new(model, [says("I see.")]).start();
        let mut chat = bench.chat();
        let thought: Message = serde_json::from_value(json!({
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "of another provider"},
                {"type": "text", "text": "So."},
            ],
            "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        }))
        .unwrap();
        for message in [
            Message::tool_result("lost", "a result that leads"),
            Message::user("a"),
            thought.clone(),
            Message::tool_result("call_0", "1"),
            Message::user("b"),
            thought,
            Message::user("c"),
        ] {
            chat.say(Payload::Message { message }).unwrap();
        }
        let result = bench.run("and now?").unwrap();
        assert_eq!(result.text, "I see.", "{model}");
        let receipt = bench.chat().session().current().unwrap().receipt();
        let rules: Vec<&str> = receipt
            .items
            .iter()
            .map(|item| item.rule.as_str())
            .collect();
        assert!(rules.contains(&"repaired"), "{model}: {rules:?}");
        let out: Vec<&str> = receipt
            .excluded
            .iter()
            .map(|item| item.rule.as_str())
            .collect();
        assert!(out.contains(&"orphan"), "{model}: {out:?}");
        bench.verify();
    }
}

#[test]
fn a_reply_that_was_cut_at_its_longest_runs_nothing() {
    // The scripted server ends replies with calls as such; a reply without an end is one that was cut.
    let bench = Setup::new(MODELS[0], [Answer::Ends(a_call(), 5), says("ok")]).start();
    let _ = bench.run("go");
    assert_eq!(bench.spy.runs.load(Ordering::SeqCst), 0);
    bench.verify();
}
