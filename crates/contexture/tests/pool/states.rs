//! What a resource can go through.

use contexture::pool::{Change, NewResource, Pool, PoolError, ResourceType, Status};
use serde_json::json;

use crate::pool::{AT, allocated, does, freed, name, pool, started};

/// Every change that leads somewhere, for task `t`.
fn changes() -> Vec<Change> {
    let id = || name("a");
    let task_id = || "t".to_owned();
    vec![
        allocated("a", "t"),
        started("a", "t"),
        Change::Blocked {
            id: id(),
            task_id: task_id(),
            reason: "waits".into(),
        },
        freed("a", "t"),
        Change::Failed {
            id: id(),
            error: "broke".into(),
        },
        Change::Recovered { id: id() },
        Change::Retired {
            id: id(),
            by_owner: false,
        },
        Change::Restored { id: id() },
    ]
}

fn at(status: Status) -> Pool {
    let task = status.is_held().then_some("t");
    pool(json!([{"id": "a", "status": status, "currentTaskId": task, "capabilities": ["x"]}]))
}

#[test]
fn every_status_and_every_change() {
    let mut table = String::new();
    for status in Status::ALL {
        let mut leads = Vec::new();
        for change in changes() {
            let mut pool = at(status);
            let before = pool.clone();
            let (after, to) = change.leads().unwrap();
            match does(&mut pool, change) {
                Ok(()) => {
                    let now = pool.get("a").unwrap();
                    assert_eq!(now.status(), to);
                    assert_eq!(
                        now.task().is_some(),
                        to.is_held(),
                        "a task has what is held"
                    );
                    leads.push(to.as_str());
                }
                Err(error) => {
                    assert!(
                        matches!(&error, PoolError::Transition { from, .. } if *from == status)
                    );
                    let said = error.to_string();
                    assert!(said.contains(&format!("`{}`", status.as_str())), "{said}");
                    assert!(said.contains(&format!("`{}`", to.as_str())), "{said}");
                    assert!(!after.contains(&status));
                    assert_eq!(pool, before, "what is refused changes nothing");
                }
            }
        }
        leads.sort_unstable();
        table.push_str(&format!("{}: {}\n", status.as_str(), leads.join(", ")));
    }
    insta::assert_snapshot!(table, @r"
    available: deployed, error, released
    deployed: available, blocked, busy, error
    busy: available, blocked, error
    blocked: available, busy, error
    error: available, released
    released: available
    ");
}

#[test]
fn a_refusal_names_both_states_and_the_way() {
    let mut pool = at(Status::Busy);
    let error = does(&mut pool, allocated("a", "u")).unwrap_err();
    insta::assert_snapshot!(error, @"resource `a` cannot go from `busy` to `deployed`");
    insta::assert_snapshot!(error.hint(), @"this way to `deployed` begins at: available");
}

#[test]
fn work_and_errors_are_counted() {
    let mut pool = at(Status::Available);
    for (n, change) in [
        allocated("a", "t"),
        started("a", "t"),
        freed("a", "t"),
        allocated("a", "u"),
        Change::Failed {
            id: name("a"),
            error: "x".repeat(1_000_000),
        },
        Change::Recovered { id: name("a") },
    ]
    .into_iter()
    .enumerate()
    {
        pool.apply(&change.at(format!("{n}"))).unwrap();
    }
    let a = pool.get("a").unwrap();
    assert_eq!(
        (a.total_tasks(), a.completed_tasks(), a.error_count()),
        (2, 1, 1)
    );
    assert_eq!(a.last_error().unwrap().len(), 200);
    assert_eq!(a.to_value()["updatedAt"], "5");
}

/// Attack 39: only the task that has a resource speaks for it.
#[test]
fn another_task_changes_nothing() {
    let mut pool = at(Status::Deployed);
    for change in [started("a", "u"), freed("a", "u")] {
        let error = does(&mut pool, change).unwrap_err();
        let said = "resource `a` works for task `t`, not for task `u`";
        assert_eq!(error.to_string(), said);
    }
    does(&mut pool, freed("a", "t")).unwrap();
    let again = does(&mut pool, freed("a", "t")).unwrap_err();
    assert!(
        matches!(again, PoolError::Transition { .. }),
        "a result that comes again"
    );
}

#[test]
fn only_what_is_available_can_be_removed() {
    for status in Status::ALL {
        let mut pool = at(status);
        let removed = does(&mut pool, Change::Removed { id: name("a") });
        assert_eq!(removed.is_ok(), status == Status::Available);
        assert_eq!(pool.is_empty(), status == Status::Available);
    }
    let mut pool = at(Status::Busy);
    let error = does(&mut pool, Change::Removed { id: name("a") }).unwrap_err();
    insta::assert_snapshot!(error, @"resource `a` is `busy`: only an `available` one can be removed");
}

#[test]
fn an_id_is_there_once_and_a_wrong_one_is_guessed() {
    let mut pool = pool(json!([{"id": "executor-research"}]));
    let twice = Change::Added {
        resource: NewResource::new(name("executor-research"), ResourceType::Tool),
    };
    let error = does(&mut pool, twice).unwrap_err();
    insta::assert_snapshot!(error, @"there is a resource `executor-research` already");
    let error = does(
        &mut pool,
        Change::Retired {
            id: name("executor-reserch"),
            by_owner: true,
        },
    )
    .unwrap_err();
    insta::assert_snapshot!(error, @"there is no resource `executor-reserch`");
    insta::assert_snapshot!(error.hint(), @"did you mean `executor-research`? `ctx pool list` names them all");
}

#[test]
fn a_pool_comes_back_from_its_json() {
    let mut before = at(Status::Blocked);
    let mapped = Change::Mapped {
        capability: name("deploy"),
        tools: [name("shell_exec")].into(),
    };
    before.apply(&mapped.at(AT)).unwrap();
    let value = serde_json::to_value(&before).unwrap();
    assert_eq!(Pool::from_value(value.clone()).unwrap(), before);
    insta::assert_snapshot!(value, @r#"{"resources":[{"id":"a","name":"a","type":"executor","capabilities":[{"type":"x","level":5}],"tools":["x"],"status":"blocked","currentTaskId":"t","totalTasks":0,"completedTasks":0,"errorCount":0}],"capabilityTools":{"deploy":["shell_exec"]}}"#);
}
