use std::fmt;

use contexture::Wire;

use crate::{ModelError, Secret};

/// What a provider's requests and replies look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// OpenAI's chat completions, and all who speak like it.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
}

impl Api {
    /// The form in which a build writes its requests.
    pub fn wire(self) -> Wire {
        match self {
            Self::Chat => Wire::OpenAi,
            Self::Responses => Wire::Responses,
            Self::Messages => Wire::Anthropic,
        }
    }
}

/// Who runs the model. The variants are the one table of providers: name, address, key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// OpenAI, or any server that speaks its chat completions.
    OpenAi,
    /// OpenAI's responses.
    OpenAiResponses,
    /// Anthropic.
    Anthropic,
    /// A local Ollama.
    Ollama,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::OpenAi,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Ollama,
    ];

    /// Its name in `provider:model`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
        }
    }

    /// Where it is, unless somebody says otherwise.
    pub fn base_url(self) -> &'static str {
        match self {
            Self::OpenAi | Self::OpenAiResponses => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com/v1",
            Self::Ollama => "http://127.0.0.1:11434/v1",
        }
    }

    /// The environment's name of its key.
    pub fn key_name(self) -> Option<&'static str> {
        match self {
            Self::OpenAi | Self::OpenAiResponses => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Ollama => None,
        }
    }

    fn api(self) -> Api {
        match self {
            Self::OpenAi | Self::Ollama => Api::Chat,
            Self::OpenAiResponses => Api::Responses,
            Self::Anthropic => Api::Messages,
        }
    }
}

/// A model at an address.
#[derive(Clone)]
pub struct Endpoint {
    /// Who runs it.
    pub provider: Provider,
    /// The model's name there.
    pub model: String,
    /// The address, without the API's own path.
    pub base_url: String,
    /// The key, where there is one.
    pub key: Option<Secret>,
}

impl Endpoint {
    /// Reads `provider:model`, with the key from the environment. `base_url` overrides the
    /// provider's own address.
    pub fn parse(spec: &str, base_url: Option<&str>) -> Result<Self, ModelError> {
        let known = |name: &str| {
            Provider::ALL
                .into_iter()
                .find(|provider| provider.as_str() == name)
        };
        // A model's own name may have a colon, as Ollama's do.
        let (provider, model) = match spec.split_once(':') {
            Some((name, model)) if known(name).is_some() => (known(name), model),
            _ => (None, spec),
        };
        let provider = match (provider, base_url) {
            (Some(provider), _) => provider,
            (None, Some(_)) => Provider::OpenAi,
            (None, None) => {
                let names: Vec<&str> = Provider::ALL
                    .iter()
                    .map(|provider| provider.as_str())
                    .collect();
                let what = format!(
                    "`{spec}` names no provider: write {}:NAME",
                    names.join(":NAME, ")
                );
                return Err(ModelError::Invalid { what });
            }
        };
        if model.is_empty() {
            return Err(ModelError::Invalid {
                what: format!("`{spec}` names no model"),
            });
        }
        let base_url = base_url
            .unwrap_or(provider.base_url())
            .trim_end_matches('/')
            .to_owned();
        let key = provider.key_name().and_then(Secret::from_env);
        let endpoint = Self {
            provider,
            model: model.to_owned(),
            base_url,
            key,
        };
        endpoint.check()?;
        Ok(endpoint)
    }

    /// The form of its requests.
    pub fn api(&self) -> Api {
        self.provider.api()
    }

    /// The address of a request.
    pub fn url(&self) -> String {
        let path = match self.api() {
            Api::Chat => "chat/completions",
            Api::Responses => "responses",
            Api::Messages => "messages",
        };
        format!("{}/{path}", self.base_url)
    }

    /// The headers of a request, beside its type.
    pub(crate) fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        if self.api() == Api::Messages {
            headers.push(("anthropic-version", "2023-06-01".to_owned()));
        }
        if let Some(key) = &self.key {
            headers.push(match self.api() {
                Api::Messages => ("x-api-key", key.reveal().to_owned()),
                Api::Chat | Api::Responses => ("authorization", format!("Bearer {}", key.reveal())),
            });
        }
        headers
    }

    /// Fails where the provider itself is to be called without its key: it would refuse, after a while. A server at
    /// another address may need none.
    pub(crate) fn check_key(&self) -> Result<(), ModelError> {
        let host = |url: &str| Some(reqwest::Url::parse(url).ok()?.host_str()?.to_owned());
        let is_own = host(&self.base_url) == host(self.provider.base_url());
        match self.provider.key_name() {
            Some(variable) if self.key.is_none() && is_own => Err(ModelError::NoKey { variable }),
            _ => Ok(()),
        }
    }

    fn check(&self) -> Result<(), ModelError> {
        let wrong = |what: &str| {
            Err(ModelError::Invalid {
                what: format!("{}: {what}", self.base_url),
            })
        };
        let Ok(url) = reqwest::Url::parse(&self.base_url) else {
            return wrong("is no address");
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ModelError::Invalid {
                what: "a key has no place in an address".to_owned(),
            });
        }
        match url.scheme() {
            "https" => Ok(()),
            "http" if self.key.is_none() || is_local(&url) => Ok(()),
            "http" => wrong("a key is not sent without encryption; use https"),
            _ => wrong("must begin with http:// or https://"),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.provider.as_str(), self.model)
    }
}

fn is_local(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || bare
            .parse()
            .is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}
