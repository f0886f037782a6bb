use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use contexture::inject::{AgentInstanceMeta, ContextProvider, Item, Traits};

use super::Judge;
use crate::config::ProviderConfig;
use crate::user;

/// A file's text.
pub struct FromFile {
    pub of: ProviderConfig,
    pub path: PathBuf,
    pub root: PathBuf,
    pub judge: Judge,
}

impl ContextProvider for FromFile {
    fn name(&self) -> &str {
        &self.of.name
    }

    fn traits(&self) -> Traits {
        super::traits(&self.of)
    }

    fn system_context(&self, _: &AgentInstanceMeta) -> Result<Vec<Item<String>>, String> {
        // What a project reads out is trusted as it was shown.
        super::still_trusted(&self.of, &self.root, self.judge)?;
        let shown = self.path.display();
        let text = self.read().map_err(|why| format!("{shown}: {why}"))?;
        Ok(vec![text.trim_end().to_owned().into()])
    }
}

impl FromFile {
    fn read(&self) -> Result<String, String> {
        let said = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
            _ => error.to_string(),
        };
        let real = self.place().canonicalize().map_err(said)?;
        let root = self.root.canonicalize().map_err(said)?;
        // What a project names would be sent to a model: nothing but its own files.
        if self.of.of_project && !real.starts_with(&root) {
            return Err("it is not in the project".to_owned());
        }
        // A pipe would be waited for.
        if !real.is_file() {
            return Err("it is no ordinary file".to_owned());
        }
        let most = self.of.max_bytes;
        let mut bytes = Vec::new();
        let file = File::open(&real).map_err(said)?;
        file.take(most as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(said)?;
        if bytes.len() > most {
            return Err(format!("it has more than {most} bytes"));
        }
        String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
    }

    /// A path is seen from the project, or, with `~/`, from the user's home.
    fn place(&self) -> PathBuf {
        let home = self.path.strip_prefix("~").ok().zip(user::home());
        match home {
            Some((rest, home)) if !self.of.of_project => home.join(rest),
            _ => Path::new(&self.root).join(&self.path),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::testing::{meta, of};
    use super::*;
    use crate::config::ProviderKind;

    fn says(root: &Path, path: &str, of_project: bool) -> Result<String, String> {
        let provider = FromFile {
            of: ProviderConfig {
                of_project,
                ..of(ProviderKind::File(path.into()))
            },
            path: path.into(),
            root: root.to_owned(),
            judge: |_| Ok(crate::trust::State::Trusted),
        };
        let said = provider.system_context(&meta())?;
        Ok(said.into_iter().map(|item| item.value).collect())
    }

    #[test]
    fn a_file_of_the_project_is_read() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a.md"), "Be kind.\n\n").unwrap();
        assert_eq!(says(root.path(), "a.md", true).unwrap(), "Be kind.");
    }

    #[test]
    fn what_cannot_be_read_is_said_in_a_sentence() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("long"), "x".repeat(1_001)).unwrap();
        std::fs::write(root.path().join("bytes"), [0xff, 0xfe]).unwrap();
        for (path, words) in [
            ("gone.md", "gone.md: there is no such file"),
            ("long", "more than 1000 bytes"),
            ("bytes", "not UTF-8"),
            (".", "no ordinary file"),
        ] {
            let why = says(root.path(), path, true).unwrap_err();
            assert!(why.contains(words), "{path}: {why}");
        }
    }

    /// Attack 13: a project's provider reads nothing outside of it, not by a link either.
    #[test]
    fn a_project_cannot_name_what_is_outside() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let secret = outside.path().join("secret");
        std::fs::write(&secret, "mine").unwrap();
        std::os::unix::fs::symlink(&secret, root.path().join("link")).unwrap();
        let there = secret.to_str().unwrap();
        for path in ["link", there, "../../../../../../etc/hostname"] {
            assert!(says(root.path(), path, true).is_err(), "{path}");
        }
        // The user may.
        assert_eq!(says(root.path(), there, false).unwrap(), "mine");
    }
}
