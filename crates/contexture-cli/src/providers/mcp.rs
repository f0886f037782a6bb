use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use contexture::inject::{
    AgentInstanceMeta, ContextProvider, EnvVariable, Item, McpServerStdio, Offer, ProviderCall,
    Scope, ToolDefinition, Traits,
};
use contexture::{Message, Role};
use contexture_tools::Tool;
use contexture_tools::mcp::{Options, ServerConfig, Servers, State, Transport};
use serde_json::Value;
use tokio::runtime::Handle;

use super::Judge;
use crate::config::ProviderConfig;

/// A configured MCP server: the agent is given it, or, with a scope, its tools alone. Then the server runs here, and
/// whatever opens it stays here.
pub struct FromServer {
    pub of: ProviderConfig,
    /// What it is called in `mcpServers`.
    pub name: String,
    /// It, where there is one of this name.
    pub server: Option<ServerConfig>,
    /// The least that an agent must be to have its tools.
    pub scope: Option<Scope>,
    /// It, once it was started for its tools.
    pub kept: Mutex<Option<Arc<Servers>>>,
    pub root: PathBuf,
    pub judge: Judge,
}

/// How long the server may take to say how it is used.
const QUICK: Duration = Duration::from_secs(2);

impl ContextProvider for FromServer {
    fn name(&self) -> &str {
        &self.of.name
    }

    fn traits(&self) -> Traits {
        super::traits(&self.of)
    }

    fn mcp_servers(&self, _: &AgentInstanceMeta) -> Result<Vec<Item<McpServerStdio>>, String> {
        Ok(vec![self.given()?.into()])
    }

    fn system_context(&self, _: &AgentInstanceMeta) -> Result<Vec<Item<String>>, String> {
        let said = self.instructions().map(|text| self.told(&text));
        Ok(said.map(Item::from).into_iter().collect())
    }

    fn offer(&self, meta: &AgentInstanceMeta) -> Result<Offer, String> {
        super::still_trusted(&self.of, &self.root, self.judge)?;
        if let Some(scope) = self.scope {
            // Our own agent connects to the project's servers itself.
            if super::reads_project(meta, &self.root) {
                return Ok(Offer::default());
            }
            return self.tools_alone(scope);
        }
        Ok(Offer {
            mcp_servers: self.mcp_servers(meta)?,
            system_context: self.system_context(meta)?,
            ..Offer::default()
        })
    }

    fn call(&self, call: &ProviderCall) -> Result<Value, String> {
        super::still_trusted(&self.of, &self.root, self.judge)?;
        let until = Instant::now() + self.of.timeout;
        let tools = self.tools_of_server(until)?;
        let method = |tool: &Arc<dyn Tool>| method(&tool.spec().name) == call.rpc_method;
        let tool = tools.into_iter().find(method);
        let tool = tool.ok_or_else(|| format!("`{}` has no such tool any more", self.name))?;
        let outcome = handle()?.block_on(async {
            let left = until.saturating_duration_since(Instant::now());
            tokio::time::timeout(left, tool.call(&call.arguments)).await
        });
        let outcome = outcome.map_err(|_| self.late())?;
        let answer = Message {
            content: outcome.content,
            ..Message::new(Role::Tool, "")
        };
        let text = answer.text().into_owned();
        if text.len() > self.of.max_bytes {
            return Err(format!("it said more than {} bytes", self.of.max_bytes));
        }
        if outcome.failed {
            return Err(text);
        }
        Ok(Value::String(text))
    }
}

/// The method behind a server's tool, `server:tool`.
fn method(name: &str) -> String {
    format!("mcp.{}", name.replacen(':', ".", 1))
}

/// Servers live in a runtime.
fn handle() -> Result<Handle, String> {
    Handle::try_current().map_err(|error| error.to_string())
}

impl FromServer {
    /// The server's tools as the host's own, and how they are used.
    fn tools_alone(&self, scope: Scope) -> Result<Offer, String> {
        let tools = self.tools_of_server(Instant::now() + self.of.timeout)?;
        let definition = |tool: &Arc<dyn Tool>| {
            let spec = tool.spec();
            ToolDefinition {
                name: spec.wire_name(),
                description: spec.description.clone(),
                parameters: spec.parameters.clone(),
                rpc_method: method(&spec.name),
                scope,
                context: None,
                provider: None,
            }
        };
        let servers = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let said = servers
            .as_ref()
            .and_then(|servers| servers.instructions().pop());
        let said = said.filter(|(_, text)| text.len() <= self.of.max_bytes);
        let said = said
            .map(|(_, text)| self.told(&text))
            .filter(|text| !text.is_empty());
        Ok(Offer {
            tools: tools.iter().map(definition).map(Item::from).collect(),
            system_context: said.map(Item::from).into_iter().collect(),
            ..Offer::default()
        })
    }

    /// The tools of the server, which is started where it does not run.
    fn tools_of_server(&self, until: Instant) -> Result<Vec<Arc<dyn Tool>>, String> {
        let handle = handle()?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = |servers: &Arc<Servers>| {
            let mut states = servers.states().into_iter();
            states.any(|status| matches!(status.state, State::Failed { .. }))
        };
        let running = kept.take().filter(|servers| !gone(servers));
        let servers = match running {
            Some(servers) => servers,
            None => {
                let server = self.configured()?.clone();
                let mut options = Options::new(&self.root);
                options.supervisor = super::supervisor();
                let _inside = handle.enter();
                Arc::new(Servers::start(vec![server], options))
            }
        };
        *kept = Some(Arc::clone(&servers));
        drop(kept);
        let left = until.saturating_duration_since(Instant::now());
        if !handle.block_on(servers.settled(left)) {
            return Err(self.late());
        }
        for status in servers.states() {
            if let State::Failed { why } | State::Restarting { why, .. } = status.state {
                return Err(why);
            }
        }
        // Those that read any server's resources are not this one's.
        let own = format!("{}:", self.name);
        let tools = servers.tools().into_iter();
        Ok(tools
            .filter(|tool| tool.spec().name.starts_with(&own))
            .collect())
    }

    fn late(&self) -> String {
        format!(
            "it did not answer within {} ms",
            self.of.timeout.as_millis()
        )
    }

    fn told(&self, text: &str) -> String {
        match text.trim() {
            "" => String::new(),
            text => format!("## The MCP server `{}`\n\n{text}", self.name),
        }
    }

    fn configured(&self) -> Result<&ServerConfig, String> {
        let server = self.server.as_ref().filter(|server| !server.disabled);
        server.ok_or_else(|| format!("mcpServers has no `{}` that is on", self.name))
    }

    fn given(&self) -> Result<McpServerStdio, String> {
        let name = &self.name;
        let server = self.configured()?;
        let Transport::Stdio {
            command,
            args,
            env,
            cwd: None,
        } = &server.transport
        else {
            return Err(format!(
                "`{name}` is no program that agents can be given: it has an address, or a folder; `tools` offers its tools alone"
            ));
        };
        let variable = |(name, value): (&String, &contexture_tools::mcp::Secret)| {
            let value = value
                .resolve()
                .map_err(|missing| format!("the variable {missing} is not set"))?;
            let name = name.clone();
            Ok(EnvVariable { name, value })
        };
        Ok(McpServerStdio {
            name: name.clone(),
            command: command.clone(),
            args: args.clone(),
            env: env.iter().map(variable).collect::<Result<_, String>>()?,
        })
    }

    /// What it says of its use, where it says that soon.
    fn instructions(&self) -> Option<String> {
        let handle = handle().ok()?;
        let server = self.server.clone()?;
        let mut options = Options::new(&self.root);
        options.supervisor = super::supervisor();
        options.restarts = 0;
        let patience = QUICK.min(self.of.timeout / 2);
        let said = handle.block_on(async {
            let servers = Servers::start(vec![server], options);
            servers.settled(patience).await;
            servers.instructions().pop()
        });
        let (_, text) = said.filter(|(_, text)| !text.trim().is_empty())?;
        (text.len() <= self.of.max_bytes).then_some(text)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use contexture_tools::mcp;
    use serde_json::json;

    use super::super::testing::{meta, of};
    use super::*;
    use crate::config::ProviderKind;

    fn given(servers: &Value) -> Result<Value, String> {
        let servers = mcp::read(servers).unwrap();
        let provider = FromServer {
            of: of(ProviderKind::Mcp {
                server: "fs".to_owned(),
                tools: None,
            }),
            name: "fs".to_owned(),
            server: servers.into_iter().find(|server| server.name == "fs"),
            scope: None,
            kept: Mutex::default(),
            root: "/".into(),
            judge: |_| Ok(crate::trust::State::Trusted),
        };
        let mut offer = provider.offer(&meta())?;
        Ok(json!(offer.mcp_servers.remove(0).value))
    }

    #[test]
    fn a_program_is_given_as_it_is_configured() {
        let found = given(&json!({"fs": {"command": "true", "args": ["x"], "env": {"A": "b"}}}));
        assert_eq!(
            found.unwrap(),
            json!({"name": "fs", "command": "true", "args": ["x"], "env": [{"name": "A", "value": "b"}]})
        );
    }

    #[test]
    fn what_cannot_be_given_is_said() {
        for (servers, words) in [
            (json!({}), "no `fs`"),
            (
                json!({"fs": {"command": "true", "disabled": true}}),
                "that is on",
            ),
            (json!({"fs": {"url": "http://localhost/mcp"}}), "an address"),
            (
                json!({"fs": {"command": "true", "env": {"A": "${NO_SUCH_VARIABLE_HERE}"}}}),
                "NO_SUCH_VARIABLE_HERE",
            ),
        ] {
            let why = given(&servers).unwrap_err();
            assert!(why.contains(words), "{servers}: {why}");
        }
    }
}
