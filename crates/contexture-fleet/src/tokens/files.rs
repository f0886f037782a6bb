//! The files in which the programs of a session find its token.
//!
//! A token in a command line, an environment or an agent's own configuration is read by others, and is kept where
//! nobody looks for it. So programs are told the place of a file, which only its owner may read and which goes with the
//! session.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use contexture_store::{StateError, clear_private, write_private};

use super::{Grant, Token};

/// The folder of the files, in a project's state.
const FOLDER: &str = "tokens";
/// The number of files at which those whose token no longer counts are looked for first.
const FIRST_SWEEP: usize = 1_024;

/// The files of a daemon's tokens: one for each session, and one for each agent with the token of its latest session,
/// for programs that were started before the session began.
pub(crate) struct TokenFiles {
    folder: PathBuf,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    agents: HashMap<String, Sessions>,
    count: usize,
    sweep_at: usize,
}

/// The sessions of an agent that have a file.
#[derive(Default)]
struct Sessions {
    latest: String,
    all: HashSet<String>,
}

impl TokenFiles {
    /// No files yet: those of a daemon that was killed are removed.
    pub fn new(state: &Path) -> Result<Self, StateError> {
        let folder = state.join(FOLDER);
        clear_private(&folder)?;
        Ok(Self {
            folder,
            known: Mutex::default(),
        })
    }

    /// Writes the token of a session that begins, and returns its file. Files of sessions that `counts` says no to
    /// are removed at times.
    pub fn begin(
        &self,
        grant: &Grant,
        token: &str,
        counts: impl Fn(&str, &str) -> bool,
    ) -> Result<PathBuf, StateError> {
        let mut known = self.known();
        if known.count >= known.sweep_at.max(FIRST_SWEEP) {
            self.sweep(&mut known, counts);
        }
        let Known { agents, count, .. } = &mut *known;
        let sessions = agents.entry(grant.agent().to_owned()).or_default();
        grant.session_id().clone_into(&mut sessions.latest);
        if sessions.all.insert(grant.session_id().to_owned()) {
            *count += 1;
        }
        let file = session_file(grant.agent(), grant.session_id());
        write_private(&self.folder, &agent_file(grant.agent()), token)?;
        write_private(&self.folder, &file, token)?;
        Ok(self.folder.join(file))
    }

    /// Writes the token for which that of a session was exchanged, where the session has a file.
    pub fn exchange(&self, grant: &Grant, token: &Token) -> Result<(), StateError> {
        let (known, token) = (self.known(), token.reveal());
        let Some(sessions) = known.agents.get(grant.agent()) else {
            return Ok(());
        };
        if sessions.latest == grant.session_id() {
            write_private(&self.folder, &agent_file(grant.agent()), token)?;
        }
        if sessions.all.contains(grant.session_id()) {
            let file = session_file(grant.agent(), grant.session_id());
            write_private(&self.folder, &file, token)?;
        }
        Ok(())
    }

    /// Removes the files of an agent's sessions.
    pub fn end(&self, agent: &str) {
        let mut known = self.known();
        let sessions = known.agents.remove(agent).unwrap_or_default();
        known.count -= sessions.all.len();
        for session in &sessions.all {
            self.remove(&session_file(agent, session));
        }
        self.remove(&agent_file(agent));
    }

    /// The file with the token of an agent's latest session. It need not be there.
    pub fn of_agent(&self, agent: &str) -> PathBuf {
        self.folder.join(agent_file(agent))
    }

    fn sweep(&self, known: &mut Known, counts: impl Fn(&str, &str) -> bool) {
        known.agents.retain(|agent, sessions| {
            sessions.all.retain(|session| {
                let stays = counts(agent, session);
                if !stays {
                    self.remove(&session_file(agent, session));
                }
                stays
            });
            if sessions.all.is_empty() {
                self.remove(&agent_file(agent));
            }
            !sessions.all.is_empty()
        });
        known.count = known.agents.values().map(|one| one.all.len()).sum();
        known.sweep_at = 2 * known.count;
    }

    fn remove(&self, name: &str) {
        // One that is left is empty of use: its token no longer counts, and the next daemon removes it.
        let _ = std::fs::remove_file(self.folder.join(name));
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name for an agent's session that is the same whenever it is taken up: agents keep it in their own files.
fn session_file(agent: &str, session_id: &str) -> String {
    named("session", &[agent, session_id])
}

fn agent_file(agent: &str) -> String {
    named("agent", &[agent])
}

fn named(what: &str, parts: &[&str]) -> String {
    let hash = blake3::hash(parts.join("\0").as_bytes());
    format!("{what}-{}", &hash.to_hex()[..32])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use contexture::inject::Archetype;

    use super::*;
    use crate::tokens::{LIFE, Tokens};

    fn begin(files: &TokenFiles, tokens: &Tokens, session: &str) -> (PathBuf, Arc<Grant>) {
        let (token, grant) = tokens.generate("bot", session, Archetype::Service).unwrap();
        let counts = |agent: &str, session: &str| tokens.counts(agent, session);
        let file = files.begin(&grant, token.reveal(), counts).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), token.reveal());
        (file, grant)
    }

    #[test]
    fn files_come_and_go_with_their_sessions() {
        let state = tempfile::tempdir().unwrap();
        let files = TokenFiles::new(state.path()).unwrap();
        let tokens = Tokens::new(LIFE).unwrap();
        let read = |file: &Path| std::fs::read_to_string(file).unwrap();
        let (one, first) = begin(&files, &tokens, "one");
        let (two, second) = begin(&files, &tokens, "two");
        assert_eq!(read(&files.of_agent("bot")), read(&two));
        let (new, _) = tokens.rotate(&first, Archetype::Repo).unwrap();
        files.exchange(&first, &new).unwrap();
        assert_eq!(read(&one), new.reveal());
        assert_eq!(
            read(&files.of_agent("bot")),
            read(&two),
            "the latest session's"
        );
        let (new, _) = tokens.rotate(&second, Archetype::Repo).unwrap();
        files.exchange(&second, &new).unwrap();
        assert_eq!(read(&files.of_agent("bot")), new.reveal());
        files.end("bot");
        assert_eq!(
            std::fs::read_dir(state.path().join(FOLDER))
                .unwrap()
                .count(),
            0
        );
        // Nothing is written for a session that has ended.
        files.exchange(&second, &new).unwrap();
        assert!(!two.exists());
    }

    #[test]
    fn files_of_tokens_that_expired_are_removed() {
        let state = tempfile::tempdir().unwrap();
        let files = TokenFiles::new(state.path()).unwrap();
        let tokens = Tokens::new(Duration::ZERO).unwrap();
        for n in 0..=FIRST_SWEEP {
            begin(&files, &tokens, &n.to_string());
        }
        let left = std::fs::read_dir(state.path().join(FOLDER))
            .unwrap()
            .count();
        assert!(left <= 2, "{left} files");
        // Nor does anything stay of a daemon that was killed.
        TokenFiles::new(state.path()).unwrap();
        assert_eq!(
            std::fs::read_dir(state.path().join(FOLDER))
                .unwrap()
                .count(),
            0
        );
    }
}
