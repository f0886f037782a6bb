//! From what a host asks for to a session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol::Client;
use agent_client_protocol::Error;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{Error as Said, McpServer, Meta, SessionId, SessionUpdate};
use contexture::prompt::Section;
use contexture_agent::clock;
use contexture_fleet::tokens::{hex, random};
use contexture_store::Key;
use contexture_tools::mcp::{self, Secret, ServerConfig, Transport};
use serde_json::{Value, json};

use super::ask::Host;
use super::session::Session;
use super::tell::Teller;
use super::{Server, failed, refused, replay};
use crate::agent::{self, Begin, HOST};
use crate::config::{self, Config};
use crate::error::CliError;
use crate::store::{self, Home};

/// What a host asks for.
pub struct Asked {
    pub cwd: PathBuf,
    pub servers: Vec<McpServer>,
    pub meta: Option<Meta>,
}

/// The most bytes that a host adds to the system side.
const MOST_SAID: usize = 256 << 10;
/// The longest name of a server, as the configuration has it.
const LONGEST_NAME: usize = 32;

impl Server {
    /// A session that nobody had before.
    pub async fn fresh(
        &self,
        asked: Asked,
        cx: ConnectionTo<Client>,
    ) -> Result<(SessionId, Session), Error> {
        let (cwd, config, home) = self.place(&asked.cwd)?;
        let key = unique(&home).map_err(|error| failed(&error))?;
        let id = SessionId::new(key.as_str());
        // The host may load it again, also before anything was said.
        let sessions = home.sessions.clone();
        let begun = sessions.put(&key, agent::header(&cwd), &clock::now(), Vec::new());
        begun.map_err(|error| failed(&error.into()))?;
        let made = self.make(asked, cx, key.clone(), (cwd, config, home)).await;
        if made.is_err() {
            let _ = sessions.remove(&key);
        }
        Ok((id, made?))
    }

    /// A session that is in the project's log, and what was said in it.
    pub async fn again(
        &self,
        id: &SessionId,
        asked: Asked,
        cx: ConnectionTo<Client>,
    ) -> Result<(Session, Vec<SessionUpdate>), Error> {
        let missing = || Error::from(Said::session_not_found(id.clone()));
        let key = Key::new(id.0.as_ref()).map_err(|_| missing())?;
        let (cwd, config, home) = self.place(&asked.cwd)?;
        if !home
            .sessions
            .exists(&key)
            .map_err(|error| failed(&error.into()))?
        {
            return Err(missing());
        }
        let own = home.sessions.check_own(&key);
        own.map_err(|error| failed(&error.into()))?;
        let loaded = home.load(&key).map_err(|error| failed(&error))?;
        let updates = replay::updates(&loaded.view, &cwd).map_err(|error| failed(&error.into()))?;
        let session = self.make(asked, cx, key, (cwd, config, home)).await?;
        Ok((session, updates))
    }

    async fn make(
        &self,
        asked: Asked,
        cx: ConnectionTo<Client>,
        key: Key,
        (cwd, config, home): (PathBuf, Config, Home),
    ) -> Result<Session, Error> {
        let (servers, mut untold) = servers(&asked.servers);
        let host = said(asked.meta.as_ref())?;
        let model = self.model(&config).await.map_err(|error| failed(&error))?;
        let teller = Arc::new(Teller::new(
            cx,
            SessionId::new(key.as_str()),
            cwd.clone(),
            self.takes_notices(),
            hex(&random().map_err(Error::into_internal_error)?[..4]),
        ));
        let begin = Begin {
            holds: None,
            more: Vec::new(),
            config,
            home,
            model,
            key,
            workspace: cwd.clone(),
            cwd,
            asks: Some(Arc::new(Host(Arc::clone(&teller)))),
            servers,
            host,
        };
        let made = agent::make(&self.options, begin).await;
        let ready = made.map_err(|error| failed(&error))?;
        untold.retain(|what| !what.is_empty());
        Ok(Session::new(ready, teller, untold))
    }

    /// The folder that the host works in, and the project around it.
    fn place(&self, cwd: &Path) -> Result<(PathBuf, Config, Home), Error> {
        if !cwd.is_absolute() {
            return Err(refused(format!("cwd must be absolute: {}", cwd.display())));
        }
        let real = cwd.canonicalize().ok().filter(|real| real.is_dir());
        let Some(real) = real else {
            return Err(refused(format!("cwd is no folder: {}", cwd.display())));
        };
        let place = || {
            let config = config::load_at(self.dir.as_deref(), &real)?;
            let home = store::of(&config)?;
            Ok::<_, CliError>((config, home))
        };
        let (config, home) = place().map_err(|error| failed(&error))?;
        Ok((real, config, home))
    }
}

/// A name that no session has, here or in another process.
fn unique(home: &Home) -> Result<Key, CliError> {
    let digits: String = clock::now()
        .chars()
        .filter(char::is_ascii_digit)
        .take(14)
        .collect();
    let (day, time) = digits.split_at(8.min(digits.len()));
    loop {
        let bytes = random().map_err(|error| CliError::Unfinished {
            what: error.to_string(),
            hint: String::new(),
        })?;
        let key = Key::new(format!("acp-{day}-{time}-{}", hex(&bytes[..4])))?;
        if !home.sessions.exists(&key)? {
            return Ok(key);
        }
    }
}

/// What the host adds to the system side: `_meta.systemPrompt`, as a text or as `{append}`.
fn said(meta: Option<&Meta>) -> Result<Option<Section>, Error> {
    let Some(given) = meta.and_then(|meta| meta.get("systemPrompt")) else {
        return Ok(None);
    };
    let text = match given {
        Value::Object(map) => map.get("append").unwrap_or(&Value::Null),
        other => other,
    };
    match text {
        Value::Null => Ok(None),
        Value::String(text) if text.len() > MOST_SAID => Err(refused(format!(
            "_meta.systemPrompt has {} bytes, and at most {MOST_SAID} are taken",
            text.len()
        ))),
        Value::String(text) if text.trim().is_empty() => Ok(None),
        Value::String(text) => Ok(Some(Section::stable(HOST, "acp", text.trim()))),
        _ => Err(refused(
            "_meta.systemPrompt must be a text, or {\"append\": text}",
        )),
    }
}

/// The servers that a host names, and why others are left out. None of them fails a session.
fn servers(given: &[McpServer]) -> (Vec<ServerConfig>, Vec<String>) {
    let mut servers: Vec<ServerConfig> = Vec::new();
    let mut untold = Vec::new();
    for server in given {
        match configured(server) {
            Ok(made) if servers.iter().any(|known| known.name == made.name) => {
                untold.push(format!(
                    "MCP server {}: there are two of this name",
                    made.name
                ));
            }
            Ok(made) => servers.push(made),
            Err(why) => untold.push(why),
        }
    }
    (servers, untold)
}

fn configured(server: &McpServer) -> Result<ServerConfig, String> {
    let (name, value, secrets): (_, _, Vec<(&String, &String)>) = match server {
        McpServer::Stdio(of) => (
            &of.name,
            json!({ "command": of.command, "args": of.args }),
            of.env.iter().map(|one| (&one.name, &one.value)).collect(),
        ),
        McpServer::Http(of) => (
            &of.name,
            json!({ "url": of.url }),
            of.headers
                .iter()
                .map(|one| (&one.name, &one.value))
                .collect(),
        ),
        McpServer::Sse(of) => {
            return Err(format!("MCP server {}: SSE is not spoken here", of.name));
        }
        _ => return Err("an MCP server is reached in a way that is not known here".to_owned()),
    };
    let legal = name.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() || c == '_' || c == '-' => c,
        _ => '_',
    });
    let legal: String = legal.take(LONGEST_NAME).collect();
    let read = mcp::read(&json!({ legal: value })).map_err(|error| error.to_string())?;
    let mut made = read.into_iter().next().ok_or("no server")?;
    // As they are: a host has put in what it meant.
    let secrets = secrets
        .into_iter()
        .map(|(name, value)| (name.clone(), Secret::literal(value.as_str())))
        .collect();
    match &mut made.transport {
        Transport::Stdio { env, .. } => *env = secrets,
        Transport::Http { headers, .. } => *headers = secrets,
    }
    Ok(made)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use agent_client_protocol::v1::schema::{EnvVariable, McpServerSse, McpServerStdio};

    use super::*;

    #[test]
    fn a_host_speaks_in_two_ways() {
        let of = |value: Value| {
            let meta = json!({ "systemPrompt": value });
            said(meta.as_object())
        };
        assert_eq!(of(json!("Be kind.")).unwrap().unwrap().text, "Be kind.");
        assert_eq!(
            of(json!({"append": "Be kind."})).unwrap().unwrap().text,
            "Be kind."
        );
        assert!(of(json!({"preset": "x"})).unwrap().is_none());
        assert!(of(json!(7)).is_err());
        assert!(of(json!("x".repeat(MOST_SAID + 1))).is_err());
        assert!(said(None).unwrap().is_none());
    }

    #[test]
    fn servers_are_taken_as_far_as_they_can_be() {
        let named = |name: &str| McpServer::Stdio(McpServerStdio::new(name, "/bin/true"));
        let secret = EnvVariable::new("KEY", "${HOME}");
        let with = McpServerStdio::new("b", "/bin/true").env(vec![secret]);
        let given = [
            named("My Server"),
            named("My.Server"),
            McpServer::Stdio(with),
            McpServer::Sse(McpServerSse::new("s", "http://localhost")),
        ];
        let (made, untold) = servers(&given);
        let names: Vec<&str> = made.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["My_Server", "b"], "{untold:?}");
        assert_eq!(untold.len(), 2, "{untold:?}");
        let Transport::Stdio { env, .. } = &made[1].transport else {
            unreachable!("it is a program");
        };
        assert_eq!(env["KEY"], Secret::literal("${HOME}"));
    }
}
