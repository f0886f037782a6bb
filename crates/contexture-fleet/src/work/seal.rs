//! Who says it: messages are sealed with the sender's key.
//!
//! A fleet's hub has one [`HubKey`]. Each module's own key follows from it, so that the dispatcher can check them all
//! and a module can speak for itself alone. There are two for each name: the owner's, for a worker that runs beside the
//! project and may say what it can do, and a guest's, for one that was given nothing else and counts as what the pool
//! says it is.

use std::fmt;
use std::io::Write as _;
use std::path::Path;

use contexture::json;
use contexture::pool::Name;
use serde::{Deserialize, Serialize};

use crate::tokens::{hex, random};

/// The key that all others follow from.
#[derive(Clone)]
pub struct HubKey([u8; 32]);

/// A module's own key.
#[derive(Clone)]
pub struct Seat {
    /// Whose it is.
    pub name: Name,
    /// The hub's own part of every broker that it shares.
    pub namespace: String,
    owner: bool,
    key: [u8; 32],
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or made.
    #[error("{place}: {error}")]
    Io {
        /// Which.
        place: String,
        /// Why.
        error: std::io::Error,
    },
    /// It is no key.
    #[error("{place} holds no key")]
    NoKey {
        /// What holds it.
        place: String,
    },
}

/// Something that was said, with the proof of who said it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    from: String,
    to: String,
    owner: bool,
    text: String,
    seal: String,
}

/// Something that was said, and it is proven who said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// Who.
    pub from: Name,
    /// Whether it speaks with the owner's key.
    pub owner: bool,
    /// What.
    pub text: String,
}

/// What every seat's text begins with.
const PREFIX: &str = "ctxw1";

impl HubKey {
    /// The key that this file holds; makes one where there is none.
    pub fn of_file(path: &Path) -> Result<Self, KeyError> {
        let place = path.display().to_string();
        let io = |error| KeyError::Io {
            place: place.clone(),
            error,
        };
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(text.trim(), &place),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let made = random().map_err(|error| io(std::io::Error::other(error)))?;
                match create(path, &hex(&made)) {
                    Ok(()) => Ok(Self(made)),
                    // Somebody else was first.
                    Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                        let text = std::fs::read_to_string(path).map_err(io)?;
                        Self::parse(text.trim(), &place)
                    }
                    Err(error) => Err(io(error)),
                }
            }
            Err(error) => Err(io(error)),
        }
    }

    /// A new one, for as long as somebody has it.
    pub fn fresh() -> Result<Self, crate::tokens::TokenError> {
        Ok(Self(random()?))
    }

    /// Reads a key: 64 digits of base 16. `place` says where they stand.
    pub fn parse(text: &str, place: &str) -> Result<Self, KeyError> {
        let key = unhex(text).ok_or_else(|| KeyError::NoKey {
            place: place.to_owned(),
        })?;
        Ok(Self(key))
    }

    /// The hub's own part of every broker: two fleets that share one do not meet.
    pub fn namespace(&self) -> String {
        let derived = blake3::derive_key("contexture hub 2026 namespace", &self.0);
        hex(&derived[..6])
    }

    /// A module's key: the owner's, or a guest's.
    pub fn seat(&self, name: &Name, owner: bool) -> Seat {
        let context = match owner {
            true => "contexture hub 2026 seat of the owner",
            false => "contexture hub 2026 seat of a guest",
        };
        let seats = blake3::derive_key(context, &self.0);
        Seat {
            name: name.clone(),
            namespace: self.namespace(),
            owner,
            key: *blake3::keyed_hash(&seats, name.as_str().as_bytes()).as_bytes(),
        }
    }

    /// Opens what somebody sealed for `me`. Nothing, where it is not what it says.
    pub fn open(&self, sealed: &str, me: &str) -> Option<Opened> {
        let envelope: Envelope = json::from_text(sealed).ok()?;
        let name = Name::new(&envelope.from).ok()?;
        let seat = self.seat(&name, envelope.owner);
        seat.checks(&envelope, me).then_some(Opened {
            from: name,
            owner: envelope.owner,
            text: envelope.text,
        })
    }

    /// Seals what the dispatcher says to a module, with the key that the two share.
    pub fn seal(&self, to: &Name, owner: bool, text: String) -> String {
        self.seat(to, owner)
            .envelope(super::DISPATCHER, to.as_str(), text)
    }
}

impl Seat {
    /// Seals what the module says to the dispatcher.
    pub fn seal(&self, text: String) -> String {
        self.envelope(self.name.as_str(), super::DISPATCHER, text)
    }

    /// Opens what the dispatcher sealed for the module. Nothing, where it was not the dispatcher.
    pub fn open(&self, sealed: &str) -> Option<String> {
        let envelope: Envelope = json::from_text(sealed).ok()?;
        let ours = envelope.from == super::DISPATCHER && self.checks(&envelope, self.name.as_str());
        ours.then_some(envelope.text)
    }

    /// Whether it is the owner's.
    pub fn is_owner(&self) -> bool {
        self.owner
    }

    /// It as a text, which is a secret.
    pub fn secret(&self) -> String {
        let kind = if self.owner { "owner" } else { "guest" };
        let (namespace, key) = (&self.namespace, hex(&self.key));
        format!("{PREFIX}-{kind}-{namespace}-{key}-{}", self.name)
    }

    /// Reads one.
    pub fn parse(secret: &str, place: &str) -> Result<Self, KeyError> {
        let read = || {
            let mut parts = secret.trim().splitn(5, '-');
            if parts.next()? != PREFIX {
                return None;
            }
            let owner = match parts.next()? {
                "owner" => true,
                "guest" => false,
                _ => return None,
            };
            let namespace = parts.next()?;
            let plain = namespace.len() == 12 && namespace.bytes().all(|b| b.is_ascii_hexdigit());
            let key = unhex(parts.next()?)?;
            let name = Name::new(parts.next()?).ok()?;
            plain.then(|| Self {
                name,
                namespace: namespace.to_owned(),
                owner,
                key,
            })
        };
        read().ok_or_else(|| KeyError::NoKey {
            place: place.to_owned(),
        })
    }

    fn envelope(&self, from: &str, to: &str, text: String) -> String {
        let seal = self.mac(from, to, &text).to_hex().to_string();
        let envelope = Envelope {
            from: from.to_owned(),
            to: to.to_owned(),
            owner: self.owner,
            text,
            seal,
        };
        // Texts and a truth value always serialise.
        serde_json::to_string(&envelope).unwrap_or_default()
    }

    fn checks(&self, envelope: &Envelope, me: &str) -> bool {
        let Ok(said) = blake3::Hash::from_hex(&envelope.seal) else {
            return false;
        };
        // Hashes compare in constant time.
        envelope.to == me
            && envelope.owner == self.owner
            && said == self.mac(&envelope.from, &envelope.to, &envelope.text)
    }

    /// Each part has its length before it, so that no two messages are the same bytes.
    fn mac(&self, from: &str, to: &str, text: &str) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        for part in [from, to, text] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize()
    }
}

impl fmt::Debug for HubKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HubKey({})", self.namespace())
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seat({}, owner: {})", self.name, self.owner)
    }
}

/// For the user alone, and whole or not at all.
fn create(path: &Path, text: &str) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let own = path.with_extension(format!("new-{}", std::process::id()));
    let _ = std::fs::remove_file(&own);
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&own)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    let linked = std::fs::hard_link(&own, path);
    let _ = std::fs::remove_file(&own);
    linked
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (i, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn key() -> HubKey {
        HubKey([7; 32])
    }

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    #[test]
    fn what_is_sealed_opens_with_its_sender() {
        let seat = key().seat(&name("a"), false);
        let opened = key()
            .open(&seat.seal("hello".into()), crate::work::DISPATCHER)
            .unwrap();
        assert_eq!(opened.from, name("a"));
        assert_eq!((opened.owner, opened.text.as_str()), (false, "hello"));
        let order = key().seal(&name("a"), false, "do it".into());
        assert_eq!(seat.open(&order).unwrap(), "do it");
    }

    #[test]
    fn nobody_speaks_for_another() {
        let sealed = key().seat(&name("a"), false).seal("done".into());
        let open = |text: &str| key().open(text, crate::work::DISPATCHER);
        assert!(open(&sealed).is_some());
        for (from, to) in [
            (r#""from":"a""#, r#""from":"b""#),
            (r#""owner":false"#, r#""owner":true"#),
            (r#""text":"done""#, r#""text":"failed""#),
            (r#""to":"dispatcher""#, r#""to":"b""#),
        ] {
            assert!(sealed.contains(from));
            assert!(open(&sealed.replace(from, to)).is_none(), "{to}");
        }
        assert!(open("{}").is_none());
        assert!(
            HubKey([8; 32])
                .open(&sealed, crate::work::DISPATCHER)
                .is_none()
        );
        // What another module is told is not told to us.
        let order = key().seal(&name("a"), false, "do it".into());
        assert!(key().seat(&name("b"), false).open(&order).is_none());
        assert!(key().seat(&name("a"), true).open(&order).is_none());
        // What we said ourselves is not the dispatcher's word.
        assert!(key().seat(&name("a"), false).open(&sealed).is_none());
    }

    #[test]
    fn a_seat_is_a_text_and_a_key_is_a_file() {
        for (who, owner) in [("a", true), ("exec-1/ü:x", false)] {
            let seat = key().seat(&name(who), owner);
            let again = Seat::parse(&seat.secret(), "here").unwrap();
            assert_eq!(again.seal("x".into()), seat.seal("x".into()));
            assert!(!format!("{seat:?}").contains(&hex(&seat.key)));
        }
        for wrong in ["", "ctxw1-owner-x-y-z", "ctxw1-guest-000000000000-00-a"] {
            let error = Seat::parse(wrong, "CONTEXTURE_WORKER_KEY").unwrap_err();
            assert_eq!(error.to_string(), "CONTEXTURE_WORKER_KEY holds no key");
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/hub.key");
        let made = HubKey::of_file(&file).unwrap();
        assert_eq!(HubKey::of_file(&file).unwrap().0, made.0);
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        std::fs::write(&file, "short").unwrap();
        assert!(HubKey::of_file(&file).is_err());
    }
}
