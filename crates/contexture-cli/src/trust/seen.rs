//! What instructs an agent in a folder, read once: what is judged is what is used.

use std::collections::BTreeMap;
use std::path::Path;

use contexture_tools::skills::{Places, Skills};
use contexture_tools::system::Instructions;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::NAME;

/// A project's configuration, as far as trust needs it.
#[derive(Debug, Clone, Default)]
pub struct Configuration {
    /// Its digest and its text, where there is one.
    file: Option<(String, String)>,
    /// The files of the project that its providers read out to agents.
    provided: Vec<String>,
}

/// What instructs an agent in a folder.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// `Agent.md`, and `AGENTS.md` down to where the agent works.
    pub instructions: Instructions,
    /// The project's own skills.
    pub skills: Skills,
    digests: BTreeMap<String, String>,
    files: Vec<SeenFile>,
}

/// A file that instructs an agent, or that one may load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenFile {
    /// Its path from the root.
    pub name: String,
    pub digest: String,
    /// Its text, where it is one and not long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The longest text of a file that is kept to show what changed.
const MAX_TEXT_BYTES: usize = 64 << 10;

impl Configuration {
    /// The file of these bytes, which says this.
    pub fn new(bytes: &[u8], document: &Map<String, Value>) -> Self {
        let digest = blake3::hash(bytes).to_hex().to_string();
        let text = String::from_utf8_lossy(bytes).into_owned();
        let providers = document.get("providers").and_then(Value::as_array);
        let provided = providers.into_iter().flatten();
        let provided = provided.filter_map(|provider| provider.get("file")?.as_str());
        Self {
            file: Some((digest, text)),
            provided: provided.map(str::to_owned).collect(),
        }
    }

    /// The digest of the file, where there is one.
    pub fn digest(&self) -> Option<&str> {
        self.file.as_ref().map(|(digest, _)| digest.as_str())
    }
}

impl Seen {
    /// Looks at a folder for an agent that works in `cwd`.
    pub fn look(root: &Path, cwd: &Path, configuration: &Configuration) -> Self {
        let instructions = Instructions::read(root, cwd);
        let skills = Skills::discover(&Places::default().and_project(root));
        let mut seen = Self::default();
        if let Some((digest, text)) = &configuration.file {
            seen.add(NAME.to_owned(), digest.clone(), Some(text.clone()));
        }
        for file in instructions.files() {
            if let Some(digest) = file.digest() {
                let text = file.text().map(str::to_owned);
                seen.add(file.shown().to_owned(), digest.to_owned(), text);
            }
        }
        for path in &configuration.provided {
            let place = root.join(path);
            // A provider reads nothing outside of the project, and nothing that is no ordinary file.
            let real = place.canonicalize().ok().zip(root.canonicalize().ok());
            let is_read = real.is_some_and(|(real, root)| real.starts_with(root) && real.is_file());
            if is_read && let Ok(bytes) = crate::input::small_file(&place, MAX_PROVIDED_BYTES) {
                let digest = blake3::hash(&bytes).to_hex().to_string();
                let text = String::from_utf8(bytes).ok();
                seen.add(path.clone(), digest, text);
            }
        }
        for skill in skills.used().iter().chain(skills.shadowed()) {
            let folder = skill.folder.strip_prefix(root).unwrap_or(&skill.folder);
            let folder = format!("{}/", folder.display());
            let parts = skill.files.iter();
            let digest = digest_of(parts.map(|file| (file.path.as_str(), file.digest.as_str())));
            for file in &skill.files {
                seen.files.push(SeenFile {
                    name: format!("{folder}{}", file.path),
                    digest: file.digest.clone(),
                    text: file.text.clone(),
                });
            }
            seen.digests.insert(folder, digest);
        }
        Self {
            instructions,
            skills,
            ..seen
        }
    }

    /// The digests by name. A skill is one, whose name ends with a slash.
    pub fn digests(&self) -> &BTreeMap<String, String> {
        &self.digests
    }

    /// The digest of all of it.
    pub fn digest(&self) -> String {
        let parts = self.digests.iter();
        digest_of(parts.map(|(name, digest)| (name.as_str(), digest.as_str())))
    }

    /// All files.
    pub fn files(&self) -> &[SeenFile] {
        &self.files
    }

    fn add(&mut self, mut name: String, digest: String, text: Option<String>) {
        // Two paths can read the same where one has characters that are not shown.
        while self
            .digests
            .get(&name)
            .is_some_and(|known| *known != digest)
        {
            name.push('\'');
        }
        if self.digests.insert(name.clone(), digest.clone()).is_none() {
            let text = text.filter(|text| text.len() <= MAX_TEXT_BYTES);
            self.files.push(SeenFile { name, digest, text });
        }
    }
}

/// The digest of several files, from their paths and digests.
pub fn digest_of<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in files.flat_map(|(path, digest)| [path, digest]) {
        // Neither has a NUL in it.
        hasher.update(part.as_bytes()).update(&[0]);
    }
    hasher.finalize().to_hex().to_string()
}

/// As much as a provider may read.
const MAX_PROVIDED_BYTES: usize = 256 << 10;
