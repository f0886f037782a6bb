//! From options, the input and the project's configuration to the settings of a build.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use contexture::Settings;
use contexture::build::BuildInput;
use contexture::entry::RequestRecord;
use contexture::tokens::{FileTokenizer, Tokenizer, for_model};
use contexture_model::Model;

use crate::agent;
use crate::args::{self, AgentOptions, CompactorName, Format, Limits};
use crate::config::{self, Config, LocalConfig};
use crate::error::CliError;
use crate::input;
use crate::models::{self, Reader};

/// What a flag says beats what the input says, which beats what the project says.
pub fn settings(
    limits: &Limits,
    input: &BuildInput,
    format: Option<Format>,
    dir: Option<&Path>,
) -> Result<Settings, CliError> {
    let project = config::load(dir)?;
    let model = limits.model.name.as_deref().or(input.model.as_deref());
    let reader = reader(&limits.model, model, project.agent.local)?;
    with_config(limits, input, format, &project, reader)
}

fn with_config(
    limits: &Limits,
    input: &BuildInput,
    format: Option<Format>,
    project: &Config,
    reader: Reader,
) -> Result<Settings, CliError> {
    let mut config = input.config_over(project.context)?;
    if let Some(budget) = limits.budget {
        config.max_input_tokens = budget;
    }
    if let Some(window) = reader.window {
        config.max_input_tokens = config.max_input_tokens.min(window);
    }
    if let Some(reserve) = limits.reserve {
        config.reserved_output = reserve;
    }
    config.max_history_messages = limits.max_messages.or(config.max_history_messages);
    config.max_bytes = limits.max_bytes.or(config.max_bytes);
    let model = limits.model.name.clone().or_else(|| input.model.clone());
    let spec = model.clone();
    let mut settings = Settings {
        config,
        tokenizer: reader.tokenizer,
        wire: format.and_then(Format::wire).unwrap_or_default(),
        model: model.map(|name| bare(&name).to_owned()),
        system_prompt: project.agent.system_prompt.clone(),
        params: input.params.clone(),
        ..Settings::default()
    };
    match limits.compactor {
        CompactorName::None => settings.compactors.clear(),
        CompactorName::Extract => {}
        CompactorName::Model => {
            let made = agent::compactor(spec.as_deref(), project, &settings)?;
            settings.compactors.insert(0, made);
        }
    }
    Ok(settings)
}

/// The settings of whoever asks the project's daemon for a request.
pub fn plain(config: &Config) -> Settings {
    Settings {
        config: config.context,
        system_prompt: config.agent.system_prompt.clone(),
        ..Settings::default()
    }
}

/// The settings for a stored session: what a flag says beats what its last request was made with,
/// which beats what the project says.
pub fn of_session(
    limits: &Limits,
    last: Option<&RequestRecord>,
    config: &Config,
) -> Result<Settings, CliError> {
    let input = BuildInput {
        model: last.and_then(|record| record.model.clone()),
        params: last
            .and_then(|record| record.params.clone())
            .unwrap_or_default(),
        ..BuildInput::default()
    };
    let reader = match (&limits.model, input.model.as_deref()) {
        (own, record) if own.name.is_none() && own.tokenizer.is_none() => {
            models::reader_of_record(record, config.agent.local)
        }
        (own, record) => {
            let model = own.name.as_deref().or(record);
            reader(own, model, config.agent.local)?
        }
    };
    let mut settings = with_config(limits, &input, None, config, reader)?;
    settings.wire = last.and_then(|record| record.wire).unwrap_or_default();
    Ok(settings)
}

/// The settings for an agent's conversation with this model.
pub fn for_agent(
    options: &AgentOptions,
    config: &Config,
    model: &dyn Model,
) -> Result<Settings, CliError> {
    let mut limits = config.context;
    if let Some(budget) = options.budget {
        limits.max_input_tokens = budget;
    }
    if let Some(window) = model.window() {
        limits.max_input_tokens = limits.max_input_tokens.min(window);
    }
    if let Some(reserve) = options.reserve {
        limits.reserved_output = reserve;
    }
    if limits.reserved_output == 0 {
        // An agent's answers need room, and a provider counts them against the same window.
        limits.reserved_output = REPLY.min(limits.max_input_tokens / 8);
    }
    limits.validate()?;
    Ok(Settings {
        config: limits,
        tokenizer: model
            .tokenizer()
            .unwrap_or_else(|| for_model(Some(model.name()))),
        model: Some(model.name().to_owned()),
        ..Settings::default()
    })
}

/// The longest answer of an agent, unless the configuration says otherwise.
const REPLY: usize = 8_192;

/// The most bytes of a tokenizer's file. The largest in use have 35 MB.
const MAX_TOKENIZER_BYTES: usize = 64 << 20;

/// The reader of a model, with the tokenizer that a file holds where one is named.
pub fn reader(
    options: &args::Model,
    model: Option<&str>,
    limits: LocalConfig,
) -> Result<Reader, CliError> {
    let Some(path) = &options.tokenizer else {
        return models::reader(model, limits);
    };
    let tokenizer = from_file(path)?;
    let window = match options.name {
        Some(_) => models::reader(model, limits)?.window,
        None => models::reader_of_record(model, limits).window,
    };
    Ok(Reader { tokenizer, window })
}

/// The tokenizer for a command that has no use for a window.
pub fn tokenizer(
    options: &args::Model,
    model: Option<&str>,
) -> Result<Arc<dyn Tokenizer>, CliError> {
    Ok(reader(options, model, LocalConfig::default())?.tokenizer)
}

/// The tokenizer that a file holds. The last one is kept, for a command that builds many sessions.
fn from_file(path: &Path) -> Result<Arc<dyn Tokenizer>, CliError> {
    static LAST: Mutex<Option<(PathBuf, Arc<dyn Tokenizer>)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, known)) = last.as_ref().filter(|(known, _)| known == path) {
        return Ok(Arc::clone(known));
    }
    let bytes = input::small_file(path, MAX_TOKENIZER_BYTES)?;
    let name = path.display().to_string();
    let read: Arc<dyn Tokenizer> = Arc::new(FileTokenizer::from_json(name, &bytes)?);
    *last = Some((path.to_owned(), Arc::clone(&read)));
    Ok(read)
}

/// A model's name without our provider's: `openai:gpt-4o` is `gpt-4o` to OpenAI. Local models are ours
/// alone and keep it, so that whoever reads the log knows where to look.
fn bare(model: &str) -> &str {
    const PROVIDERS: [&str; 4] = ["openai", "openai-responses", "anthropic", "ollama"];
    match model.split_once(':') {
        Some((provider, name)) if PROVIDERS.contains(&provider) => name,
        _ => model,
    }
}
