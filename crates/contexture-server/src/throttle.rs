//! The throttle for wrong secrets, by address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wrong secrets that an address may send at once.
const BURST: u32 = 20;
/// How long until it may send one more.
const REFILL: Duration = Duration::from_secs(1);
/// Addresses that are remembered. Beyond, those that may send all of theirs are forgotten, then all.
const MOST: usize = 4_096;

/// Counts wrong secrets by address. Right ones are none of its business.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// From when on an address may send its whole burst again.
    full_at: Mutex<HashMap<IpAddr, Instant>>,
}

impl Throttle {
    /// A wrong secret came. How long the address has to wait, where it had too many.
    pub fn wrong(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        if full_at.len() >= MOST && !full_at.contains_key(&address) {
            full_at.retain(|_, full| *full > now);
            if full_at.len() >= MOST {
                full_at.clear();
            }
        }
        let full = full_at.entry(address).or_insert(now);
        let next = (*full).max(now) + REFILL;
        let debt = next - now;
        if debt > REFILL * BURST {
            return Some(debt - REFILL * BURST);
        }
        *full = next;
        None
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(n: u32) -> IpAddr {
        Ipv4Addr::from(n).into()
    }

    /// Attack 7.
    #[test]
    fn twenty_and_then_one_a_second() {
        let (throttle, start) = (Throttle::default(), Instant::now());
        for _ in 0..BURST {
            assert_eq!(throttle.wrong(address(1), start), None);
        }
        for _ in 0..10_000 {
            assert!(throttle.wrong(address(1), start).unwrap() <= REFILL);
        }
        assert_eq!(throttle.wrong(address(2), start), None, "others");
        assert_eq!(throttle.wrong(address(1), start + REFILL), None);
        assert!(throttle.wrong(address(1), start + REFILL).is_some());
        let later = start + REFILL * 100;
        let let_in = (0..100).filter(|_| throttle.wrong(address(1), later).is_none());
        assert_eq!(let_in.count(), 20);
    }

    #[test]
    fn what_it_remembers_is_bounded() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for n in 0..20_000 {
            throttle.wrong(address(n), now);
        }
        assert!(throttle.full_at.lock().unwrap().len() <= MOST);
    }
}
