//! Random conversations against the rules.

use std::collections::BTreeMap;

use contexture::message::responses::{frame_bound, size_bound};
use contexture::{Content, Message, Part, Role, ToolCall};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

use crate::responses::{HEAD, body, check, check_form};

/// Messages that may not be parted: one, or an assistant's calls and their results.
type Group = Vec<Message>;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "\\PC{0,12}",
        2 => ".{0,6}",
        2 => "[ \t\n\u{a0}\u{1f}]{0,4}",
        1 => "[a-z]{1,8}[ \n]{1,3}",
    ]
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => select(vec!["call_1", "call_2", "call_1_2", "a.b", "a_b", "a_b_2", "", "ü"]).prop_map(str::to_owned),
        1 => ".{0,4}",
        1 => "[a-c]{60,70}",
    ]
}

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// A thought of OpenAI's, of another's, or one that is half there.
fn thought() -> impl Strategy<Value = Part> {
    let extra = select(vec![
        json!({"encrypted_content": "c2Vh", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}),
        json!({"encrypted_content": "bA==", "id": "rs_2", "summary": []}),
        json!({"encrypted_content": "eA==", "id": "fc_1", "summary": [{"text": 1}, "no", {"text": "t", "extra": 1}]}),
        json!({"encrypted_content": "eQ==", "id": format!("rs_{}", "x".repeat(80)), "summary": null}),
        json!({"encrypted_content": "eg=="}),
        json!({"encrypted_content": " ", "id": "rs_3"}),
        json!({"encrypted_content": null, "id": "rs_4", "summary": []}),
        json!({}),
    ]);
    (text(), proptest::option::of("[ab]{0,3}"), extra).prop_map(|(thinking, signature, extra)| {
        Part::Thinking {
            thinking,
            signature,
            extra: map(&extra),
        }
    })
}

fn part() -> impl Strategy<Value = Part> {
    let extra = Map::new;
    prop_oneof![
        6 => text().prop_map(Part::text_part),
        4 => thought(),
        1 => select(vec![
            json!({"url": "data:image/png;base64,AAAA", "detail": "high"}),
            json!({"url": "https://e.example/ü", "detail": "finest"}),
            json!({"url": "nowhere"}),
            json!({}),
        ])
        .prop_map(move |url| Part::Image { image_url: map(&url), extra: extra() }),
        1 => select(vec![
            json!({"file_id": "file-1"}),
            json!({"file_id": "file_other"}),
            json!({"filename": "\n", "file_data": "data:application/pdf;base64,IA=="}),
            json!({"filename": "n", "file_data": "data:text/plain;base64,aGk="}),
            json!({"filename": "n", "file_data": "data:video/mp4;base64,aGk="}),
        ])
        .prop_map(move |file| Part::File { file: map(&file), extra: extra() }),
        1 => select(vec![
            json!({"type": "redacted_thinking", "data": "d"}),
            json!({"type": "refusal", "refusal": "no"}),
            json!({"type": "x", "text": " "}),
            json!({"type": "\u{1}y"}),
            json!({}),
        ])
        .prop_map(|value| Part::Other(map(&value))),
    ]
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        1 => Just(Content::Null),
        4 => text().prop_map(Content::Text),
        4 => proptest::collection::vec(part(), 0..5).prop_map(Content::Parts),
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
fn group() -> impl Strategy<Value = Group> {
    let arguments = select(vec!["", "{}", "{\"a\":1e5}", "[]", "{", "\"\u{7f}\""]);
    let names = select(vec![
        "bash",
        "fs.read",
        "fs/read",
        "",
        "a very long name with blanks, and more of them than any name may have",
    ]);
    let call = (
        id(),
        names,
        arguments,
        any::<bool>(),
        proptest::bool::weighted(0.2),
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
            for (at, (id, name, arguments, told, custom, content)) in calls.iter().enumerate() {
                let number = format!("{number}-{at}-{id}");
                let arguments = match told {
                    true => json!({"n": number}).to_string(),
                    false => (*arguments).to_owned(),
                };
                let mut call = ToolCall::new(id, *name, arguments);
                if *custom {
                    call.extra.insert("type".to_owned(), "custom".into());
                }
                asked.push(call);
                let mut result = Message::tool_result(id, format!("n={number}"));
                if !told {
                    result.content = content.clone();
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

pub fn groups() -> impl Strategy<Value = Vec<Group>> {
    let group = prop_oneof![
        2 => prop_oneof![Just(Role::System), Just(Role::Developer)].prop_flat_map(message).prop_map(|m| vec![m]),
        3 => message(Role::User).prop_map(|m| vec![m]),
        3 => message(Role::Assistant).prop_map(|m| vec![m]),
        3 => group(),
    ];
    proptest::collection::vec(group, 0..10)
}

pub fn tools() -> impl Strategy<Value = Vec<Value>> {
    let name = select(vec!["bash", "fs.read", "fs/read", "fs_read", "", "é"]);
    let tool = (name, text(), any::<bool>()).prop_map(|(name, about, custom)| {
        let kind = if custom { "custom" } else { "function" };
        json!({"type": kind, kind: {"name": name, "description": about}})
    });
    let native = Just(json!({"type": "web_search"}));
    (
        proptest::collection::vec(tool, 0..5),
        proptest::option::weighted(0.2, native),
    )
        .prop_map(|(mut tools, native)| {
            tools.extend(native);
            tools
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_rule_holds(tools in tools(), groups in groups()) {
        check(&tools, &groups.concat());
    }

    /// Also for what the build would never let through.
    #[test]
    fn every_rule_holds_unpaired(messages in groups().prop_map(|i| i.concat()).prop_shuffle()) {
        check_form(&[], &messages);
    }

    #[test]
    fn a_result_goes_to_its_call(groups in groups()) {
        let body: Value = serde_json::from_slice(&body(&[], &groups.concat())).unwrap();
        let mut asked = BTreeMap::new();
        for item in body["input"].as_array().unwrap() {
            let said = item.get("arguments").or(item.get("input")).and_then(Value::as_str);
            let said = said.and_then(|said| serde_json::from_str::<Value>(said).ok());
            if let Some(number) = said.as_ref().and_then(|said| said["n"].as_str()) {
                asked.insert(item["call_id"].to_string(), number.to_owned());
            } else if let Some(number) = asked.get(&item["call_id"].to_string()) {
                prop_assert_eq!(&item["output"], &json!(format!("n={number}")));
            }
        }
    }

    /// To the byte.
    #[test]
    fn a_body_grows_at_its_end(tools in tools(), groups in groups(), cut in any::<Index>()) {
        let cut = cut.index(groups.len() + 1);
        let head = body(&tools, &groups[..cut].concat());
        let whole = body(&tools, &groups.concat());
        let silence = br#"{"type":"message","role":"user","content":"(No message yet.)"}]}"#;
        let end = match head.ends_with(silence) {
            true => head.len() - silence.len(),
            false => head.len() - "]}".len(),
        };
        prop_assert!(whole.starts_with(&head[..end]));
    }

    /// The bound is of use only if it is not far off.
    #[test]
    fn the_bound_is_close(tools in tools(), groups in groups()) {
        let messages = groups.concat();
        let calls: usize = messages.iter().map(|m| m.tool_calls.len()).sum();
        let bound = frame_bound(&HEAD, &tools) + messages.iter().map(size_bound).sum::<usize>();
        // A sealed thought that comes again is sent once.
        let thoughts = messages.iter().flat_map(|m| match &m.content {
            Content::Parts(parts) => parts.as_slice(),
            Content::Null | Content::Text(_) => &[],
        });
        let thoughts = thoughts.filter(|part| matches!(part, Part::Thinking { .. }));
        let slack = 100 + 70 * messages.len() + 30 * calls + 120 * thoughts.count();
        prop_assert!(bound <= body(&tools, &messages).len() + slack);
    }
}
