use contexture::task::{Board, Spent, State};
use serde_json::{Value, json};

use crate::task::{at, board, claim, dispatch, new, state, task, word};

fn goal(board: &mut Board, limits: Value) -> String {
    let limits = contexture::task::Limits::from_value(limits).unwrap();
    board
        .begin("the whole".into(), limits, "me", &at(0))
        .unwrap()
}

fn part(board: &mut Board, of: &str, limits: &Value) -> String {
    let task = json!({"description": "a part", "parent": of, "limits": limits});
    board.create(new(task), &at(0)).unwrap()
}

fn tokens(board: &Board, id: &str) -> Option<u64> {
    task(board, id).limits().max_tokens
}

#[test]
fn parts_only_narrow() {
    let mut board = board(&[]);
    let whole = goal(&mut board, json!({"maxTokens": 1_000, "maxCostMicros": 10}));
    let small = part(&mut board, &whole, &json!({"maxTokens": 100}));
    assert_eq!(tokens(&board, &small), Some(100));
    let greedy = part(&mut board, &whole, &json!({"maxTokens": 5_000}));
    assert_eq!(
        tokens(&board, &greedy),
        Some(900),
        "what is left, and no more"
    );
    let late = part(&mut board, &whole, &json!({}));
    assert_eq!(tokens(&board, &late), Some(0));
    assert_eq!(
        task(&board, &small).limits().max_cost_micros,
        Some(5),
        "half, where it does not say"
    );
    // One that is called off leaves what it did not spend.
    board.cancel(&greedy, "too greedy", &at(1)).unwrap();
    let next = part(&mut board, &whole, &json!({}));
    assert_eq!(tokens(&board, &next), Some(450));
    let below = part(&mut board, &next, &json!({"maxTokens": 451}));
    assert_eq!(tokens(&board, &below), Some(450));
}

#[test]
fn zero_means_zero() {
    let mut board = board(&[("a", &[])]);
    let none = json!({"description": "x", "limits": {"maxTokens": 0}});
    let id = board.create(new(none), &at(0)).unwrap();
    assert!(dispatch(&mut board, 1).is_empty());
    assert_eq!(state(&board, &id), State::Failed);
    assert_eq!(
        task(&board, &id).why(),
        Some("there are no tokens left for it")
    );
    let whole = goal(&mut board, json!({"maxTokens": 0}));
    let of = part(&mut board, &whole, &json!({"maxTokens": 10}));
    assert_eq!(tokens(&board, &of), Some(0));
}

#[test]
fn what_attempts_spend_adds_up() {
    let mut board = board(&[("a", &[])]);
    let whole = goal(&mut board, json!({"maxTokens": 1_000}));
    let id = part(&mut board, &whole, &json!({"maxTokens": 100}));
    let mut now = 0;
    for spent in [60, 40] {
        let handed = dispatch(&mut board, now).remove(0);
        claim(&mut board, &handed, now);
        let spent = Spent {
            tokens: spent,
            cost_micros: 1,
        };
        board
            .fail(word(&handed), "no", true, spent, &at(now))
            .unwrap()
            .unwrap();
        now += 10_000;
    }
    assert_eq!(board.tasks().left(&id).max_tokens, Some(0));
    assert!(
        dispatch(&mut board, now).is_empty(),
        "there is nothing left to try it with"
    );
    assert_eq!(state(&board, &id), State::Failed);
    assert_eq!(
        task(&board, &whole).used(),
        Spent {
            tokens: 100,
            cost_micros: 2
        }
    );
    assert_eq!(board.tasks().left(&whole).max_tokens, Some(900));
}

#[test]
fn without_a_limit_there_is_none() {
    let mut board = board(&[]);
    let whole = goal(&mut board, json!({}));
    let free = part(&mut board, &whole, &json!({}));
    assert_eq!(tokens(&board, &free), None);
    let own = part(&mut board, &whole, &json!({"maxTokens": 7}));
    assert_eq!(tokens(&board, &own), Some(7));
}
