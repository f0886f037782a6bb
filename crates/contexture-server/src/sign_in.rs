//! Sign-in of a browser: a link that works once, and a secret for the page that opens it.
//!
//! There is no cookie: browsers send a host's cookies to all of its ports, so every other server on this machine would be
//! sent ours. The link carries its code in the fragment, which a browser sends to nobody. The page exchanges the code by
//! POST for a secret and sends that in `Authorization`. It keeps the secret in `localStorage`, which belongs to one
//! origin, port included. `sessionStorage` would want a new link for each tab; what `localStorage` leaves on a disk ends
//! after twelve hours, by signing out, and with this process, which keeps hashes in memory and nothing else.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use contexture_fleet::tokens::TokenError;

use crate::secrets::{SecretId, Secrets};

/// How long a link works.
pub(crate) const LINK_LIFE: Duration = Duration::from_secs(10 * 60);
/// How long a page stays signed in. Nothing extends it.
pub(crate) const PAGE_LIFE: Duration = Duration::from_secs(12 * 60 * 60);
/// Links that work at once.
const MAX_LINKS: usize = 16;
/// Browsers that are signed in at once.
const MAX_PAGES: usize = 64;

/// The sign-in links of a daemon, and the pages that are signed in.
#[derive(Debug)]
pub struct SignIns {
    base: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    links: Secrets<()>,
    pages: Secrets<()>,
}

impl SignIns {
    /// None yet. `base` is the daemon's address, as `http://127.0.0.1:4100`.
    pub fn new(base: impl Into<String>) -> Arc<Self> {
        Arc::new(Self {
            base: base.into().trim_end_matches('/').to_owned(),
            state: Mutex::new(State {
                links: Secrets::new(LINK_LIFE, MAX_LINKS),
                pages: Secrets::new(PAGE_LIFE, MAX_PAGES),
            }),
        })
    }

    /// Makes a link. It works once, for ten minutes.
    pub fn link(&self) -> Result<String, TokenError> {
        let code = self.lock().links.issue(())?;
        Ok(format!("{}/#sign-in={code}", self.base))
    }

    /// Exchanges a link's code for a page's secret; `None` for a code that is used, expired or wrong.
    pub(crate) fn exchange(&self, code: &str) -> Result<Option<String>, TokenError> {
        let mut state = self.lock();
        match state.links.take(SecretId::new(code)) {
            Some(()) => state.pages.issue(()).map(Some),
            None => Ok(None),
        }
    }

    /// The page that has this secret.
    pub(crate) fn page(&self, secret: &str) -> Option<SecretId> {
        let page = SecretId::new(secret);
        self.is_current(page).then_some(page)
    }

    /// Whether a page is still signed in.
    pub(crate) fn is_current(&self, page: SecretId) -> bool {
        self.lock().pages.has(page)
    }

    /// Signs a page out.
    pub(crate) fn sign_out(&self, page: SecretId) {
        self.lock().pages.take(page);
    }

    /// Signs every page out and voids the links that are not used yet.
    pub(crate) fn sign_out_all(&self) {
        let mut state = self.lock();
        state.links.clear();
        state.pages.clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn code(link: &str) -> &str {
        link.split_once("#sign-in=").unwrap().1
    }

    #[test]
    fn a_link_works_once_and_gives_another_secret() {
        let all = SignIns::new("http://127.0.0.1:4100/");
        let link = all.link().unwrap();
        assert!(link.starts_with("http://127.0.0.1:4100/#sign-in="));
        assert_eq!(all.exchange(&code(&link)[..63]).unwrap(), None);
        let secret = all.exchange(code(&link)).unwrap().unwrap();
        assert_ne!(secret, code(&link));
        assert_eq!(all.exchange(code(&link)).unwrap(), None);
        assert!(all.page(&secret).is_some() && all.page(code(&link)).is_none());
    }

    #[test]
    fn signing_out_ends_one_page_or_all_and_their_links() {
        let all = SignIns::new("http://127.0.0.1:1");
        let enter = || {
            let link = all.link().unwrap();
            let secret = all.exchange(code(&link)).unwrap().unwrap();
            all.page(&secret).unwrap()
        };
        let (a, b) = (enter(), enter());
        all.sign_out(a);
        assert!(!all.is_current(a) && all.is_current(b));
        let link = all.link().unwrap();
        all.sign_out_all();
        assert!(!all.is_current(b));
        assert_eq!(all.exchange(code(&link)).unwrap(), None);
    }
}
