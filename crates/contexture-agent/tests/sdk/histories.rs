//! Bodies of random histories, broken ones among them, and of real ones.

use contexture::build::BuildInput;
use contexture::replay::replay;
use contexture::{ContextConfig, Message, Payload, Session, Settings, Wire};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use crate::sdk::history::{How, Story, how, op, story};
use crate::sdk::python::Python;

pub const WIRES: [(&str, Wire); 3] = [
    ("openai", Wire::OpenAi),
    ("responses", Wire::Responses),
    ("anthropic", Wire::Anthropic),
];

/// What a caller may ask for, in the chat form's names.
fn params(n: usize, wire: Wire) -> Map<String, Value> {
    let all = [
        json!({"stream": true}),
        json!({}),
        json!({"stream": true, "stream_options": {"include_usage": true}, "max_tokens": 500, "temperature": 0.5, "top_p": 1, "stop": ["END", " "], "user": "u1"}),
        json!({"max_completion_tokens": 900, "reasoning_effort": "low", "verbosity": "low", "service_tier": "auto", "store": false, "metadata": {"user_id": "u1"}}),
        json!({"stream": true, "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}, "strict": true}}, "seed": 1, "prompt_cache_key": "k", "safety_identifier": "s"}),
    ];
    let mut params = all[n % all.len()].as_object().unwrap().clone();
    if wire == Wire::Anthropic {
        // The version of the API that we ask for takes them; the one that the SDK is of does not.
        params.retain(|name, _| !matches!(name.as_str(), "temperature" | "top_p"));
    }
    params
}

/// What stands in a body as it came in: the chat form has no second look at it.
///
/// - Nobody has said anything: the other forms say so in the user's place.
/// - Calls of one message under one id, which the agent tells apart before it logs them.
/// - Parts of types that only some servers know, here one that is half there.
const PASSED_THROUGH: [&str; 3] = [
    "messages: there is none",
    "calls share an id",
    "input_audio.format: Field required",
];

/// Tools in the chat form, as the agent has them: the chat wire sends specs as they came.
fn in_chat_form(tools: &mut [Value]) {
    for tool in tools {
        if let Some(schema) = tool.get("input_schema") {
            let function = json!({"name": tool["name"], "description": tool["description"], "parameters": schema});
            *tool = json!({"type": "function", "function": function});
        }
    }
}

/// The bodies of a story, on each wire.
fn bodies(n: usize, how: &How, story: &Story) -> Vec<(&'static str, Value)> {
    let mut all = Vec::new();
    for (name, wire) in WIRES {
        let settings = Settings {
            wire,
            model: Some("m".to_owned()),
            params: params(n, wire),
            ..how.settings()
        };
        let mut session = Session::new(settings).unwrap();
        for (ops, seed) in &story.steps {
            for op in ops {
                let mut entries = op.entries(session.view());
                for entry in &mut entries {
                    if let Payload::Tools(delta) = &mut entry.payload {
                        in_chat_form(&mut delta.add);
                    }
                }
                session.append(entries).unwrap();
            }
            let mut turn = seed.turn();
            in_chat_form(turn.tools.as_deref_mut().unwrap_or_default());
            if let Ok(built) = session.build(turn) {
                all.push((name, serde_json::from_slice(built.body()).unwrap()));
            }
        }
    }
    all
}

// needs: sdks
#[test]
fn random_histories_make_bodies_that_the_sdks_take() {
    let Some(python) = Python::find() else { return };
    let mut runner = TestRunner::deterministic();
    let stories = (how(), story(op().boxed()));
    let mut all = Vec::new();
    for n in 0..300 {
        let (how, story) = stories.new_tree(&mut runner).unwrap().current();
        all.extend(bodies(n, &how, &story));
    }
    assert!(all.len() > 900, "{} bodies", all.len());
    python.accepts_all_but("random histories", &all, |wire, error| {
        wire == "openai" && PASSED_THROUGH.iter().any(|known| error.contains(known))
    });
}

// needs: sdks
// needs: data
#[test]
fn real_transcripts_make_bodies_that_the_sdks_take() {
    let Some(python) = Python::find() else { return };
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder = std::env::var_os("CONTEXTURE_DATA").unwrap_or_else(|| beside.into());
    let folder = std::path::PathBuf::from(folder);
    if !folder.is_dir() {
        println!("skipped: ../shared/data is not here");
        return;
    }
    let mut all = Vec::new();
    for (file, every) in [("sessions.jsonl", 11), ("dirty.jsonl", 3)] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        for line in text.lines().step_by(every) {
            let session: Value = serde_json::from_str(line).unwrap();
            let messages: Vec<Message> =
                serde_json::from_value(session["messages"].clone()).unwrap();
            for (name, wire) in WIRES {
                all.extend(last_bodies(wire, &messages).map(|body| (name, body)));
            }
        }
    }
    assert!(all.len() > 100, "{} bodies", all.len());
    python.accepts("real transcripts", &all);
}

/// The last requests of a transcript that is lived through with little room.
fn last_bodies(wire: Wire, messages: &[Message]) -> impl Iterator<Item = Value> + use<> {
    let settings = Settings {
        config: ContextConfig {
            max_input_tokens: 16_000,
            ..ContextConfig::default()
        },
        wire,
        model: Some("m".to_owned()),
        params: params(0, wire),
        ..Settings::default()
    };
    let input = BuildInput::from_messages(messages.iter().cloned());
    let mut made = Vec::new();
    // That some do not fit is another test's.
    let _ = replay(settings, input, |_, built| {
        made.push(built.body().to_vec());
        Ok(())
    });
    let from = made.len().saturating_sub(3);
    made.into_iter()
        .skip(from)
        .map(|body| serde_json::from_slice(&body).unwrap())
}
