//! The configured providers for a session of our own agent, where no host speaks for them: `ctx run` and `ctx chat`.
//!
//! Apart from the fleet, because here nobody needs a token: their tools are called in this process.

use std::path::Path;
use std::sync::Arc;

use contexture::inject::{
    AgentInstanceMeta, Archetype, InjectedRule, LaunchMode, McpServerStdio, ProviderCall,
    ToolDefinition, WorkspacePolicy,
};
use contexture::prompt::Section;
use contexture::{ContextConfig, Settings};
use contexture_fleet::{Bus, PrepareError, SessionInjector, room};
use contexture_store::{Key, StoreError};
use contexture_tools::mcp::{self, Secret, ServerConfig, Transport};
use contexture_tools::{Calling, Effect, Outcome, Tool, ToolSpec};
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::error::CliError;

/// The name of our own agent toward providers.
const NAME: &str = "contexture";

/// The additions of the providers to a session.
#[derive(Default)]
pub struct Provided {
    pub sections: Vec<Section>,
    pub servers: Vec<ServerConfig>,
    pub tools: Vec<Arc<dyn Tool>>,
    /// Notices for a person about providers that failed, and texts that were left out.
    pub notices: Vec<String>,
}

/// Asks the configured providers. Rules and skills are not among them: our own agent reads those itself.
pub async fn provided(
    config: &Config,
    key: &Key,
    workspace: &Path,
    settings: &Settings,
) -> Result<Provided, CliError> {
    if config.providers.is_empty() {
        return Ok(Provided::default());
    }
    let limits: &ContextConfig = &settings.config;
    let tokenizer = Arc::clone(&settings.tokenizer);
    let injector = SessionInjector::new(None, Arc::new(Bus::default()), tokenizer)
        .patience(super::patience(config))
        .room(room(limits));
    for provider in super::configured(config) {
        injector.register(provider);
    }
    let folder = json!(workspace.display().to_string());
    let meta = AgentInstanceMeta {
        name: NAME.to_owned(),
        archetype: Archetype::Repo,
        backend_type: contexture_fleet::backends::NATIVE.to_owned(),
        workspace_policy: WorkspacePolicy::Persistent,
        launch_mode: LaunchMode::Direct,
        more: Map::from_iter([("workspace".to_owned(), folder)]),
    };
    let session_id = key.as_str().to_owned();
    let prepared = injector.prepare(&meta, Some(session_id.clone())).await;
    let prepared = prepared.map_err(|error| match error {
        PrepareError::Context(error) => CliError::from(error),
        PrepareError::Key(error) => error.into(),
        PrepareError::State(error) => StoreError::from(error).into(),
        PrepareError::Token(error) => CliError::Unfinished {
            what: error.to_string(),
            hint: String::new(),
        },
    })?;
    let mut provided = Provided {
        sections: prepared.receipt.sections(&prepared.context),
        ..Provided::default()
    };
    for item in &prepared.receipt.items {
        if matches!(item.rule, InjectedRule::Failed | InjectedRule::NoRoom) {
            let why = item.why.as_deref().unwrap_or("left out");
            provided
                .notices
                .push(format!("provider {}: {why}", item.provider));
        }
    }
    for server in &prepared.context.mcp_servers {
        match configured_as(server) {
            Ok(server) => provided.servers.push(server),
            Err(why) => provided
                .notices
                .push(format!("MCP server {}: {why}", server.name)),
        }
    }
    let injector = Arc::new(injector);
    let tool = |definition: ToolDefinition| {
        Arc::new(ProviderTool {
            spec: ToolSpec {
                name: definition.name,
                description: match &definition.context {
                    Some(more) => format!("{}\n{}", definition.description, more.trim()),
                    None => definition.description,
                },
                parameters: definition.parameters,
                category: "provider".to_owned(),
                // What it does is not known, so somebody is asked.
                effect: Effect::Acts,
            },
            rpc_method: definition.rpc_method,
            provider: definition.provider.unwrap_or_default(),
            session_id: session_id.clone(),
            injector: Arc::clone(&injector),
        }) as Arc<dyn Tool>
    };
    provided.tools = prepared.context.tools.into_iter().map(tool).collect();
    Ok(provided)
}

/// A server as the configuration would name it. Values of its environment are as they are.
fn configured_as(server: &McpServerStdio) -> Result<ServerConfig, String> {
    let given = json!({ &server.name: { "command": server.command, "args": server.args } });
    let read = mcp::read(&given).map_err(|error| error.to_string())?;
    let mut made = read.into_iter().next().ok_or("it says nothing")?;
    if let Transport::Stdio { env, .. } = &mut made.transport {
        let literal = |value: &str| Secret::literal(value);
        let all = server.env.iter();
        *env = all
            .map(|one| (one.name.clone(), literal(&one.value)))
            .collect();
    }
    Ok(made)
}

/// A provider's tool as one of ours.
struct ProviderTool {
    spec: ToolSpec,
    rpc_method: String,
    provider: String,
    session_id: String,
    injector: Arc<SessionInjector>,
}

impl Tool for ProviderTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: &'a Map<String, Value>) -> Calling<'a> {
        Box::pin(async move {
            let call = ProviderCall {
                tool: self.spec.name.clone(),
                rpc_method: self.rpc_method.clone(),
                arguments: arguments.clone(),
                agent_name: NAME.to_owned(),
                archetype: Archetype::Repo,
                session_id: self.session_id.clone(),
            };
            match self.injector.call(&self.provider, call).await {
                Ok(Value::String(text)) => Outcome::done(text),
                Ok(value) => Outcome::done(value.to_string()),
                Err(why) => {
                    Outcome::failed(format!("The provider `{}` failed: {why}", self.provider))
                }
            }
        })
    }
}
