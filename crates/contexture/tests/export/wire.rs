//! The forms that other programs read.

use contexture::build::BuildInput;
use contexture::message::openai;
use contexture::{View, export};
use serde_json::{Value, json};

use crate::common::scenario::Scenario;
use crate::common::{self, check_pairs};

#[test]
fn what_was_masked_and_summarised_is_sent_in_full() {
    let s = Scenario::new(5_000)
        .system("You are terse.")
        .tools(&["read"], &[])
        .user("Fix it")
        .tool("call_1", "the whole result")
        .mask("e4", "old")
        .user("Go on")
        .summary("e6", "Summed up.")
        .build();
    let chat = export::openai(s.view()).unwrap();
    let keys: Vec<_> = chat.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["messages", "tools"]);
    let texts: Vec<_> = chat["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| &m["content"])
        .collect();
    assert_eq!(
        texts,
        [
            &json!("You are terse."),
            &json!("Fix it"),
            &Value::Null,
            &json!("the whole result"),
            &json!("Go on")
        ]
    );
    let body = export::anthropic(s.view()).unwrap();
    let keys: Vec<_> = body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["system", "messages", "tools"]);
    assert_eq!(body["system"][0]["text"], "You are terse.");
    assert_eq!(body["messages"].as_array().unwrap().len(), 3);
}

#[test]
fn a_broken_conversation_is_repaired() {
    let s = Scenario::new(5_000)
        .result("nothing", "an orphan")
        .user("Go")
        .calls(&["call_1"])
        .user("Well?")
        .build();
    let chat = export::openai(s.view()).unwrap();
    check_pairs("repaired", chat["messages"].as_array().unwrap());
}

// needs: data
#[test]
fn a_clean_transcript_comes_back() {
    let Some(sessions) = common::sessions(&["sessions.jsonl"]) else {
        return;
    };
    for case in sessions.iter() {
        let input = BuildInput::from_messages(case.messages.iter().cloned());
        let view = View::fold(input.session_entries).unwrap();
        let chat = export::openai(&view).unwrap();
        let wanted: Vec<Value> = case.messages.iter().map(openai::shown).collect();
        assert_eq!(
            chat["messages"].as_array().unwrap(),
            &wanted,
            "{}",
            case.name
        );
    }
}
