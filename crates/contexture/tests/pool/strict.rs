//! What is read, and what is refused with its place.

use contexture::pool::{ContextOptions, NewResource, Pool, PoolEvent, Requirement};
use serde_json::{Value, json};

#[track_caller]
fn refused(value: Value, wanted: &str) {
    let error = Pool::from_value(value).unwrap_err();
    assert_eq!(error.to_string(), wanted);
    assert!(!error.hint().is_empty());
}

#[test]
fn errors_name_their_place() {
    refused(
        json!(7),
        "pool: must be a pool or a list of resources, is 7",
    );
    refused(json!({"resource": []}), "resource: is no known key");
    refused(json!([{}]), "resources[0].id: is missing");
    refused(
        json!([{"id": ""}]),
        "resources[0].id: `` cannot be a name: it is empty",
    );
    refused(
        json!([{"id": "a"}, {"id": "b"}, {"id": "a"}]),
        "resources[2].id: `a` stands twice",
    );
    refused(
        json!([{"id": "a", "type": "robot"}]),
        "resources[0].type: unknown type of resource `robot`",
    );
    refused(
        json!([{"id": "a", "status": "idle"}]),
        "resources[0].status: unknown status `idle`",
    );
    refused(
        json!([{"id": "a", "capabilities": ["x", {"type": "y", "level": 11}]}]),
        "resources[0].capabilities[1].level: must be a level from 1 to 10, is 11",
    );
    refused(
        json!([{"id": "a", "capabilities": ["x", {"type": "x"}]}]),
        "resources[0].capabilities[1].type: `x` stands twice",
    );
    refused(
        json!([{"id": "a", "currentTaskId": "t"}]),
        "resources[0].currentTaskId: is set, and the resource is `available`",
    );
    refused(
        json!([{"id": "a", "type": "api", "tools": []}]),
        "resources[0].tools: resource `a` is of type `api`, which holds no tools",
    );
    refused(
        json!({"capabilityTools": {"x": []}}),
        "capabilityTools.x: capability `x` must need a tool",
    );
    let error = Pool::from_value(json!([{"id": "a", "capability": []}])).unwrap_err();
    assert!(
        error
            .hint()
            .starts_with("the nearest known key is `capabilities`")
    );
}

#[test]
fn a_new_resource_has_no_past() {
    let error = NewResource::from_value(json!({"id": "a", "status": "busy"})).unwrap_err();
    insta::assert_snapshot!(error, @"status: is no known key");
}

#[test]
fn events_and_questions_are_read_as_strictly() {
    let event = |value: Value| PoolEvent::from_value(value).unwrap_err().to_string();
    insta::assert_snapshot!(event(json!({"at": "x"})), @"type: is missing or no text");
    insta::assert_snapshot!(event(json!({"type": "resource:eaten", "at": "x"})), @"type: unknown event `resource:eaten`");
    insta::assert_snapshot!(event(json!({"type": "resource:removed", "resourceId": "a"})), @"at: is missing");
    insta::assert_snapshot!(event(json!({"type": "resource:freed", "at": "x", "resourceId": "a", "taskId": "t"})), @"completed: is missing");
    insta::assert_snapshot!(event(json!({"type": "resource:added", "at": "x", "resource": {"id": 1}})), @"resource.id: must be a string, is 1");
    let wanted = Requirement::from_value(json!({"capability": "x", "level": 3})).unwrap_err();
    insta::assert_snapshot!(wanted, @"level: is no known key");
    let task =
        ContextOptions::from_value(json!({"requiredCapabilities": ["a", "b c"]})).unwrap_err();
    insta::assert_snapshot!(task, @"requiredCapabilities[1]: `b c` cannot be a name: it has blanks or control characters");
}
