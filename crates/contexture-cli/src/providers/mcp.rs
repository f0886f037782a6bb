use std::path::PathBuf;
use std::time::Duration;

use contexture::inject::{
    AgentInstanceMeta, ContextProvider, EnvVariable, Item, McpServerStdio, Offer, Traits,
};
use contexture_tools::mcp::{Options, ServerConfig, Servers, Transport};

use crate::config::ProviderConfig;

/// A configured MCP server, which the agent is given.
pub struct FromServer {
    pub of: ProviderConfig,
    /// What it is called in `mcpServers`.
    pub name: String,
    /// It, where there is one of this name.
    pub server: Option<ServerConfig>,
    pub root: PathBuf,
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
        let said = self.instructions().map(|text| {
            let text = text.trim();
            format!("## The MCP server `{}`\n\n{text}", self.name)
        });
        Ok(said.map(Item::from).into_iter().collect())
    }

    fn offer(&self, meta: &AgentInstanceMeta) -> Result<Offer, String> {
        Ok(Offer {
            mcp_servers: self.mcp_servers(meta)?,
            system_context: self.system_context(meta)?,
            ..Offer::default()
        })
    }
}

impl FromServer {
    fn given(&self) -> Result<McpServerStdio, String> {
        let name = &self.name;
        let Some(server) = self.server.as_ref().filter(|server| !server.disabled) else {
            return Err(format!("mcpServers has no `{name}` that is on"));
        };
        let Transport::Stdio {
            command,
            args,
            env,
            cwd: None,
        } = &server.transport
        else {
            return Err(format!(
                "`{name}` is no program that agents can be given: it has an address, or a folder"
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
        let handle = tokio::runtime::Handle::try_current().ok()?;
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
    use serde_json::{Value, json};

    use super::super::testing::{meta, of};
    use super::*;
    use crate::config::ProviderKind;

    fn given(servers: &Value) -> Result<Value, String> {
        let servers = mcp::read(servers).unwrap();
        let provider = FromServer {
            of: of(ProviderKind::Mcp("fs".to_owned())),
            name: "fs".to_owned(),
            server: servers.into_iter().find(|server| server.name == "fs"),
            root: "/".into(),
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
