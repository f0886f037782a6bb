use contexture::task::{BoardEvent, NewTask, TaskError};
use serde_json::{Value, json};

use crate::task::{at, board, new};

#[track_caller]
fn refused(value: Value, wanted: &str) {
    let error = NewTask::from_value(value).unwrap_err();
    assert_eq!(error.to_string(), wanted);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    refused(json!({}), "description: is missing");
    refused(
        json!({"description": 1}),
        "description: must be a string, is 1",
    );
    refused(
        json!({"description": "x", "prio": 1}),
        "prio: is no known key",
    );
    refused(
        json!({"description": "x", "requires": ["a", {"capability": "b", "minLevel": 11}]}),
        "requires[1].minLevel: must be a level from 1 to 10, is 11",
    );
    refused(
        json!({"description": "x", "limits": {"maxTokens": -1}}),
        "limits.maxTokens: must be a whole number of 0 or more, is -1",
    );
    refused(
        json!({"description": "x", "id": "a b"}),
        "id: `a b` cannot be a name: it has blanks or control characters",
    );
}

#[test]
fn what_cannot_be_done_is_not_made() {
    let mut board = board(&[]);
    let mut create = |value: Value| board.create(new(value), &at(0));
    let nothing = create(json!({"description": " \n"})).unwrap_err();
    assert_eq!(nothing.to_string(), "a task needs a description");
    let long = create(json!({"description": "x".repeat(200_001)})).unwrap_err();
    assert!(long.to_string().contains("at most 200000 bytes"), "{long}");
    let never = create(json!({"description": "x", "limits": {"attempts": 0}})).unwrap_err();
    assert!(never.to_string().contains("from 1 to 100"));
    for seconds in [0, 604_801, u64::MAX] {
        let limits = json!({"seconds": seconds});
        let endless = create(json!({"description": "x", "limits": limits})).unwrap_err();
        assert!(endless.to_string().contains("from 1 to 604800"));
    }
    let orphan = create(json!({"description": "x", "parent": "task-7"})).unwrap_err();
    assert!(matches!(orphan, TaskError::Unknown { .. }));
    let mut parent = create(json!({"description": "x"})).unwrap();
    for _ in 0..15 {
        parent = create(json!({"description": "x", "parent": parent})).unwrap();
    }
    let deep = create(json!({"description": "x", "parent": parent})).unwrap_err();
    assert_eq!(deep.to_string(), "tasks stand too deep in tasks");
}

#[test]
fn the_same_twice_is_one() {
    let mut board = board(&[]);
    let mut create = |value: Value| board.create(new(value), &at(0));
    let same = json!({"id": "mine", "description": "x", "requires": ["a"]});
    assert_eq!(create(same.clone()).unwrap(), "mine");
    assert_eq!(create(same).unwrap(), "mine");
    let other = create(json!({"id": "mine", "description": "y"})).unwrap_err();
    assert_eq!(other, TaskError::Exists { id: "mine".into() });
    assert_eq!(
        create(json!({"id": "task-2", "description": "x"})).unwrap(),
        "task-2"
    );
    assert_eq!(
        create(json!({"description": "x"})).unwrap(),
        "task-3",
        "none that is taken"
    );
    assert_eq!(board.tasks().len(), 3);
}

#[test]
fn events_are_read_strictly() {
    let read = |value: Value| BoardEvent::from_value(value).map_err(|error| error.to_string());
    let unknown = read(json!({"type": "task:sung", "at": "x"})).unwrap_err();
    assert_eq!(unknown, "type: unknown event `task:sung`");
    let more = json!({"type": "task:cancelled", "at": "x", "taskId": "a", "why": "b", "who": "c"});
    assert_eq!(read(more).unwrap_err(), "who: is no known key");
}
