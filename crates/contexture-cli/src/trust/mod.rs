//! Trust in a folder: for what it holds as the user saw it.
//!
//! A project may name programs to start, an address to send everything to, and instructions for a model that has tools.
//! None of it counts before the user said so, and none of it counts when it has changed since.

mod change;
mod kept;
mod lines;
mod record;
mod seen;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use contexture_agent::clock;
use contexture_store::{StoreError, UserState};

pub use change::Change;
pub use record::{Known, list};
pub use seen::{Configuration, Seen};

use crate::error::CliError;
use crate::user;

/// Whether the user trusts a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// As it is.
    Trusted,
    /// Nothing was said of it.
    Unknown,
    /// As it was: what instructs an agent there is different by now.
    Changed,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Unknown => "unknown",
            Self::Changed => "changed",
        }
    }
}

/// Trusts the folder for one command, where it is `1`.
const ONCE: &str = "CONTEXTURE_TRUST";

/// A project's folder at one moment: what instructs an agent in it, and whether the user trusts that. It is looked at
/// when somebody asks, and once.
#[derive(Clone)]
pub struct Folder {
    root: PathBuf,
    cwd: PathBuf,
    configuration: Configuration,
    known: OnceLock<Option<Known>>,
    seen: OnceLock<Seen>,
}

impl Folder {
    /// The folder `root` for an agent that works in `cwd`, with the project's configuration as it was read.
    pub fn new(root: &Path, cwd: &Path, configuration: Configuration) -> Self {
        Self {
            root: root.to_owned(),
            cwd: cwd.to_owned(),
            configuration,
            known: OnceLock::new(),
            seen: OnceLock::new(),
        }
    }

    /// The same for an agent that works elsewhere in it.
    pub fn at(&self, cwd: &Path) -> Cow<'_, Self> {
        if self.cwd == cwd {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self::new(&self.root, cwd, self.configuration.clone()))
    }

    /// What instructs an agent there.
    pub fn seen(&self) -> &Seen {
        self.seen
            .get_or_init(|| Seen::look(&self.root, &self.cwd, &self.configuration))
    }

    /// Whether the user trusts it, on record or for this command.
    pub fn state(&self) -> Result<State, CliError> {
        if once() {
            return Ok(State::Trusted);
        }
        self.recorded()
    }

    /// The same, by the record alone.
    pub fn recorded(&self) -> Result<State, CliError> {
        let Some(known) = self.known()? else {
            return Ok(State::Unknown);
        };
        let as_seen = match &known.files {
            // What is gone instructs nobody.
            Some(files) => {
                let mut now = self.seen().digests().iter();
                now.all(|(name, digest)| files.get(name) == Some(digest))
            }
            None => {
                let own = self.configuration.digest();
                own.is_none() || own == known.digest.as_deref()
            }
        };
        Ok(if as_seen {
            State::Trusted
        } else {
            State::Changed
        })
    }

    /// Records what instructs an agent in a folder that was trusted before digests of it were kept. Where that fails,
    /// the next command tries again.
    pub fn adopt(&self) {
        if let Ok(Some(known)) = self.known()
            && known.files.is_none()
            && matches!(self.recorded(), Ok(State::Trusted))
        {
            let _ = self.trust();
        }
    }

    /// What is different from what the user trusted.
    pub fn changes(&self) -> Result<Vec<Change>, CliError> {
        let known = self.known()?.and_then(|known| known.files.clone());
        let kept = kept::load(&self.root);
        let known = known.unwrap_or_default();
        Ok(change::between(&known, &kept, self.seen()))
    }

    /// The names of what is different, in a few words.
    pub fn in_short(&self) -> Result<String, CliError> {
        const SHOWN: usize = 3;
        let changes = self.changes()?;
        let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
        Ok(
            match names.len().checked_sub(SHOWN).filter(|more| *more > 0) {
                Some(more) => format!("{} and {more} more", names[..SHOWN].join(", ")),
                None => names.join(", "),
            },
        )
    }

    /// Records that the user trusts the folder as it was seen.
    pub fn trust(&self) -> Result<(), CliError> {
        let path = canonical(&self.root)?;
        // From now on what appears in the folder is nothing that an earlier version left there, and is not taken over.
        if let Some(state) = user::state() {
            let state = UserState::new(state).project(&self.root);
            let made = state.and_then(|state| state.make());
            made.map_err(StoreError::from)?;
        }
        // What was trusted in other folders of the project stays so.
        let known = record::find(&path)?.and_then(|known| known.files);
        let mut files = known.unwrap_or_default();
        files.extend(self.seen().digests().clone());
        kept::save(&self.root, self.seen());
        record::put(Known {
            path,
            files: Some(files),
            digest: None,
            declined: None,
            at: clock::now(),
        })
    }

    /// Records that the user was shown what changed, and does not trust it.
    pub fn decline(&self) -> Result<(), CliError> {
        match self.known()? {
            None => Ok(()),
            Some(known) => record::put(Known {
                declined: Some(self.seen().digest()),
                ..known.clone()
            }),
        }
    }

    /// Whether the user was asked about what is there now, and said no.
    pub fn is_declined(&self) -> Result<bool, CliError> {
        let declined = self.known()?.and_then(|known| known.declined.as_deref());
        Ok(declined.is_some_and(|declined| declined == self.seen().digest()))
    }

    /// Ends the trust. Whether there was any.
    pub fn revoke(&self) -> Result<bool, CliError> {
        let path = canonical(&self.root)?;
        if record::find(&path)?.is_none() {
            return Ok(false);
        }
        record::remove(&path)?;
        kept::remove(&self.root);
        Ok(true)
    }

    /// The record of the folder, as it was when it was first asked for.
    fn known(&self) -> Result<Option<&Known>, CliError> {
        if let Some(known) = self.known.get() {
            return Ok(known.as_ref());
        }
        let known = record::find(&canonical(&self.root)?)?;
        Ok(self.known.get_or_init(|| known).as_ref())
    }
}

/// Whether the folder is trusted for this one command.
pub fn once() -> bool {
    std::env::var_os(ONCE).is_some_and(|value| value == "1")
}

/// The place where the folder really is: a link to it, or another spelling, is the same folder.
fn canonical(root: &Path) -> Result<String, CliError> {
    let real = root
        .canonicalize()
        .map_err(|error| record::failed(root, error))?;
    match real.to_str() {
        Some(path) => Ok(path.to_owned()),
        None => Err(CliError::NotAllowed {
            what: format!("{}: its path is not UTF-8", real.display()),
            hint: "only a folder with a path in UTF-8 can be trusted".to_owned(),
        }),
    }
}
