use contexture::{Content, Part, ToolCall};
use contexture_model::{Delta, Stop};
use serde_json::json;

use crate::client::{KEY, MODELS, call};
use crate::model_server::{Answer, ModelServer, Piece};

const BODY: &str = r#"{"model":"m","messages":[ {"role":"user","content":"ü"} ]}"#;

#[test]
fn the_body_goes_out_to_the_byte_with_the_key_in_its_header() {
    for (model, path) in MODELS {
        let server = ModelServer::start([Answer::Says(vec![Piece::Text("hello")])]);
        call(model, &server, BODY).0.unwrap();
        let seen = server.seen();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].body, BODY.as_bytes());
        assert_eq!(seen[0].path, format!("/v1/{path}"));
        let key = match path {
            "messages" => seen[0].header("x-api-key").unwrap().to_owned(),
            _ => seen[0]
                .header("authorization")
                .unwrap()
                .replace("Bearer ", ""),
        };
        assert_eq!(key, KEY);
    }
}

#[test]
fn text_thoughts_and_parallel_calls_come_back_in_every_form() {
    let pieces = vec![
        Piece::Thinking("Let me see. Größe?"),
        Piece::Text("I will look at two files."),
        Piece::Call("call_1", "read", json!({"path": "a.rs"})),
        Piece::Call(
            "call_2",
            "read",
            json!({"path": "ü \"b\".rs", "deep": {"n": [1, 2]}}),
        ),
        Piece::Call("call_3", "now", json!({})),
    ];
    for (model, _) in MODELS {
        let server = ModelServer::start([Answer::Says(pieces.clone())]);
        let (reply, deltas) = call(model, &server, BODY);
        let reply = reply.unwrap();
        assert_eq!(reply.stop, Stop::Tools, "{model}");
        assert_eq!(reply.message.text(), "I will look at two files.", "{model}");
        let calls: Vec<(&str, &str, serde_json::Value)> = reply
            .message
            .tool_calls
            .iter()
            .map(
                |ToolCall {
                     id,
                     name,
                     arguments,
                     ..
                 }| {
                    (
                        id.as_str(),
                        name.as_str(),
                        serde_json::from_str(arguments).unwrap(),
                    )
                },
            )
            .collect();
        assert_eq!(
            calls,
            [
                ("call_1", "read", json!({"path": "a.rs"})),
                (
                    "call_2",
                    "read",
                    json!({"path": "ü \"b\".rs", "deep": {"n": [1, 2]}})
                ),
                ("call_3", "now", json!({})),
            ],
            "{model}"
        );
        let usage = reply.usage.unwrap();
        assert_eq!(
            (usage.input(), usage.cached(), usage.output()),
            (Some(100), Some(64), Some(7)),
            "{model}"
        );
        assert_eq!(reply.model.as_deref(), Some("scripted-1"));
        // Whoever watches sees the same.
        let shown = |wanted: fn(&Delta) -> Option<&str>| -> String {
            deltas.iter().filter_map(wanted).collect()
        };
        let text = shown(|delta| match delta {
            Delta::Text(text) => Some(text),
            _ => None,
        });
        let thought = shown(|delta| match delta {
            Delta::Thinking(text) => Some(text),
            _ => None,
        });
        let names = shown(|delta| match delta {
            Delta::Call { name } => Some(name),
            _ => None,
        });
        assert_eq!(
            (text.as_str(), thought.as_str(), names.as_str()),
            (
                "I will look at two files.",
                "Let me see. Größe?",
                "readreadnow"
            )
        );
    }
}

/// A thought goes back to its provider with its seal, or not at all.
#[test]
fn thoughts_keep_their_seals() {
    for (model, _) in MODELS {
        let server = ModelServer::start([Answer::Says(vec![
            Piece::Thinking("Hm."),
            Piece::Text("Yes."),
        ])]);
        let reply = call(model, &server, BODY).0.unwrap();
        assert_eq!(reply.stop, Stop::End);
        let Content::Parts(parts) = &reply.message.content else {
            panic!("{:?}", reply.message.content);
        };
        let Part::Thinking {
            thinking,
            signature,
            extra,
        } = &parts[0]
        else {
            panic!("{parts:?}");
        };
        assert_eq!(thinking, "Hm.");
        match model {
            "anthropic:m" => assert_eq!(signature.as_deref(), Some("sealed")),
            "openai-responses:m" => {
                assert_eq!(extra["encrypted_content"], "sealed");
                assert_eq!(extra["id"], "rs_1");
            }
            _ => assert_eq!(signature.as_deref(), None),
        }
        assert_eq!(parts[1].text(), Some("Yes."));
    }
}

#[test]
fn a_reply_in_one_document_is_read_as_well() {
    let json = || vec![("content-type", "application/json; charset=utf-8".to_owned())];
    let documents = [
        json!({"model": "scripted-1", "choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "content": "ok", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}]}}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
        json!({"model": "scripted-1", "status": "completed", "output": [{"type": "message", "content": [{"type": "output_text", "text": "ok"}]}, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{\"a\":1}"}], "usage": {"input_tokens": 1, "output_tokens": 2}}),
        json!({"model": "scripted-1", "stop_reason": "tool_use", "content": [{"type": "text", "text": "ok"}, {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}], "usage": {"input_tokens": 1, "output_tokens": 2}}),
    ];
    for ((model, _), document) in MODELS.into_iter().zip(documents) {
        let server = ModelServer::start([Answer::Status(200, json(), document.to_string())]);
        let reply = call(model, &server, BODY).0.unwrap();
        assert_eq!(reply.message.text(), "ok");
        assert_eq!(
            reply.message.tool_calls,
            [ToolCall::new("c", "f", "{\"a\":1}")]
        );
        assert_eq!(reply.stop, Stop::Tools);
        assert_eq!(reply.usage.unwrap().output(), Some(2));
    }
}

/// What a model said goes back to it: the seal of a thought, the calls, their results.
#[test]
fn a_reply_is_sent_back_as_its_provider_wants_it() {
    use contexture::{Message, Session, Settings, Turn};
    let pieces = vec![
        Piece::Thinking("Hm."),
        Piece::Call("call_1", "read", json!({"path": "a.rs"})),
    ];
    for (model, _) in MODELS {
        let server = ModelServer::start([Answer::Says(pieces.clone())]);
        let reply = call(model, &server, BODY).0.unwrap();
        let api = contexture_model::Endpoint::parse(model, None)
            .unwrap()
            .api();
        let mut session = Session::new(Settings {
            wire: api.wire(),
            ..Settings::default()
        })
        .unwrap();
        let turn = Turn {
            messages: vec![
                Message::user("Look."),
                reply.message,
                Message::tool_result("call_1", "fn main() {}"),
            ],
            ..Turn::default()
        };
        let body: serde_json::Value =
            serde_json::from_slice(session.build(turn).unwrap().body()).unwrap();
        let text = body.to_string();
        assert!(
            text.contains("call_1") && text.contains("fn main() {}"),
            "{text}"
        );
        assert_eq!(text.contains("sealed"), model != "openai:m", "{text}");
        assert_eq!(text.contains("Hm."), model != "openai:m", "{text}");
    }
}
