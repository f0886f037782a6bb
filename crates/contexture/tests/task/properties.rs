//! Whatever happens to a board, its tasks and its pool agree, and a log of it says the same.

use contexture::pool::Locale;
use contexture::task::{Board, Handed, Spent, State, Word};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::json;

use crate::task::{again, at, board, name, new};

const WORKERS: [&str; 4] = ["a", "b", "c", "d"];
const CAN: [&str; 3] = ["web_search", "file_ops", "shell_exec"];

#[derive(Debug, Clone)]
enum Act {
    Create(
        Vec<&'static str>,
        Option<Index>,
        Option<u64>,
        Option<&'static str>,
    ),
    Dispatch,
    Claim(Index, u8),
    Finish(Index, u8, u64),
    Fail(Index, u8, bool),
    Lost(&'static str),
    Join(&'static str),
    Leave(&'static str),
    Cancel(Index),
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let worker = || select(&WORKERS[..]);
    let capabilities = vec(select(&CAN[..]), 0..3);
    let limit = prop_oneof![Just(None), (0..200_u64).prop_map(Some)];
    prop_oneof![
        4 => (capabilities, any::<Option<Index>>(), limit, proptest::option::of(worker()))
            .prop_map(|(can, of, most, to)| Act::Create(can, of, most, to)),
        6 => Just(Act::Dispatch),
        5 => (any::<Index>(), 0..2_u8).prop_map(|(which, who)| Act::Claim(which, who)),
        4 => (any::<Index>(), 0..2_u8, 0..50_u64).prop_map(|(which, who, n)| Act::Finish(which, who, n)),
        2 => (any::<Index>(), 0..2_u8, any::<bool>()).prop_map(|(which, who, again)| Act::Fail(which, who, again)),
        1 => worker().prop_map(Act::Lost),
        2 => worker().prop_map(Act::Join),
        1 => worker().prop_map(Act::Leave),
        1 => any::<Index>().prop_map(Act::Cancel),
        1 => (0..2_000_000_u64).prop_map(Act::Wait),
    ]
}

struct World {
    board: Board,
    handed: Vec<Handed>,
    now: u64,
    done: Vec<(String, String)>,
}

impl World {
    fn does(&mut self, act: &Act) {
        let now = at(self.now);
        let board = &mut self.board;
        let instances = ["one", "two"];
        let pick = |handed: &[Handed], which: &Index| match handed.is_empty() {
            true => None,
            false => Some(which.get(handed).clone()),
        };
        match act {
            Act::Create(requires, of, most, to) => {
                let ids: Vec<String> = board.tasks().iter().map(|t| t.id().to_owned()).collect();
                let parent = of
                    .filter(|_| !ids.is_empty())
                    .map(|of| of.get(&ids).clone());
                let task = json!({
                    "description": "x", "requires": requires, "parent": parent, "to": to,
                    "limits": {"maxTokens": most, "seconds": 60},
                });
                let _ = board.create(new(task), &now);
            }
            Act::Dispatch => self
                .handed
                .extend(board.dispatch(Locale::En, &now).unwrap()),
            Act::Claim(which, who) => {
                if let Some(handed) = pick(&self.handed, which) {
                    let _ = board
                        .claim(word(&handed, instances[*who as usize]), Locale::En, &now)
                        .unwrap();
                }
            }
            Act::Finish(which, who, tokens) => {
                if let Some(handed) = pick(&self.handed, which) {
                    let spent = Spent {
                        tokens: *tokens,
                        cost_micros: 0,
                    };
                    let result = format!("{} {}", handed.attempt, self.now);
                    let said = board.finish(
                        word(&handed, instances[*who as usize]),
                        &result,
                        spent,
                        &now,
                    );
                    if said.unwrap().is_ok() {
                        self.done.push((handed.task_id, result));
                    }
                }
            }
            Act::Fail(which, who, retry) => {
                if let Some(handed) = pick(&self.handed, which) {
                    let word = word(&handed, instances[*who as usize]);
                    let _ = board
                        .fail(word, "no", *retry, Spent::default(), &now)
                        .unwrap();
                }
            }
            Act::Lost(who) => drop(board.lost(&name(who), "lost", &now).unwrap()),
            Act::Join(who) => {
                let is = board.pool().get(who).unwrap().is().clone();
                board.join(&is, &now).unwrap();
            }
            Act::Leave(who) => drop(board.leave(&name(who), false, &now).unwrap()),
            Act::Cancel(which) => {
                let ids: Vec<String> = board.tasks().iter().map(|t| t.id().to_owned()).collect();
                if !ids.is_empty() {
                    let _ = board.cancel(which.get::<String>(&ids), "enough", &now);
                }
            }
            Act::Wait(millis) => {
                self.now += millis;
                board.overdue(&at(self.now)).unwrap();
            }
        }
    }

    fn check(&self) {
        let (tasks, pool) = (self.board.tasks(), self.board.pool());
        for resource in pool.resources() {
            let task = resource.task().map(|id| tasks.get(id).unwrap());
            assert_eq!(resource.status().is_held(), task.is_some());
            if let Some(task) = task {
                assert!(
                    task.state().is_out(),
                    "{} holds {}",
                    task.id(),
                    resource.id()
                );
            }
        }
        for task in tasks.iter() {
            let held = pool.held_by(task.id()).count();
            assert_eq!(
                task.state().is_out(),
                held > 0,
                "{}: {:?}",
                task.id(),
                task.state()
            );
            if task.state().is_out() {
                assert!(
                    pool.held_by(task.id())
                        .any(|r| Some(r.id()) == task.executor())
                );
            }
            assert_eq!(task.result().is_some(), task.state() == State::Done);
            // What parts may spend, with what was spent, is within the whole, as far as executors kept to it.
            if let Some(most) = task.limits().max_tokens {
                for part in tasks.parts(task.id()) {
                    assert!(part.limits().max_tokens.is_some_and(|of| of <= most));
                }
            }
            let below: u64 = tasks.parts(task.id()).map(|part| part.used().tokens).sum();
            assert_eq!(task.used().tokens, task.spent().tokens + below);
        }
        for (id, result) in &self.done {
            assert_eq!(
                tasks.get(id).unwrap().result(),
                Some(result.as_str()),
                "the first stays"
            );
        }
    }
}

fn word<'a>(handed: &'a Handed, instance: &'a str) -> Word<'a> {
    Word {
        instance,
        ..crate::task::word(handed)
    }
}

proptest! {
    #[test]
    fn tasks_and_pool_agree_whatever_happens(acts in vec(act(), 1..60)) {
        let workers = [("a", &CAN[..1]), ("b", &CAN[..2]), ("c", &CAN[1..]), ("d", &CAN[..0])];
        let mut board = board(&workers);
        board.take_news();
        let empty = board.clone();
        let mut world = World { board, handed: Vec::new(), now: 0, done: Vec::new() };
        for act in &acts {
            world.does(act);
            world.check();
        }
        let read = again(&mut world.board, &empty);
        prop_assert_eq!(read.pool(), world.board.pool());
        let all = |board: &Board| board.tasks().iter().cloned().collect::<Vec<_>>();
        prop_assert_eq!(all(&read), all(&world.board));
    }
}
