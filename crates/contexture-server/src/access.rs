//! Access: the caller behind a request's secret, and how much each caller may do at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};
use contexture_fleet::Caller;

use crate::connections::Peer;
use crate::door::Door;
use crate::guard::only;
use crate::refusal::Refusal;
use crate::secrets::SecretId;

/// Calls that one caller may have in progress.
const MAX_CALLS: usize = 64;
/// Streams that one caller may listen to. They count apart, so that open dashboards leave room for calls.
const MAX_STREAMS: usize = 64;
/// How often a secret is checked again. Streams are to end within a second.
const POLL: Duration = Duration::from_millis(500);

/// An authenticated caller.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub caller: Caller,
    /// The signed-in page, if the caller is one.
    page: Option<SecretId>,
}

impl Visitor {
    /// The signed-in page that asks, with the owner's rights; `None` for a program.
    pub fn page(&self) -> Option<SecretId> {
        self.page
    }

    /// Whether the secret that it showed still counts.
    pub fn is_current(&self, door: &Door) -> bool {
        self.page.is_none_or(|page| door.sign_ins.is_current(page))
            && door.service.is_current(&self.caller)
    }

    /// Waits until the secret that it showed counts no more.
    pub async fn gone(&self, door: &Door) {
        while self.is_current(door) {
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Door {
    /// Authenticates a request. The secret in `Authorization` is the only thing that counts.
    pub(crate) fn admit(&self, headers: &HeaderMap, peer: &Peer) -> Result<Visitor, Refusal> {
        if !headers.contains_key(header::AUTHORIZATION) {
            return Err(Refusal::Unknown);
        }
        let visitor = bearer(headers).and_then(|secret| self.visitor(secret));
        let visitor = visitor.ok_or_else(|| self.wrong(peer))?;
        if !peer.admit() {
            return Err(Refusal::Busy);
        }
        Ok(visitor)
    }

    fn visitor(&self, secret: &str) -> Option<Visitor> {
        if let Some(caller) = self.service.authenticate(secret) {
            return Some(Visitor { caller, page: None });
        }
        let page = self.sign_ins.page(secret)?;
        Some(Visitor {
            caller: Caller::Owner,
            page: Some(page),
        })
    }

    /// The answer to a wrong secret, which also counts it.
    pub(crate) fn wrong(&self, peer: &Peer) -> Refusal {
        match self.throttle.wrong(peer.address(), Instant::now()) {
            Some(wait) => Refusal::Guessing {
                seconds: wait.as_secs().max(1),
            },
            None => Refusal::Unknown,
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, secret) = only(headers, &header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(secret)
}

/// The calls and streams that each caller has in progress.
#[derive(Debug)]
pub(crate) struct Calls(Arc<Mutex<Usage>>);

#[derive(Debug)]
struct Usage {
    max_of_sessions: usize,
    of: HashMap<Key, usize>,
    sessions: usize,
}

/// Agent and session, or neither for the owner.
type Whose = Option<(String, String)>;
type Key = (Whose, Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Call,
    Stream,
}

/// The place of a call or a stream among those of its caller.
#[derive(Debug)]
pub(crate) struct Place {
    usage: Arc<Mutex<Usage>>,
    key: Key,
}

impl Calls {
    /// None yet. Sessions together may have so many: whatever agents hold open, the owner has some left.
    pub fn new(max_of_sessions: usize) -> Self {
        Self(Arc::new(Mutex::new(Usage {
            max_of_sessions,
            of: HashMap::new(),
            sessions: 0,
        })))
    }

    /// A place for one more call; `None` if there are too many.
    pub fn enter(&self, caller: &Caller) -> Option<Place> {
        self.place(whose(caller), Kind::Call)
    }

    /// A place for one more stream; `None` if there are too many.
    pub fn listen(&self, caller: &Caller) -> Option<Place> {
        self.place(whose(caller), Kind::Stream)
    }

    fn place(&self, whose: Whose, kind: Kind) -> Option<Place> {
        let key = (whose, kind);
        lock(&self.0).add(&key).then(|| Place {
            usage: Arc::clone(&self.0),
            key,
        })
    }
}

impl Place {
    /// Makes the place of a call one of a stream; `None` if there are too many of those.
    pub fn into_stream(self) -> Option<Self> {
        let (whose, _) = self.key.clone();
        let calls = Calls(Arc::clone(&self.usage));
        // The call's place goes first: the two together are one place among those of all sessions.
        drop(self);
        calls.place(whose, Kind::Stream)
    }
}

impl Usage {
    fn add(&mut self, key: &Key) -> bool {
        let (whose, kind) = key;
        let max = match kind {
            Kind::Call => MAX_CALLS,
            Kind::Stream => MAX_STREAMS,
        };
        let is_session = whose.is_some();
        let many = self.of.get(key).copied().unwrap_or_default();
        if many >= max || (is_session && self.sessions >= self.max_of_sessions) {
            return false;
        }
        self.of.insert(key.clone(), many + 1);
        self.sessions += usize::from(is_session);
        true
    }

    fn remove(&mut self, key: &Key) {
        if let Some(many) = self.of.get_mut(key) {
            *many -= 1;
            if *many == 0 {
                self.of.remove(key);
            }
            self.sessions -= usize::from(key.0.is_some());
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.usage).remove(&self.key);
    }
}

fn whose(caller: &Caller) -> Whose {
    match caller {
        Caller::Owner => None,
        Caller::Session(grant) => Some((grant.agent().to_owned(), grant.session_id().to_owned())),
    }
}

fn lock(usage: &Mutex<Usage>) -> MutexGuard<'_, Usage> {
    usage.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_so_many_places_and_gets_them_back() {
        let calls = Calls::new(256);
        let mut places: Vec<Place> = (0..MAX_CALLS)
            .map(|_| calls.enter(&Caller::Owner).unwrap())
            .collect();
        assert!(calls.enter(&Caller::Owner).is_none());
        places.pop();
        assert!(calls.enter(&Caller::Owner).is_some());
        drop(places);
        assert!(calls.0.lock().unwrap().of.is_empty());
    }

    #[test]
    fn streams_count_apart_from_calls() {
        let calls = Calls::new(256);
        let mut streams: Vec<Place> = (0..MAX_STREAMS - 1)
            .map(|_| calls.listen(&Caller::Owner).unwrap())
            .collect();
        let call = calls.enter(&Caller::Owner).unwrap();
        streams.push(call.into_stream().unwrap());
        let calling: Vec<Place> = (0..MAX_CALLS)
            .map(|_| calls.enter(&Caller::Owner).unwrap())
            .collect();
        assert!(calls.listen(&Caller::Owner).is_none());
        assert!(calling.into_iter().next().unwrap().into_stream().is_none());
    }

    /// Attack 49.
    #[test]
    fn sessions_together_leave_room_for_the_owner() {
        let calls = Calls::new(256);
        let session = |n: usize| Some((format!("agent {}", n / 4), n.to_string()));
        let places: Vec<Place> = (0..1_000)
            .filter_map(|n| calls.place(session(n), Kind::Call))
            .collect();
        assert_eq!(places.len(), 256);
        assert!(calls.enter(&Caller::Owner).is_some());
        assert!(calls.listen(&Caller::Owner).is_some());
        drop(places);
        assert_eq!(calls.0.lock().unwrap().sessions, 0);
    }
}
