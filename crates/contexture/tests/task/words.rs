//! Attack 39: whose word counts, of what, and how often.

use contexture::pool::Locale;
use contexture::task::{Refusal, Spent, State, Word};

use crate::task::{at, board, claim, dispatch, name, state, task, wants, word};

#[test]
fn a_word_counts_from_whom_it_was_handed_to_for_its_attempt_and_once() {
    let mut board = board(&[("a", &["web_search"]), ("b", &["file_ops"])]);
    let id = wants(&mut board, &["web_search"]);
    let handed = dispatch(&mut board, 0).remove(0);
    let b = name("b");
    let good = word(&handed);
    let mut finish = |word: Word<'_>| {
        board.take_news();
        let said = board
            .finish(word, "mine", Spent::default(), &at(1))
            .unwrap();
        assert!(
            said.is_ok() || board.take_news().is_empty(),
            "refused, and nothing changed"
        );
        said.map(|_| ())
    };
    assert_eq!(
        finish(Word {
            task: "task-9",
            ..good
        }),
        Err(Refusal::Unknown)
    );
    assert_eq!(
        finish(Word { attempt: 2, ..good }),
        Err(Refusal::Attempt { said: 2, now: 1 })
    );
    assert_eq!(
        finish(Word { by: &b, ..good }),
        Err(Refusal::NotYours { by: "b".into() })
    );
    assert_eq!(finish(good), Err(Refusal::NotBegun));
    claim(&mut board, &handed, 2);
    let mut finish = |word: Word<'_>| {
        board
            .finish(word, "mine", Spent::default(), &at(3))
            .unwrap()
            .map(|_| ())
    };
    assert_eq!(
        finish(Word {
            instance: "two",
            ..good
        }),
        Err(Refusal::OtherInstance)
    );
    assert_eq!(finish(good), Ok(()));
    assert_eq!(finish(good), Err(Refusal::NotOut(State::Done)), "replayed");
    assert_eq!(task(&board, &id).result(), Some("mine"));
}

#[test]
fn the_word_of_an_attempt_that_was_lost_is_too_late() {
    let mut board = board(&[("a", &["web_search"]), ("b", &["web_search"])]);
    let id = wants(&mut board, &["web_search"]);
    let first = dispatch(&mut board, 0).remove(0);
    claim(&mut board, &first, 0);
    board.lost(&name("a"), "cut off", &at(1)).unwrap();
    let late = |board: &mut contexture::task::Board| {
        board
            .finish(word(&first), "late", Spent::default(), &at(2))
            .unwrap()
            .map(|_| ())
    };
    assert_eq!(late(&mut board), Err(Refusal::NotOut(State::Queued)));
    let second = dispatch(&mut board, 2).remove(0);
    claim(&mut board, &second, 2);
    assert_eq!(late(&mut board), Err(Refusal::Attempt { said: 1, now: 2 }));
    board
        .finish(word(&second), "in time", Spent::default(), &at(3))
        .unwrap()
        .unwrap();
    assert_eq!(late(&mut board), Err(Refusal::Attempt { said: 1, now: 2 }));
    assert_eq!(
        (state(&board, &id), task(&board, &id).result()),
        (State::Done, Some("in time"))
    );
}

#[test]
fn one_process_begins_an_attempt() {
    let mut board = board(&[("a", &[])]);
    wants(&mut board, &[]);
    let handed = dispatch(&mut board, 0).remove(0);
    claim(&mut board, &handed, 0);
    let other = Word {
        instance: "two",
        ..word(&handed)
    };
    let refused = board.claim(other, Locale::En, &at(1)).unwrap();
    assert_eq!(refused, Err(Refusal::OtherInstance));
}

#[test]
fn a_long_result_is_cut_with_a_mark() {
    let mut board = board(&[("a", &[])]);
    let id = wants(&mut board, &[]);
    let handed = dispatch(&mut board, 0).remove(0);
    claim(&mut board, &handed, 0);
    let long = "é".repeat(200_000);
    board
        .finish(word(&handed), &long, Spent::default(), &at(1))
        .unwrap()
        .unwrap();
    let kept = task(&board, &id).result().unwrap();
    assert!(kept.len() < 257_000 && kept.ends_with("[cut: 400000 bytes in all]"));
}
