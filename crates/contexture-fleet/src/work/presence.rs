//! Who is here, as far as beats tell.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use contexture::pool::Name;

use super::seal::Voice;

/// How many of those that went are remembered, so that no old card brings them back.
const MAX_GONE: usize = 4_096;

/// Those that beat, or are about to, and when they did last.
#[derive(Default)]
pub(super) struct Seen {
    all: HashMap<Name, Beat>,
    /// When those that went beat last, by their own clocks.
    gone: HashMap<Name, u64>,
}

struct Beat {
    /// By the worker's own clock.
    at: u64,
    when: Instant,
    voice: Voice,
}

impl Seen {
    /// A module beats. Whether it counts: a card that is older than the last was said before.
    pub(super) fn beat(&mut self, module: &Name, at: u64, voice: Voice) -> bool {
        let last = self.all.get(module).map(|beat| beat.at);
        if last.max(self.gone.get(module).copied()) >= Some(at) {
            return false;
        }
        let when = Instant::now();
        self.all.insert(module.clone(), Beat { at, when, voice });
        true
    }

    /// A module is about to beat.
    pub(super) fn expect(&mut self, module: &Name) {
        let (at, when, voice) = (0, Instant::now(), Voice::Owner);
        let beat = Beat { at, when, voice };
        self.all.entry(module.clone()).or_insert(beat).when = when;
    }

    /// A module went.
    pub(super) fn left(&mut self, module: &Name) {
        let Some(beat) = self.all.remove(module) else {
            return;
        };
        self.gone.insert(module.clone(), beat.at);
        if self.gone.len() > MAX_GONE {
            let oldest = self.gone.iter().min_by_key(|(_, at)| **at);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.gone.remove(&oldest);
            }
        }
    }

    /// Whether it was ever here.
    pub(super) fn knows(&self, module: &Name) -> bool {
        self.all.contains_key(module)
    }

    /// With which key it spoke last.
    pub(super) fn voice(&self, module: &Name) -> Option<Voice> {
        self.all.get(module).map(|beat| beat.voice)
    }

    /// Those that are here, and with which key they spoke last.
    pub(super) fn voices(&self) -> impl Iterator<Item = (&Name, Voice)> {
        self.all.iter().map(|(name, beat)| (name, beat.voice))
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
        assert!(seen.beat(&a, 5, Voice::Owner));
        assert!(!seen.beat(&a, 5, Voice::Owner), "again");
        assert!(!seen.beat(&a, 4, Voice::Owner), "an older one");
        assert!(seen.beat(&a, 6, Voice::Guest(1)));
        assert_eq!(seen.voice(&a), Some(Voice::Guest(1)));
        assert!(!seen.is_silent(&a, Duration::from_secs(1)));
        assert!(seen.is_silent(&a, Duration::ZERO));
    }

    #[test]
    fn who_is_about_to_come_is_not_missed() {
        let a = Name::new("a").unwrap();
        let mut seen = Seen::default();
        seen.expect(&a);
        assert!(seen.knows(&a) && !seen.is_silent(&a, Duration::from_secs(1)));
        assert!(seen.beat(&a, 1, Voice::Owner));
        seen.left(&a);
        assert!(!seen.knows(&a));
    }

    #[test]
    fn who_went_does_not_come_back_by_an_old_card() {
        let a = Name::new("a").unwrap();
        let mut seen = Seen::default();
        assert!(seen.beat(&a, 5, Voice::Owner));
        seen.left(&a);
        assert!(!seen.beat(&a, 4, Voice::Owner) && !seen.beat(&a, 5, Voice::Owner));
        assert!(seen.beat(&a, 6, Voice::Owner), "a new one");
        for n in 0..=MAX_GONE {
            let name = Name::new(&format!("w{n}")).unwrap();
            assert!(seen.beat(&name, 1, Voice::Owner));
            seen.left(&name);
        }
        assert!(seen.gone.len() <= MAX_GONE);
    }
}
