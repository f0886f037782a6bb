use crate::Spent;

/// What a run may spend, and what tokens cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// The most tokens, of requests and replies. Zero is zero: no request is made.
    pub max_tokens: Option<u64>,
    /// The most money, in millionths of a dollar.
    pub max_cost_micros: Option<u64>,
    /// What tokens cost.
    pub price: Price,
}

/// What a million tokens cost, in millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Price {
    /// Of a request.
    pub input: u64,
    /// Of a request, where they come from a cache.
    pub cached_input: u64,
    /// Of a reply.
    pub output: u64,
}

impl Price {
    /// What these cost, in millionths of a dollar; a part of one is a whole one.
    pub fn of(&self, spent: &Spent) -> u64 {
        let cached = spent.cached_tokens.min(spent.input_tokens);
        let parts = [
            (spent.input_tokens - cached, self.input),
            (cached, self.cached_input),
            (spent.output_tokens, self.output),
        ];
        let sum: u128 = parts
            .iter()
            .map(|(n, price)| u128::from(*n) * u128::from(*price))
            .sum();
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

impl Budget {
    /// Whether a request of so many tokens can still be made. What its reply will cost nobody knows: it is counted
    /// once it is there.
    pub fn allows(&self, spent: &Spent, input_tokens: usize) -> bool {
        let next = Spent {
            input_tokens: spent.input_tokens.saturating_add(input_tokens as u64),
            ..*spent
        };
        let tokens = next.input_tokens.saturating_add(next.output_tokens);
        self.max_tokens.is_none_or(|most| tokens <= most)
            && self
                .max_cost_micros
                .is_none_or(|most| self.price.of(&next) <= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_zero_and_nothing_is_no_limit() {
        let none = Spent::default();
        assert!(Budget::default().allows(&none, 1_000_000));
        let zero = Budget {
            max_tokens: Some(0),
            ..Budget::default()
        };
        assert!(!zero.allows(&none, 1));
        // What is free may be used where nothing may be spent.
        let free = Budget {
            max_cost_micros: Some(0),
            ..Budget::default()
        };
        assert!(free.allows(&none, 1_000));
        let price = Price {
            input: 1,
            ..Price::default()
        };
        assert!(!Budget { price, ..free }.allows(&none, 1));
    }

    #[test]
    fn tokens_cost_what_their_kind_costs() {
        let price = Price {
            input: 2_000_000,
            cached_input: 200_000,
            output: 10_000_000,
        };
        let spent = Spent {
            input_tokens: 1_000,
            cached_tokens: 500,
            output_tokens: 10,
        };
        assert_eq!(price.of(&spent), 500 * 2 + 50 * 2 + 100);
        let one = Spent {
            cached_tokens: 1,
            input_tokens: 1,
            ..Spent::default()
        };
        assert_eq!(price.of(&one), 1, "never less than it is");
    }
}
