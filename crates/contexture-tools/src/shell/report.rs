//! What is told of a command: to the model all of it, to people a few words.

use super::run::{Ending, Report};
use super::{processes, words};
use crate::Outcome;
use contexture::text::hidden::legible;

/// The most characters of a command in a summary.
const COMMAND: usize = 120;

impl Report {
    pub fn outcome(self, command: &str, sandboxed: bool) -> Outcome {
        let ending = match self.ending {
            Ending::Exited(code) => words::exited(code),
            Ending::Killed(signal) => words::killed(signal),
            Ending::TimedOut(seconds) => words::timed_out(seconds),
            Ending::TooManyProcesses => words::too_many(processes::MOST),
            Ending::TooMuchOutput => words::too_much(self.largest),
        };
        let mut lines = vec![ending];
        lines.extend(self.notes);
        if !sandboxed {
            lines.push(words::UNSANDBOXED.to_owned());
        }
        let summary = summary(command, &lines, &[&self.stdout, &self.stderr]);
        for (label, text) in [("stdout:", &self.stdout), ("stderr:", &self.stderr)] {
            if !text.is_empty() {
                lines.push(label.to_owned());
                lines.push(text.trim_end_matches('\n').to_owned());
            }
        }
        if self.stdout.is_empty() && self.stderr.is_empty() {
            lines.push(words::NO_OUTPUT.to_owned());
        }
        let text = lines.join("\n");
        let outcome = match self.ending {
            Ending::Exited(0) => Outcome::done(text),
            _ => Outcome::failed(text),
        };
        outcome.saying(summary)
    }
}

/// The command, how it ended, and the beginning of what it printed. Safe to show on a terminal.
fn summary(command: &str, lines: &[String], outputs: &[&str]) -> String {
    let mut first = command.trim().lines();
    let mut shown: String = first
        .next()
        .unwrap_or_default()
        .chars()
        .take(COMMAND)
        .collect();
    if shown.len() < command.trim().len() {
        shown.push('…');
    }
    let outputs = outputs
        .iter()
        .map(|text| text.trim())
        .filter(|text| !text.is_empty());
    let lines = lines.iter().map(String::as_str).chain(outputs);
    let all = format!("$ {shown}\n{}", lines.collect::<Vec<_>>().join("\n"));
    legible(&all).replace('\t', " ")
}
