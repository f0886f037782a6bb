//! The tools that an agent has here: those of the program, the shell, and those of MCP servers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use contexture::prompt::ToolPolicy;
use contexture_store::{Memories, Transcripts};
use contexture_tools::approval::{Approvals, Standing};
use contexture_tools::mcp::{ServerConfig, Servers};
use contexture_tools::shell::{Shell, ShellError, ShellOptions, Unsandboxed};
use contexture_tools::{Secrets, Tool, Tools, Toolset, builtin};

use super::allow;
use crate::args::AgentOptions;
use crate::command::mcp_options;
use crate::config::{Config, Sandbox};
use crate::error::CliError;
use crate::providers::Provided;
use crate::skills;
use crate::store::Home;

/// Time that the first turn waits for MCP servers that are starting.
const SETTLING: Duration = Duration::from_secs(3);

/// The parts of a toolset.
pub struct Kit {
    tools: Vec<Arc<dyn Tool>>,
    /// Those of providers.
    provided: Vec<Arc<dyn Tool>>,
    /// The servers that some of the tools come from.
    pub servers: Arc<Servers>,
    secrets: Secrets,
}

impl Kit {
    /// The tools of a workspace, beside them `more`, those of providers, and those of these servers; and what a person
    /// should know.
    pub async fn new(
        config: &Config,
        workspace: &Path,
        stores: builtin::Stores,
        provided: Provided,
        servers: Vec<ServerConfig>,
        more: Vec<Arc<dyn Tool>>,
    ) -> Result<(Self, Option<String>), CliError> {
        let mut tools = builtin::tools(stores);
        tools.extend(more);
        let notice = match shell(config, workspace) {
            Ok(shell) => {
                tools.push(Arc::new(shell));
                None
            }
            Err(error) => Some(format!("no shell: {error}")),
        };
        let mut server_options = mcp_options(&std::path::absolute(workspace)?)?;
        let taken = tools.iter().chain(&provided.tools);
        server_options.reserved = taken.map(|tool| tool.spec().wire_name()).collect();
        let mut all = config.agent.mcp_servers.clone();
        for given in [provided.servers, servers] {
            all.retain(|known| given.iter().all(|own| own.name != known.name));
            all.extend(given);
        }
        let given = all.iter().flat_map(|server| server.secrets());
        let secrets = Secrets::from_env().and(given.chain(crate::fleet::owner_secret(config)));
        let servers = Arc::new(Servers::start(all, server_options));
        servers.settled(SETTLING).await;
        let kit = Self {
            tools,
            provided: provided.tools,
            servers,
            secrets,
        };
        Ok((kit, notice))
    }

    /// Refuses to allow a tool that is not among these.
    pub fn check(&self, allowed: &[String]) -> Result<(), CliError> {
        let tools = self.tools.iter().chain(&self.provided);
        allow::check(allowed, tools, &self.servers)
    }

    /// The tools that all these policies allow.
    pub fn toolset(self, policies: Vec<ToolPolicy>, approvals: Approvals) -> Toolset {
        let toolset = Toolset::new(ToolPolicy::default(), approvals, self.secrets);
        let toolset = policies.into_iter().fold(toolset, Toolset::within);
        toolset
            .with(Arc::new(self.tools))
            // Behind ours: no provider takes the place of a tool that is known.
            .with(Arc::new(self.provided))
            .with(self.servers as Arc<dyn Tools>)
    }
}

/// The names of the tools that an agent of these options has in the project.
pub async fn names_here(
    options: &AgentOptions,
    config: &Config,
    home: &Home,
) -> Result<BTreeSet<String>, CliError> {
    let log = home.sessions.log();
    let stores = builtin::Stores {
        transcripts: Transcripts::new(Arc::clone(log)),
        memories: Memories::new(Arc::clone(log), config.agent.memory_window),
        skills: Arc::new(skills::discover(config)?.0),
    };
    let provided = Provided::default();
    let (kit, _) = Kit::new(
        config,
        &config.root,
        stores,
        provided,
        Vec::new(),
        Vec::new(),
    )
    .await?;
    let policies = policies(options, config, false);
    let toolset = kit.toolset(policies, Approvals::new(Standing::default()));
    let offer = toolset.offer();
    let names = offer.tools().iter().map(|tool| tool.spec().name.clone());
    Ok(names.collect())
}

/// The shell, as the configuration bounds it.
fn shell(config: &Config, workspace: &Path) -> Result<Shell, ShellError> {
    let of = &config.agent.shell;
    Shell::new(ShellOptions {
        root: workspace.to_owned(),
        network: of.network,
        writable: of.writable.clone(),
        deny_read: of.deny_read.clone(),
        unsandboxed: match of.sandbox {
            Sandbox::Require => Unsandboxed::Refuse,
            Sandbox::Prefer => Unsandboxed::Run,
        },
        // Outputs stay with the project: a workspace inside it must not look like one of its own.
        ..ShellOptions::new(&config.root)
    })
}

/// The policies that must allow a tool. A small model is confused by tools, and slow to read of them, so it has those
/// that somebody named.
pub fn policies(options: &AgentOptions, config: &Config, is_small: bool) -> Vec<ToolPolicy> {
    let mut policies = config.agent.tool_policies.clone();
    let named = policies.iter().any(|policy| policy.allowed_tools.is_some());
    if is_small && !named && !options.allow_all {
        policies.push(ToolPolicy {
            allowed_tools: Some(options.allow.clone()),
            ..ToolPolicy::default()
        });
    }
    policies
}
