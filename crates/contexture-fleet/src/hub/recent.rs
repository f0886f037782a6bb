//! Remembers what came lately, so that the same does not count twice.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture::pool::Name;

/// How long an id is remembered. A NATS server does the same for as long.
pub(super) const REMEMBERED: Duration = Duration::from_secs(120);
/// How many ids are remembered at most: a flood must not fill the memory.
const MOST: usize = 100_000;

/// Ids that came lately.
#[derive(Debug, Default)]
pub(super) struct Recent {
    ids: HashSet<Arc<str>>,
    order: VecDeque<(Instant, Arc<str>)>,
}

impl Recent {
    /// Whether it came lately.
    pub(super) fn has(&mut self, id: &str, now: Instant) -> bool {
        self.forget(now);
        self.ids.contains(id)
    }

    /// Remembers it.
    pub(super) fn add(&mut self, id: &str, now: Instant) {
        self.forget(now);
        let id: Arc<str> = id.into();
        if self.ids.insert(Arc::clone(&id)) {
            self.order.push_back((now, id));
        }
    }

    fn forget(&mut self, now: Instant) {
        while let Some((at, _)) = self.order.front() {
            let old = now.saturating_duration_since(*at) >= REMEMBERED;
            if !old && self.order.len() < MOST {
                return;
            }
            if let Some((_, id)) = self.order.pop_front() {
                self.ids.remove(&id);
            }
        }
    }
}

/// What a message to a module is known by, whatever its id holds: ids of different modules do not meet.
pub(super) fn known_by(module: &Name, id: &str) -> String {
    // No name has a line break.
    let whole = blake3::hash(format!("{module}\n{id}").as_bytes()).to_hex();
    whole.chars().take(32).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_remembered_for_two_minutes_and_no_flood_fills_the_memory() {
        let (mut recent, start) = (Recent::default(), Instant::now());
        recent.add("a", start);
        let later = start + REMEMBERED / 2;
        recent.add("b", later);
        assert!(recent.has("a", later) && recent.has("b", later));
        let end = start + REMEMBERED;
        assert!(!recent.has("a", end) && recent.has("b", end));
        for n in 0..MOST + 10 {
            recent.add(&n.to_string(), end);
        }
        assert!(recent.ids.len() <= MOST && recent.order.len() == recent.ids.len());
        assert!(!recent.has("b", end) && recent.has(&(MOST + 9).to_string(), end));
    }

    #[test]
    fn the_same_id_for_two_modules_is_two() {
        let (a, b) = (Name::new("a").unwrap(), Name::new("b").unwrap());
        assert_ne!(known_by(&a, "1"), known_by(&b, "1"));
        assert_ne!(known_by(&a, "1"), known_by(&a, "1\n"));
        assert_eq!(known_by(&a, "1"), known_by(&a, "1"));
    }
}
