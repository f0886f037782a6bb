//! Secrets that expire, of which only hashes are kept: sign-in codes, signed-in pages, frames.

use std::time::{Duration, Instant};

use contexture_fleet::tokens::{self, TokenError};

/// Secrets of one kind, each with what it stands for. Bounded: beyond the capacity the oldest ends.
#[derive(Debug)]
pub(crate) struct Secrets<T> {
    life: Duration,
    capacity: usize,
    issued: Vec<Issued<T>>,
}

/// The hash of a secret: enough to recognise it, and of no use to whoever reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SecretId(blake3::Hash);

#[derive(Debug)]
struct Issued<T> {
    id: SecretId,
    expires: Instant,
    value: T,
}

impl SecretId {
    pub fn new(secret: &str) -> Self {
        Self(blake3::hash(secret.as_bytes()))
    }
}

impl<T> Secrets<T> {
    pub fn new(life: Duration, capacity: usize) -> Self {
        Self {
            life,
            capacity,
            issued: Vec::new(),
        }
    }

    /// Issues a new secret. This is the only time that it is seen.
    pub fn issue(&mut self, value: T) -> Result<String, TokenError> {
        let secret = tokens::hex(&tokens::random()?);
        let now = Instant::now();
        self.issued.retain(|issued| issued.expires > now);
        if self.issued.len() >= self.capacity {
            self.issued.remove(0);
        }
        self.issued.push(Issued {
            id: SecretId::new(&secret),
            expires: now + self.life,
            value,
        });
        Ok(secret)
    }

    /// Whether this secret still counts. Hashes are compared, so the time that this takes tells nothing about a secret.
    pub fn has(&self, id: SecretId) -> bool {
        let now = Instant::now();
        let mut all = self.issued.iter();
        all.any(|issued| issued.id == id && issued.expires > now)
    }

    /// Ends a secret and returns what it stood for, unless it had expired.
    pub fn take(&mut self, id: SecretId) -> Option<T> {
        let at = self.issued.iter().position(|issued| issued.id == id)?;
        let issued = self.issued.remove(at);
        (issued.expires > Instant::now()).then_some(issued.value)
    }

    /// Ends all secrets.
    pub fn clear(&mut self) {
        self.issued.clear();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_secret_is_taken_once() {
        let mut secrets = Secrets::new(LONG, 4);
        let secret = secrets.issue(7).unwrap();
        assert_eq!(secret.len(), 64);
        assert!(!format!("{secrets:?}").contains(&secret));
        for wrong in ["", &secret[..63], &format!("{secret}0")] {
            assert!(!secrets.has(SecretId::new(wrong)));
            assert_eq!(secrets.take(SecretId::new(wrong)), None);
        }
        let id = SecretId::new(&secret);
        assert!(secrets.has(id));
        assert_eq!((secrets.take(id), secrets.take(id)), (Some(7), None));
        assert!(!secrets.has(id));
    }

    #[test]
    fn beyond_the_capacity_the_oldest_ends() {
        let mut secrets = Secrets::new(LONG, 4);
        let issued: Vec<String> = (0..5).map(|n| secrets.issue(n).unwrap()).collect();
        let counts: Vec<bool> = issued
            .iter()
            .map(|secret| secrets.has(SecretId::new(secret)))
            .collect();
        assert_eq!(counts, [false, true, true, true, true]);
        secrets.clear();
        assert!(!secrets.has(SecretId::new(&issued[4])));
    }

    #[test]
    fn an_expired_secret_does_not_count() {
        let mut secrets = Secrets::new(Duration::ZERO, 4);
        let secret = SecretId::new(&secrets.issue(()).unwrap());
        assert!(!secrets.has(secret));
        assert_eq!(secrets.take(secret), None);
    }
}
