//! Who says it: messages are sealed with the sender's key.
//!
//! A fleet's hub has one [`HubKey`]. Each module's own key follows from it, so that the dispatcher can check them all
//! and a module can speak for itself alone. There are two for each name: the owner's, for a worker that runs beside the
//! project and may say what it can do, and a guest's, for one that was given nothing else and counts as what the pool
//! says it is. A guest's key can be revoked: the next one of its name follows from the number of those before it.

use std::fmt;
use std::path::Path;

use contexture::json;
use contexture::pool::Name;
use contexture_store::{StateError, create_private, read_private};
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
    voice: Voice,
    key: [u8; 32],
}

/// With which key of a name something is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// The owner's.
    Owner,
    /// A guest's, and how many before it were revoked.
    Guest(u64),
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// There are no random numbers.
    #[error("{place}: {error}")]
    Io {
        /// Which.
        place: String,
        /// Why.
        error: std::io::Error,
    },
    /// The file is not private.
    #[error(transparent)]
    State(#[from] StateError),
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
    #[serde(default, skip_serializing_if = "is_first")]
    generation: u64,
    text: String,
    seal: String,
}

fn is_first(generation: &u64) -> bool {
    *generation == 0
}

impl Envelope {
    fn voice(&self) -> Voice {
        if self.owner {
            Voice::Owner
        } else {
            Voice::Guest(self.generation)
        }
    }
}

/// Something that was said, and it is proven who said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// Who.
    pub from: Name,
    /// With which of its keys.
    pub voice: Voice,
    /// What.
    pub text: String,
}

/// What every seat's text begins with.
const PREFIX: &str = "ctxw1";

impl HubKey {
    /// The key that this file holds; makes one where there is none. One that others can read is refused: whoever has it
    /// speaks for everyone.
    pub fn of_file(folder: &Path, name: &str) -> Result<Self, KeyError> {
        let place = folder.join(name).display().to_string();
        if let Some(text) = read_private(folder, name)? {
            return Self::parse(text.trim(), &place);
        }
        let made = random().map_err(|error| KeyError::Io {
            place: place.clone(),
            error: std::io::Error::other(error),
        })?;
        if create_private(folder, name, &hex(&made))? {
            return Ok(Self(made));
        }
        // Somebody else was first.
        let text = read_private(folder, name)?.unwrap_or_default();
        Self::parse(text.trim(), &place)
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

    /// Its digits, for whoever masks them.
    pub(crate) fn digits(&self) -> String {
        hex(&self.0)
    }

    /// The hub's own part of every broker: two fleets that share one do not meet.
    pub fn namespace(&self) -> String {
        let derived = blake3::derive_key("contexture hub 2026 namespace", &self.0);
        hex(&derived[..6])
    }

    /// A module's key: the owner's, or a guest's first.
    pub fn seat(&self, name: &Name, owner: bool) -> Seat {
        let voice = if owner { Voice::Owner } else { Voice::Guest(0) };
        self.seat_of(name, voice)
    }

    /// A module's key of this kind.
    pub fn seat_of(&self, name: &Name, voice: Voice) -> Seat {
        let context = match voice {
            Voice::Owner => "contexture hub 2026 seat of the owner",
            Voice::Guest(_) => "contexture hub 2026 seat of a guest",
        };
        let seats = blake3::derive_key(context, &self.0);
        // No name has a line break.
        let of = match voice {
            Voice::Owner | Voice::Guest(0) => name.as_str().to_owned(),
            Voice::Guest(generation) => format!("{name}\n{generation}"),
        };
        Seat {
            name: name.clone(),
            namespace: self.namespace(),
            voice,
            key: *blake3::keyed_hash(&seats, of.as_bytes()).as_bytes(),
        }
    }

    /// Opens what somebody sealed for `me`. Nothing, where it is not what it says. Whether the key still counts is not
    /// known here.
    pub fn open(&self, sealed: &str, me: &str) -> Option<Opened> {
        let envelope: Envelope = json::from_text(sealed).ok()?;
        let name = Name::new(&envelope.from).ok()?;
        let voice = envelope.voice();
        let seat = self.seat_of(&name, voice);
        seat.checks(&envelope, me).then_some(Opened {
            from: name,
            voice,
            text: envelope.text,
        })
    }

    /// Seals what the dispatcher says to a module, with the key that the two share.
    pub fn seal(&self, to: &Name, voice: Voice, text: String) -> String {
        self.seat_of(to, voice)
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
        self.voice == Voice::Owner
    }

    /// It as a text, which is a secret.
    pub fn secret(&self) -> String {
        let kind = match self.voice {
            Voice::Owner => "owner".to_owned(),
            Voice::Guest(0) => "guest".to_owned(),
            Voice::Guest(generation) => format!("guest{generation}"),
        };
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
            let voice = match parts.next()? {
                "owner" => Voice::Owner,
                "guest" => Voice::Guest(0),
                other => Voice::Guest(other.strip_prefix("guest")?.parse().ok()?),
            };
            let namespace = parts.next()?;
            let plain = namespace.len() == 12 && namespace.bytes().all(|b| b.is_ascii_hexdigit());
            let key = unhex(parts.next()?)?;
            let name = Name::new(parts.next()?).ok()?;
            plain.then(|| Self {
                name,
                namespace: namespace.to_owned(),
                voice,
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
            owner: self.is_owner(),
            generation: match self.voice {
                Voice::Owner => 0,
                Voice::Guest(generation) => generation,
            },
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
            && envelope.voice() == self.voice
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
        write!(f, "Seat({}, {:?})", self.name, self.voice)
    }
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
        assert_eq!(
            (opened.voice, opened.text.as_str()),
            (Voice::Guest(0), "hello")
        );
        let order = key().seal(&name("a"), Voice::Guest(0), "do it".into());
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
        let order = key().seal(&name("a"), Voice::Guest(0), "do it".into());
        assert!(key().seat(&name("b"), false).open(&order).is_none());
        assert!(key().seat(&name("a"), true).open(&order).is_none());
        // What we said ourselves is not the dispatcher's word.
        assert!(key().seat(&name("a"), false).open(&sealed).is_none());
    }

    #[test]
    fn the_next_key_is_another_and_says_so() {
        let (a, me) = (name("a"), crate::work::DISPATCHER);
        let [first, next] = [0, 1].map(|n| key().seat_of(&a, Voice::Guest(n)));
        assert_ne!(first.key, next.key);
        assert_eq!(first.key, key().seat(&a, false).key);
        let sealed = next.seal("hello".into());
        assert_eq!(key().open(&sealed, me).unwrap().voice, Voice::Guest(1));
        // Nobody gives an old key for a new one, and a first one is as it ever was.
        let forged = first.seal("hello".into());
        assert!(!forged.contains("generation"));
        let forged = forged.replace(r#""owner":false"#, r#""owner":false,"generation":1"#);
        assert!(key().open(&forged, me).is_none());
    }

    #[test]
    fn a_seat_is_a_text_and_a_key_is_a_file() {
        let voices = [Voice::Owner, Voice::Guest(0), Voice::Guest(12)];
        for (who, voice) in ["a", "exec-1/ü:x", "b"].into_iter().zip(voices) {
            let seat = key().seat_of(&name(who), voice);
            let again = Seat::parse(&seat.secret(), "here").unwrap();
            assert_eq!(again.seal("x".into()), seat.seal("x".into()));
            assert!(!format!("{seat:?}").contains(&hex(&seat.key)));
        }
        for wrong in [
            "",
            "ctxw1-owner-x-y-z",
            "ctxw1-guest-1-x-y-z",
            "ctxw1-guest-000000000000-00-a",
        ] {
            let error = Seat::parse(wrong, "CONTEXTURE_WORKER_KEY").unwrap_err();
            assert_eq!(error.to_string(), "CONTEXTURE_WORKER_KEY holds no key");
        }
        let folder = tempfile::tempdir().unwrap();
        let read = || HubKey::of_file(folder.path(), "hub.key");
        let made = read().unwrap();
        assert_eq!(read().unwrap().0, made.0);
        let file = folder.path().join("hub.key");
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode));
        assert_eq!(
            std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        mode(0o640).unwrap();
        assert!(matches!(read(), Err(KeyError::State(_))));
        mode(0o600).unwrap();
        std::fs::write(&file, "short").unwrap();
        assert!(read().is_err());
    }
}
