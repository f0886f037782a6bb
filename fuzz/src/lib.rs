//! What must hold for any bytes whatsoever.
//!
//! Each function takes one input and panics where a promise is broken. cargo-fuzz calls them with
//! inputs of its own making; a plain test of the core (`tests/fuzz_seeds.rs`) includes this file and
//! calls them with the seeds, so that they are kept working without cargo-fuzz.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use contexture::build::{BuildInput, compose as compose_messages};
use contexture::import::Imported;
use contexture::message::{anthropic, openai, responses};
use contexture::pool::{ContextOptions, Locale, Pool, PoolEvent};
use contexture::prompt::{self, ComposeOptions};
use contexture::tokens::{FileTokenizer, Tokenizer, count};
use contexture::{ContextConfig, Entry, Message, Session, Settings, View, Wire, json};
use serde_json::{Value, json};

/// Whatever is read as a session file folds, and is the same when its log is read again.
pub fn import(data: &[u8]) {
    let Ok(imported) = Imported::read(data) else {
        return;
    };
    let view = View::fold(imported.entries.clone()).expect("an import folds");
    assert_eq!(
        view.log().len() + view.duplicates().len(),
        imported.entries.len()
    );
    let lines: Vec<String> = imported
        .entries
        .iter()
        .map(|entry| serde_json::to_string(entry).unwrap())
        .collect();
    let again = Imported::read(lines.join("\n").as_bytes()).expect("its log is read");
    assert_eq!(again.entries, imported.entries);
}

/// Whatever is read as an input gives a valid request within its limits, or an error.
pub fn build_input(data: &[u8]) {
    let Ok(input) = BuildInput::read(data) else {
        return;
    };
    let sum = data.iter().fold(7usize, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(usize::from(*byte))
    });
    let base = ContextConfig {
        max_input_tokens: 48 + sum % 1_000,
        max_bytes: (sum % 3 == 0).then_some(400 + sum % 4_096),
        ..ContextConfig::default()
    };
    let Ok(config) = input.config_over(base) else {
        return;
    };
    for wire in [Wire::OpenAi, Wire::Anthropic, Wire::Responses] {
        let settings = Settings {
            config,
            wire,
            model: input.model.clone(),
            params: input.params.clone(),
            ..Settings::default()
        };
        check_build(settings, input.clone());
    }
}

fn check_build(settings: Settings, input: BuildInput) {
    let (config, wire) = (settings.config, settings.wire);
    let Ok(mut session) = Session::open(settings.clone(), input.session_entries.clone()) else {
        return;
    };
    let Ok(built) = session.build(input.turn) else {
        return;
    };
    let limit = config.max_input_tokens - config.reserved_output;
    let tokens = built.stats().input_tokens;
    assert!(tokens <= limit, "{tokens} tokens of {limit}");
    let o200k = settings.tokenizer.as_ref();
    let counted = count::request(o200k, built.messages(), built.tools());
    assert_eq!(tokens, counted, "the count is not that of the messages");
    let bytes = built.body().len();
    assert!(
        config.max_bytes.is_none_or(|most| bytes <= most),
        "{bytes} bytes"
    );
    let body: Value = serde_json::from_slice(built.body()).expect("the body is JSON");
    match wire {
        Wire::OpenAi => check_pairs(body["messages"].as_array().unwrap()),
        Wire::Anthropic => check_turns(body["messages"].as_array().unwrap()),
        Wire::Responses => check_items(body["input"].as_array().unwrap()),
    }
    let receipt = built.receipt();
    let items: usize = receipt.items.iter().map(|item| item.tokens).sum();
    let tools: usize = receipt.tools.iter().map(|tool| tool.tokens).sum();
    assert_eq!(
        items + tools + o200k.frame(built.messages().next()),
        tokens,
        "the receipt adds up"
    );

    // Built anew from the log, the request is the same.
    let digest = built.digest().to_owned();
    let appended: Vec<Entry> = built.entries_to_append().cloned().collect();
    let log = input.session_entries.into_iter().chain(appended);
    let mut again = Session::open(settings, log).expect("the log can be read again");
    let again = again.current().expect("the log can be built again");
    assert_eq!(digest, again.digest(), "the log does not give the request");
}

/// Every result follows its call, every call is answered, and no id stands twice.
fn check_items(items: &[Value]) {
    let mut open: Vec<&str> = Vec::new();
    let mut used: Vec<&str> = Vec::new();
    for item in items {
        let Some(id) = item.get("call_id") else {
            continue;
        };
        let id = id.as_str().expect("an id");
        if item.get("output").is_none() {
            assert!(!used.contains(&id), "{id} again");
            used.push(id);
            open.push(id);
        } else {
            let at = open.iter().position(|known| *known == id);
            open.remove(at.expect("a result answers an open call"));
        }
    }
    assert!(!items.is_empty() && open.is_empty(), "unanswered: {open:?}");
}

/// Every result follows its call, every call is answered: by position, because ids repeat.
fn check_pairs(messages: &[Value]) {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        let role = message["role"].as_str().expect("a role");
        if role == "tool" {
            let id = message["tool_call_id"].as_str().expect("a call's id");
            let at = open.iter().position(|known| *known == id);
            open.remove(at.expect("a result answers an open call"));
            continue;
        }
        assert!(open.is_empty(), "unanswered: {open:?}");
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            open.push(call["id"].as_str().expect("an id"));
            let arguments = call["function"]["arguments"].as_str().expect("arguments");
            let arguments: Value = serde_json::from_str(arguments).expect("arguments are JSON");
            assert!(arguments.is_object(), "arguments are an object");
        }
    }
    assert!(open.is_empty(), "unanswered at the end: {open:?}");
}

/// Turns alternate, and every call is answered in the turn after it.
fn check_turns(turns: &[Value]) {
    let mut open: Vec<&Value> = Vec::new();
    assert!(!turns.is_empty());
    for (at, turn) in turns.iter().enumerate() {
        assert_eq!(turn["role"], ["user", "assistant"][at % 2]);
        let blocks = turn["content"].as_array().expect("blocks");
        assert!(!blocks.is_empty());
        for block in blocks {
            match block["type"].as_str().expect("a block's type") {
                "tool_use" => open.push(&block["id"]),
                "tool_result" => {
                    let at = open.iter().position(|id| **id == block["tool_use_id"]);
                    open.remove(at.expect("a result answers an open call"));
                }
                _ => {}
            }
        }
        assert!(at % 2 == 1 || open.is_empty(), "unanswered: {open:?}");
    }
    assert!(open.is_empty(), "unanswered at the end: {open:?}");
}

/// A log that can be read is written so that it reads the same, and folds or is refused.
pub fn entries(data: &[u8]) {
    let mut log = Vec::new();
    for (n, line) in data.split(|byte| *byte == b'\n').enumerate() {
        let Ok(entry) = json::parse(line, n + 1).and_then(Entry::from_value) else {
            continue;
        };
        let written = serde_json::to_vec(&entry).expect("an entry can be written");
        let value = json::parse(&written, 1).expect("what is written is JSON");
        let again = Entry::from_value(value).expect("what is written is an entry");
        assert_eq!(entry, again);
        log.push(entry);
    }
    if let Ok(view) = View::fold(log.clone()) {
        assert!(view.log().len() <= log.len());
        assert!(view.live(0).all(|live| live.position < view.log().len()));
        assert_eq!(view.live(0).count(), view.live_len());
    }
}

/// A message that can be read is written so that it reads the same, and has its form in the other
/// bodies.
pub fn message(data: &[u8]) {
    let Ok(message) = json::parse(data, 1).and_then(openai::read) else {
        return;
    };
    let written = serde_json::to_vec(&message).expect("a message can be written");
    let value = json::parse(&written, 1).expect("what is written is JSON");
    let again = openai::read(value).expect("what is written is a message");
    assert_eq!(message, again);

    let mut wire = Vec::new();
    openai::write(&message, &mut wire);
    json::parse(&wire, 1).expect("the wire form is JSON");

    let head = anthropic::Head {
        model: None,
        max_tokens: 1,
        params: None,
    };
    let mut body = Vec::new();
    anthropic::write_body(&head, &[], &[&message], &mut body);
    let body: Value = serde_json::from_slice(&body).expect("the body is JSON");
    check_turns(body["messages"].as_array().unwrap());

    let mut body = Vec::new();
    responses::write_body(&responses::Head::default(), &[], &[&message], &mut body);
    let body: Value = serde_json::from_slice(&body).expect("the body is JSON");
    check_items(body["input"].as_array().unwrap());
}

/// Options that can be read compose valid messages, or are refused.
pub fn compose(data: &[u8]) {
    let Ok(options) = json::parse(data, 1).and_then(ComposeOptions::from_value) else {
        return;
    };
    let written = serde_json::to_value(&options).expect("options can be written");
    let again = ComposeOptions::from_value(written).expect("what is written are options");
    assert_eq!(options, again);
    if let Ok(composed) = compose_messages(&options) {
        check_pairs(&composed.messages);
        assert_eq!(composed.messages.len(), composed.metadata.output_count);
    }
    if let (Ok(sections), Ok(text)) = (prompt::sections(&options), prompt::system_prompt(&options))
    {
        assert!(sections.iter().all(|section| text.contains(&section.text)));
    }
}

/// A pool, or a log of what happened to one, is the same when it is written and read again; its numbers add up,
/// and what an agent is told has the sections that we give it and no others.
pub fn pool(data: &[u8]) {
    let read = match json::parse(data, 1).and_then(Pool::from_value) {
        Ok(pool) => pool,
        Err(_) => {
            let lines = data.split(|byte| *byte == b'\n');
            let values = lines.filter_map(|line| json::parse(line, 1).ok());
            let mut pool = Pool::default();
            for event in values.filter_map(|value| PoolEvent::from_value(value).ok()) {
                let written = serde_json::to_value(&event).expect("an event can be written");
                let again = PoolEvent::from_value(written).expect("what is written is an event");
                assert_eq!(event, again);
                let _ = pool.apply(&event);
            }
            pool
        }
    };
    let written = serde_json::to_value(&read).expect("a pool can be written");
    assert_eq!(
        read,
        Pool::from_value(written).expect("what is written is a pool")
    );
    let summary = read.summary();
    let parts = [
        summary.available,
        summary.busy,
        summary.error,
        summary.released,
    ];
    assert_eq!(parts.iter().sum::<usize>(), summary.total_resources);
    let said = ContextOptions {
        task_id: Some(String::from_utf8_lossy(data).into_owned()),
        orchestrator_note: Some(String::from_utf8_lossy(data).into_owned()),
        ..ContextOptions::default()
    };
    let context = read.agent_context(said, "now").expect("a task with an id");
    for locale in Locale::ALL {
        let text = context.render(locale).expect("a context can be told");
        let headings = text.lines().filter(|line| line.starts_with('#')).count();
        let note = usize::from(!String::from_utf8_lossy(data).trim().is_empty());
        assert!(headings == 3 || headings == 3 + note, "{text}");
    }
}

/// A template renders or is refused, in bounded time and room.
pub fn template(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else {
        return;
    };
    let values = json!({
        "a": "text {{ a }}", "b": {"c": [1, 2.5, null], "d": "x"}, "n": 3, "t": true,
        "many": ["one", "two", "three"], "pairs": [{"k": "v"}, {"k": "w"}],
    });
    let rendered = prompt::render_str("fuzzed", source, &values);
    assert_eq!(rendered, prompt::render_str("fuzzed", source, &values));
}

/// A tokenizer's file loads and counts, or is refused.
pub fn tokenizer_json(data: &[u8]) {
    if let Ok(tokenizer) = FileTokenizer::from_json("fuzzed", data) {
        for text in ["", "a", "hello world", "naïve 汉字 🦀\n\t <s>"] {
            tokenizer.count(text);
            tokenizer.message(&Message::user(text));
        }
    }
}
