//! The room that texts of providers share, and which of them get it.

use std::cmp::Reverse;

/// A text that wants room.
pub(super) struct Claim {
    pub tokens: usize,
    pub priority: i32,
    /// True if no session begins without it.
    pub required: bool,
}

/// Says for each text whether there is room for it.
///
/// Those that are required have theirs first. Of the others the one with the highest priority comes first, and of two
/// with the same the earlier; what no longer fits is left out. So what becomes of a text depends on nothing below it.
pub(super) fn share(room: usize, claims: &[Claim]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_by_key(|&at| (!claims[at].required, Reverse(claims[at].priority)));
    let mut left = room;
    let mut has = vec![false; claims.len()];
    for at in order {
        let claim = &claims[at];
        has[at] = claim.required || claim.tokens <= left;
        if has[at] {
            left = left.saturating_sub(claim.tokens);
        }
    }
    has
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_priority_is_left_out_first() {
        let claim = |tokens, priority| Claim {
            tokens,
            priority,
            required: false,
        };
        let claims = [claim(40, 0), claim(40, -1), claim(40, 7), claim(40, 0)];
        assert_eq!(share(200, &claims), [true, true, true, true]);
        assert_eq!(share(120, &claims), [true, false, true, true]);
        assert_eq!(share(90, &claims), [true, false, true, false]);
        assert_eq!(share(40, &claims), [false, false, true, false]);
        // What is too long by itself takes nobody's room.
        let long = [claim(500, 9), claim(40, 0)];
        assert_eq!(share(100, &long), [false, true]);
        let required = Claim {
            required: true,
            ..claim(500, 0)
        };
        assert_eq!(share(100, &[claim(40, 9), required]), [false, true]);
    }
}
