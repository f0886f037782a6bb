use serde::Serialize;

use super::Tasks;

/// How far a task may go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// The most tokens, of all requests and replies. Zero is zero: then no model is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The most money, in millionths of a dollar. Zero is zero: then only what is free is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_micros: Option<u64>,
    /// How long an attempt may take, from when it is handed out.
    pub seconds: u64,
    /// How often it is tried.
    pub attempts: u32,
}

impl Limits {
    /// How long an attempt may take, unless somebody says so.
    pub const SECONDS: u64 = 900;
    /// How often a task is tried, unless somebody says so.
    pub const ATTEMPTS: u32 = 3;
    /// The longest time for an attempt: a week.
    pub const MAX_SECONDS: u64 = 7 * 24 * 60 * 60;
    /// The most attempts at a task.
    pub const MAX_ATTEMPTS: u32 = 100;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_tokens: None,
            max_cost_micros: None,
            seconds: Self::SECONDS,
            attempts: Self::ATTEMPTS,
        }
    }
}

/// What was spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spent {
    /// Tokens of requests and replies.
    pub tokens: u64,
    /// Money, in millionths of a dollar.
    pub cost_micros: u64,
}

impl Spent {
    /// Both together.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(more.tokens),
            cost_micros: self.cost_micros.saturating_add(more.cost_micros),
        }
    }
}

impl Tasks {
    /// What is left of a task's limits for itself and for new parts of it: what it spent is gone, what its ended
    /// parts spent is gone, and what a part that is not over may spend is set aside for it.
    pub fn left(&self, id: &str) -> Limits {
        let Some(task) = self.get(id) else {
            return Limits::default();
        };
        let limits = task.limits().clone();
        if limits.max_tokens.is_none() && limits.max_cost_micros.is_none() {
            return limits;
        }
        let mut taken = task.spent();
        for part in self.parts(id) {
            let used = part.used();
            let may = |limit: Option<u64>, used: u64| match part.state().is_over() {
                true => used,
                false => limit.unwrap_or_default().max(used),
            };
            taken = taken.and(Spent {
                tokens: may(part.limits().max_tokens, used.tokens),
                cost_micros: may(part.limits().max_cost_micros, used.cost_micros),
            });
        }
        let rest = |limit: Option<u64>, taken| limit.map(|limit| limit.saturating_sub(taken));
        Limits {
            max_tokens: rest(limits.max_tokens, taken.tokens),
            max_cost_micros: rest(limits.max_cost_micros, taken.cost_micros),
            ..limits
        }
    }

    /// The limits of a part: never more than is left of the whole. A part that does not say gets half of that, so
    /// that something is left for the next.
    pub(super) fn narrowed(&self, wanted: &Limits, parent: &str) -> Limits {
        let left = self.left(parent);
        let narrow = |wanted: Option<u64>, left: Option<u64>| match (wanted, left) {
            (wanted, None) => wanted,
            (None, Some(left)) => Some(left.div_ceil(2)),
            (Some(wanted), Some(left)) => Some(wanted.min(left)),
        };
        Limits {
            max_tokens: narrow(wanted.max_tokens, left.max_tokens),
            max_cost_micros: narrow(wanted.max_cost_micros, left.max_cost_micros),
            ..wanted.clone()
        }
    }
}
