//! Fault F12 at its worst: workers, broker, database and dispatcher are killed while a thousand tasks run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_store::{BoardLog, From, Key, Kind, Log, PgLog, PgOptions, Stream};
use serde_json::{Value, json};

use crate::common::Project;
use crate::nats_server::NatsServer;
use crate::postgres_server::Server;
use crate::work::scene::Daemon;
use crate::work::{Worker, workers};

const TASKS: usize = 1_000;
const WORKERS: usize = 6;

struct World<'a> {
    daemon: Daemon,
    nats: NatsServer,
    server: &'a Server,
    workers: Vec<Worker>,
    env: Vec<(String, String)>,
    random: u64,
    killed: BTreeMap<&'static str, usize>,
}

impl World<'_> {
    fn worker(&self, n: usize) -> Worker {
        let id = format!("w{n}");
        let args = [
            "worker",
            "--json",
            "--id",
            &id,
            "--capability",
            "work",
            "--command",
            "cat",
        ];
        let ctx = self.daemon.project.ctx(&args);
        let ctx = self
            .env
            .iter()
            .fold(ctx, |ctx, (name, value)| ctx.env(name, value));
        Worker::start(&ctx)
    }

    fn next(&mut self, below: usize) -> usize {
        // xorshift: the same run again needs only the seed.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % below as u64) as usize
    }

    /// Kills something, and starts it again.
    fn kill(&mut self) {
        let what = match self.next(10) {
            0 => {
                self.nats.stop();
                std::thread::sleep(Duration::from_millis(300));
                self.nats.restart();
                "broker"
            }
            1 => {
                assert!(self.server.crash());
                std::thread::sleep(Duration::from_millis(300));
                self.server.start_again();
                "database"
            }
            2 => {
                self.daemon.kill();
                self.daemon.again();
                "dispatcher"
            }
            _ => {
                let n = self.next(WORKERS);
                self.workers[n].kill();
                self.workers[n] = self.worker(n);
                "workers"
            }
        };
        *self.killed.entry(what).or_default() += 1;
    }

    /// Has a task made, however often it takes: the same id twice is one task.
    fn dispatch(&mut self, n: usize) {
        let task = json!({
            "id": format!("t{n}"), "description": format!("number {n}"), "requires": ["work"],
            "limits": {"attempts": 50, "seconds": 60},
        });
        for _ in 0..100 {
            let said = self
                .daemon
                .call(&self.daemon.secret(), "task.dispatch", &task);
            if said.get("result").is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        panic!("t{n} was never taken");
    }

    fn states(&self) -> Option<BTreeMap<String, usize>> {
        let said = self
            .daemon
            .call(&self.daemon.secret(), "task.list", &json!({}));
        let mut states = BTreeMap::new();
        for task in said["result"]["tasks"].as_array()? {
            *states
                .entry(task["state"].as_str()?.to_owned())
                .or_default() += 1;
        }
        Some(states)
    }
}

// needs: nats
// needs: postgres
#[test]
fn a_thousand_tasks_while_everything_is_killed() {
    let (Some(nats), Some(server)) = (NatsServer::get(), Server::get()) else {
        return;
    };
    if server.port().is_none() {
        println!("skipped: the server of CONTEXTURE_TEST_POSTGRES is not ours to end");
        return;
    }
    let database = server.database();
    let env = vec![
        ("CONTEXTURE_HUB_URL".to_owned(), nats.url()),
        ("CONTEXTURE_STORE_URL".to_owned(), database.url()),
    ];
    let borrowed: Vec<(&str, &str)> = env.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let daemon = Daemon::with(workers::patient(Project::new()), &borrowed);
    let mut world = World {
        daemon,
        nats,
        server: &server,
        workers: Vec::new(),
        env: env.clone(),
        random: 0x9E37_79B9_7F4A_7C15,
        killed: BTreeMap::new(),
    };
    for n in 0..WORKERS {
        let worker = world.worker(n);
        world.workers.push(worker);
    }
    let began = Instant::now();
    for n in 0..TASKS {
        world.dispatch(n);
        if n % 40 == 39 {
            world.kill();
        }
    }
    let end = Instant::now() + Duration::from_secs(300);
    let mut last = Instant::now();
    while world
        .states()
        .is_none_or(|states| states.get("done") != Some(&TASKS))
    {
        assert!(Instant::now() < end, "{:?}", world.states());
        if last.elapsed() > Duration::from_secs(3) && world.killed.values().sum::<usize>() < 50 {
            world.kill();
            last = Instant::now();
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let took = began.elapsed();
    let log: Arc<dyn Log> =
        Arc::new(PgLog::connect(&database.url(), PgOptions::default()).unwrap());
    let counts = check(&log);
    println!(
        "{TASKS} tasks in {took:.1?}; killed: {:?}; {counts}",
        world.killed
    );
}

/// What the log says: each task was finished once, and nobody is held for any of them.
fn check(log: &Arc<dyn Log>) -> String {
    let key = Key::new("main").unwrap();
    let stream = Stream::new(Kind::Pool, key.clone());
    let (mut finished, mut attempts) = (BTreeSet::new(), 0);
    for record in log.read(&stream, From::Start).unwrap() {
        let event: Value = serde_json::from_str(record.unwrap().text()).unwrap();
        attempts += usize::from(event["type"] == "task:dispatched");
        if event["type"] == "task:finished" {
            let id = event["taskId"].as_str().unwrap().to_owned();
            let number = id.trim_start_matches('t');
            assert_eq!(event["result"], format!("number {number}"));
            assert!(finished.insert(id), "acknowledged twice: {event}");
        }
    }
    assert_eq!(finished.len(), TASKS, "none is lost");
    let loaded = BoardLog::new(Arc::clone(log), key).load().unwrap();
    assert_eq!(loaded.oddities, [""; 0]);
    let held = loaded
        .board
        .pool()
        .resources()
        .filter(|r| r.status().is_held())
        .count();
    assert_eq!(held, 0, "the pool is as it should be");
    format!("{attempts} attempts, {} more than tasks", attempts - TASKS)
}
