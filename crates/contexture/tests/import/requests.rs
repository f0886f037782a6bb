//! A request can be built of every import, for both wires.

use contexture::build::Wire;
use contexture::{Session, Settings, Turn};
use serde_json::Value;

use crate::{FIXTURES, check, common, read};

#[test]
fn every_import_makes_a_valid_chat_request() {
    for (name, _) in FIXTURES {
        let body = request(name, Wire::OpenAi);
        let body: Value = serde_json::from_slice(&body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        common::check_pairs(name, messages);
        for message in messages {
            for part in message["content"].as_array().into_iter().flatten() {
                let kind = part["type"].as_str().unwrap();
                assert!(
                    ["text", "image_url", "file"].contains(&kind),
                    "{name}: {part}"
                );
                assert_eq!(part.as_object().unwrap().len(), 2, "{name}: {part}");
            }
        }
    }
}

#[test]
fn every_import_makes_a_valid_anthropic_request() {
    for (name, _) in FIXTURES {
        check::check_body(&request(name, Wire::Anthropic));
    }
}

fn request(name: &str, wire: Wire) -> Vec<u8> {
    let settings = Settings {
        wire,
        ..Settings::default()
    };
    let mut session = Session::open(settings, read(name).entries).unwrap();
    session.build(Turn::default()).unwrap().body().to_vec()
}
