//! Taking and letting go.

use contexture::pool::{Allocation, Pool, Requirement, Status, Task};

use crate::pool::{AT, example, name};

fn needs(names: &[&str]) -> Vec<Requirement> {
    names
        .iter()
        .map(|text| Requirement::of(name(text)))
        .collect()
}

fn take(pool: &mut Pool, task: &str, wanted: &[&str]) -> Allocation {
    let allocation = pool.allocate(&Task::new(task), &needs(wanted), AT);
    if let Allocation::Taken { events, .. } = &allocation {
        for event in events {
            pool.apply(event).unwrap();
        }
    }
    allocation
}

#[test]
fn all_that_a_task_needs_or_nothing() {
    let mut pool = example();
    let before = pool.clone();
    assert!(matches!(
        take(&mut pool, "t", &["web_search", "fly"]),
        Allocation::Short(_)
    ));
    assert_eq!(pool, before);
    // The others go on.
    assert!(matches!(
        take(&mut pool, "u", &["web_search"]),
        Allocation::Taken { .. }
    ));
    assert_eq!(
        pool.get("executor-research").unwrap().status(),
        Status::Deployed
    );
}

#[test]
fn asking_again_takes_nothing_more() {
    let mut pool = example();
    take(&mut pool, "t", &["web_search", "file_ops"]);
    let before = pool.clone();
    let again = take(&mut pool, "t", &["web_search", "file_ops"]);
    let both = ["executor-general", "executor-research"].map(name).to_vec();
    assert_eq!(again, Allocation::Already(both));
    assert_eq!(pool, before);
}

#[test]
fn what_a_task_had_is_free_when_it_lets_go() {
    let mut pool = example();
    take(&mut pool, "t", &["web_search", "file_ops"]);
    assert_eq!(pool.held_by("t").count(), 2);
    for event in pool.release("t", true, AT) {
        pool.apply(&event).unwrap();
    }
    assert_eq!(pool.held_by("t").count(), 0);
    assert_eq!(pool.count(Status::Available), 3);
    assert!(pool.release("t", true, AT).is_empty(), "once");
    assert_eq!(pool.get("executor-general").unwrap().completed_tasks(), 1);
}
