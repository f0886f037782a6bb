use std::sync::{Arc, OnceLock};

use contexture::Settings;
use contexture::build::Compactor;
use contexture_agent::ModelCompactor;

use contexture_model::{Client, Endpoint, Model, ModelError, Patience, Provider};
use serde_json::json;
use tokio::runtime::Runtime;

use super::local;
use crate::args::AgentOptions;
use crate::config::{Chosen, Config};
use crate::error::CliError;

/// The model that answers where nobody names one: it needs no key and no network.
pub const DEFAULT: &str = "local:smollm2";

/// What names of models on this machine begin with.
pub const LOCAL: &str = "local:";

/// The model that the options name, or the configuration, or nobody.
pub async fn model(options: &AgentOptions, config: &Config) -> Result<Arc<dyn Model>, CliError> {
    let (spec, base_url) = chosen(options, config);
    // The first time, it has to come from somewhere.
    if let Some(name) = spec.strip_prefix(LOCAL) {
        local::fetched(name).await?;
    }
    of_spec(&spec, base_url.as_deref(), config)
}

/// Its spec, and its address where that is not its provider's own.
pub fn chosen(options: &AgentOptions, config: &Config) -> (String, Option<String>) {
    let chosen = |own: &Option<String>, set: &Option<Chosen<String>>| {
        own.clone().or_else(|| Some(set.as_ref()?.value.clone()))
    };
    let spec = chosen(&options.model, &config.agent.model);
    let base_url = chosen(&options.base_url, &config.agent.base_url);
    (spec.unwrap_or_else(|| DEFAULT.to_owned()), base_url)
}

/// The provider that a spec names; with an address alone it is OpenAI's form.
pub fn provider(spec: &str) -> Provider {
    let name = spec.split_once(':').map(|(name, _)| name);
    let mut all = Provider::ALL.into_iter();
    all.find(|known| Some(known.as_str()) == name)
        .unwrap_or(Provider::OpenAi)
}

/// The model of a spec such as `anthropic:NAME`.
pub fn of_spec(
    spec: &str,
    base_url: Option<&str>,
    config: &Config,
) -> Result<Arc<dyn Model>, CliError> {
    if let Some(name) = spec.strip_prefix(LOCAL) {
        return local::open(spec, name, config.agent.local);
    }
    let wrong = |error: ModelError| CliError::Usage {
        hint: match &error {
            ModelError::NoKey { .. } => error.hint().to_owned(),
            _ => {
                "a model is named provider:model, such as anthropic:NAME or ollama:NAME".to_owned()
            }
        },
        what: error.to_string(),
    };
    let endpoint = Endpoint::parse(spec, base_url).map_err(wrong)?;
    let client = Client::new(endpoint, Patience::default()).map_err(wrong)?;
    Ok(Arc::new(client))
}

/// Summaries by the model of this spec, for a command that calls it for nothing else.
pub fn compactor(
    spec: Option<&str>,
    config: &Config,
    settings: &Settings,
) -> Result<Arc<dyn Compactor>, CliError> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let Some(spec) = spec else {
        return Err(CliError::Usage {
            what: "--compactor model needs a model".to_owned(),
            hint: "name it: --model anthropic:NAME, ollama:NAME, …".to_owned(),
        });
    };
    let base_url = config
        .agent
        .base_url
        .as_ref()
        .map(|chosen| chosen.value.as_str());
    let model = of_spec(spec, base_url, config)?;
    let mut params = settings.params.clone();
    params.insert("stream".to_owned(), json!(true));
    let settings = Settings {
        wire: model.api().wire(),
        model: Some(model.name().to_owned()),
        params,
        ..settings.clone()
    };
    let runtime = match RUNTIME.get() {
        Some(runtime) => runtime,
        None => {
            let made = crate::command::runtime()?;
            RUNTIME.get_or_init(|| made)
        }
    };
    let made = ModelCompactor::new(model, &settings).on(runtime.handle().clone());
    Ok(Arc::new(made))
}
