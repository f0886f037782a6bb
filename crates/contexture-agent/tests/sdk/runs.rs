//! All that agents send: to each wire the same stories, the sad ones too.

use std::sync::atomic::Ordering;
use std::time::Duration;

use contexture::{Message, Payload, ToolCall};
use contexture_agent::Ended;
use serde_json::{Value, json};

use crate::model_server::{Answer, ModelServer, Piece};
use crate::sdk::harness::{Bench, MODELS, Setup, Summaries};
use crate::sdk::histories::WIRES;
use crate::sdk::python::Python;

type Told = fn(&'static str) -> Bench;

fn says(text: &'static str) -> Answer {
    Answer::Says(vec![Piece::Text(text)])
}

fn call(id: &'static str, tool: &'static str, arguments: Value) -> Piece {
    Piece::Call(id, tool, arguments)
}

fn calls(calls: impl IntoIterator<Item = Piece>) -> Answer {
    Answer::Says(calls.into_iter().collect())
}

fn parallel_calls_and_thoughts(model: &'static str) -> Bench {
    let asks = |id1, id2| {
        calls([
            Piece::Thinking("I should look."),
            Piece::Text("Let me look."),
            call(id1, "look", json!({"n": 1})),
            call(id2, "write", json!({"n": 2})),
        ])
    };
    let script = [
        asks("c1", "c2"),
        asks("c3", "c4"),
        says("Two."),
        says("Yes."),
    ];
    let bench = Setup::new(model, script).start();
    bench.run("How many are there?").unwrap();
    bench.run("Sure?").unwrap();
    bench
}

/// The server names every call alike, as some do.
fn ids_that_repeat(model: &'static str) -> Bench {
    let again = || calls([call("c", "look", json!({})), call("c", "look", json!({}))]);
    let bench = Setup::new(model, [again(), again(), says("Seen.")]).start();
    bench.run("Look twice.").unwrap();
    bench
}

fn tools_that_fail(model: &'static str) -> Bench {
    let script = [
        calls([
            call("a", "fail", json!({})),
            call("b", "break_down", json!({})),
            call("c", "lok", json!({})),
            call("d", "fs:look.at", json!({})),
        ]),
        calls([call("e", "look", json!([1]))]),
        calls([call("f", "look", json!({"n": "one"}))]),
        calls([call("", "", json!("x"))]),
        calls([call(
            "an id that is far too long for anybody, and has spaces and ümlauts in it, too",
            "look",
            json!({}),
        )]),
        says("I see."),
    ];
    let bench = Setup::new(model, script).start();
    bench.run("go").unwrap();
    bench
}

fn injections(model: &'static str) -> Bench {
    let script = [
        says("Hello."),
        calls([call("a", "note", json!({"n": 1}))]),
        calls([
            call("b", "note", json!({"n": 2})),
            call("c", "look", json!({})),
        ]),
        says("Done."),
        says("Again."),
    ];
    let bench = Setup::new(model, script).start();
    for text in ["first", "second", "third"] {
        bench.run(text).unwrap();
    }
    bench
}

fn stopped_while_tools_run(model: &'static str) -> Bench {
    let bench = Setup::new(
        model,
        [
            calls([
                Piece::Thinking("Hm."),
                call("a", "look", json!({})),
                call("b", "hang", json!({})),
                call("c", "write", json!({})),
            ]),
            says("I was stopped."),
        ],
    )
    .start();
    let (cancel, spy) = (bench.cancel.clone(), bench.spy.clone());
    std::thread::spawn(move || {
        while spy.runs.load(Ordering::SeqCst) < 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        cancel.cancel();
    });
    let result = bench.run("go").unwrap();
    assert_eq!(result.ended, Ended::Cancelled);
    goes_on(bench)
}

fn stopped_while_the_model_speaks(model: &'static str) -> Bench {
    let story = vec![
        Piece::Thinking("A story, then."),
        Piece::Text("Once upon a time "),
        call("a", "look", json!({})),
    ];
    // Behind which event the thought is over, the text has begun, the call has begun.
    let mut bench = Setup::new(
        model,
        [
            Answer::Stalls(story.clone(), 3),
            Answer::Stalls(story, 9),
            says("…a log."),
        ],
    )
    .start();
    for _ in 0..2 {
        let cancel = bench.cancel.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            cancel.cancel();
        });
        let result = bench.run("tell me a story").unwrap();
        assert_eq!(result.ended, Ended::Cancelled);
        bench.cancel = Default::default();
    }
    goes_on(bench)
}

/// The next run after one that was stopped.
fn goes_on(mut bench: Bench) -> Bench {
    bench.cancel = Default::default();
    bench.run("go on").unwrap();
    bench
}

fn killed_between_call_and_result(model: &'static str) -> Bench {
    let bench = Setup::new(model, [says("I was interrupted.")]).start();
    let asked = Message::calls([
        ToolCall::new("x", "write", "{}"),
        ToolCall::new("y", "look", "{\"n\":"),
    ]);
    tell(
        &bench,
        [
            Message::user("do it"),
            asked,
            Message::tool_result("y", "seen"),
        ],
    );
    bench.run("go on").unwrap();
    bench
}

fn history_of_other_providers(model: &'static str) -> Bench {
    let bench = Setup::new(model, [says("I see.")]).start();
    let thought: Message = serde_json::from_value(json!({
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "of another provider"},
            {"type": "thinking", "thinking": "so", "id": "rs_9", "encrypted_content": "AAAA", "summary": []},
            {"type": "redacted_thinking", "data": "AAAA"},
            {"type": "text", "text": "So."},
        ],
        "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
    }))
    .unwrap();
    let picture = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    let result = |content| json!({"role": "tool", "tool_call_id": "call_0", "content": content});
    let seen = serde_json::from_value(result(json!(["a picture", picture]))).unwrap();
    let nothing = serde_json::from_value(result(Value::Null)).unwrap();
    tell(
        &bench,
        [
            Message::tool_result("lost", "a result that leads"),
            Message::user("a"),
            thought.clone(),
            Message::tool_result("call_0", "1"),
            Message::user("b"),
            thought.clone(),
            seen,
            thought.clone(),
            nothing,
            thought,
            Message::user("c"),
        ],
    );
    bench.run("and now?").unwrap();
    bench
}

fn too_long_for_the_provider(model: &'static str) -> Bench {
    let long = || calls([call("c", "long", json!({}))]);
    let too_long = || {
        let error = json!({"message": "prompt is too long: 2 tokens > 1 maximum", "type": "invalid_request_error", "code": "context_length_exceeded"});
        let body = json!({"type": "error", "error": error}).to_string();
        Answer::Status(
            400,
            vec![("content-type", "application/json".to_owned())],
            body,
        )
    };
    let script = [
        long(),
        long(),
        long(),
        says("So far."),
        too_long(),
        too_long(),
        says("Fits."),
    ];
    let bench = Setup::new(model, script).start();
    bench.run("first").unwrap();
    bench.run("second").unwrap();
    bench
}

fn faults_on_the_way(model: &'static str) -> Bench {
    let pieces = vec![Piece::Text("Let me."), call("c1", "write", json!({"n": 1}))];
    let script = [
        Answer::Cut(pieces.clone(), 4),
        Answer::Garbage("<html>busy</html>"),
        Answer::Says(pieces),
        Answer::HangsUp,
        says("Done."),
        Answer::Status(401, vec![], String::new()),
        says("Again."),
    ];
    let bench = Setup::new(model, script).start();
    let _ = bench.run("go");
    let _ = bench.run("go");
    let _ = bench.run("go");
    bench
}

fn steps_without_end(model: &'static str) -> Bench {
    let script = (0..4).map(|_| calls([call("a", "look", json!({}))]));
    let mut setup = Setup::new(model, script.chain([says("Well.")]));
    setup.max_steps = 4;
    let bench = setup.start();
    assert_eq!(bench.run("loop").unwrap().ended, Ended::MaxSteps);
    bench.run("and?").unwrap();
    bench
}

fn compacted(model: &'static str, compactor: Summaries) -> Bench {
    let server = ModelServer::answering(|request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        if body.contains("Pause the work here.") {
            return says("The user set rules. Files were looked at, results were long.");
        }
        let (called, asked) = (body.rfind("lorem ipsum"), body.rfind("Step "));
        match called.or(body.rfind("masked")) > asked {
            true => says("Looked at it."),
            false => calls([
                Piece::Thinking("Long."),
                call("c", "long", json!({})),
                call("d", "look", json!({})),
            ]),
        }
    });
    let mut setup = Setup::new(model, []);
    (setup.budget, setup.reserved, setup.compactor) = (9_000, 500, compactor);
    let bench = setup.start_with(server);
    for step in 1..=8 {
        let text = format!("Step {step}: look at part {step}. Never touch db-prod-{step}.");
        bench.run(&text).unwrap();
    }
    let compactions = bench.shape();
    assert!(
        compactions
            .iter()
            .any(|kind| kind == "compaction_summary" || kind == "mask")
    );
    bench
}

fn tell(bench: &Bench, messages: impl IntoIterator<Item = Message>) {
    let mut chat = bench.chat();
    for message in messages {
        chat.say(Payload::Message { message }).unwrap();
    }
}

const STORIES: [(&str, Told); 13] = [
    ("parallel calls and thoughts", parallel_calls_and_thoughts),
    ("ids that repeat", ids_that_repeat),
    ("tools that fail", tools_that_fail),
    ("injections", injections),
    ("stopped while tools run", stopped_while_tools_run),
    (
        "stopped while the model speaks",
        stopped_while_the_model_speaks,
    ),
    (
        "killed between call and result",
        killed_between_call_and_result,
    ),
    ("history of other providers", history_of_other_providers),
    ("too long for the provider", too_long_for_the_provider),
    ("faults on the way", faults_on_the_way),
    ("steps without end", steps_without_end),
    ("compacted by extract", |model| {
        compacted(model, Summaries::Extracted)
    }),
    ("compacted by the model", |model| {
        compacted(model, Summaries::ByModel)
    }),
];

// needs: sdks
#[test]
fn every_request_of_every_run_is_one_that_the_sdks_take() {
    let Some(python) = Python::find() else { return };
    let mut all = Vec::new();
    for (model, (wire, _)) in MODELS.into_iter().zip(WIRES) {
        for (name, story) in STORIES {
            let sent = story(model).server.seen();
            println!("{wire}, {name}: {} requests", sent.len());
            assert!(!sent.is_empty());
            all.extend(sent.iter().map(|request| (wire, request.json())));
        }
    }
    python.accepts("runs", &all);
}
