//! The loop, without I/O: what to do next follows from what happened so far.

use contexture::ToolCall;
use contexture_model::Stop;

use crate::{Budget, Ended};

/// How far a run may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most replies.
    pub max_steps: usize,
    /// How often a request that the provider found too long is made shorter.
    pub max_overflows: usize,
    /// What it may spend.
    pub budget: Budget,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_steps: 30,
            max_overflows: 2,
            budget: Budget::default(),
        }
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Build the request, shorter than the last where the provider said so, and send it.
    Call {
        /// Whether the last one was too long.
        overflow: bool,
    },
    /// Run these calls: one group after another, the calls of a group at the same time.
    Tools(Vec<Vec<ToolCall>>),
    /// It is over.
    Done(Ended),
}

/// A run.
#[derive(Debug, Clone)]
pub struct Run {
    limits: Limits,
    steps: usize,
    overflows: usize,
    next: Next,
}

impl Run {
    /// A run that begins with a call.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            steps: 0,
            overflows: 0,
            next: Next::Call { overflow: false },
        }
    }

    /// What to do next.
    pub fn next(&self) -> &Next {
        &self.next
    }

    /// How many replies there were.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The model replied, with these calls. `alone` says which of them may not run beside others.
    pub fn replied(&mut self, stop: &Stop, calls: &[ToolCall], alone: impl Fn(&ToolCall) -> bool) {
        if self.is_over() {
            return;
        }
        self.steps += 1;
        self.overflows = 0;
        self.next = match (calls, stop) {
            ([], Stop::Paused) => self.again(),
            ([], Stop::Length) => Next::Done(Ended::Length),
            ([], Stop::Refused) => Next::Done(Ended::Refused),
            ([], _) => Next::Done(Ended::Answered),
            // A reply that was cut may end inside a call: what it says is not what was meant.
            (_, Stop::Length) => Next::Done(Ended::Length),
            (_, Stop::Refused) => Next::Done(Ended::Refused),
            (calls, _) => Next::Tools(groups(calls, alone)),
        };
    }

    /// The provider found the request too long. Whether it may be made shorter once more.
    pub fn overflowed(&mut self) -> bool {
        if self.is_over() || self.overflows >= self.limits.max_overflows {
            self.end(Ended::Failed);
            return false;
        }
        self.overflows += 1;
        self.next = Next::Call { overflow: true };
        true
    }

    /// All calls have their results.
    pub fn ran(&mut self) {
        if matches!(self.next, Next::Tools(_)) {
            self.next = self.again();
        }
    }

    /// It ends here, unless it is over already.
    pub fn end(&mut self, ended: Ended) {
        if !self.is_over() {
            self.next = Next::Done(ended);
        }
    }

    fn again(&self) -> Next {
        match self.steps >= self.limits.max_steps {
            true => Next::Done(Ended::MaxSteps),
            false => Next::Call { overflow: false },
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.next, Next::Done(_))
    }
}

/// Calls that may run at the same time, next to each other, in groups; all others alone.
fn groups(calls: &[ToolCall], alone: impl Fn(&ToolCall) -> bool) -> Vec<Vec<ToolCall>> {
    let mut groups: Vec<Vec<ToolCall>> = Vec::new();
    let mut open = false;
    for call in calls {
        let beside = !alone(call);
        match groups.last_mut() {
            Some(group) if open && beside => group.push(call.clone()),
            _ => groups.push(vec![call.clone()]),
        }
        open = beside;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str) -> ToolCall {
        ToolCall::new(name, name, "{}")
    }

    fn limits(max_steps: usize) -> Limits {
        Limits {
            max_steps,
            ..Limits::default()
        }
    }

    #[test]
    fn a_run_calls_runs_tools_and_ends_with_an_answer() {
        let mut run = Run::new(limits(5));
        assert_eq!(run.next(), &Next::Call { overflow: false });
        run.replied(&Stop::Tools, &[call("a")], |_| false);
        assert_eq!(run.next(), &Next::Tools(vec![vec![call("a")]]));
        run.ran();
        assert_eq!(run.next(), &Next::Call { overflow: false });
        run.replied(&Stop::End, &[], |_| false);
        assert_eq!(run.next(), &Next::Done(Ended::Answered));
        assert_eq!(run.steps(), 2);
    }

    #[test]
    fn the_last_step_runs_its_tools_and_makes_no_further_call() {
        let mut run = Run::new(limits(1));
        run.replied(&Stop::Tools, &[call("a")], |_| false);
        assert!(matches!(run.next(), Next::Tools(_)));
        run.ran();
        assert_eq!(run.next(), &Next::Done(Ended::MaxSteps));
    }

    #[test]
    fn two_overflows_in_a_row_and_no_more() {
        let mut run = Run::new(limits(9));
        assert!(run.overflowed());
        assert!(run.overflowed());
        run.replied(&Stop::Tools, &[call("a")], |_| false);
        run.ran();
        assert!(run.overflowed());
        assert!(run.overflowed());
        assert!(!run.overflowed());
        assert_eq!(run.next(), &Next::Done(Ended::Failed));
    }

    #[test]
    fn what_acts_runs_alone_and_in_its_place() {
        let calls = ["r1", "r2", "w", "r3", "w2", "w3"].map(call);
        let mut run = Run::new(limits(9));
        run.replied(&Stop::Tools, &calls, |call| call.name.starts_with('w'));
        let Next::Tools(groups) = run.next() else {
            unreachable!("there are calls");
        };
        let shape: Vec<Vec<&str>> = groups
            .iter()
            .map(|group| group.iter().map(|call| call.name.as_str()).collect())
            .collect();
        assert_eq!(
            shape,
            [
                vec!["r1", "r2"],
                vec!["w"],
                vec!["r3"],
                vec!["w2"],
                vec!["w3"]
            ]
        );
    }

    #[test]
    fn a_reply_that_was_cut_runs_nothing() {
        let mut run = Run::new(limits(9));
        run.replied(&Stop::Length, &[call("a")], |_| false);
        assert_eq!(run.next(), &Next::Done(Ended::Length));
    }

    #[test]
    fn what_is_over_stays_over() {
        let mut run = Run::new(limits(9));
        run.end(Ended::Cancelled);
        run.replied(&Stop::Tools, &[call("a")], |_| false);
        run.ran();
        assert!(!run.overflowed());
        assert_eq!(run.next(), &Next::Done(Ended::Cancelled));
    }
}
