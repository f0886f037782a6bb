//! How a person's browser comes in: a link that works once, and a cookie.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use contexture_fleet::tokens::{self, TokenError};

/// How long a link works.
const LINK_LIFE: Duration = Duration::from_secs(10 * 60);
/// How long a browser stays signed in.
pub(crate) const COOKIE_LIFE: Duration = Duration::from_secs(12 * 60 * 60);
/// Links that work at once; beyond, the oldest does no more.
const MOST_LINKS: usize = 16;
/// Browsers that are signed in at once.
const MOST_BROWSERS: usize = 64;

/// The links and the browsers of a daemon.
#[derive(Debug)]
pub struct SignIns {
    base: String,
    cookie: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    links: Vec<Kept>,
    browsers: Vec<Kept>,
}

/// What is kept of a secret.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    hash: blake3::Hash,
    until: Instant,
}

impl SignIns {
    /// None yet. `base` is the daemon's address, as `http://127.0.0.1:4100`.
    pub fn new(base: impl Into<String>) -> Arc<Self> {
        let base = base.into();
        let base = base.trim_end_matches('/').to_owned();
        // A browser sends the cookies of a host to all of its ports, so two daemons need two names.
        let port = base.rsplit_once(':').map_or("", |(_, port)| port);
        let port: String = port.chars().filter(char::is_ascii_digit).collect();
        Arc::new(Self {
            cookie: format!("contexture_{port}"),
            base,
            state: Mutex::default(),
        })
    }

    /// A new link. It works once, for ten minutes.
    pub fn link(&self) -> Result<String, TokenError> {
        let code = tokens::hex(&tokens::random()?);
        keep(&mut self.lock().links, &code, LINK_LIFE, MOST_LINKS);
        Ok(format!("{}/sign-in?code={code}", self.base))
    }

    /// Exchanges a link's code for a browser's secret; none where the code does not count.
    pub(crate) fn enter(&self, code: &str) -> Result<Option<String>, TokenError> {
        let secret = tokens::hex(&tokens::random()?);
        let mut state = self.lock();
        if take(&mut state.links, code).is_none() {
            return Ok(None);
        }
        keep(&mut state.browsers, &secret, COOKIE_LIFE, MOST_BROWSERS);
        Ok(Some(secret))
    }

    /// The browser that has this secret.
    pub(crate) fn browser(&self, secret: &str) -> Option<Kept> {
        find(&self.lock().browsers, secret, Instant::now())
    }

    /// Whether it is still signed in.
    pub(crate) fn is_current(&self, browser: &Kept) -> bool {
        let state = self.lock();
        browser.until > Instant::now()
            && state.browsers.iter().any(|kept| kept.hash == browser.hash)
    }

    /// The cookie's name.
    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep(all: &mut Vec<Kept>, secret: &str, life: Duration, most: usize) {
    let now = Instant::now();
    all.retain(|kept| kept.until > now);
    if all.len() >= most {
        all.remove(0);
    }
    all.push(Kept {
        hash: blake3::hash(secret.as_bytes()),
        until: now + life,
    });
}

/// Hashes compare in constant time, and all of them are looked at.
fn find(all: &[Kept], secret: &str, now: Instant) -> Option<Kept> {
    let hash = blake3::hash(secret.as_bytes());
    let same = |found: Option<Kept>, kept: &Kept| match kept.hash == hash && kept.until > now {
        true => Some(kept.clone()),
        false => found,
    };
    all.iter().fold(None, same)
}

fn take(all: &mut Vec<Kept>, secret: &str) -> Option<Kept> {
    let found = find(all, secret, Instant::now())?;
    all.retain(|kept| kept.hash != found.hash);
    Some(found)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn code(link: &str) -> &str {
        link.split_once("code=").unwrap().1
    }

    #[test]
    fn a_link_works_once() {
        let all = SignIns::new("http://127.0.0.1:4100/");
        let link = all.link().unwrap();
        assert!(link.starts_with("http://127.0.0.1:4100/sign-in?code="));
        assert_eq!((code(&link).len(), all.cookie()), (64, "contexture_4100"));
        assert_eq!(all.enter("").unwrap(), None);
        assert_eq!(all.enter(&code(&link)[..63]).unwrap(), None);
        let secret = all.enter(code(&link)).unwrap().unwrap();
        assert_ne!(secret, code(&link), "the cookie has a secret of its own");
        assert_eq!(all.enter(code(&link)).unwrap(), None);
        let browser = all.browser(&secret).unwrap();
        assert!(all.is_current(&browser) && all.browser(code(&link)).is_none());
    }

    #[test]
    fn links_and_browsers_are_bounded_and_the_oldest_go() {
        let all = SignIns::new("http://127.0.0.1:1");
        let links: Vec<String> = (0..MOST_LINKS + 1).map(|_| all.link().unwrap()).collect();
        assert_eq!(all.enter(code(&links[0])).unwrap(), None);
        let first = all.enter(code(&links[1])).unwrap().unwrap();
        let browser = all.browser(&first).unwrap();
        for _ in 0..MOST_BROWSERS {
            let link = all.link().unwrap();
            all.enter(code(&link)).unwrap().unwrap();
        }
        assert!(!all.is_current(&browser) && all.browser(&first).is_none());
    }

    #[test]
    fn what_is_too_old_does_not_count() {
        let old = Kept {
            hash: blake3::hash(b"x"),
            until: Instant::now(),
        };
        let all = SignIns::new("http://127.0.0.1:1");
        all.lock().links.push(old.clone());
        all.lock().browsers.push(old.clone());
        assert_eq!(all.enter("x").unwrap(), None);
        assert!(all.browser("x").is_none() && !all.is_current(&old));
    }
}
