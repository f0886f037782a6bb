use contexture_model::Usage;
use serde::Serialize;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Ended {
    /// The model had nothing more to do.
    Answered,
    /// It took as many steps as it may.
    MaxSteps,
    /// Somebody stopped it.
    Cancelled,
    /// Its last answer was as long as it may be, and was cut there.
    Length,
    /// The provider withheld the answer.
    Refused,
    /// Another request would have cost more than it may.
    Budget,
    /// It failed: the error says how.
    Failed,
}

/// What came of a run: spec 001's `AgentResult`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentResult {
    /// The run.
    pub run_id: String,
    /// How it ended.
    pub ended: Ended,
    /// Whether it came to an answer and no tool failed.
    pub success: bool,
    /// What the model said last.
    pub text: String,
    /// How many requests were answered.
    pub steps: usize,
    /// The tools that ran, in order.
    pub tool_calls: Vec<ToolRun>,
    /// Whether any of them failed.
    pub had_tool_failure: bool,
    /// Those that did, with the beginning of why.
    pub failures: Vec<Failure>,
    /// What it cost.
    pub usage: Spent,
}

/// A tool that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRun {
    /// The call.
    pub id: String,
    /// The tool, as people call it.
    pub tool: String,
    /// Whether it worked.
    pub success: bool,
    /// What people read of it.
    pub summary: String,
}

/// A tool that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The tool.
    pub tool: String,
    /// The beginning of why.
    pub error: String,
}

/// What a run cost, as far as the provider said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spent {
    /// Tokens of all requests.
    pub input_tokens: u64,
    /// Those of them that came from a cache.
    pub cached_tokens: u64,
    /// Tokens of all replies.
    pub output_tokens: u64,
}

/// The most characters of a failure.
const ERROR: usize = 200;

impl AgentResult {
    pub(crate) fn new(run_id: String) -> Self {
        Self {
            run_id,
            ended: Ended::Failed,
            success: false,
            text: String::new(),
            steps: 0,
            tool_calls: Vec::new(),
            had_tool_failure: false,
            failures: Vec::new(),
            usage: Spent::default(),
        }
    }

    /// Counts a tool that ran.
    pub(crate) fn ran(&mut self, run: ToolRun) {
        if !run.success {
            self.had_tool_failure = true;
            self.failures.push(Failure {
                tool: run.tool.clone(),
                error: run.summary.chars().take(ERROR).collect(),
            });
        }
        self.tool_calls.push(run);
    }

    pub(crate) fn end(&mut self, ended: Ended) {
        self.ended = ended;
        self.success = ended == Ended::Answered && !self.had_tool_failure;
    }
}

impl Spent {
    pub(crate) fn and(&self, more: &Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(more.input_tokens),
            cached_tokens: self.cached_tokens.saturating_add(more.cached_tokens),
            output_tokens: self.output_tokens.saturating_add(more.output_tokens),
        }
    }

    pub(crate) fn add(&mut self, usage: &Usage) {
        // A provider says whatever number it likes.
        let input = usage.input().unwrap_or(0);
        *self = self.and(&Self {
            input_tokens: input,
            cached_tokens: usage.cached().unwrap_or(0).min(input),
            output_tokens: usage.output().unwrap_or(0),
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_more_comes_from_a_cache_than_was_read() {
        let usage = json!({"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 142}});
        let Some(usage) = usage.as_object() else {
            return;
        };
        let mut spent = Spent::default();
        spent.add(&Usage(usage.clone()));
        assert_eq!((spent.input_tokens, spent.cached_tokens), (100, 100));
    }
}
