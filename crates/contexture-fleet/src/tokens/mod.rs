//! Session tokens: what lets an agent's session, and nobody else, use the internal tools.
//!
//! A token is 64 hex digits and leaves here once. What is kept is a keyed hash, with a key that lives as
//! long as the process: whoever reads our memory, a log or a core file finds nothing to call with. The
//! hash is also what a token is found by, so how long a check takes says nothing about a token.
//!
//! A token can be exchanged for a new one, which counts no longer than the first of them would have: only a new
//! session begins a new life.

mod files;
mod hidden;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::{Duration, Instant};

use contexture::inject::Archetype;

pub(crate) use files::TokenFiles;
use hidden::{Head, Hidden};

/// How long a token counts, where nobody says otherwise.
pub const LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// The digits of a token.
const DIGITS: usize = 64;
/// The digits that may be shown.
const SHOWN: usize = 8;

/// The tokens that count.
pub struct Tokens {
    key: [u8; 32],
    life: Duration,
    book: RwLock<Book>,
    hidden: RwLock<Hidden>,
}

/// The grants, by the hash of their token, and the hashes by agent and session.
#[derive(Default)]
struct Book {
    grants: HashMap<[u8; 32], Arc<Grant>>,
    sessions: HashMap<String, HashMap<String, [u8; 32]>>,
    /// At how many grants those that have expired are looked for: making one costs the same at any number.
    sweep_at: usize,
}

impl Book {
    /// Takes a grant in, and gives what no longer counts.
    fn insert(&mut self, grant: &Arc<Grant>) -> Vec<Head> {
        let mut gone = Vec::new();
        if self.grants.len() >= self.sweep_at {
            gone = self.sweep();
        }
        let sessions = self.sessions.entry(grant.agent.clone()).or_default();
        if let Some(old) = sessions.insert(grant.session_id.clone(), grant.hash) {
            gone.extend(self.forget(&old));
        }
        self.grants.insert(grant.hash, Arc::clone(grant));
        gone
    }

    fn forget(&mut self, hash: &[u8; 32]) -> Option<Head> {
        let grant = self.grants.remove(hash)?;
        grant.revoke();
        Some(grant.head)
    }

    fn sweep(&mut self) -> Vec<Head> {
        let now = Instant::now();
        let mut gone = Vec::new();
        self.grants.retain(|_, grant| {
            let stays = grant.expires > now;
            gone.extend((!stays).then_some(grant.head));
            stays
        });
        let grants = &self.grants;
        self.sessions.retain(|_, sessions| {
            sessions.retain(|_, hash| grants.contains_key(hash));
            !sessions.is_empty()
        });
        self.sweep_at = (2 * self.grants.len()).max(1_024);
        gone
    }
}

/// A token on its way to its session. It is not shown by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// What a token allows: this session, at this level.
#[derive(Debug)]
pub struct Grant {
    agent: String,
    session_id: String,
    archetype: Archetype,
    shown: String,
    hash: [u8; 32],
    head: Head,
    expires: Instant,
    revoked: AtomicBool,
}

/// Why a token was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
    /// The old token counts no more.
    #[error("the token counts no more")]
    Gone,
    /// The new token would allow more than the old one.
    #[error("a token for `{has}` cannot be exchanged for one for `{wanted}`")]
    More {
        /// What the old one allows.
        has: &'static str,
        /// What was asked for.
        wanted: &'static str,
    },
}

impl Tokens {
    /// No tokens yet; each will count for this long.
    pub fn new(life: Duration) -> Result<Self, TokenError> {
        Ok(Self {
            key: random()?,
            life,
            book: RwLock::default(),
            hidden: RwLock::default(),
        })
    }

    /// Makes the token of a session, which begins with it. Another one of that session counts no more.
    pub fn generate(
        &self,
        agent: &str,
        session_id: &str,
        archetype: Archetype,
    ) -> Result<(Token, Arc<Grant>), TokenError> {
        self.grant(agent, session_id, archetype, Instant::now() + self.life)
    }

    fn grant(
        &self,
        agent: &str,
        session_id: &str,
        archetype: Archetype,
        expires: Instant,
    ) -> Result<(Token, Arc<Grant>), TokenError> {
        let token = Token(hex(&random()?));
        let none = || TokenError::Random("too few digits".to_owned());
        let head = Head::new(&self.key, &token.0).ok_or_else(none)?;
        let grant = Arc::new(Grant {
            agent: agent.to_owned(),
            session_id: session_id.to_owned(),
            archetype,
            shown: token.shown().to_owned(),
            hash: self.hash(&token.0),
            head,
            expires,
            revoked: AtomicBool::new(false),
        });
        // Recognised before anybody can say it.
        self.hidden().insert(head);
        let gone = self.book().insert(&grant);
        self.retire(gone);
        Ok((token, grant))
    }

    /// Masks another secret of as many digits too: the owner's, or a hub's key.
    pub fn mask_too(&self, secret: &str) {
        if let Some(head) = Head::new(&self.key, secret) {
            self.hidden().insert(head);
        }
    }

    /// What a token allows; nothing where it does not count, for whatever reason.
    pub fn check(&self, token: &str) -> Option<Arc<Grant>> {
        // Whatever it looks like, the same is done with it.
        let bytes = token.as_bytes();
        let well_formed = bytes.len() == DIGITS
            && bytes
                .iter()
                .fold(true, |all, b| all & matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let hash = self.hash(&token[..token.floor_char_boundary(DIGITS)]);
        let book = self.book.read().unwrap_or_else(PoisonError::into_inner);
        let grant = book.grants.get(&hash).filter(|grant| grant.is_current())?;
        well_formed.then(|| Arc::clone(grant))
    }

    /// Exchanges a token for a new one of the same session that allows as much, or less, and for as long as the old
    /// one would have counted.
    pub fn rotate(
        &self,
        old: &Grant,
        archetype: Archetype,
    ) -> Result<(Token, Arc<Grant>), TokenError> {
        if !old.is_current() {
            return Err(TokenError::Gone);
        }
        if archetype > old.archetype {
            return Err(TokenError::More {
                has: old.archetype.as_str(),
                wanted: archetype.as_str(),
            });
        }
        self.grant(&old.agent, &old.session_id, archetype, old.expires)
    }

    /// Whether a session has a token that counts.
    pub fn counts(&self, agent: &str, session_id: &str) -> bool {
        let book = self.book.read().unwrap_or_else(PoisonError::into_inner);
        let sessions = book.sessions.get(agent);
        let hash = sessions.and_then(|sessions| sessions.get(session_id));
        let grant = hash.and_then(|hash| book.grants.get(hash));
        grant.is_some_and(|grant| grant.is_current())
    }

    /// Revokes the token of a session. Whether there was one.
    pub fn revoke_session(&self, agent: &str, session_id: &str) -> bool {
        let mut book = self.book();
        let sessions = book.sessions.get_mut(agent);
        let hash = sessions.and_then(|sessions| sessions.remove(session_id));
        let gone = hash.and_then(|hash| book.forget(&hash));
        drop(book);
        self.retire(gone);
        gone.is_some()
    }

    /// Revokes all tokens of an agent, and gives how many there were.
    pub fn revoke_agent(&self, agent: &str) -> usize {
        let mut book = self.book();
        let sessions = book.sessions.remove(agent).unwrap_or_default();
        let gone: Vec<Head> = sessions
            .values()
            .filter_map(|hash| book.forget(hash))
            .collect();
        drop(book);
        let count = gone.len();
        self.retire(gone);
        count
    }

    fn retire(&self, gone: impl IntoIterator<Item = Head>) {
        let mut hidden = self.hidden();
        gone.into_iter().for_each(|head| hidden.retire(head));
    }

    fn book(&self) -> RwLockWriteGuard<'_, Book> {
        self.book.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn hidden(&self) -> RwLockWriteGuard<'_, Hidden> {
        self.hidden.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn hash(&self, token: &str) -> [u8; 32] {
        *blake3::keyed_hash(&self.key, token.as_bytes()).as_bytes()
    }
}

impl Token {
    /// All of it, for the one who is to have it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The part that may be shown.
    pub fn shown(&self) -> &str {
        &self.0[..SHOWN]
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}…)", self.shown())
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

impl Grant {
    /// Whose it is.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// Which session's it is.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// What the session's agent is.
    pub fn archetype(&self) -> Archetype {
        self.archetype
    }

    /// The first digits of the token, for the audit.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether it counts: it was not revoked and has not expired.
    pub fn is_current(&self) -> bool {
        !self.revoked.load(Ordering::Acquire) && Instant::now() < self.expires
    }

    fn revoke(&self) {
        self.revoked.store(true, Ordering::Release);
    }
}

/// 32 bytes that nobody can guess.
pub fn random() -> Result<[u8; 32], TokenError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| TokenError::Random(error.to_string()))?;
    Ok(bytes)
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn tokens() -> Tokens {
        Tokens::new(LIFE).unwrap()
    }

    #[test]
    fn a_token_is_64_digits_and_counts_for_its_session() {
        let tokens = tokens();
        let (a, _) = tokens.generate("bot", "s1", Archetype::Service).unwrap();
        let (b, _) = tokens.generate("bot", "s2", Archetype::Service).unwrap();
        assert_eq!(a.reveal().len(), 64);
        assert_ne!(a, b);
        assert_eq!(tokens.check(a.reveal()).unwrap().session_id(), "s1");
        assert_eq!(tokens.check(b.reveal()).unwrap().session_id(), "s2");
        assert_eq!(format!("{a:?}"), format!("Token({}…)", &a.reveal()[..8]));
        assert!(!format!("{tokens:?}").contains(a.shown()));
    }

    /// Attack 1.
    #[test]
    fn nothing_but_the_token_is_the_token() {
        let tokens = tokens();
        let (token, _) = tokens.generate("bot", "s", Archetype::Service).unwrap();
        let token = token.reveal();
        let wide: String = token
            .chars()
            .map(|c| if c == '1' { '１' } else { c })
            .collect();
        let mut wrong = vec![
            token[..63].to_owned(),
            format!("{token}0"),
            format!("{token}\0"),
            format!(" {token}"),
            token.to_uppercase(),
            String::new(),
            "f".repeat(1 << 20),
            "é".repeat(32),
        ];
        wrong.extend((wide != token).then_some(wide));
        // A token without letters is its own upper case.
        wrong.retain(|other| other != token);
        for other in wrong {
            let begin: String = other.chars().take(70).collect();
            assert!(tokens.check(&other).is_none(), "{begin}");
        }
    }

    #[test]
    fn a_new_token_ends_the_old_one() {
        let tokens = tokens();
        let (old, grant) = tokens.generate("bot", "s", Archetype::Service).unwrap();
        let (new, _) = tokens.generate("bot", "s", Archetype::Service).unwrap();
        assert!(tokens.check(old.reveal()).is_none() && !grant.is_current());
        assert!(tokens.check(new.reveal()).is_some());
    }

    #[test]
    fn revoking_ends_what_it_names_and_no_more() {
        let tokens = tokens();
        let make = |agent, session| tokens.generate(agent, session, Archetype::Repo).unwrap().0;
        let (a1, a2, b) = (make("a", "1"), make("a", "2"), make("b", "1"));
        let counts = |token: &Token| tokens.check(token.reveal()).is_some();
        assert!(tokens.revoke_session("a", "1") && !tokens.revoke_session("a", "1"));
        assert!(!counts(&a1) && counts(&a2) && counts(&b));
        assert_eq!((tokens.revoke_agent("a"), tokens.revoke_agent("a")), (1, 0));
        assert!(!counts(&a2) && counts(&b));
    }

    #[test]
    fn a_token_expires() {
        let tokens = Tokens::new(Duration::ZERO).unwrap();
        let (token, grant) = tokens.generate("bot", "s", Archetype::Repo).unwrap();
        assert!(tokens.check(token.reveal()).is_none() && !grant.is_current());
    }

    #[test]
    fn an_exchanged_token_counts_no_longer_than_the_first_would_have() {
        let tokens = tokens();
        let (_, mut grant) = tokens.generate("bot", "s", Archetype::Repo).unwrap();
        let end = grant.expires;
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(1));
            (_, grant) = tokens.rotate(&grant, Archetype::Repo).unwrap();
            assert_eq!(grant.expires, end);
        }
        // A session that begins anew begins a new life.
        let (_, fresh) = tokens.generate("bot", "s", Archetype::Repo).unwrap();
        assert!(fresh.expires > end && fresh.is_current());
        let over = Tokens::new(Duration::ZERO).unwrap();
        let (_, grant) = over.generate("bot", "s", Archetype::Repo).unwrap();
        let gone = over.rotate(&grant, Archetype::Repo).unwrap_err();
        assert_eq!(gone, TokenError::Gone);
    }

    #[test]
    fn what_has_expired_is_forgotten() {
        let tokens = Tokens::new(Duration::ZERO).unwrap();
        for n in 0..5_000 {
            let _ = tokens
                .generate("bot", &n.to_string(), Archetype::Repo)
                .unwrap();
        }
        let book = tokens.book.read().unwrap();
        assert!(book.grants.len() <= 1_024, "{}", book.grants.len());
        assert!(book.sessions["bot"].len() <= 1_025);
    }

    /// Attack 4.
    #[test]
    fn a_token_is_exchanged_for_as_much_or_less() {
        let tokens = tokens();
        let (_, service) = tokens.generate("bot", "s", Archetype::Service).unwrap();
        let more = tokens.rotate(&service, Archetype::Employee).unwrap_err();
        assert!(matches!(more, TokenError::More { .. }));
        assert!(service.is_current(), "a refusal takes nothing away");
        let (_, repo) = tokens.rotate(&service, Archetype::Repo).unwrap();
        assert!(!service.is_current() && repo.archetype() == Archetype::Repo);
        assert!(tokens.rotate(&repo, Archetype::Service).is_err());
        let gone = tokens.rotate(&service, Archetype::Repo).unwrap_err();
        assert_eq!(gone, TokenError::Gone);
    }
}
