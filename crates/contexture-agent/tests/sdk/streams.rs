//! The scripted server's streams, read by the SDKs' own clients and by ours.

use std::time::Duration;

use contexture::{Content, Part};
use contexture_model::{Client, Endpoint, Model, Patience, Reply, Stop};
use serde_json::{Value, json};

use crate::model_server::{Answer, ModelServer, Piece};
use crate::sdk::harness::MODELS;
use crate::sdk::histories::WIRES;
use crate::sdk::python::Python;

fn answers() -> Vec<Vec<Piece>> {
    let call = |id, tool, arguments| Piece::Call(id, tool, arguments);
    vec![
        vec![Piece::Text("Hello.")],
        vec![Piece::Text("x")],
        vec![],
        vec![
            Piece::Thinking("Hm. Größe?"),
            Piece::Text("数据库 🦀 \"quoted\"\n"),
        ],
        vec![call("c1", "look", json!({}))],
        vec![
            Piece::Thinking("Let me see."),
            Piece::Text("I will look at two files."),
            call("c1", "read", json!({"path": "a.rs"})),
            call(
                "c2",
                "read",
                json!({"path": "ü \"b\".rs", "deep": {"n": [1, 2.5, null]}}),
            ),
            call("c3", "now", json!({})),
        ],
        vec![
            Piece::Thinking("Now."),
            call("c9", "write", json!({"text": "lorem ipsum ".repeat(900)})),
        ],
        vec![Piece::Text("One. "), Piece::Text("Two.")],
    ]
}

/// What our own client reads, in the words of `read_streams.py`.
fn ours(model: &str, url: &str) -> Value {
    let endpoint = Endpoint::parse(model, Some(url)).unwrap();
    let patience = Patience {
        first: Duration::from_secs(20),
        retries: 0,
        ..Patience::default()
    };
    let client = Client::new(endpoint, patience).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let reply = runtime.block_on(client.call(b"{}".to_vec(), &mut |_| {}));
    told(&reply.unwrap())
}

fn told(reply: &Reply) -> Value {
    let thinking: String = match &reply.message.content {
        Content::Parts(parts) => parts.iter().filter_map(thought).collect(),
        Content::Null | Content::Text(_) => String::new(),
    };
    let calls = reply.message.tool_calls.iter().map(|call| {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
        json!({"id": call.id, "name": call.name, "arguments": arguments})
    });
    let usage = reply.usage.as_ref().unwrap();
    let stop = match &reply.stop {
        Stop::End => "end",
        Stop::Tools => "tools",
        other => panic!("{other:?}"),
    };
    json!({
        "text": reply.message.text(),
        "thinking": thinking,
        "calls": calls.collect::<Vec<_>>(),
        "usage": [usage.input(), usage.cached(), usage.output()],
        "stop": stop,
    })
}

fn thought(part: &Part) -> Option<&str> {
    match part {
        Part::Thinking { thinking, .. } => Some(thinking),
        _ => None,
    }
}

// needs: sdks
#[test]
fn the_sdks_clients_read_what_ours_reads() {
    let Some(python) = Python::find() else { return };
    let answers = answers();
    let mut asked = Vec::new();
    let mut wanted = Vec::new();
    let mut servers = Vec::new();
    for (model, (wire, _)) in MODELS.into_iter().zip(WIRES) {
        let server = ModelServer::start(answers.iter().cloned().map(Answer::Says));
        wanted.extend(
            answers
                .iter()
                .map(|answer| (wire, answer, ours(model, &server.url))),
        );
        // The script asks for each twice.
        let twice = answers
            .iter()
            .flat_map(|answer| [answer.clone(), answer.clone()]);
        let server = ModelServer::start(twice.map(Answer::Says));
        asked.push(json!({"wire": wire, "url": server.url, "answers": answers.len()}));
        servers.push(server);
    }
    let read = python.run("read_streams.py", &[], asked);
    assert_eq!(read.len(), wanted.len());
    for ((wire, answer, ours), theirs) in wanted.into_iter().zip(read) {
        assert_eq!(ours, theirs, "{wire}: {answer:?}");
    }
    assert!(servers.iter().all(|server| server.left() == 0));
}
