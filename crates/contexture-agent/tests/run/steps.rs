use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use contexture::build::RuntimeHintProvider;
use contexture::prompt::ToolPolicy;
use contexture::{Message, Payload};
use contexture_agent::{Ended, Event, History, ToolStatus};
use contexture_tools::approval::Standing;
use serde_json::{Map, Value, json};

use crate::model_server::{Answer, Piece};
use crate::run::harness::{MODELS, Setup};

fn says(text: &'static str) -> Answer {
    Answer::Says(vec![Piece::Text(text)])
}

fn calls(calls: &[(&'static str, &'static str)]) -> Answer {
    let calls = calls
        .iter()
        .map(|(id, tool)| Piece::Call(id, tool, json!({"n": 1})));
    Answer::Says(calls.collect())
}

#[test]
fn a_run_asks_looks_and_answers_and_every_request_can_be_made_again() {
    for model in MODELS {
        let bench = Setup::new(
            model,
            [
                Answer::Says(vec![
                    Piece::Thinking("I should look."),
                    Piece::Text("Let me look."),
                    Piece::Call("c1", "look", json!({"n": 1})),
                    Piece::Call("c2", "look", json!({"n": 2})),
                ]),
                says("There are two."),
            ],
        )
        .start();
        let result = bench.run("How many are there?").unwrap();
        assert_eq!(result.ended, Ended::Answered, "{model}");
        assert!(result.success);
        assert_eq!(result.text, "There are two.");
        assert_eq!(result.steps, 2);
        assert_eq!(result.tool_calls.len(), 2);
        assert_eq!(result.usage.input_tokens, 200);
        assert_eq!(result.usage.cached_tokens, 128);
        assert_eq!(
            bench.shape(),
            [
                "session_header",
                "sections",
                "tools",
                "user",
                "request",
                "assistant+2",
                "tool",
                "tool",
                "request",
                "assistant"
            ],
            "{model}"
        );
        assert_eq!(bench.said(), ["Let me look.", "There are two."]);
        bench.verify();
    }
}

#[test]
fn what_only_looks_runs_together_and_what_acts_runs_alone() {
    let bench = Setup::new(
        MODELS[0],
        [
            calls(&[("a", "look"), ("b", "look"), ("c", "look")]),
            calls(&[("d", "write"), ("e", "write")]),
            says("done"),
        ],
    )
    .start();
    bench.run("go").unwrap();
    assert_eq!(bench.spy.runs.load(Ordering::SeqCst), 5);
    assert_eq!(bench.spy.most_at_once.load(Ordering::SeqCst), 3);
    let bench = Setup::new(
        MODELS[0],
        [
            calls(&[("d", "write"), ("e", "write"), ("f", "look")]),
            says("done"),
        ],
    )
    .start();
    bench.run("go").unwrap();
    assert_eq!(bench.spy.most_at_once.load(Ordering::SeqCst), 1);
}

#[test]
fn the_step_limit_is_an_outcome() {
    let script = (0..9).map(|_| calls(&[("a", "look")]));
    let mut setup = Setup::new(MODELS[0], script);
    setup.max_steps = 3;
    let bench = setup.start();
    let result = bench.run("loop").unwrap();
    assert_eq!(result.ended, Ended::MaxSteps);
    assert!(!result.success);
    assert_eq!(bench.server.seen().len(), 3);
    assert_eq!(bench.spy.runs.load(Ordering::SeqCst), 3);
    bench.verify();
}

#[test]
fn tools_that_fail_break_or_do_not_exist_are_answers_to_the_model() {
    let bench = Setup::new(
        MODELS[0],
        [
            calls(&[("a", "fail"), ("b", "break_down"), ("c", "lok")]),
            Answer::Says(vec![Piece::Call("d", "look", json!([1]))]),
            Answer::Says(vec![Piece::Call("e", "look", json!({"n": "one"}))]),
            says("I see."),
        ],
    )
    .start();
    let result = bench.run("go").unwrap();
    assert!(result.had_tool_failure && !result.success);
    assert_eq!(result.ended, Ended::Answered);
    let why: Vec<&str> = result.failures.iter().map(|f| f.error.as_str()).collect();
    assert!(
        why.iter().any(|why| why.contains("no such thing")),
        "{why:?}"
    );
    assert!(why.iter().any(|why| why.contains("broke down")), "{why:?}");
    assert!(
        why.iter().any(|why| why.contains("Did you mean `look`?")),
        "{why:?}"
    );
    assert!(
        why.iter().any(|why| why.contains("no JSON object")),
        "{why:?}"
    );
    assert!(why.iter().any(|why| why.contains("integer")), "{why:?}");
    assert_eq!(bench.spy.runs.load(Ordering::SeqCst), 2);
    bench.verify();
}

#[test]
fn the_policy_holds_for_the_list_and_for_the_call() {
    let mut setup = Setup::new(
        MODELS[0],
        [calls(&[("a", "write"), ("b", "look")]), says("ok")],
    );
    setup.policy = ToolPolicy {
        denied_tools: Some(vec!["write".to_owned()]),
        ..ToolPolicy::default()
    };
    let bench = setup.start();
    let result = bench.run("go").unwrap();
    let offered = bench.server.seen()[0].json()["tools"].to_string();
    assert!(offered.contains("look") && !offered.contains("write"));
    assert_eq!(bench.spy.runs.load(Ordering::SeqCst), 1);
    assert!(result.had_tool_failure);
}

#[test]
fn who_is_not_there_to_be_asked_says_no() {
    let mut setup = Setup::new(MODELS[0], [calls(&[("a", "write")]), says("ok")]);
    setup.standing = Standing::default();
    let bench = setup.start();
    let result = bench.run("go").unwrap();
    assert_eq!(bench.spy.runs.load(Ordering::SeqCst), 0);
    assert!(result.failures[0].error.contains("--allow write"));
}

#[test]
fn what_tools_inject_stands_before_the_users_words_and_stays_there() {
    for model in MODELS {
        let bench = Setup::new(
            model,
            [
                says("Hello."),
                Answer::Says(vec![Piece::Call("a", "note", json!({"n": 1}))]),
                Answer::Says(vec![Piece::Call("b", "note", json!({"n": 2}))]),
                says("Done."),
                says("Again."),
            ],
        )
        .start();
        bench.run("first").unwrap();
        bench.run("second").unwrap();
        bench.run("third").unwrap();
        let last = String::from_utf8(bench.server.seen()[4].body.clone()).unwrap();
        let at = |what: &str| {
            last.find(what)
                .unwrap_or_else(|| panic!("{what} in {last}"))
        };
        let order = [
            "first", "Hello.", "rule 1", "rule 2", "memory 1", "memory 2", "second", "Done.",
            "third",
        ];
        for pair in order.windows(2) {
            assert!(at(pair[0]) < at(pair[1]), "{model}: {pair:?} in {last}");
        }
        assert_eq!(bench.said(), ["Hello.", "a note", "Done.", "Again."]);
        bench.verify();
    }
}

#[test]
fn keys_in_what_tools_say_never_reach_the_disk() {
    let bench = Setup::new(MODELS[0], [calls(&[("a", "leak")]), says("ok")]).start();
    bench.run("go").unwrap();
    let mut all = String::new();
    for file in walk(bench.folder.path()) {
        all.push_str(&std::fs::read_to_string(file).unwrap_or_default());
    }
    assert!(all.contains("[masked]"));
    assert!(!all.contains("correct-horse") && !all.contains("abcdefghijklmnop"));
    let sent = String::from_utf8(bench.server.seen()[1].body.clone()).unwrap();
    assert!(!sent.contains("correct-horse"));
}

#[test]
fn transcript_and_execution_memory_are_written() {
    let bench = Setup::new(MODELS[0], [calls(&[("a", "fail")]), says("It failed.")]).start();
    let result = bench.run("try it").unwrap();
    let stores = &bench.agent.stores;
    let lines = stores
        .transcripts
        .last(&bench.key(), 10, 0, |_| true)
        .unwrap()
        .lines;
    let texts: Vec<(&str, &str)> = lines
        .iter()
        .map(|l| (l.role.as_str(), l.text.as_str()))
        .collect();
    assert_eq!(texts, [("user", "try it"), ("assistant", "It failed.")]);
    let runs = stores.memories.load(&bench.key()).unwrap().lines;
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].request_id, result.run_id);
    assert_eq!(runs[0].user_preview, "try it");
    assert_eq!(runs[0].tool_calls[0].success, Some(false));
}

#[test]
fn a_result_that_says_success_false_is_a_failure() {
    for model in MODELS {
        let bench = Setup::new(model, [calls(&[("a", "refuse")]), says("It failed.")]).start();
        let result = bench.run("try it").unwrap();
        assert!(result.had_tool_failure && !result.success, "{model}");
        assert_eq!(result.failures[0].error, "no such file");
        let run = bench.agent.stores.memories.load(&bench.key()).unwrap();
        assert_eq!(run.lines[0].tool_calls[0].success, Some(false));
        assert!(bench.shape().contains(&"tool!".to_owned()), "{model}");
        bench.verify();
    }
}

#[test]
fn a_run_is_remembered_while_its_tools_run() {
    let script = [calls(&[("a", "look"), ("b", "write")]), says("Done.")];
    let bench = Setup::new(MODELS[0], script).start();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (stores, key, saw) = (bench.agent.stores.clone(), bench.key(), Arc::clone(&seen));
    *bench.hook.lock().unwrap() = Some(Box::new(move |event| {
        if let Event::Tool {
            status: ToolStatus::Started,
            ..
        } = event
        {
            let said = stores.transcripts.last(&key, 9, 0, |_| true).unwrap().lines;
            let run = stores.memories.load(&key).unwrap().lines.remove(0);
            let fared: Vec<Option<bool>> = run.tool_calls.iter().map(|call| call.success).collect();
            saw.lock()
                .unwrap()
                .push((said.len(), run.user_preview, fared));
        }
    }));
    bench.run("go").unwrap();
    let asked = "go".to_owned();
    assert_eq!(
        *seen.lock().unwrap(),
        [
            (1, asked.clone(), vec![None, None]),
            (1, asked, vec![Some(true), None]),
        ]
    );
    let runs = bench
        .agent
        .stores
        .memories
        .load(&bench.key())
        .unwrap()
        .lines;
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].output_preview, "Done.");
}

/// Says how often it was asked.
#[derive(Default)]
struct Count(AtomicUsize);

impl RuntimeHintProvider for Count {
    fn hints(&self) -> Map<String, Value> {
        let n = self.0.fetch_add(1, Ordering::SeqCst);
        Map::from_iter([("run".to_owned(), json!(n))])
    }
}

#[test]
fn hints_are_asked_for_before_each_run() {
    let mut bench =
        Setup::new(MODELS[0], [calls(&[("a", "look")]), says("ok"), says("ok")]).start();
    bench.agent.options.hints = Some(Arc::new(Count::default()));
    bench.run("one").unwrap();
    bench.run("two").unwrap();
    let entries = bench.entries();
    let hints = entries.iter().filter_map(|entry| match &entry.payload {
        Payload::Hints { data } => Some(data["run"].clone()),
        _ => None,
    });
    assert_eq!(hints.collect::<Vec<_>>(), [0, 1]);
    bench.verify();
}

#[test]
fn events_are_what_scripts_read() {
    let bench = Setup::new(MODELS[0], [calls(&[("a", "look")]), says("ok")]).start();
    bench.run("go").unwrap();
    let events = bench.events.lock().unwrap();
    let kinds: Vec<String> = events
        .iter()
        .filter(|event| !event.is_live())
        .map(|event| {
            let value = serde_json::to_value(event).unwrap();
            value["type"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "tool",
            "tool",
            "step_finish",
            "assistant",
            "step_finish",
            "done"
        ]
    );
    let done = serde_json::to_value(events.last().unwrap()).unwrap();
    for field in [
        "toolCalls",
        "hadToolFailure",
        "usage",
        "ended",
        "text",
        "runId",
    ] {
        assert!(done.get(field).is_some(), "{field} in {done}");
    }
    let Some(Event::StepFinish { tools, .. }) = events
        .iter()
        .find(|e| matches!(e, Event::StepFinish { .. }))
    else {
        panic!("a step finishes");
    };
    assert_eq!(tools.len(), 1);
    assert!(tools[0].chars().count() <= 520);
}

#[test]
fn others_may_write_to_the_log_at_any_moment_of_a_run() {
    for model in MODELS {
        let bench = Setup::new(
            model,
            [
                Answer::Says(vec![
                    Piece::Text("Looking."),
                    Piece::Call("a", "look", json!({})),
                ]),
                says("Seen."),
                says("Again."),
            ],
        )
        .start();
        let mut chat = bench.chat();
        let mut other = bench.other();
        // While the model speaks, while a tool begins, and when it has ended.
        *bench.hook.lock().unwrap() = Some(Box::new(move |event| {
            if matches!(event, Event::Text(_) | Event::Tool { .. }) {
                let note = Map::from_iter([("note".to_owned(), json!("from elsewhere"))]);
                other().say(Payload::Custom(note)).unwrap();
                let message = Message::user("By the way: be brief.");
                other().say(Payload::Message { message }).unwrap();
            }
        }));
        let result = bench.run_in(&mut chat, "first").unwrap();
        assert_eq!(result.text, "Seen.", "{model}");
        bench.run_in(&mut chat, "second").unwrap();
        assert!(
            bench
                .shape()
                .iter()
                .filter(|kind| *kind == "custom")
                .count()
                >= 4
        );
        let last = String::from_utf8(bench.server.seen()[2].body.clone()).unwrap();
        assert!(last.contains("be brief"));
        bench.verify();
    }
}

#[test]
fn another_model_is_noted_in_the_log() {
    let bench = Setup::new(MODELS[0], [says("a"), says("b")]).start();
    let mut chat = bench.chat();
    bench.run_in(&mut chat, "one").unwrap();
    let mut settings = bench.settings.clone();
    settings.model = Some("m2".to_owned());
    chat.reset(settings).unwrap();
    bench.run_in(&mut chat, "two").unwrap();
    let shape = bench.shape();
    assert_eq!(
        shape.iter().filter(|kind| *kind == "model_change").count(),
        1,
        "{shape:?}"
    );
    bench.verify();
}

#[test]
fn a_long_chat_is_compacted_by_its_length_before_a_run() {
    let mut setup = Setup::new(MODELS[0], (0..9).map(|_| says("Yes.")));
    setup.history = Some(History { most: 8, keep: 4 });
    let bench = setup.start();
    for n in 0..8 {
        bench
            .run(&format!(
                "Question number {n}, of some length, about the harbour and its ships."
            ))
            .unwrap();
    }
    let events = bench.events.lock().unwrap();
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::Compaction { .. }))
    );
    drop(events);
    let last = bench.server.seen().last().unwrap().json();
    assert!(last["messages"].as_array().unwrap().len() <= 11, "{last}");
    bench.verify();
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => files.extend(walk(&entry.path())),
            false => files.push(entry.path()),
        }
    }
    files
}
