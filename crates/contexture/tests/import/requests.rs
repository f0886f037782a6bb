//! A request can be built of every import, for every wire.

use contexture::build::Wire;
use contexture::import::Imported;
use contexture::{Entry, Session, Settings, Turn};
use serde_json::Value;

use crate::common;
use crate::import::{FIXTURES, check, read, responses};

#[test]
fn every_import_makes_valid_requests() {
    for (name, _) in FIXTURES {
        check_chat(name, read(name).entries);
        check_anthropic(read(name).entries);
        check_responses(read(name).entries);
    }
}

#[test]
fn so_does_every_beginning_of_one() {
    for (name, text) in FIXTURES {
        let mut end = 0;
        for line in text.split_inclusive('\n') {
            end += line.len();
            let imported = Imported::read(&text.as_bytes()[..end]).unwrap();
            check_chat(name, imported.entries.clone());
            check_anthropic(imported.entries.clone());
            check_responses(imported.entries);
        }
    }
}

#[track_caller]
pub fn check_chat(name: &str, entries: Vec<Entry>) {
    let body: Value = serde_json::from_slice(&request(entries, Wire::OpenAi)).unwrap();
    let messages = body["messages"].as_array().unwrap();
    common::check_pairs(name, messages);
    for message in messages {
        for part in message["content"].as_array().into_iter().flatten() {
            let kind = part["type"].as_str().unwrap();
            assert!(
                ["text", "image_url", "file", "refusal"].contains(&kind),
                "{name}: {part}"
            );
            assert_eq!(part.as_object().unwrap().len(), 2, "{name}: {part}");
        }
    }
}

#[track_caller]
pub fn check_anthropic(entries: Vec<Entry>) {
    check::check_body(&request(entries, Wire::Anthropic));
}

#[track_caller]
fn check_responses(entries: Vec<Entry>) {
    responses::check_body(&request(entries, Wire::Responses));
}

fn request(entries: Vec<Entry>, wire: Wire) -> Vec<u8> {
    let settings = Settings {
        wire,
        ..Settings::default()
    };
    let mut session = Session::open(settings, entries).unwrap();
    session.build(Turn::default()).unwrap().body().to_vec()
}
