//! Whatever happens to a pool, what it says of itself is what a look at every resource says.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use contexture::pool::{
    Change, ContextOptions, Level, Locale, Name, NewResource, Outcome, Pool, PoolEvent,
    Requirement, Resource, ResourceType, Status, Task,
};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::pool::{AT, level, name};

const CAPABILITIES: [&str; 6] = [
    "web_search",
    "file_ops",
    "shell_exec",
    "code_generation",
    "x",
    "y",
];
const TOOLS: [&str; 7] = [
    "web_search",
    "read_file",
    "write_file",
    "shell_exec",
    "code_generation_tool",
    "x",
    "y",
];

/// The origin of a row, which orders the catalog: a resource's number, the capability's place there, the capability.
type Row = (usize, usize, Name);

fn id() -> impl Strategy<Value = Name> {
    (0..6_u8).prop_map(|n| name(&format!("r{n}")))
}

fn capability() -> impl Strategy<Value = Name> {
    select(&CAPABILITIES[..]).prop_map(name)
}

fn tool() -> impl Strategy<Value = Name> {
    select(&TOOLS[..]).prop_map(name)
}

fn some_level() -> impl Strategy<Value = Level> {
    (1..=10_u64).prop_map(level)
}

fn task() -> impl Strategy<Value = String> {
    (0..4_u8).prop_map(|n| format!("t{n}"))
}

fn resource() -> impl Strategy<Value = NewResource> {
    (
        id(),
        select(&ResourceType::ALL[..]),
        vec((capability(), some_level()), 0..4),
        option::of(btree_set(tool(), 0..5)),
        btree_set(tool(), 0..2),
    )
        .prop_map(|(id, kind, capabilities, tools, denied)| {
            let agent = kind.is_agent();
            NewResource {
                name: format!("the {id}"),
                id,
                kind,
                capabilities: capabilities.into_iter().collect(),
                tools: tools.filter(|_| agent),
                denied_tools: if agent { denied } else { [].into() },
                worker: agent && kind.does_tasks(),
            }
        })
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => resource().prop_map(|resource| Change::Added { resource }),
        1 => id().prop_map(|id| Change::Removed { id }),
        4 => (id(), task()).prop_map(|(id, task)| Change::Allocated { id, task: Task::new(task) }),
        3 => (id(), task()).prop_map(|(id, task_id)| Change::Started { id, task_id }),
        2 => (id(), task()).prop_map(|(id, task_id)| Change::Blocked { id, task_id, reason: "waits".into() }),
        2 => (id(), task(), any::<bool>()).prop_map(|(id, task_id, completed)| Change::Freed { id, task_id, completed }),
        1 => id().prop_map(|id| Change::Failed { id, error: "broke".into() }),
        1 => id().prop_map(|id| Change::Recovered { id }),
        1 => (id(), any::<bool>()).prop_map(|(id, by_owner)| Change::Retired { id, by_owner }),
        1 => id().prop_map(|id| Change::Restored { id }),
        2 => (id(), tool()).prop_map(|(id, tool)| Change::Granted { id, tool }),
        2 => (id(), tool()).prop_map(|(id, tool)| Change::Revoked { id, tool }),
        1 => id().prop_map(|id| Change::KeyRevoked { id }),
        1 => (capability(), btree_set(tool(), 0..3)).prop_map(|(capability, tools)| Change::Mapped { capability, tools }),
    ]
}

/// A pool that went through some of this, and the events that it took.
fn lived(changes: Vec<Change>) -> (Pool, Vec<PoolEvent>) {
    let mut pool = Pool::default();
    let events = changes.into_iter().map(|change| change.at(AT));
    let taken = events.filter(|event| pool.apply(event).is_ok()).collect();
    (pool, taken)
}

/// The table as it became.
fn table(taken: &[PoolEvent]) -> BTreeMap<Name, BTreeSet<Name>> {
    let row = |(kind, tools): (&str, &[&str])| {
        (name(kind), tools.iter().map(|tool| name(tool)).collect())
    };
    let spec: [(&str, &[&str]); 5] = [
        ("web_search", &["web_search"]),
        ("file_ops", &["read_file", "write_file"]),
        ("code_generation", &["code_generation_tool"]),
        ("shell_exec", &["shell_exec"]),
        ("report_generation", &["report_generator"]),
    ];
    let mut rows: BTreeMap<Name, BTreeSet<Name>> = spec.into_iter().map(row).collect();
    for event in taken {
        if let Change::Mapped { capability, tools } = &event.change {
            rows.insert(capability.clone(), tools.clone());
        }
    }
    rows
}

/// What a resource can do, by the rules as the documentation has them.
fn naive_can(resource: &Resource, rows: &BTreeMap<Name, BTreeSet<Name>>) -> BTreeMap<Name, Level> {
    let declared = resource.declared();
    if !resource.kind().is_agent() {
        return declared.clone().into_iter().collect();
    }
    let tools: Vec<&Name> = resource.tools().collect();
    let mentioned = |tool: &Name| rows.values().any(|tools| tools.contains(tool));
    let mut can = BTreeMap::new();
    for capability in CAPABILITIES.into_iter().chain(TOOLS).map(name) {
        let enough = match rows.get(&capability) {
            Some(needed) => needed.iter().all(|tool| tools.contains(&tool)),
            None => tools.contains(&&capability),
        };
        let given = rows.contains_key(&capability) || !mentioned(&capability);
        match declared.get(&capability) {
            Some(level) if enough => can.insert(capability, *level),
            None if enough && given => can.insert(capability, level(1)),
            _ => None,
        };
    }
    can
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counts_and_catalog_are_what_a_recount_says(changes in vec(change(), 0..60)) {
        let (pool, taken) = lived(changes);
        let rows = table(&taken);
        let all: Vec<&Resource> = pool.resources().collect();
        for status in Status::ALL {
            let recount = all.iter().filter(|resource| resource.status() == status).count();
            prop_assert_eq!(pool.count(status), recount);
        }
        let summary = pool.summary();
        prop_assert_eq!(summary.available + summary.busy + summary.error + summary.released, summary.total_resources);
        for resource in &all {
            prop_assert_eq!(resource.task().is_some(), resource.status().is_held());
            prop_assert!(resource.completed_tasks() <= resource.total_tasks());
            prop_assert_eq!(resource.can(), &naive_can(resource, &rows));
        }

        // Rows as the first that can do it declares them, and in each the resources in the order of registration.
        let mut naive: BTreeMap<Name, (Row, Vec<Name>, usize)> = BTreeMap::new();
        for (number, resource) in all.iter().enumerate().filter(|(_, one)| one.status().is_in_service()) {
            for kind in resource.can().keys() {
                let place = resource.declared().get_index_of(kind).unwrap_or(usize::MAX);
                let first = || ((number, place, kind.clone()), Vec::new(), 0);
                let (_, free, total) = naive.entry(kind.clone()).or_insert_with(first);
                *total += 1;
                if resource.status() == Status::Available {
                    free.push(resource.id().clone());
                }
            }
        }
        let mut naive: Vec<(Row, Vec<Name>, usize)> = naive.into_values().collect();
        naive.sort();
        let naive: Vec<(Name, Vec<Name>, usize)> = naive.into_iter().map(|((_, _, kind), free, total)| (kind, free, total)).collect();
        let catalog: Vec<(Name, Vec<Name>, usize)> = pool.capability_catalog().iter().map(|entry| {
            prop_assert_eq!(entry.available_count(), entry.available().len());
            prop_assert_eq!(entry.resource_count(), entry.resources().count());
            Ok((entry.capability().clone(), entry.available().cloned().collect(), entry.resource_count()))
        }).collect::<Result<_, TestCaseError>>()?;
        prop_assert_eq!(catalog, naive);
    }

    #[test]
    fn who_is_found_is_who_a_look_at_everybody_finds(
        changes in vec(change(), 0..60),
        wanted in vec((capability(), some_level(), option::of(select(&ResourceType::ALL[..])), any::<bool>()), 0..5),
    ) {
        let (pool, _) = lived(changes);
        let wanted: Vec<Requirement> = wanted.into_iter().map(|(capability, min_level, kind, optional)| {
            Requirement { capability, min_level, kind, optional }
        }).collect();
        let matching = pool.matching(&wanted);
        let mut met = true;
        for (requirement, outcome) in wanted.iter().zip(&matching.outcomes) {
            let of_kind = |resource: &&Resource| requirement.kind.is_none_or(|kind| kind == resource.kind());
            let fits = |resource: &&Resource| resource.status() == Status::Available
                && resource.can().get(&requirement.capability).is_some_and(|level| *level >= requirement.min_level);
            let best = pool.resources().filter(of_kind).filter(fits).min_by_key(|resource| {
                (Reverse(resource.can()[&requirement.capability]), resource.error_count(), resource.id())
            });
            match (outcome, best) {
                (Outcome::Found(found), Some(best)) => prop_assert_eq!(&found.resource, best.id()),
                (Outcome::Missing(short), None) => {
                    met &= requirement.optional;
                    let asked = pool.resources().filter(of_kind).filter(|resource| {
                        resource.declared().contains_key(&requirement.capability)
                            || resource.can().contains_key(&requirement.capability)
                    });
                    prop_assert_eq!(short.in_question, asked.count());
                    for candidate in &short.candidates {
                        prop_assert!(!candidate.lacks.is_empty(), "who lacks nothing would have been found");
                    }
                }
                (outcome, best) => prop_assert!(false, "{:?} and {:?}", outcome, best),
            }
        }
        prop_assert_eq!(matching.is_met(), met);
    }

    #[test]
    fn a_log_of_the_events_is_the_pool(changes in vec(change(), 0..60)) {
        let (pool, taken) = lived(changes);
        let mut again = Pool::default();
        for event in &taken {
            let line = serde_json::to_string(event).unwrap();
            let read = PoolEvent::from_value(serde_json::from_str(&line).unwrap()).unwrap();
            prop_assert_eq!(&read, event);
            again.apply(&read).unwrap();
        }
        prop_assert_eq!(&again, &pool);
        let snapshot = serde_json::to_value(&pool).unwrap();
        prop_assert_eq!(&Pool::from_value(snapshot).unwrap(), &pool);
    }

    /// Unchanged pool, unchanged bytes.
    #[test]
    fn what_is_told_does_not_depend_on_the_time(
        changes in vec(change(), 0..60), times in ("[0-9]{1,4}", "[0-9]{1,4}"),
    ) {
        let (pool, taken) = lived(changes);
        let mut later = Pool::default();
        for event in taken {
            later.apply(&event.change.at(times.1.as_str())).unwrap();
        }
        for locale in Locale::ALL {
            let told = |pool: &Pool, now: &str| {
                pool.agent_context(ContextOptions::default(), now).unwrap().render(locale).unwrap()
            };
            prop_assert_eq!(told(&pool, &times.0), told(&later, &times.1));
        }
    }
}
