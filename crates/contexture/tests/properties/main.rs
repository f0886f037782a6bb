//! The build's promises, on random histories of every kind.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

#[path = "../anthropic/check.rs"]
mod anthropic;
#[path = "../common/mod.rs"]
mod common;
mod history;
mod promises;

use contexture::build::{Session, Turn};
use contexture::entry::RequestRecord;
use contexture::{Entry, Payload};
use history::{How, Story, TurnSeed, growing_op, how, op, story};
use promises::{Request, check_error, check_request};
use proptest::prelude::*;
use serde_json::{Map, Value};

/// What a run of a story leaves behind, to be compared with another run's.
#[derive(PartialEq, Debug)]
struct Trace {
    steps: Vec<Result<(String, String, String), String>>,
    log: String,
}

fn lines<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    let lines = entries
        .into_iter()
        .map(|e| serde_json::to_string(e).unwrap() + "\n");
    lines.collect()
}

fn log(session: &Session) -> Vec<Entry> {
    let log = session.view().log().iter();
    log.map(|entry| Entry::clone(entry)).collect()
}

/// The record of a request that went out, with what the provider counted.
fn record(session: &Session, request: &Request, seed: &TurnSeed) -> Entry {
    let usage = seed.reported.map(|percent| {
        let reported = request.tokens * percent / 100;
        Map::from_iter([("prompt_tokens".to_owned(), Value::from(reported))])
    });
    let record = RequestRecord {
        digest: request.digest.clone(),
        input_tokens: request.tokens,
        usage,
        ..RequestRecord::default()
    };
    Entry::derived(session.view().tail(), "", Payload::Request(record))
}

/// Lives through the story in one session, holding every request against the promises.
fn live(how: &How, story: &Story) -> Trace {
    let mut session = Session::new(how.settings()).unwrap();
    let mut steps = Vec::new();
    let mut last: Option<Request> = None;
    for (ops, seed) in &story.steps {
        for op in ops {
            for entry in op.entries(session.view()) {
                if matches!(entry.payload, Payload::Request(_)) {
                    last = Some(session.current().unwrap().into());
                }
                session.append([entry]).expect("the log is valid");
            }
        }
        let before = session.view().log().len();
        let mut fresh = Session::open(how.settings(), log(&session)).unwrap();
        let fresh = fresh.build(seed.turn()).map(|built| built.body().to_vec());
        match session.build(seed.turn()).map(Request::from) {
            Ok(request) => {
                let body = text(&request.body);
                assert_eq!(text(&fresh.unwrap()), body, "a session opened just now");
                check_request(how, session.view(), &request, seed, last.as_ref());
                check_settled(how, &session, &request);
                let entry = record(&session, &request, seed);
                session.append([entry]).unwrap();
                steps.push(Ok((
                    body.to_owned(),
                    serde_json::to_string(&request.receipt).unwrap(),
                    lines(&request.appended),
                )));
                last = Some(request);
            }
            Err(error) => {
                check_error(how, &error);
                assert_eq!(fresh.err().as_ref(), Some(&error));
                assert_eq!(session.view().log().len(), before);
                steps.push(Err(error.to_string()));
            }
        }
    }
    let log = lines(session.view().log().iter().map(AsRef::as_ref));
    Trace { steps, log }
}

/// All decisions of a build are in the log: a session that is opened with it shows the same, and
/// another turn that brings nothing adds nothing.
fn check_settled(how: &How, session: &Session, request: &Request) {
    let body = text(&request.body);
    let mut fresh = Session::open(how.settings(), log(session)).unwrap();
    assert_eq!(text(fresh.current().unwrap().body()), body, "reopened");
    let again = Request::from(fresh.build(Turn::default()).unwrap());
    assert_eq!(lines(&again.appended), "", "a second build");
    assert_eq!(text(&again.body), body, "a second build");
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_200, max_shrink_iters: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens to a log, every request keeps the promises, and a second run is the same.
    #[test]
    fn every_request_keeps_the_promises(how in how(), story in story(op().boxed())) {
        let one = live(&how, &story);
        let two = live(&how, &story);
        prop_assert_eq!(one, two);
    }

    /// The same where nothing is undone, so that pins can be counted without the code under test.
    #[test]
    fn a_growing_log_keeps_the_promises(how in how(), story in story(growing_op().boxed())) {
        live(&how, &story);
    }
}
