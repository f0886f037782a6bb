//! Spec 002's manager: what a call says holds for it alone, and what it leaves out is configured.

use contexture::build::{BuildInput, BuildResult, RuntimeHintProvider, UpdateRequest};
use contexture::prompt::Section;
use contexture::{ContextManager, Entry, Message, Session, Settings, Turn};
use serde_json::{Map, Value, json};

fn manager(system_prompt: Option<&str>) -> ContextManager {
    ContextManager::new(Settings {
        system_prompt: system_prompt.map(str::to_owned),
        ..Settings::default()
    })
    .unwrap()
}

fn input(log: &[Entry], text: &str) -> BuildInput {
    BuildInput {
        session_entries: log.to_vec(),
        turn: Turn {
            messages: vec![Message::user(text)],
            ..Turn::default()
        },
        ..BuildInput::default()
    }
}

/// A call whose entries are logged. The system messages of its request.
fn call(manager: &ContextManager, log: &mut Vec<Entry>, input: BuildInput) -> Vec<String> {
    let result = manager.build_context(input).unwrap();
    log.extend(result.entries_to_append.iter().cloned());
    system(&result.model_messages)
}

fn system(messages: &[Value]) -> Vec<String> {
    let system = messages
        .iter()
        .filter(|message| message["role"] == "system");
    system
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn without_a_system_prompt_the_configured_one_holds_and_with_one_that_one_for_its_call() {
    let configured = manager(Some("Be kind."));
    let mut log = Vec::new();
    let one = input(&log, "one");
    assert_eq!(call(&configured, &mut log, one), ["Be kind."]);
    let two = input(&log, "two").with_system_prompt("Be brief.");
    assert_eq!(call(&configured, &mut log, two), ["Be brief."]);
    // The call goes on.
    let update = UpdateRequest {
        session_entries: log.clone(),
        turn: Turn {
            messages: vec![Message::assistant("So be it.")],
            ..Turn::default()
        },
        ..UpdateRequest::default()
    };
    let update = configured.compute_context_updates(update).unwrap();
    assert_eq!(system(&update.updated_messages.unwrap()), ["Be brief."]);
    log.extend(update.entries_to_append);
    let three = input(&log, "three");
    assert_eq!(call(&configured, &mut log, three), ["Be kind."]);
    // Nothing configured: nothing is said.
    let bare = manager(None);
    let four = input(&log, "four").with_system_prompt("Be brief.");
    assert_eq!(call(&bare, &mut log, four), ["Be brief."]);
    let five = input(&log, "five");
    assert!(call(&bare, &mut log, five).is_empty());
    // Of all that the log tells.
    let said = log
        .iter()
        .filter(|entry| entry.payload.type_name() == "sections");
    assert_eq!(said.count(), 5);
}

#[test]
fn a_log_with_a_system_side_of_its_own_keeps_it() {
    let configured = manager(Some("Be kind."));
    let mut log = vec![Entry::message(None, "", Message::system("You are stored."))];
    let one = input(&log, "one");
    assert_eq!(call(&configured, &mut log, one), ["You are stored."]);
    let mut log = Vec::new();
    let mut first = input(&log, "one");
    let role = Section::stable("role", "test", "You are a role.");
    first.turn.sections = Some(vec![role]);
    assert_eq!(call(&configured, &mut log, first), ["You are a role."]);
    let two = input(&log, "two").with_system_prompt("Be brief.");
    assert_eq!(call(&configured, &mut log, two), ["Be brief."]);
    let three = input(&log, "three");
    assert_eq!(call(&configured, &mut log, three), ["You are a role."]);
}

/// A session that is fed entry by entry says the same as one that is fed at once.
#[test]
fn a_session_restores_what_stood_there() {
    let mut session = Session::new(Settings::default()).unwrap();
    let role = |text: &str| vec![Section::stable("role", "test", text)];
    let turn = |text: &str| Turn {
        messages: vec![Message::user(text)],
        ..Turn::default()
    };
    let mut build = |turn: Turn| {
        let built = session.build(turn).unwrap();
        let body = built.body().to_vec();
        let log: Vec<Entry> = session
            .view()
            .log()
            .iter()
            .map(|entry| Entry::clone(entry))
            .collect();
        let mut again = Session::open(Settings::default(), log).unwrap();
        assert_eq!(again.current().unwrap().body(), body);
        let body: Value = serde_json::from_slice(&body).unwrap();
        system(body["messages"].as_array().unwrap())
    };
    let first = Turn {
        sections: Some(role("You are A.")),
        ..turn("one")
    };
    assert_eq!(build(first), ["You are A."]);
    let own = |text: &str, prompt: &str| Turn {
        system_prompt: Some(prompt.to_owned()),
        ..turn(text)
    };
    assert_eq!(build(own("two", "Only now.")), ["Only now."]);
    assert_eq!(build(own("three", "And now.")), ["And now."]);
    assert_eq!(build(turn("four")), ["You are A."]);
    assert_eq!(build(own("five", "Once more.")), ["Once more."]);
    let other = Turn {
        sections: Some(role("You are B.")),
        ..turn("six")
    };
    assert_eq!(build(other), ["You are B."]);
    assert_eq!(build(turn("seven")), ["You are B."]);
}

#[test]
fn config_model_and_params_of_the_input_count() {
    let asked = json!({
        "inputMessages": [{"role": "user", "content": "hello"}],
        "config": {"maxInputTokens": 4_000}, "model": "gpt-4o",
    });
    let mut asked = BuildInput::read(asked.to_string().as_bytes()).unwrap();
    asked.params.insert("temperature".to_owned(), json!(0));
    let built: BuildResult = manager(None).build_context(asked.clone()).unwrap();
    assert_eq!(built.receipt.budget.max_input_tokens, 4_000);
    let mut settings = Settings {
        model: Some("gpt-4o".to_owned()),
        params: asked.params.clone(),
        ..Settings::default()
    };
    settings.config.max_input_tokens = 4_000;
    let mut session = Session::new(settings).unwrap();
    let same = session.build(asked.turn.clone()).unwrap();
    let body: Value = serde_json::from_slice(same.body()).unwrap();
    assert_eq!(
        (&body["model"], &body["temperature"]),
        (&json!("gpt-4o"), &json!(0))
    );
    assert_eq!(built.receipt.digest, same.receipt().digest);
    asked.config.insert("maxInputTokens".to_owned(), json!(3));
    let error = manager(None).build_context(asked.clone()).unwrap_err();
    assert_eq!(error.code(), "ContextOverflow");
    assert!(manager(None).compute_context_updates(asked).is_err());
}

struct Noon;

impl RuntimeHintProvider for Noon {
    fn hints(&self) -> Map<String, Value> {
        Map::from_iter([("time".to_owned(), json!("noon"))])
    }
}

#[test]
fn hints_come_from_the_provider_where_the_input_brings_none() {
    let manager = manager(None).with_hints(Box::new(Noon));
    let mut log = Vec::new();
    let one = input(&log, "one");
    assert_eq!(call(&manager, &mut log, one), ["## Hints\ntime: noon"]);
    let mut two = input(&log, "two");
    two.turn.hints = Some(Map::from_iter([("locale".to_owned(), json!("de"))]));
    let said = call(&manager, &mut log, two);
    assert_eq!(said.last().unwrap(), "## Hints\nlocale: de");
}
