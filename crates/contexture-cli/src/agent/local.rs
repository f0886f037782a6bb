//! Models on this machine, in this process.

use std::sync::Arc;

use contexture_model::Model;
#[cfg(feature = "local")]
use contexture_model::local::{LocalError, LocalModel, LocalOptions};

use crate::error::CliError;

/// The other ways to an answer, for whoever has no model here.
pub const OTHERS: &str = "or name another: --model ollama:NAME, openai:NAME, anthropic:NAME";

/// Sees to it that the model of this name is here, where it can be pulled.
#[cfg(feature = "local")]
pub async fn fetched(name: &str) -> Result<(), CliError> {
    let here = crate::models::shelf()?.get(name)?.is_some();
    if !here && contexture_model::weights::known(name).is_some() {
        crate::models::fetch(name, false).await?;
    }
    Ok(())
}

/// The model of this name, ready to answer. `spec` is what requests call it.
#[cfg(feature = "local")]
pub fn open(spec: &str, name: &str) -> Result<Arc<dyn Model>, CliError> {
    let weights = crate::models::shelf()?.get(name)?;
    let Some(weights) = weights else {
        return Err(CliError::Usage {
            what: format!("there is no model `{name}` on this machine"),
            hint: format!("`ctx model list` says which there are; {OTHERS}"),
        });
    };
    let model = LocalModel::open(spec, &weights.path, LocalOptions::default()).map_err(wrong)?;
    Ok(Arc::new(model))
}

#[cfg(feature = "local")]
pub fn wrong(error: LocalError) -> CliError {
    let (what, hint) = (error.to_string(), error.hint());
    match error {
        LocalError::Memory { .. } => CliError::Unfinished { what, hint },
        _ => CliError::BadModel { what, hint },
    }
}

#[cfg(not(feature = "local"))]
pub async fn fetched(_: &str) -> Result<(), CliError> {
    std::future::ready(Ok(())).await
}

#[cfg(not(feature = "local"))]
pub fn open(spec: &str, _: &str) -> Result<Arc<dyn Model>, CliError> {
    Err(CliError::Usage {
        what: format!("`{spec}`: this ctx was built without the engine for local models"),
        hint: format!(
            "build it with the feature `local` (on by default; it needs cmake and libclang), {OTHERS}"
        ),
    })
}
