//! Spec 003: tasks, from being made to their results.

mod budgets;
mod life;
mod properties;
mod strict;
mod words;

use contexture::pool::{Change, Locale, Name, NewResource, Pool, ResourceType};
use contexture::task::{Board, Handed, NewTask, Now, State, Task, Word};
use serde_json::{Value, json};

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// So many milliseconds after the beginning.
pub fn at(millis: u64) -> Now {
    Now {
        at: format!(
            "2026-11-16T12:00:{:02}.{:03}Z",
            millis / 1_000 % 60,
            millis % 1_000
        ),
        millis,
    }
}

/// A board with executors that can do this.
pub fn board(executors: &[(&str, &[&str])]) -> Board {
    let mut board = Board::default();
    for (id, can) in executors {
        add(&mut board, id, can);
    }
    board
}

pub fn add(board: &mut Board, id: &str, can: &[&str]) {
    let mut resource = NewResource::new(name(id), ResourceType::Executor);
    for capability in can {
        resource = resource.with(name(capability), contexture::pool::Level::MIDDLE);
    }
    board.change(Change::Added { resource }, &at(0).at).unwrap();
}

pub fn new(value: Value) -> NewTask {
    NewTask::from_value(value).unwrap()
}

/// A task that takes this.
pub fn wants(board: &mut Board, capabilities: &[&str]) -> String {
    let task = json!({"description": "do it", "requires": capabilities});
    board.create(new(task), &at(0)).unwrap()
}

pub fn dispatch(board: &mut Board, millis: u64) -> Vec<Handed> {
    board.dispatch(Locale::En, &at(millis)).unwrap()
}

pub fn task<'b>(board: &'b Board, id: &str) -> &'b Task {
    board.tasks().get(id).unwrap()
}

pub fn state(board: &Board, id: &str) -> State {
    task(board, id).state()
}

/// The executor of an attempt begins it.
pub fn claim(board: &mut Board, handed: &Handed, millis: u64) -> String {
    board
        .claim(word(handed), Locale::En, &at(millis))
        .unwrap()
        .unwrap()
}

pub fn word(handed: &Handed) -> Word<'_> {
    Word {
        task: &handed.task_id,
        attempt: handed.attempt,
        by: &handed.executor,
        instance: "one",
    }
}

/// What a log of all that happened says.
pub fn again(board: &mut Board, before: &Board) -> Board {
    let mut read = before.clone();
    for event in board.take_news() {
        let text = serde_json::to_value(&event).unwrap();
        let event = contexture::task::BoardEvent::from_value(text).unwrap();
        read.follow(&event).unwrap();
    }
    read
}

pub fn available(pool: &Pool) -> Vec<&str> {
    let free = pool
        .resources()
        .filter(|r| r.status() == contexture::pool::Status::Available);
    free.map(|resource| resource.id().as_str()).collect()
}
