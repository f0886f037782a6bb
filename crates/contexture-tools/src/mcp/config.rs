//! A server as it is configured, and what is never shown of it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use contexture_model::names_key;

use crate::inherit;

/// The shortest value that is hidden where it is quoted.
const SHORTEST_SECRET: usize = 6;

/// A server, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Its name: the part before the colon in the names of its tools.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// Whether it is left alone.
    pub disabled: bool,
    /// How long a call may take.
    pub timeout: Duration,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program that is started.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// What its environment has beside the little that it inherits.
        env: BTreeMap<String, Secret>,
        /// Where it starts.
        cwd: Option<PathBuf>,
    },
    /// An address.
    Http {
        /// The address.
        url: String,
        /// Sent with every request.
        headers: BTreeMap<String, Secret>,
    },
}

/// A value that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    text: String,
    /// Whether `${NAME}` in it stands for a variable of the environment.
    has_names: bool,
}

impl Secret {
    /// A value as it is.
    pub fn literal(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            has_names: false,
        }
    }

    /// A value as a configuration has it: `${NAME}` stands for a variable of the environment.
    pub(super) fn configured(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            has_names: true,
        }
    }

    /// The value with every `${NAME}` replaced; else the name of the variable that is not set, or is ours alone.
    pub fn resolve(&self) -> Result<String, String> {
        if !self.has_names {
            return Ok(self.text.clone());
        }
        let mut out = String::new();
        let mut rest = self.text.as_str();
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}') else {
                break;
            };
            out.push_str(before);
            let named = Some(name).filter(|name| inherit::may_be_named(name));
            let value = named.and_then(|name| std::env::var(name).ok());
            out.push_str(&value.ok_or_else(|| name.to_owned())?);
            rest = behind;
        }
        out.push_str(rest);
        Ok(out)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl ServerConfig {
    /// `stdio` or `http`.
    pub fn kind(&self) -> &'static str {
        match self.transport {
            Transport::Stdio { .. } => "stdio",
            Transport::Http { .. } => "http",
        }
    }

    /// A text in which none of its secrets stands: servers quote what they were given, and so do errors.
    pub(super) fn without_secrets(&self, mut text: String) -> String {
        let (secrets, url) = match &self.transport {
            Transport::Stdio { env, .. } => (env, None),
            Transport::Http { url, headers } => (headers, Some(url)),
        };
        if let Some(url) = url {
            text = text.replace(url, &self.shown());
            let behind = url.split_once(['?', '#']).map_or("", |(_, behind)| behind);
            if !behind.is_empty() {
                text = text.replace(behind, "…");
            }
        }
        for secret in secrets.values() {
            let whole = secret.resolve().unwrap_or_default();
            // Of `Bearer KEY` the key alone may be quoted. What is short is no secret, but a word.
            let pieces = whole.split_whitespace().chain([whole.as_str()]);
            for piece in pieces.filter(|piece| piece.len() >= SHORTEST_SECRET) {
                text = text.replace(piece, "…");
            }
        }
        text
    }

    /// What it is given that nobody else should see: variables that are keys by their name, and headers.
    pub fn secrets(&self) -> Vec<String> {
        match &self.transport {
            Transport::Stdio { env, .. } => {
                let keys = env.iter().filter(|(name, _)| names_key(name));
                keys.filter_map(|(_, secret)| secret.resolve().ok())
                    .collect()
            }
            Transport::Http { headers, .. } => {
                let values = headers.values().filter_map(|secret| secret.resolve().ok());
                let last = |value: String| value.split_whitespace().last().map(str::to_owned);
                values.filter_map(last).collect()
            }
        }
    }

    /// What is started or called, without anything that could be a secret: arguments, and the parts of
    /// an address that hold passwords and keys, are left out.
    pub fn shown(&self) -> String {
        match &self.transport {
            Transport::Stdio { command, args, .. } if args.is_empty() => command.clone(),
            Transport::Stdio { command, .. } => format!("{command} …"),
            Transport::Http { url, .. } => {
                let plain = url.split(['?', '#']).next().unwrap_or_default();
                match (plain.split_once("://"), plain.rsplit_once('@')) {
                    (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
                    _ => plain.to_owned(),
                }
            }
        }
    }
}
