//! A large pool: its catalog, a match and what an agent is told of it, against one pass over all that its
//! resources can do.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use contexture::pool::{
    Change, ContextOptions, Level, Locale, Name, NewResource, Pool, Requirement, Resource,
    ResourceType, Task,
};
use contexture_benches::{Bar, asked, compare, note, row};

const RUNS: usize = 51;
const RESOURCES: usize = 10_000;
const CAPABILITIES: usize = 50;

fn main() {
    if !asked("pool: what is asked of 10,000 resources : one pass over what they can do") {
        return;
    }
    for each in [5, CAPABILITIES] {
        measure(each);
    }
}

fn measure(each: usize) {
    let pool = pool(each);
    let pass = || {
        let levels = pool.resources().flat_map(|one| one.can().values());
        levels.map(|level| usize::from(level.get())).sum::<usize>()
    };
    let things: usize = pool.resources().map(|one| one.can().len()).sum();
    note(&format!(
        "{} resources, each with {each} of {CAPABILITIES} capabilities: {things} in all",
        pool.len()
    ));
    let known = |n: usize| Requirement::of(name("capability", n));
    let (found, missing) = (
        known(3),
        Requirement {
            min_level: Level::MOST,
            ..known(3)
        },
    );
    let busy = pool.resources().find_map(Resource::task).map(str::to_owned);
    let told = || {
        let options = ContextOptions {
            task_id: busy.clone(),
            ..ContextOptions::default()
        };
        let context = pool.agent_context(options, "2026-11-15T12:00:00.000Z");
        context.unwrap().render(Locale::En).unwrap()
    };
    let show = |what: &str, (a, b)| row(what, a, b, Bar::None);
    show(
        "catalog : pass",
        compare(RUNS, || pool.capability_catalog().len(), pass),
    );
    show(
        "match of one that is there : pass",
        compare(RUNS, || pool.matching(std::slice::from_ref(&found)), pass),
    );
    show(
        "match of one that is not, and why : pass",
        compare(RUNS, || pool.matching(std::slice::from_ref(&missing)), pass),
    );
    show("what an agent is told : pass", compare(RUNS, told, pass));
    let mut changed = pool.clone();
    let id = name("resource", 7);
    let there_and_back = || {
        let task = Task::new("t");
        let task_id = task.task_id.clone();
        let taken = Change::Allocated {
            id: id.clone(),
            task,
        };
        let freed = Change::Freed {
            id: id.clone(),
            task_id,
            completed: true,
        };
        changed.apply(&taken.at("1")).unwrap();
        changed.apply(&freed.at("2")).unwrap();
    };
    show(
        "taken and let go : pass",
        compare(RUNS, there_and_back, pass),
    );
}

/// Every third is taken.
fn pool(each: usize) -> Pool {
    let mut pool = Pool::default();
    for n in 0..RESOURCES {
        let id = name("resource", n);
        let mut resource = NewResource::new(id.clone(), ResourceType::Executor);
        for place in 0..each {
            let level = Level::new(1 + ((n * 7 + place * 3) % 9) as u64).unwrap();
            resource = resource.with(name("capability", (n + place) % CAPABILITIES), level);
        }
        pool.apply(&Change::Added { resource }.at("0")).unwrap();
        if n % 3 == 0 {
            let task = Task::new(format!("task-{n}"));
            pool.apply(&Change::Allocated { id, task }.at("0")).unwrap();
        }
    }
    pool
}

fn name(what: &str, n: usize) -> Name {
    Name::new(&format!("{what}-{n}")).unwrap()
}
