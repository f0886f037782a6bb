//! What was read is not read again, and the receipt knew it.

use std::sync::Arc;

use contexture::entry::{Payload, RequestRecord};
use contexture::prompt::Section;
use contexture::{ContextConfig, Entry, Message, Session, Settings, Turn};
use contexture_model::Model;
use contexture_model::local::{LocalModel, LocalOptions};
use serde_json::{Value, json};

use crate::local::{OPTIONS, ask, body, open, read};
use crate::small_model::weights;

/// A conversation with the engine, in which each request is built, sent and logged.
struct Talk<'a> {
    session: Session,
    model: &'a LocalModel,
}

impl<'a> Talk<'a> {
    fn new(model: &'a LocalModel, budget: usize) -> Self {
        let settings = Settings {
            config: ContextConfig {
                max_input_tokens: budget,
                reserved_output: 64,
                ..ContextConfig::default()
            },
            tokenizer: model.tokenizer().unwrap(),
            model: Some(model.name().to_owned()),
            params: serde_json::from_value(json!({"temperature": 0, "max_tokens": 12})).unwrap(),
            ..Settings::default()
        };
        Self {
            session: Session::new(settings).unwrap(),
            model,
        }
    }

    /// Says something, and compares what the receipt predicted with what the engine did.
    fn say(&mut self, turn: Turn) -> (usize, usize) {
        let built = self.session.build(turn).unwrap();
        let receipt = built.receipt();
        let predicted = receipt.cache.shared_prefix_tokens;
        let used = receipt.budget.used;
        let digest = built.digest().to_owned();
        let sent: Value = serde_json::from_slice(built.body()).unwrap();
        let (reply, _) = ask(self.model, &sent);
        let reply = reply.unwrap();
        let (input, cached) = read(&reply);
        assert_eq!(
            used as u64, input,
            "the receipt counts what the engine reads"
        );
        // Of a session's first request, the engine may know the beginning from another session.
        if predicted > 0 {
            assert_eq!(
                predicted as u64, cached,
                "the receipt predicts what the engine reuses"
            );
        }
        let record = RequestRecord {
            digest,
            model: Some(self.model.name().to_owned()),
            ..RequestRecord::default()
        };
        let tail = self.session.view().tail().cloned();
        let record = Entry::derived(tail.as_ref(), "", Payload::Request(record));
        let said = Entry::message(Some(&record.id), "", reply.message);
        self.session
            .append([Arc::new(record), Arc::new(said)])
            .unwrap();
        (predicted, used)
    }
}

fn says(text: &str) -> Turn {
    Turn {
        messages: vec![Message::user(text)],
        ..Turn::default()
    }
}

// needs: model
#[test]
fn the_receipt_predicts_what_the_engine_reuses() {
    let Some(model) = open() else { return };
    let mut talk = Talk::new(&model, 400);
    let rules = |text: &str| vec![Section::stable("rules", "test", text)];
    let (predicted, _) = talk.say(Turn {
        sections: Some(rules("Be brief.")),
        ..says("Name a river.")
    });
    assert_eq!(predicted, 0, "nothing was read yet");
    for text in [
        "And a lake.",
        "And a mountain 🏔️?",
        "Which is the longest of them, and why?",
    ] {
        let (predicted, used) = talk.say(says(text));
        assert!(predicted * 2 > used, "{predicted} of {used}");
    }
    // Another system message changes the beginning, but for its first words.
    let (predicted, used) = talk.say(Turn {
        sections: Some(rules("Be brief and kind.")),
        ..says("Go on.")
    });
    assert!(
        predicted > 0 && predicted * 4 < used,
        "{predicted} of {used}"
    );
    talk.say(says("Once more."));
    // Until the budget is full: what leaves changes the request, and the prediction with it.
    let long = "The river flows through seven countries and ends in a wide delta. ".repeat(3);
    for n in 0..6 {
        talk.say(says(&format!("{n}. {long}")));
    }
}

// needs: model
#[test]
fn the_receipt_predicts_what_is_reused_of_sessions_that_take_turns() {
    let Some(model) = open() else { return };
    let mut talks = [(); 3].map(|()| Talk::new(&model, 400));
    for (n, talk) in talks.iter_mut().enumerate() {
        let rules = format!("You are number {n}. Be brief.");
        talk.say(Turn {
            sections: Some(vec![Section::stable("rules", "test", &rules)]),
            ..says("Name a river.")
        });
    }
    for text in ["And a lake.", "And a mountain 🏔️?"] {
        for talk in &mut talks {
            let (predicted, used) = talk.say(says(text));
            assert!(predicted * 2 > used, "{predicted} of {used}");
        }
    }
}

// needs: model
#[test]
fn several_conversations_share_the_cache() {
    let Some(model) = open() else { return };
    let system = "You are a patient teacher. ".repeat(20);
    let question = |text: &str| {
        body(
            json!([{"role": "system", "content": system}, {"role": "user", "content": text}]),
            4,
        )
    };
    let (first, _) = ask(&model, &question("What is a verb?"));
    let (all, cached) = read(&first.unwrap());
    assert_eq!(cached, 0);
    let (second, _) = ask(&model, &question("What is a noun?"));
    let (_, shared) = read(&second.unwrap());
    assert!(
        shared * 10 > all * 8,
        "{shared} of {all}: the system message was there"
    );
    let (again, _) = ask(&model, &question("What is a verb?"));
    let (_, cached) = read(&again.unwrap());
    assert!(
        cached > shared,
        "{cached}: the other conversation left the first alone"
    );
}

// needs: model
#[test]
fn an_answer_does_not_depend_on_what_was_in_the_cache() {
    let Some(model) = open() else { return };
    let talk = json!([
        {"role": "system", "content": "You answer in one sentence."},
        {"role": "user", "content": "Why is the sky blue?"},
        {"role": "assistant", "content": "Because of scattering."},
        {"role": "user", "content": "And the sunset?"},
    ]);
    let (cold, _) = ask(&model, &body(talk.clone(), 24));
    let (warm, _) = ask(&model, &body(talk, 24));
    let (cold, warm) = (cold.unwrap(), warm.unwrap());
    assert_eq!(cold.message, warm.message);
    assert_eq!(read(&cold).1, 0);
    assert!(read(&warm).1 > 0);
}

/// A conversation in which what is said is answered, in so many tokens, and stays.
pub struct Chat(pub Vec<Value>);

impl Chat {
    pub fn new(rules: &str) -> Self {
        Self(vec![json!({"role": "system", "content": rules})])
    }

    /// Gives the answer, how many tokens the request has, and how many of them were there.
    pub fn say(&mut self, model: &LocalModel, text: &str) -> (String, u64, u64) {
        self.0.push(json!({"role": "user", "content": text}));
        let (reply, _) = ask(model, &body(json!(self.0), 16));
        let reply = reply.unwrap();
        self.0.push(serde_json::to_value(&reply.message).unwrap());
        let (all, cached) = read(&reply);
        (reply.message.text().into_owned(), all, cached)
    }
}

pub const TEACHER: &str = "You are a patient teacher who answers in one short sentence.";
pub const COOK: &str = "As a cook you know everything about soups, and nothing else.";

// needs: model
#[test]
fn a_conversation_that_rested_goes_on_as_if_it_had_not() {
    let (Some(model), Some(fresh)) = (open(), open()) else {
        return;
    };
    let mut chat = Chat::new(TEACHER);
    let first = chat.say(&model, "What is a verb?");
    Chat::new(COOK).say(&model, "What goes into a minestrone?");
    let again = chat.say(&model, "And a noun?");
    assert!(again.2 > first.1, "{again:?}: the first answer is there");
    assert!(again.1 - again.2 < 16, "{again:?}: what is new is read");
    let mut alone = Chat::new(TEACHER);
    assert_eq!(alone.say(&fresh, "What is a verb?"), first);
    assert_eq!(alone.say(&fresh, "And a noun?"), again);
}

// needs: model
#[test]
fn going_back_to_an_earlier_branch_finds_it() {
    let (Some(model), Some(fresh)) = (open(), open()) else {
        return;
    };
    let mut left = Chat::new(TEACHER);
    let first = left.say(&model, "What is a verb?");
    let mut right = Chat(left.0.clone());
    let second = left.say(&model, "Give me three examples of it.");
    let (_, all, cached) = right.say(&model, "What is it not?");
    assert!(all - cached < 16, "{cached} of {all}: they begin alike");
    let back = left.say(&model, "And one more?");
    assert!(back.1 - back.2 < 16, "{back:?}: what is new is read");
    let (_, all, cached) = right.say(&model, "Go on.");
    assert!(all - cached < 16, "{cached} of {all}: here as well");
    let mut alone = Chat::new(TEACHER);
    assert_eq!(alone.say(&fresh, "What is a verb?"), first);
    assert_eq!(alone.say(&fresh, "Give me three examples of it."), second);
    assert_eq!(alone.say(&fresh, "And one more?"), back);
}

// needs: model
#[test]
fn where_there_is_no_room_to_rest_all_is_read_again() {
    let Some(path) = weights() else { return };
    let options = LocalOptions {
        resting: Some(0),
        ..OPTIONS
    };
    let model = LocalModel::open("local:smollm2", &path, options).unwrap();
    let first = Chat::new(TEACHER).say(&model, "What is a verb?");
    Chat::new(COOK).say(&model, "What goes into a minestrone?");
    let (text, all, cached) = Chat::new(TEACHER).say(&model, "What is a verb?");
    assert_eq!((text, all), (first.0, first.1));
    assert!(cached < 8, "{cached}: what the template begins with");
}
