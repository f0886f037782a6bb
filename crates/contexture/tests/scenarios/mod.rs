//! Small sessions, and what the model sees of each: a line a message, then what was left out.

mod diff;
mod hidden;
mod injected;
mod ladder;
mod local;
mod manager;
mod message_limit;
mod pairs;
mod rules;
mod summaries;
mod system_side;
mod undone;

use crate::common::scenario::Scenario;

/// About `tokens` tokens of text that begins with `start`.
fn long(start: &str, tokens: usize) -> String {
    format!("{start}{}", " word".repeat(tokens))
}

/// A task with three tools' results, the first two large.
fn work(scenario: Scenario) -> Scenario {
    scenario
        .system("You are terse.")
        .user("Fix the build in src/main.rs")
        .tool("call_1", &long("one", 300))
        .tool("call_2", &long("two", 300))
        .tool("call_3", "three")
        .assistant("Found it: a missing import.")
        .user("And now the tests")
}

/// Short requests with long answers, of about 160 tokens together.
fn tasks(mut scenario: Scenario, tasks: usize) -> Scenario {
    for n in 0..tasks {
        scenario = scenario
            .user(&format!("Fix src/file_{n}.rs"))
            .assistant(&long(&format!("Fixed {n}"), 140));
    }
    scenario
}
