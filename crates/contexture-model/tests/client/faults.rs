//! F8: an endpoint that fails in every way it can. Tries are bounded, and what comes in the end is
//! whole or a typed error.

use std::time::{Duration, Instant};

use contexture_model::{Client, Delta, Endpoint, Model, ModelError, Patience, Secret};
use serde_json::json;

use crate::client::{KEY, MODELS, call, call_with, patience};
use crate::model_server::{Answer, ModelServer, Piece, event_count};

fn pieces() -> Vec<Piece> {
    vec![
        Piece::Thinking("Hm."),
        Piece::Text("Looking."),
        Piece::Call("c1", "read", json!({"path": "x"})),
    ]
}

#[test]
fn a_stream_cut_at_each_event_is_asked_for_again() {
    let mut cuts = 0;
    for (model, path) in MODELS {
        let all = event_count(path, &pieces());
        let whole = ModelServer::start([Answer::Says(pieces())]);
        let wanted = call(model, &whole, "{}").0.unwrap();
        for (after, cut) in (0..all).flat_map(|after| {
            let cuts = [Answer::Cut(pieces(), after), Answer::Ends(pieces(), after)];
            cuts.map(|cut| (after, cut))
        }) {
            let server = ModelServer::start([cut, Answer::Says(pieces())]);
            let (reply, deltas) = call(model, &server, "{}");
            let reply = reply.unwrap();
            // Never half a call: either the whole reply of the first try, or that of the second.
            assert_eq!(reply.message, wanted.message, "{model} cut after {after}");
            let again = deltas
                .iter()
                .any(|delta| matches!(delta, Delta::Again { .. }));
            assert_eq!(again, server.seen().len() == 2, "{model} cut after {after}");
            cuts += 1;
        }
        // Cut every time: an error, after as many tries as there may be.
        let script = vec![Answer::Cut(pieces(), 3); 9];
        let server = ModelServer::start(script);
        assert_eq!(call(model, &server, "{}").0, Err(ModelError::Cut));
        assert_eq!(server.seen().len(), 3);
    }
    println!("F8: {cuts} streams cut, each whole in the end");
}

#[test]
fn what_may_pass_is_tried_again_and_what_may_not_is_not() {
    let error = |kind: &str| json!({"error": {"type": kind, "message": "no"}}).to_string();
    for (model, _) in MODELS {
        for status in [500, 502, 503, 529, 408] {
            let server = ModelServer::start([
                Answer::Status(status, vec![], error("x")),
                Answer::Says(pieces()),
            ]);
            assert!(call(model, &server, "{}").0.is_ok(), "{status}");
        }
        for status in [400, 401, 403, 404, 413, 422] {
            let server = ModelServer::start([
                Answer::Status(status, vec![], error("x")),
                Answer::Says(pieces()),
            ]);
            assert!(call(model, &server, "{}").0.is_err(), "{status}");
            assert_eq!(server.seen().len(), 1, "{status}");
        }
        let server = ModelServer::start([
            Answer::HangsUp,
            Answer::Garbage("data: {not json\n\n"),
            Answer::Says(pieces()),
        ]);
        assert!(call(model, &server, "{}").0.is_ok());
        let server = ModelServer::start([
            Answer::Garbage("hello, I am a login page"),
            Answer::Garbage("data: []\n\n"),
            Answer::Garbage(""),
        ]);
        assert!(call(model, &server, "{}").0.is_err());
        assert_eq!(server.seen().len(), 3);
    }
}

#[test]
fn a_provider_that_asks_to_wait_is_waited_for() {
    for (model, _) in MODELS {
        let wait = |seconds: &str| vec![("retry-after", seconds.to_owned())];
        let server = ModelServer::start([
            Answer::Status(429, wait("1"), "{}".to_owned()),
            Answer::Says(pieces()),
        ]);
        let begun = Instant::now();
        assert!(call(model, &server, "{}").0.is_ok());
        assert!(begun.elapsed() >= Duration::from_secs(1));
        // Longer than we would: told at once, with the time.
        let server = ModelServer::start([Answer::Status(429, wait("3600"), "{}".to_owned())]);
        let Err(ModelError::RateLimited { retry_after, .. }) = call(model, &server, "{}").0 else {
            panic!("{model}");
        };
        assert_eq!(retry_after, Some(Duration::from_secs(3600)));
        assert_eq!(server.seen().len(), 1);
    }
}

#[test]
fn a_stall_ends() {
    let patience = Patience {
        first: Duration::from_millis(1_500),
        next: Duration::from_millis(1_000),
        ..patience()
    };
    for (model, _) in MODELS {
        for after in [0, 4] {
            let script = [Answer::Stalls(pieces(), after), Answer::Says(pieces())];
            let server = ModelServer::start(script);
            let (reply, deltas) = call_with(patience.clone(), model, &server, "{}");
            assert!(reply.is_ok(), "{model} after {after}");
            let why = deltas.iter().find_map(|delta| match delta {
                Delta::Again { why } => Some(why.as_str()),
                _ => None,
            });
            assert!(
                why.is_some_and(|why| why.contains("nothing came for")),
                "{why:?}"
            );
        }
    }
}

#[test]
fn nobody_there_is_said_with_the_address() {
    let endpoint = Endpoint::parse("openai:m", Some("http://127.0.0.1:9/v1")).unwrap();
    let client = Client::new(endpoint, patience()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let reply = runtime.block_on(client.call(b"{}".to_vec(), &mut |_| {}));
    let Err(error @ ModelError::Unreachable { .. }) = reply else {
        panic!("{reply:?}");
    };
    assert!(
        error.to_string().contains("http://127.0.0.1:9/v1"),
        "{error}"
    );
}

/// Attack 41, and 6: a key is in no error, whoever repeats it.
#[test]
fn a_key_that_is_repeated_is_masked() {
    for (model, _) in MODELS {
        let echo =
            json!({"error": {"message": format!("Incorrect API key provided: {KEY}")}}).to_string();
        for status in [400, 401, 429, 500] {
            let script = vec![Answer::Status(status, vec![], echo.clone()); 5];
            let server = ModelServer::start(script);
            let error = call(model, &server, "{}").0.unwrap_err();
            let text = format!("{error} {error:?} {}", error.hint());
            assert!(!text.contains("0123456789"), "{text}");
        }
    }
    let endpoint = Endpoint {
        key: Some(Secret::from(KEY)),
        ..Endpoint::parse("openai:m", None).unwrap()
    };
    assert!(!format!("{:?} {endpoint}", endpoint.key).contains("0123456789"));
}
