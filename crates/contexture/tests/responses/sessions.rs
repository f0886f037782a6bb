//! The body as a session makes it: the same bytes, turn by turn, as all at once, and again.

use contexture::build::{Session, Settings, Turn};
use contexture::entry::Payload;
use contexture::message::responses::{Head, write_body};
use contexture::replay::verify;
use contexture::{Entry, Message, ToolCall, Wire};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::responses::check::check_body;
use crate::responses::properties::{groups, tools};

fn settings() -> Settings {
    Settings {
        wire: Wire::Responses,
        model: Some("gpt-5.1".to_owned()),
        params: json!({"temperature": 0, "max_tokens": 10, "seed": 1, "tool_choice": "auto"})
            .as_object()
            .cloned()
            .unwrap(),
        ..Settings::default()
    }
}

/// The body of the session's request, which the plain writer gives too.
fn built(session: &mut Session, messages: Vec<Message>, tools: &[Value]) -> Vec<u8> {
    let turn = Turn {
        messages,
        tools: Some(tools.to_vec()),
        ..Turn::default()
    };
    let built = session.build(turn).unwrap();
    check_body(built.body());
    let shown: Vec<_> = built.messages().collect();
    let head = Head {
        model: built.model(),
        params: Some(built.params()),
    };
    let mut whole = Vec::new();
    write_body(&head, built.tools(), &shown, &mut whole);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    assert_eq!(text(built.body()), text(&whole));
    whole
}

fn recorded(session: &mut Session) {
    let record = Payload::Request(session.record());
    let entry = Entry::derived(session.view().tail(), "", record);
    session.append([entry]).unwrap();
}

fn log(session: &Session) -> Vec<Entry> {
    let log = session.view().log().iter();
    log.map(|entry| Entry::clone(entry)).collect()
}

/// A result that comes after its call was written takes the place of what stood for it.
#[test]
fn late_results() {
    let mut session = Session::new(settings()).unwrap();
    let call = |id: &str| ToolCall::new(id, "read", "{}");
    let turns = [
        vec![Message::user("a"), Message::calls([call("c"), call("d")])],
        vec![Message::tool_result("d", "2")],
        vec![Message::tool_result("c", "1"), Message::user("go on")],
        vec![Message::calls([call("c")]), Message::tool_result("c", "3")],
    ];
    let mut last = String::new();
    for messages in turns {
        last = String::from_utf8(built(&mut session, messages, &[])).unwrap();
        recorded(&mut session);
    }
    assert!(last.contains(r#""call_id":"c_2","output":"3""#), "{last}");
    let mut steps = 0;
    verify(
        |_| settings(),
        log(&session),
        |step, _| {
            assert_eq!(step.recorded_digest, None);
            steps += 1;
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(steps, 4);
}

#[test]
fn the_record_names_the_form() {
    let mut session = Session::new(settings()).unwrap();
    built(&mut session, vec![Message::user("hi")], &[]);
    let record = serde_json::to_value(session.record()).unwrap();
    assert_eq!(record["wire"], "responses");
    assert_eq!(record["params"]["seed"], 1);
    // It can be verified by whoever knows nothing of the provider.
    recorded(&mut session);
    let plain = Settings {
        params: Map::new(),
        ..Settings::default()
    };
    verify(
        |_| plain.clone(),
        log(&session),
        |step, _| {
            assert_eq!(step.recorded_digest, None);
            Ok(())
        },
    )
    .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn turn_by_turn_and_at_once(tools in tools(), groups in groups()) {
        let mut session = Session::new(settings()).unwrap();
        for (at, group) in groups.iter().enumerate() {
            // What a turn repeats from the end of the session is not logged again.
            let mut group = group.clone();
            group.iter_mut().enumerate().for_each(|(n, m)| m.id = Some(format!("{at}.{n}")));
            // Results come one by one, the first with its call.
            let rest = group.split_off(group.len().min(2));
            built(&mut session, group, &tools);
            for result in rest {
                built(&mut session, vec![result], &tools);
            }
        }
        let whole = built(&mut session, Vec::new(), &tools);
        let mut fresh = Session::open(settings(), log(&session)).unwrap();
        prop_assert_eq!(fresh.current().unwrap().body(), &whole[..]);
    }
}
