//! The templates in effect: the built-in ones, the user's over them, and a trusted project's over both.

use std::path::Path;
use std::sync::Arc;

use contexture::ContextError;
use contexture::prompt::Templates;

use crate::config::Config;
use crate::error::CliError;
use crate::input;
use crate::trust::State;
use crate::user;

/// The folder of the user's templates, in that of our configuration.
const FOLDER: &str = "templates";
/// The most bytes of one.
const MAX_BYTES: usize = 32 << 10;
/// The most files that are looked at.
const MAX_FILES: usize = 64;

/// The templates in effect.
pub fn load(config: &Config) -> Result<Arc<Templates>, CliError> {
    let mut templates = Templates::default();
    if let Some(folder) = user::config() {
        of_user(&mut templates, &folder.join(FOLDER))?;
    }
    // The folder is only asked about where it has templates: that reads all that instructs an agent in it.
    if config.root.join(".contexture").join(FOLDER).is_dir() && config.trust()? == State::Trusted {
        for (name, place, text) in config.folder.seen().instructions.templates() {
            let text = text.map_err(|why| ContextError::invalid(place, why, HINT));
            let replaced = text.and_then(|text| templates.replace(name, place, text));
            replaced.map_err(|error| refused(&config.root.join(place), error))?;
        }
    }
    Ok(Arc::new(templates))
}

const HINT: &str = "make it a text file of at most 32 KiB in the project";

fn of_user(templates: &mut Templates, folder: &Path) -> Result<(), CliError> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(());
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_template = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "md");
    let mut paths: Vec<_> = paths.filter(is_template).take(MAX_FILES).collect();
    paths.sort();
    for path in paths {
        let bytes = input::small_file(&path, MAX_BYTES)?;
        let text = String::from_utf8_lossy(&bytes);
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let shown = path.display().to_string();
        let replaced = templates.replace(&name, &shown, &text);
        replaced.map_err(|error| refused(&path, error))?;
    }
    Ok(())
}

fn refused(path: &Path, error: ContextError) -> CliError {
    CliError::Context {
        place: Some(path.to_owned()),
        error,
    }
}
