//! The tokens of each part of a request, so that the parts add up to its total.
//!
//! Most totals are the sum of their parts. Where a provider has counted the beginning of a request, its count stands
//! for our estimates of that beginning, and each part there takes its share of it. A local model's template counts the
//! whole request, and what lies between its parts belongs to the frame.

use super::session::Session;

/// The tokens of a request, part by part.
pub(super) struct Account {
    /// The tokens around tools and messages.
    pub frame: usize,
    /// Each tool, in order.
    pub tools: Vec<usize>,
    /// Each message, in order.
    pub items: Vec<usize>,
}

impl Account {
    /// The account of the request that the session holds. Its parts sum to [`Session::tokens`].
    pub fn new(session: &Session) -> Self {
        let tokenizer = &session.settings.tokenizer;
        let items = session.weave.items.iter().map(|item| item.piece.tokens);
        let tools = session.tools.iter().map(|spec| tokenizer.tool(spec));
        let mut account = Self {
            frame: session.framing(),
            tools: tools.collect(),
            items: items.collect(),
        };
        let alone: usize = account.tools.iter().sum();
        match session.tool_tokens.checked_sub(alone) {
            Some(introduction) => account.frame += introduction,
            None => apportion(account.tools.iter_mut(), session.tool_tokens),
        }
        if let Some((counted, reported)) = session.measured() {
            account.settle(counted, reported);
        } else if let Some(whole) = session.whole() {
            account.settle(account.items.len(), whole);
        }
        account
    }

    /// Makes the parts up to the message `counted` sum to what a provider or a template counted. What it adds of its own
    /// belongs to the frame.
    fn settle(&mut self, counted: usize, reported: usize) {
        let front = &mut self.items[..counted];
        let estimated = self.frame + self.tools.iter().sum::<usize>() + front.iter().sum::<usize>();
        match reported.checked_sub(estimated) {
            Some(more) => self.frame += more,
            None => {
                let parts = std::iter::once(&mut self.frame);
                apportion(parts.chain(&mut self.tools).chain(front), reported);
            }
        }
    }
}

/// Scales parts so that they sum to `total`. Rounded at the borders between them, so no part is off by more than one.
pub(super) fn apportion<'a>(parts: impl Iterator<Item = &'a mut usize>, total: usize) {
    let mut parts: Vec<&mut usize> = parts.collect();
    let whole: usize = parts.iter().map(|part| **part).sum();
    let (mut seen, mut given) = (0, 0);
    for part in &mut parts {
        seen += **part;
        let share = seen as u128 * total as u128 / whole.max(1) as u128;
        // A share of `total` is no more than it.
        let border = usize::try_from(share).unwrap_or(total);
        **part = border - given;
        given = border;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_to_the_total() {
        for total in [0, 1, 2, 9, 10, 11, 1_000_003] {
            let mut parts = [3, 0, 5, 1, 1];
            apportion(parts.iter_mut(), total);
            assert_eq!(parts.iter().sum::<usize>(), total, "{parts:?}");
            assert_eq!(parts[1], 0);
        }
        let mut nothing = [0, 0];
        apportion(nothing.iter_mut(), 0);
        assert_eq!(nothing, [0, 0]);
    }
}
