//! Who gets a task, and where there is nobody, why.

use contexture::pool::{Lack, Outcome, Pool, Requirement, Status};
use serde_json::{Value, json};

use crate::pool::{example, pool};

fn needs(value: Value) -> Vec<Requirement> {
    let Value::Array(all) = value else {
        panic!("a list");
    };
    let read = |one| Requirement::from_value(one).unwrap();
    all.into_iter().map(read).collect()
}

/// Who was found, or what is missing, a line each.
fn outcome(pool: &Pool, wanted: Value) -> String {
    let matching = pool.matching(&needs(wanted));
    let line = |outcome: &Outcome| match outcome {
        Outcome::Found(found) => format!(
            "{}: {} ({})",
            found.capability,
            found.resource,
            found.level.get()
        ),
        Outcome::Missing(short) => format!("missing {short}"),
    };
    let lines: Vec<String> = matching.outcomes.iter().map(line).collect();
    lines.join("\n")
}

#[test]
fn one_resource_may_do_several_things() {
    let pool = example();
    let matching = pool.matching(&needs(json!([
        "web_search",
        "report_generation",
        "file_ops"
    ])));
    assert!(matching.is_met());
    let ids: Vec<&str> = matching.resources().iter().map(|id| id.as_str()).collect();
    assert_eq!(ids, ["executor-general", "executor-research"]);
}

#[test]
fn the_best_then_who_failed_least_then_by_id() {
    let mut pool = pool(json!([
        {"id": "d", "capabilities": [{"type": "x", "level": 9}], "errorCount": 2},
        {"id": "c", "capabilities": [{"type": "x", "level": 9}], "errorCount": 1},
        {"id": "b", "capabilities": [{"type": "x", "level": 9}], "errorCount": 1},
        {"id": "a", "capabilities": [{"type": "x", "level": 8}]},
        {"id": "t", "type": "tool", "capabilities": [{"type": "x", "level": 10}]},
    ]));
    let mut order = Vec::new();
    while let Outcome::Found(found) = &pool.matching(&needs(json!(["x"]))).outcomes[0] {
        order.push(found.resource.as_str().to_owned());
        crate::pool::does(
            &mut pool,
            crate::pool::allocated(found.resource.as_str(), "t"),
        )
        .unwrap();
    }
    assert_eq!(order, ["t", "b", "c", "d", "a"]);
}

#[test]
fn a_type_can_be_asked_for() {
    let pool = pool(json!([
        {"id": "a", "capabilities": [{"type": "x", "level": 2}]},
        {"id": "t", "type": "tool", "capabilities": [{"type": "x", "level": 10}]},
    ]));
    insta::assert_snapshot!(outcome(&pool, json!([
        "x",
        {"capability": "x", "type": "executor"},
        {"capability": "x", "type": "executor", "minLevel": 3},
        {"capability": "x", "type": "reviewer"},
    ])), @r"
    x: t (10)
    x: a (2)
    missing `x` (level 3 or more): `a` has level 2
    missing `x`: nobody declares it
    ");
}

#[test]
fn declared_available_and_authorised_are_three_things() {
    let pool = pool(json!([
        {"id": "busy", "status": "busy", "capabilities": [{"type": "shell_exec", "level": 9}]},
        {"id": "broken", "status": "error", "capabilities": [{"type": "shell_exec", "level": 9}]},
        {"id": "claims", "tools": [], "capabilities": [{"type": "shell_exec", "level": 9}]},
        {"id": "denied", "status": "blocked", "deniedTools": ["shell_exec"],
            "capabilities": [{"type": "shell_exec", "level": 2}]},
        {"id": "poor", "capabilities": [{"type": "shell_exec", "level": 2}]},
        {"id": "other", "capabilities": ["web_search"]},
    ]));
    insta::assert_snapshot!(outcome(&pool, json!([{"capability": "shell_exec", "minLevel": 5}, "fly"])), @r"
    missing `shell_exec` (level 5 or more): `broken` is error; `busy` is busy; `poor` has level 2; `claims` lacks the tool `shell_exec`; `denied` is denied the tool `shell_exec`, has level 2, is blocked
    missing `fly`: nobody declares it
    ");
    let matching = pool.matching(&needs(json!([{"capability": "shell_exec", "minLevel": 5}])));
    let short = matching.shortages().next().unwrap();
    assert_eq!(
        short.candidates[0].lacks,
        [Lack::Available {
            status: Status::Error
        }]
    );
    let value = serde_json::to_value(&short.candidates[3]).unwrap();
    insta::assert_snapshot!(value, @r#"{"resource":"claims","lacks":[{"what":"authorised","missing":["shell_exec"],"denied":[]}]}"#);
}

#[test]
fn what_is_optional_may_be_missing() {
    let pool = example();
    let optional = json!([{"capability": "fly", "optional": true}, "web_search"]);
    let matching = pool.matching(&needs(optional));
    assert!(matching.is_met());
    assert_eq!(matching.shortages().count(), 1);
    assert!(!pool.matching(&needs(json!(["fly", "web_search"]))).is_met());
    assert!(pool.matching(&[]).is_met());
}

#[test]
fn a_shortage_among_thousands_names_a_few() {
    let all: Vec<Value> = (0..2_000)
        .map(|n| json!({"id": format!("r{n:04}"), "status": "busy", "capabilities": ["x"]}))
        .collect();
    let matching = pool(json!(all)).matching(&needs(json!(["x"])));
    let short = matching.shortages().next().unwrap();
    assert_eq!((short.in_question, short.candidates.len()), (2_000, 16));
    let said = short.to_string();
    assert!(said.ends_with("`r0015` is busy; 1984 more"), "{said}");
}
