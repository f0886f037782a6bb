//! Random conversations against the rules.

use std::collections::BTreeMap;

use contexture::message::anthropic::{frame_bound, size_bound};
use contexture::{Content, Message, Part, Role, ToolCall};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use crate::anthropic::{HEAD, body, check, check_form};

/// Messages that may not be parted: one, or an assistant's calls and their results.
type Item = Vec<Message>;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "\\PC{0,12}",
        2 => ".{0,6}",
        2 => "[ \t\n\u{a0}\u{1f}]{0,4}",
        1 => "[a-z]{1,8}[ \n]{1,3}",
        1 => select(vec![
            "</system-note>".to_owned(),
            "< /System-Note\n>\u{0}\"\\".to_owned(),
            "🦀</".to_owned(),
        ]),
    ]
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => select(vec!["call_1", "call_2", "call_1_2", "a.b", "a_b", "a_b_2", "", "ü"]).prop_map(str::to_owned),
        1 => ".{0,4}",
        1 => "[a-c]{60,70}",
    ]
}

fn part() -> impl Strategy<Value = Part> {
    let other = |value: Value| Part::Other(value.as_object().unwrap().clone());
    let map = |value: Value| value.as_object().unwrap().clone();
    prop_oneof![
        6 => text().prop_map(Part::text_part),
        2 => (text(), proptest::option::of("[ab]{0,3}")).prop_map(|(thinking, signature)| Part::Thinking {
            thinking,
            signature,
            extra: Default::default(),
        }),
        1 => select(vec!["data:image/png;base64,AAAA", "https://e.example/ü", "nowhere", "é12345678"])
            .prop_map(move |url| Part::Image { image_url: map(json!({"url": url})), extra: Default::default() }),
        1 => select(vec![
            json!({"file_id": "f"}),
            json!({"filename": "\n", "file_data": "data:text/plain;base64,IA=="}),
            json!({"filename": "n", "file_data": "data:text/plain;base64,aGk="}),
        ])
        .prop_map(move |file| Part::File { file: map(file), extra: Default::default() }),
        1 => select(vec![
            json!({"type": "redacted_thinking", "data": "d"}),
            json!({"type": "redacted_thinking"}),
            json!({"type": "x", "text": " "}),
            json!({"type": "\u{1}y"}),
            json!({}),
        ])
        .prop_map(other),
    ]
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        1 => Just(Content::Null),
        4 => text().prop_map(Content::Text),
        3 => proptest::collection::vec(part(), 0..4).prop_map(Content::Parts),
    ]
}

fn message(role: Role) -> impl Strategy<Value = Message> {
    (content(), proptest::option::weighted(0.2, text())).prop_map(move |(content, name)| Message {
        content,
        name,
        ..Message::new(role, "")
    })
}

/// A group with its results in any order, each under its call's id or, in some groups, in the
/// calls' order under any id. Call and result share a number.
fn group() -> impl Strategy<Value = Item> {
    let arguments = select(vec!["", "{}", "{\"a\":1e5}", "[]", "{", "\"\u{7f}\""]);
    let call = (
        id(),
        select(vec!["bash", "fs.read", "fs/read", ""]),
        arguments,
        any::<bool>(),
        content(),
    );
    (
        message(Role::Assistant),
        proptest::collection::vec(call, 1..4),
        any::<u16>(),
        proptest::option::weighted(0.7, any::<Index>()),
        id(),
    )
        .prop_map(|(asking, calls, number, turned, foreign)| {
            let mut results = Vec::new();
            let mut asked = Vec::new();
            for (at, (id, name, arguments, told, content)) in calls.iter().enumerate() {
                // Results under one id come in the order of their calls.
                let number = format!("{number}-{at}-{id}");
                let arguments = match told {
                    true => json!({"n": number}).to_string(),
                    false => (*arguments).to_owned(),
                };
                asked.push(ToolCall::new(id, *name, arguments));
                let mut result = Message::tool_result(id, format!("n={number}"));
                if !told {
                    result.content = content.clone();
                    let failed = at % 2 == 0;
                    result.extra.insert("isError".to_owned(), failed.into());
                }
                results.push(result);
            }
            let ids: std::collections::BTreeSet<_> = calls.iter().map(|call| &call.0).collect();
            match turned {
                Some(turn) if ids.len() == calls.len() => {
                    let by = turn.index(results.len());
                    results.rotate_left(by);
                }
                Some(_) => {}
                None => {
                    for result in &mut results {
                        result.tool_call_id = Some(foreign.clone());
                    }
                    if ids.contains(&foreign) {
                        results
                            .iter_mut()
                            .for_each(|result| result.tool_call_id = None);
                    }
                }
            }
            let asking = Message {
                tool_calls: asked,
                ..asking
            };
            std::iter::once(asking).chain(results).collect()
        })
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        2 => prop_oneof![Just(Role::System), Just(Role::Developer)].prop_flat_map(message).prop_map(|m| vec![m]),
        3 => message(Role::User).prop_map(|m| vec![m]),
        3 => message(Role::Assistant).prop_map(|m| vec![m]),
        3 => group(),
    ]
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    proptest::collection::vec(item(), 0..10)
}

fn tools() -> impl Strategy<Value = Vec<Value>> {
    let name = select(vec!["bash", "fs.read", "fs/read", "fs_read", "", "é"]);
    let function = (name, text()).prop_map(|(name, about)| {
        json!({"type": "function", "function": {"name": name, "description": about}})
    });
    let native = Just(json!({"type": "bash_20250124", "name": "bash"}));
    (
        proptest::collection::vec(function, 0..5),
        proptest::option::weighted(0.2, native),
    )
        .prop_map(|(mut tools, native)| {
            tools.extend(native);
            tools
        })
}

/// The blocks with their places, without marks.
fn blocks(body: &[u8]) -> (Vec<Value>, Vec<(usize, Value)>) {
    let mut body: Value = serde_json::from_slice(body).unwrap();
    let bare = |list: &mut Value| {
        let list = list.as_array_mut().map(std::mem::take).unwrap_or_default();
        let strip = |mut block: Value| {
            block.as_object_mut().unwrap().shift_remove("cache_control");
            block
        };
        list.into_iter().map(strip).collect::<Vec<_>>()
    };
    let system = bare(&mut body["system"]);
    let turns = body["messages"].as_array_mut().unwrap();
    let turns = turns.iter_mut().enumerate();
    let turns =
        turns.flat_map(|(at, turn)| bare(&mut turn["content"]).into_iter().map(move |b| (at, b)));
    (system, turns.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_rule_holds(tools in tools(), items in items()) {
        check(&tools, &items.concat());
    }

    /// Also for what the build would never let through.
    #[test]
    fn every_rule_holds_unpaired(messages in items().prop_map(|i| i.concat()).prop_shuffle()) {
        check_form(&[], &messages);
    }

    #[test]
    fn a_result_goes_to_its_call(items in items()) {
        let (_, blocks) = blocks(&body(&[], &items.concat()));
        let mut asked = BTreeMap::new();
        for (_, block) in blocks {
            if let Some(number) = block["input"]["n"].as_str() {
                asked.insert(block["id"].to_string(), number.to_owned());
            } else if let Some(number) = asked.get(&block["tool_use_id"].to_string()) {
                prop_assert_eq!(&block["content"], &json!(format!("n={number}")));
            }
        }
    }

    #[test]
    fn a_beginning_stays(tools in tools(), items in items(), cut in any::<Index>()) {
        let cut = cut.index(items.len() + 1);
        let (system, mut head) = blocks(&body(&tools, &items[..cut].concat()));
        let (whole_system, mut whole) = blocks(&body(&tools, &items.concat()));
        prop_assert!(whole_system.starts_with(&system));
        if head[0].1["text"] == "(No message yet.)" {
            return Ok(());
        }
        prop_assert!(head.len() <= whole.len());
        // The last words of an assistant are trimmed while they are the last.
        let last = head.len() - 1;
        for (_, block) in [&mut head[last], &mut whole[last]] {
            if let Some(text) = block.get("text").and_then(Value::as_str) {
                block["text"] = text.trim_end_matches(|c: char| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)).into();
            }
        }
        prop_assert_eq!(&head[..], &whole[..head.len()]);
    }

    /// The bound is of use only if it is not far off.
    #[test]
    fn the_bound_is_close(tools in tools(), items in items()) {
        let messages = items.concat();
        let calls: usize = messages.iter().map(|m| m.tool_calls.len()).sum();
        let bound = frame_bound(&HEAD, &tools) + messages.iter().map(size_bound).sum::<usize>();
        let slack = 300 + 70 * messages.len() + 60 * calls;
        prop_assert!(bound <= body(&tools, &messages).len() + slack);
    }
}
