use contexture::pool::{Change, Status};
use contexture::task::{Spent, State};
use serde_json::json;

use crate::task::{at, available, board, claim, dispatch, name, new, state, task, wants, word};

#[test]
fn from_made_to_done() {
    let mut board = board(&[("a", &["web_search"]), ("b", &["file_ops"])]);
    let id = wants(&mut board, &["web_search"]);
    assert_eq!((id.as_str(), state(&board, &id)), ("task-1", State::Queued));
    let handed = dispatch(&mut board, 10);
    assert_eq!((handed.len(), handed[0].executor.as_str()), (1, "a"));
    assert_eq!(state(&board, &id), State::Dispatched);
    assert_eq!(board.pool().get("a").unwrap().status(), Status::Deployed);
    let told = claim(&mut board, &handed[0], 20);
    assert!(
        told.contains("- ID: task-1") && told.contains("web_search"),
        "{told}"
    );
    assert_eq!(board.pool().get("a").unwrap().status(), Status::Busy);
    // It may ask twice, and is not begun twice.
    board.take_news();
    claim(&mut board, &handed[0], 21);
    assert!(board.take_news().is_empty());
    let spent = Spent {
        tokens: 7,
        cost_micros: 3,
    };
    board
        .finish(word(&handed[0]), "found", spent, &at(30))
        .unwrap()
        .unwrap();
    assert_eq!(state(&board, &id), State::Done);
    assert_eq!(
        (task(&board, &id).result(), task(&board, &id).used()),
        (Some("found"), spent)
    );
    assert_eq!(available(board.pool()), ["a", "b"]);
    assert_eq!(board.pool().get("a").unwrap().completed_tasks(), 1);
}

#[test]
fn a_shortage_blocks_says_what_is_missing_and_ends_by_itself() {
    let mut board = board(&[("a", &["web_search"])]);
    let (first, second) = (
        wants(&mut board, &["web_search"]),
        wants(&mut board, &["web_search"]),
    );
    let third = wants(&mut board, &["web_search", "shell_exec"]);
    let handed = dispatch(&mut board, 10);
    assert_eq!(
        handed.len(),
        1,
        "one that cannot be handed out does not stop the others"
    );
    assert_eq!(handed[0].task_id, first);
    assert_eq!(state(&board, &second), State::Blocked);
    assert_eq!(task(&board, &second).missing(), [name("web_search")]);
    assert_eq!(
        task(&board, &third).missing(),
        [name("web_search"), name("shell_exec")]
    );
    assert!(
        task(&board, &second)
            .why()
            .unwrap()
            .contains("`a` is deployed")
    );
    // Said once.
    board.take_news();
    dispatch(&mut board, 11);
    assert!(board.take_news().is_empty());
    // Freed: the next one begins.
    claim(&mut board, &handed[0], 12);
    board
        .finish(word(&handed[0]), "", Spent::default(), &at(13))
        .unwrap()
        .unwrap();
    let handed = dispatch(&mut board, 14);
    assert_eq!(
        (handed.len(), handed[0].task_id.as_str()),
        (1, second.as_str())
    );
    // Something else that appears changes nothing; what is missing does.
    crate::task::add(&mut board, "b", &["file_ops"]);
    assert!(dispatch(&mut board, 15).is_empty());
    crate::task::add(&mut board, "c", &["web_search"]);
    assert!(
        dispatch(&mut board, 16).is_empty(),
        "the shell is missing still"
    );
    assert_eq!(task(&board, &third).missing(), [name("shell_exec")]);
    let (id, tool) = (name("c"), name("shell_exec"));
    board
        .change(Change::Granted { id, tool }, &at(17).at)
        .unwrap();
    let handed = dispatch(&mut board, 18);
    assert_eq!(
        (handed.len(), handed[0].task_id.as_str()),
        (1, third.as_str())
    );
}

#[test]
fn the_one_that_was_chosen_does_it_or_it_waits() {
    let mut board = board(&[("a", &["web_search"]), ("b", &["web_search"])]);
    let to = |who: &str| json!({"description": "x", "requires": ["web_search"], "to": who});
    let first = board.create(new(to("b")), &at(0)).unwrap();
    let second = board.create(new(to("b")), &at(0)).unwrap();
    let nobody = board.create(new(to("z")), &at(0)).unwrap();
    let handed = dispatch(&mut board, 1);
    assert_eq!((handed.len(), handed[0].executor.as_str()), (1, "b"));
    assert_eq!(handed[0].task_id, first);
    assert_eq!(available(board.pool()), ["a"], "it does itself what it can");
    assert_eq!(task(&board, &second).why(), Some("`b` is deployed"));
    assert_eq!(
        task(&board, &nobody).why(),
        Some("there is no resource `z`")
    );
}

#[test]
fn what_takes_no_agent_gets_one_beside() {
    let mut board = board(&[("a", &["web_search"])]);
    let tool =
        contexture::pool::NewResource::new(name("scheduler"), contexture::pool::ResourceType::Tool)
            .with(name("schedule_task"), contexture::pool::Level::MOST);
    board
        .change(Change::Added { resource: tool }, &at(0).at)
        .unwrap();
    let id = wants(&mut board, &["schedule_task"]);
    let handed = dispatch(&mut board, 1);
    assert_eq!(handed[0].executor.as_str(), "a");
    assert!(available(board.pool()).is_empty(), "it has both");
    board.cancel(&id, "enough", &at(2)).unwrap();
    assert_eq!(available(board.pool()), ["a", "scheduler"]);
}

#[test]
fn a_failure_is_tried_again_later_and_later_and_then_no_more() {
    let mut board = board(&[("a", &["web_search"])]);
    let id = wants(&mut board, &["web_search"]);
    let mut now = 0;
    for (attempt, wait) in [(1, Some(1_000)), (2, Some(2_000)), (3, None)] {
        let handed = dispatch(&mut board, now);
        assert_eq!(handed[0].attempt, attempt);
        claim(&mut board, &handed[0], now);
        let failed = board.fail(
            word(&handed[0]),
            "no luck",
            true,
            Spent::default(),
            &at(now),
        );
        failed.unwrap().unwrap();
        assert_eq!(available(board.pool()), ["a"], "what it took is free again");
        match wait {
            Some(wait) => {
                assert_eq!(state(&board, &id), State::Queued);
                assert_eq!(board.next_due(), Some(now + wait));
                assert!(dispatch(&mut board, now + wait - 1).is_empty());
                now += wait;
            }
            None => assert_eq!(state(&board, &id), State::Failed),
        }
    }
    assert_eq!(task(&board, &id).why(), Some("no luck"));
    assert!(dispatch(&mut board, 1_000_000).is_empty());
}

#[test]
fn what_would_fail_again_is_not_tried_again() {
    let mut board = board(&[("a", &[])]);
    let id = wants(&mut board, &[]);
    let handed = dispatch(&mut board, 0);
    claim(&mut board, &handed[0], 0);
    board
        .fail(
            word(&handed[0]),
            "impossible",
            false,
            Spent::default(),
            &at(1),
        )
        .unwrap()
        .unwrap();
    assert_eq!(state(&board, &id), State::Failed);
}

#[test]
fn what_takes_too_long_is_recalled() {
    let mut board = board(&[("a", &[])]);
    let slow = json!({"description": "x", "limits": {"seconds": 5, "attempts": 2}});
    let id = board.create(new(slow), &at(0)).unwrap();
    let handed = dispatch(&mut board, 0);
    assert!(board.overdue(&at(4_999)).unwrap().is_empty());
    let recalls = board.overdue(&at(5_000)).unwrap();
    assert_eq!(
        (recalls[0].task_id.as_str(), recalls[0].attempt),
        (id.as_str(), 1)
    );
    assert_eq!(state(&board, &id), State::Queued);
    assert_eq!(available(board.pool()), ["a"]);
    // What the first attempt says now is refused.
    let late = board
        .finish(word(&handed[0]), "late", Spent::default(), &at(5_001))
        .unwrap();
    assert!(late.is_err());
    let handed = dispatch(&mut board, 6_000);
    assert_eq!(handed[0].attempt, 2);
    board.overdue(&at(60_000)).unwrap();
    assert_eq!(state(&board, &id), State::Failed);
    assert_eq!(task(&board, &id).why(), Some("took longer than 5 s"));
}

#[test]
fn who_is_lost_loses_the_task_to_another() {
    let mut board = board(&[("a", &["web_search"]), ("b", &["web_search"])]);
    let id = wants(&mut board, &["web_search"]);
    let handed = dispatch(&mut board, 0);
    claim(&mut board, &handed[0], 0);
    board.lost(&name("a"), "silent", &at(1)).unwrap();
    assert_eq!(board.pool().get("a").unwrap().status(), Status::Error);
    let handed = dispatch(&mut board, 2);
    assert_eq!((handed[0].executor.as_str(), handed[0].attempt), ("b", 2));
    assert_eq!(task(&board, &id).executor(), Some(&name("b")));
    // It is back, and takes work again.
    let back = board.pool().get("a").unwrap().is().clone();
    board.join(&back, &at(3)).unwrap();
    assert_eq!(available(board.pool()), ["a"]);
    board.leave(&name("a"), false, &at(4)).unwrap();
    assert_eq!(board.pool().get("a").unwrap().status(), Status::Released);
}

#[test]
fn who_was_retired_does_not_come_back_by_itself() {
    let mut board = board(&[("a", &["web_search"])]);
    board.lost(&name("a"), "silent", &at(1)).unwrap();
    let (id, by_owner) = (name("a"), true);
    let retired = Change::Retired { id, by_owner };
    board.change(retired, &at(2).at).unwrap();
    let here = board.pool().get("a").unwrap().is().clone();
    board.join(&here, &at(3)).unwrap();
    assert_eq!(board.pool().get("a").unwrap().status(), Status::Released);
    let kept = serde_json::to_value(board.pool()).unwrap();
    assert_eq!(kept["resources"][0]["retired"], true);
    let repaired = board.pool().repair(&name("a"));
    board.change(repaired, &at(4).at).unwrap();
    assert_eq!(available(board.pool()), ["a"]);
    // One that was only away does.
    board.leave(&name("a"), false, &at(5)).unwrap();
    board.join(&here, &at(6)).unwrap();
    assert_eq!(available(board.pool()), ["a"]);
}

#[test]
fn to_call_off_the_whole_is_to_call_off_its_parts() {
    let mut board = board(&[("a", &[]), ("b", &[])]);
    let goal = board
        .begin("all of it".into(), Default::default(), "me", &at(0))
        .unwrap();
    let part = |parent: &str| new(json!({"description": "x", "parent": parent}));
    let one = board.create(part(&goal), &at(0)).unwrap();
    let two = board.create(part(&one), &at(0)).unwrap();
    dispatch(&mut board, 1);
    let recalls = board.cancel(&goal, "enough", &at(2)).unwrap();
    assert_eq!(recalls.len(), 2);
    for id in [&goal, &one, &two] {
        assert_eq!(state(&board, id), State::Cancelled);
    }
    assert_eq!(available(board.pool()), ["a", "b"]);
    assert!(board.cancel(&goal, "again", &at(3)).is_err());
    assert!(
        board.create(part(&goal), &at(3)).is_err(),
        "what is over gets no parts"
    );
}

#[test]
fn what_is_higher_goes_first_and_then_what_came_first() {
    let mut board = board(&[("a", &[])]);
    let of = |priority: i64| new(json!({"description": "x", "priority": priority}));
    let ids: Vec<String> = [0, 5, 0, -1, 5]
        .into_iter()
        .map(|priority| board.create(of(priority), &at(0)).unwrap())
        .collect();
    let mut order = Vec::new();
    while let Some(handed) = dispatch(&mut board, 1).pop() {
        claim(&mut board, &handed, 1);
        board
            .finish(word(&handed), "", Spent::default(), &at(1))
            .unwrap()
            .unwrap();
        order.push(handed.task_id);
    }
    let wanted = [1, 4, 0, 2, 3].map(|n: usize| ids[n].clone());
    assert_eq!(order, wanted);
}

/// The longest description there can be, of signs that a template or a table could trip over.
#[test]
fn a_long_and_ugly_description_is_handed_out_like_any_other() {
    let mut board = board(&[("a", &[])]);
    for sign in ["|", "{{ env.KEY }}", "\n## ", "\u{1b}[2J", "`"] {
        let long = sign.repeat(200_000 / sign.len());
        let id = board
            .create(new(json!({"description": long})), &at(0))
            .unwrap();
        let handed = dispatch(&mut board, 1).remove(0);
        let told = claim(&mut board, &handed, 2);
        assert!(told.contains(&format!("- ID: {id}")));
        board
            .finish(word(&handed), "", Spent::default(), &at(3))
            .unwrap()
            .unwrap();
        assert_eq!(state(&board, &id), State::Done, "{}", sign.escape_debug());
    }
}
