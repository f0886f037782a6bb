//! Who comes in, and how much they may do at once.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};
use contexture_fleet::Caller;

use crate::door::Door;
use crate::guard::only;
use crate::refusal::Refusal;
use crate::sign_in::Kept;

/// Calls that one caller may have under way.
const MOST_CALLS: usize = 64;
/// How often it is asked whether a secret still counts. Streams are to end within a second.
const POLL: Duration = Duration::from_millis(500);

/// Somebody who was let in.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub caller: Caller,
    /// The browser, where it came with a cookie.
    browser: Option<Kept>,
}

impl Visitor {
    /// Whether it is a page in a browser that asks, with the owner's rights and on anybody's account.
    pub fn is_browser(&self) -> bool {
        self.browser.is_some()
    }

    /// Whether what it came with still counts.
    pub fn is_current(&self, door: &Door) -> bool {
        let browser = self.browser.as_ref();
        browser.is_none_or(|browser| door.sign_ins.is_current(browser))
            && door.service.is_current(&self.caller)
    }

    /// Waits until what it came with counts no more.
    pub async fn gone(&self, door: &Door) {
        while self.is_current(door) {
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Door {
    /// Who comes with these headers. A secret in `Authorization` counts before a cookie.
    pub(crate) fn admit(&self, headers: &HeaderMap, peer: IpAddr) -> Result<Visitor, Refusal> {
        let secret = headers.contains_key(header::AUTHORIZATION);
        let cookie = self.cookie(headers);
        let visitor = match (secret, &cookie) {
            (true, _) => bearer(headers)
                .and_then(|secret| self.service.authenticate(secret))
                .map(|caller| Visitor {
                    caller,
                    browser: None,
                }),
            (false, Some(secret)) => self.sign_ins.browser(secret).map(|browser| Visitor {
                caller: Caller::Owner,
                browser: Some(browser),
            }),
            (false, None) => return Err(Refusal::Unknown),
        };
        visitor.ok_or_else(|| self.wrong(peer))
    }

    /// What is said to whoever came with something that does not count.
    pub(crate) fn wrong(&self, peer: IpAddr) -> Refusal {
        match self.throttle.wrong(peer, Instant::now()) {
            Some(wait) => Refusal::Guessing {
                seconds: wait.as_secs().max(1),
            },
            None => Refusal::Unknown,
        }
    }

    /// The value of our cookie. Where there are two, neither is ours.
    fn cookie<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let texts = headers.get_all(header::COOKIE).iter();
        let pairs = texts
            .filter_map(|text| text.to_str().ok())
            .flat_map(|text| text.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        let mut ours = pairs.filter(|(name, _)| *name == self.sign_ins.cookie());
        match (ours.next(), ours.next()) {
            (Some((_, value)), None) => Some(value),
            _ => None,
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, secret) = only(headers, &header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(secret)
}

/// How many calls each caller has under way.
#[derive(Debug, Default)]
pub(crate) struct Calls(Arc<Mutex<HashMap<String, usize>>>);

/// A call's place among those of its caller.
#[derive(Debug)]
pub(crate) struct Place {
    calls: Arc<Mutex<HashMap<String, usize>>>,
    whose: String,
}

impl Calls {
    /// A place for one more call, where the caller has not too many.
    pub fn enter(&self, caller: &Caller) -> Option<Place> {
        let whose = match caller {
            Caller::Owner => String::new(),
            Caller::Session(grant) => format!("{}\n{}", grant.agent(), grant.session_id()),
        };
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let many = calls.entry(whose.clone()).or_default();
        if *many >= MOST_CALLS {
            return None;
        }
        *many += 1;
        Some(Place {
            calls: Arc::clone(&self.0),
            whose,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(many) = calls.get_mut(&self.whose) {
            *many -= 1;
            if *many == 0 {
                calls.remove(&self.whose);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_so_many_places_and_gets_them_back() {
        let calls = Calls::default();
        let mut places: Vec<Place> = (0..MOST_CALLS)
            .map(|_| calls.enter(&Caller::Owner).unwrap())
            .collect();
        assert!(calls.enter(&Caller::Owner).is_none());
        places.pop();
        assert!(calls.enter(&Caller::Owner).is_some());
        drop(places);
        assert!(calls.0.lock().unwrap().is_empty());
    }
}
