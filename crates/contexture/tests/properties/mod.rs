//! The build's promises, on random histories of every kind.

mod diffs;
mod exports;
mod history;
mod local;
mod promises;

use crate::anthropic::check as anthropic;
use crate::responses::check as responses;
use contexture::build::{BuildInput, Session, Turn, Wire};
use contexture::entry::{RequestRecord, Target};
use contexture::prompt::Section;
use contexture::replay::{replay, verify};
use contexture::{ContextConfig, ContextError, Entry, Message, Payload, View};
use history::{How, Op, Story, TurnSeed, growing_op, how, op, plain, story};
use promises::{Request, check_error, check_request};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

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
        wire: session.record().wire,
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
                let new = session.view().position(&entry.id).is_none();
                if matches!(entry.payload, Payload::Request(_)) && new {
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

/// Everything of a request that a caller can see.
fn visible(request: &Request) -> [String; 3] {
    [
        text(&request.body).to_owned(),
        serde_json::to_string(&request.receipt).unwrap(),
        lines(&request.appended),
    ]
}

/// A turn that the budget cannot hold, and that changes everything else, too.
fn impossible(how: &How, seed: &TurnSeed) -> Turn {
    let huge = Message::user(" word".repeat(how.config.max_input_tokens + 1));
    let mut turn = seed.turn();
    turn.messages.push(huge);
    turn.tools = Some(vec![json!({"name": "other", "description": "tool"})]);
    turn.sections = Some(vec![Section::stable("other", "test", "side")]);
    turn.hints = Some(Map::from_iter([("other".to_owned(), json!("hint"))]));
    turn
}

fn is_decision(entry: &Entry) -> bool {
    matches!(
        entry.payload,
        Payload::Mask(_) | Payload::CompactionSummary(_)
    )
}

/// A number of cases that the environment may override.
pub fn cases(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: match std::env::var_os("PROPTEST_CASES") {
            Some(_) => default.cases,
            None => cases,
        },
        max_shrink_iters: 4_000,
        failure_persistence: None,
        ..default
    }
}

proptest! {
    #![proptest_config(cases(1_200))]

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

proptest! {
    #![proptest_config(cases(300))]

    /// A turn that does not fit changes nothing: not the log, not the next request, not its receipt.
    #[test]
    fn a_failed_build_leaves_no_trace(how in how(), story in story(op().boxed())) {
        let mut one = Session::new(how.settings()).unwrap();
        let mut two = Session::new(how.settings()).unwrap();
        for (ops, seed) in &story.steps {
            for op in ops {
                let entries = op.entries(one.view());
                one.append(entries.clone()).unwrap();
                two.append(entries).unwrap();
            }
            let failed = one.build(impossible(&how, seed)).map(Request::from);
            prop_assert!(matches!(failed, Err(ContextError::Overflow(_))));
            let one_built = one.build(seed.turn()).map(Request::from);
            let two_built = two.build(seed.turn()).map(Request::from);
            match (one_built, two_built) {
                (Ok(first), Ok(second)) => {
                    prop_assert_eq!(visible(&first), visible(&second));
                    one.append([record(&one, &first, seed)]).unwrap();
                    two.append([record(&two, &second, seed)]).unwrap();
                }
                (Err(first), Err(second)) => prop_assert_eq!(first, second),
                _ => prop_assert!(false, "only one of the two fits"),
            }
        }
        prop_assert_eq!(log(&one), log(&two));
    }

    /// Nothing is lost: undoing what a build decided shows again what was there before it.
    #[test]
    fn compaction_can_be_undone(how in how(), story in story(op().boxed())) {
        let mut roomy = how.clone();
        roomy.config = ContextConfig { max_input_tokens: 10_000_000, ..ContextConfig::default() };
        let mut session = Session::new(how.settings()).unwrap();
        for (ops, seed) in &story.steps {
            for op in ops {
                let entries = op.entries(session.view());
                session.append(entries).unwrap();
            }
            let before = session.view().log().len();
            let Ok(request) = session.build(seed.turn()).map(Request::from) else {
                continue;
            };
            let brought = request.appended.iter().filter(|entry| !is_decision(entry)).count();
            let (said, decided) = request.appended.split_at(brought);
            prop_assert_eq!(!decided.is_empty(), request.made_room);
            prop_assert!(!said.iter().any(is_decision));
            let all = log(&session);
            let undecided = &all[..before + brought];
            let mut undone = Session::open(roomy.settings(), all.clone()).unwrap();
            for entry in decided {
                let target = Target { entry_id: entry.id.clone() };
                undone.append([Entry::derived(undone.view().tail(), "", Payload::Revert(target))]).unwrap();
            }
            let undone = Request::from(undone.current().unwrap());
            let mut never = Session::open(roomy.settings(), undecided.to_vec()).unwrap();
            let never = Request::from(never.current().unwrap());
            prop_assert_eq!(text(&undone.body), text(&never.body));
        }
    }

    /// What was recorded can be made again, byte for byte, and what was lived can be lived again.
    #[test]
    fn a_recorded_session_verifies(how in how(), story in story(op().boxed())) {
        let mut session = Session::new(how.settings()).unwrap();
        for (ops, seed) in &story.steps {
            for op in ops.iter().filter(|op| !matches!(op, Op::Entry(Payload::Request(_)))) {
                let entries = op.entries(session.view());
                session.append(entries).unwrap();
            }
            if let Ok(request) = session.build(seed.turn()).map(Request::from) {
                session.append([record(&session, &request, seed)]).unwrap();
            }
        }
        let mut differing = Vec::new();
        verify(|_| how.settings(), log(&session), |step, _| {
            differing.extend(step.recorded_digest.clone());
            Ok(())
        }).unwrap();
        prop_assert_eq!(differing, Vec::<String>::new());
        let input = BuildInput { session_entries: log(&session), ..BuildInput::default() };
        match replay(how.settings(), input, |_, _| Ok(())) {
            Ok(_) | Err(ContextError::Overflow(_)) => {}
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    /// Many entries are folded once, and come to what they come to one by one.
    #[test]
    fn a_log_folds_at_once_as_it_does_entry_by_entry(how in how(), story in story(op().boxed())) {
        let mut session = Session::new(how.settings()).unwrap();
        let mut one_by_one = View::default();
        for (ops, _) in &story.steps {
            for op in ops {
                let entries = op.entries(session.view());
                for entry in &entries {
                    one_by_one.push(entry.clone()).unwrap();
                }
                session.append(entries).unwrap();
            }
        }
        let at_once = View::fold(log(&session)).unwrap();
        let shown = |view: &View| -> Vec<String> {
            view.live(0).map(|live| format!("{live:?}")).collect()
        };
        prop_assert_eq!(shown(&at_once), shown(&one_by_one));
        prop_assert_eq!(at_once.gone().collect::<Vec<_>>(), one_by_one.gone().collect::<Vec<_>>());
        prop_assert_eq!(at_once.sections(), one_by_one.sections());
        prop_assert_eq!(at_once.tools(), one_by_one.tools());
        prop_assert_eq!(at_once.last_request(), one_by_one.last_request());
    }

    /// What may be left out is left out before a build is refused.
    #[test]
    fn only_what_cannot_fit_is_refused(messages in vec(plain(), 1..20), budget in 100..1_500_usize, compactor in any::<bool>()) {
        let messages: Vec<Message> = messages.concat();
        let how = How {
            config: ContextConfig { max_input_tokens: budget, ..ContextConfig::default() },
            compactor,
            exact: true,
            wire: Wire::OpenAi,
        };
        let input = BuildInput::from_messages(messages.iter().cloned());
        let mut session = Session::open(how.settings(), input.session_entries).unwrap();
        if let Err(error) = session.build(Turn::default()) {
            let case = crate::common::Case { name: "plain", messages: &messages };
            // What stands last can be cut, but not to less than a mark.
            prop_assert!(case.floor() + 60 > budget, "{}: {}", case.floor(), error);
        }
    }
}
