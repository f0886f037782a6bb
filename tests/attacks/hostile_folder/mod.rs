//! 42, 43 and 52 as a class: thousands of hostile folders that nobody trusts, every command of `ctx` in them, and a tracer
//! that sees what they do. No program is started, nothing is connected to, and nothing is written or removed outside the
//! folder and the user's own places.

mod commands;
mod config;
mod forms;
mod plants;
mod rules;
mod run;
mod trace;
mod variant;
mod world;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{FlockOperation, flock};

use self::commands::{ACTING, Line, TABLE};
use self::config::Key;
use self::run::{Place, tracer_missing};
use self::variant::Variant;
use self::world::World;
use crate::common::ctx;

/// How many folders are drawn at random, and how many commands are tried in each folder that has one oddity.
const DRAWN: u64 = 60;
const SAMPLE: usize = 1;
/// The form with thousands of random folders: how many.
const LONG: &str = "CONTEXTURE_HOSTILE";
const LONG_SAMPLE: usize = 12;
/// How far apart the commands are that are tried one after the other.
const STEP: usize = 37;
const _: () = assert!(
    !TABLE.len().is_multiple_of(STEP),
    "some commands would never be tried"
);

/// What commands did that they may not do: how often, and where first.
type Found = Mutex<BTreeMap<String, (usize, String)>>;

/// The folders, and the commands that are tried in each, in an order that does not depend on who asks.
struct Plan {
    whole: Vec<Variant>,
    telling: Vec<Variant>,
    single: Vec<Variant>,
    keys: Vec<Key>,
    drawn: u64,
    sample: usize,
}

// needs: strace
#[test]
fn no_command_acts_for_a_folder_that_nobody_trusts() {
    if tracer_missing() {
        return;
    }
    let long: Option<u64> = std::env::var(LONG).ok().and_then(|many| many.parse().ok());
    let (drawn, sample) = long.map_or((DRAWN, SAMPLE), |many| (many, LONG_SAMPLE));
    let schema = ctx(&["config", "schema"]).json();
    let workers = std::thread::available_parallelism()
        .map_or(2, usize::from)
        .max(2);
    let (next, found, runs) = (AtomicUsize::new(0), Found::default(), AtomicUsize::new(0));
    let folders = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                let mut world = World::new();
                let plan = Plan::new(&world, config::keys(&schema), drawn, sample);
                folders.store(plan.folders(), Ordering::Relaxed);
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some((variant, lines)) = plan.job(n, &world) else {
                        break;
                    };
                    for (m, line) in lines.into_iter().enumerate() {
                        runs.fetch_add(1, Ordering::Relaxed);
                        let breaches = attempt(&mut world, &variant, line, &format!("p{n}-{m}"));
                        note(&found, &variant, line, breaches);
                    }
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    println!(
        "hostile folders: {} command lines, {} folders, {} runs traced, {} kinds of breach",
        TABLE.len(),
        folders.load(Ordering::Relaxed),
        runs.load(Ordering::Relaxed),
        found.len()
    );
    let shown = |(what, (times, first)): (String, (usize, String))| {
        format!("{times:4} × {what}\n       first: {first}")
    };
    let all: Vec<String> = found.into_iter().map(shown).collect();
    assert!(all.is_empty(), "\n{}", all.join("\n"));
}

impl Plan {
    fn new(world: &World, keys: Vec<Key>, drawn: u64, sample: usize) -> Self {
        let bait = &world.bait;
        Self {
            whole: Variant::whole(&keys, bait),
            telling: Variant::telling(bait),
            single: Variant::single(&keys, bait),
            keys,
            drawn,
            sample,
        }
    }

    fn folders(&self) -> usize {
        self.whole.len() + self.telling.len() + self.single.len() + self.drawn as usize
    }

    /// A folder, and the commands that are tried in it: all, those that act, or by turns.
    fn job(&self, n: usize, world: &World) -> Option<(Variant, Vec<&'static Line>)> {
        // One job for each command, so that all workers have some.
        if let Some(variant) = self.whole.get(n / TABLE.len()) {
            return Some((variant.clone(), vec![&TABLE[n % TABLE.len()]]));
        }
        let n = n - self.whole.len() * TABLE.len();
        if let Some(variant) = self.telling.get(n) {
            let acting = TABLE.iter().filter(|line| ACTING.contains(&line.command));
            return Some((variant.clone(), acting.collect()));
        }
        let n = n - self.telling.len();
        let lines = (0..self.sample)
            .map(|m| &TABLE[(n * self.sample + m) * STEP % TABLE.len()])
            .collect();
        if let Some(variant) = self.single.get(n) {
            return Some((variant.clone(), lines));
        }
        let number = (n - self.single.len()) as u64;
        (number < self.drawn).then(|| (Variant::drawn(number, &self.keys, &world.bait), lines))
    }
}

/// Runs a command in a new folder of this kind.
fn attempt(world: &mut World, variant: &Variant, line: &Line, name: &str) -> Vec<String> {
    let project = world.base.join(name);
    variant.plant(&project, &world.bait);
    let lock = variant
        .held
        .then(|| fs::File::open(project.join(".contexture/daemon.lock")).ok())
        .flatten();
    if let Some(lock) = &lock {
        let _ = flock(lock, FlockOperation::NonBlockingLockExclusive);
    }
    let mut breaches = Place {
        world,
        project: project.clone(),
    }
    .breaches(line);
    breaches.extend(world.harm());
    world.forget();
    let _ = fs::remove_dir_all(project);
    breaches
}

/// Keeps one of each kind.
fn note(found: &Found, variant: &Variant, line: &Line, breaches: Vec<String>) {
    for breach in breaches {
        let kind = breach.split(['(', ':', '-']).next().unwrap_or_default();
        let key = format!("ctx {}: {kind}", line.command);
        let first = format!(
            "{}: ctx {} {}: {breach}",
            variant.name,
            line.command,
            line.args.join(" ")
        );
        let mut found = found.lock().unwrap();
        found.entry(key).or_insert((0, first)).0 += 1;
    }
}
