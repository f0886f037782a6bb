//! Who is here, as far as beats tell.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use contexture::pool::Name;

/// Those that beat, or are about to, and when they did last.
#[derive(Default)]
pub(super) struct Seen {
    all: HashMap<Name, Beat>,
}

struct Beat {
    /// By the worker's own clock.
    at: u64,
    when: Instant,
    owner: bool,
}

impl Seen {
    /// A module beats. Whether it counts: a card that is older than the last was said before.
    pub(super) fn beat(&mut self, module: &Name, at: u64, owner: bool) -> bool {
        if self.all.get(module).is_some_and(|beat| at <= beat.at) {
            return false;
        }
        let when = Instant::now();
        self.all.insert(module.clone(), Beat { at, when, owner });
        true
    }

    /// A module is about to beat.
    pub(super) fn expect(&mut self, module: &Name) {
        let (at, when, owner) = (0, Instant::now(), true);
        let beat = Beat { at, when, owner };
        self.all.entry(module.clone()).or_insert(beat).when = when;
    }

    /// A module went.
    pub(super) fn left(&mut self, module: &Name) {
        self.all.remove(module);
    }

    /// Whether it was ever here.
    pub(super) fn knows(&self, module: &Name) -> bool {
        self.all.contains_key(module)
    }

    /// Whether it spoke with the owner's key.
    pub(super) fn is_owner(&self, module: &Name) -> bool {
        self.all.get(module).is_some_and(|beat| beat.owner)
    }

    /// Whether it has been silent for so long. One that never beat has been silent for ever.
    pub(super) fn is_silent(&self, module: &Name, patience: Duration) -> bool {
        let beat = self.all.get(module);
        beat.is_none_or(|beat| beat.when.elapsed() > patience)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_card_that_is_shown_again_does_not_count() {
        let a = Name::new("a").unwrap();
        let mut seen = Seen::default();
        assert!(seen.is_silent(&a, Duration::from_secs(1)));
        assert!(seen.beat(&a, 5, true));
        assert!(!seen.beat(&a, 5, true), "again");
        assert!(!seen.beat(&a, 4, true), "an older one");
        assert!(seen.beat(&a, 6, false));
        assert!(!seen.is_owner(&a));
        assert!(!seen.is_silent(&a, Duration::from_secs(1)));
        assert!(seen.is_silent(&a, Duration::ZERO));
    }

    #[test]
    fn who_is_about_to_come_is_not_missed() {
        let a = Name::new("a").unwrap();
        let mut seen = Seen::default();
        seen.expect(&a);
        assert!(seen.knows(&a) && !seen.is_silent(&a, Duration::from_secs(1)));
        assert!(seen.beat(&a, 1, true));
        seen.left(&a);
        assert!(!seen.knows(&a));
    }
}
