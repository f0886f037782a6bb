//! From options and configuration to an agent that is ready to run.

mod approve;
mod interrupt;
#[cfg_attr(not(feature = "local"), path = "no_local.rs")]
pub mod local;
mod model;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use contexture::entry::SessionHeader;
use contexture::prompt::{Section, ToolPolicy};
use contexture::{Settings, Wire};
use contexture_agent::{Agent, Chat, History, Limits, ModelCompactor, Options, Stores, clock};
use contexture_model::Model;
use contexture_store::{Key, Memories, Sessions, Transcripts};
use contexture_tools::approval::{Approvals, Approver, Standing};
use contexture_tools::mcp::{self, ServerConfig, Servers};
use contexture_tools::shell::{Shell, ShellError, ShellOptions, Unsandboxed, allowed_by_prefix};
use contexture_tools::skills::Skills;
use contexture_tools::system::{self, Instructions, Project};
use contexture_tools::{Secrets, Tool, Tools, Toolset, builtin};
use serde_json::{Map, Value, json};

use self::approve::Terminal;
pub use self::interrupt::Interrupt;
pub use self::model::{DEFAULT, LOCAL, chosen, compactor, model, of_spec, provider};
use crate::args::{AgentOptions, CompactorName};
use crate::command::{self, mcp_options};
use crate::config::{self, Config, Sandbox};
use crate::error::CliError;
use crate::store::Home;
use crate::trust::{Folder, State};
use crate::view::{Screen, plural};
use crate::{settings, skills, store};

/// An agent with its conversation.
pub struct Ready {
    pub agent: Agent,
    pub chat: Chat,
    pub sessions: Sessions,
    pub skills: Arc<Skills>,
    pub servers: Arc<Servers>,
    pub config: Config,
    /// What a person should know before it starts.
    pub notices: Vec<String>,
}

/// How long a person has to answer whether a tool may act.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long the first turn waits for MCP servers that are starting.
const SETTLING: Duration = Duration::from_secs(3);

/// What an agent is made from, beside its options.
pub struct Begin {
    /// What the project and the user set.
    pub config: Config,
    /// The project's log.
    pub home: Home,
    /// What answers.
    pub model: Arc<dyn Model>,
    /// The conversation's name.
    pub key: Key,
    /// Where commands and servers begin, and where commands may write.
    pub workspace: PathBuf,
    /// Where whoever asks for it is: in the workspace or below.
    pub cwd: PathBuf,
    /// Whom to ask whether a tool may act.
    pub asks: Option<Arc<dyn Approver>>,
    /// MCP servers of this conversation, beside those of the configuration.
    pub servers: Vec<ServerConfig>,
    /// What whoever hosts the agent adds to the system side. Without a word from them, what they said
    /// in this conversation before still holds.
    pub host: Option<Section>,
    /// The tools that it may use, where not all.
    pub holds: Option<BTreeSet<String>>,
    /// Tools beside those that every agent has.
    pub more: Vec<Arc<dyn Tool>>,
}

/// The name of the host's section.
pub const HOST: &str = "host";

/// Makes the agent of a person at the terminal, and opens its conversation. `kind` names a
/// conversation that nobody named.
pub async fn ready(
    options: &AgentOptions,
    kind: &str,
    dir: Option<&Path>,
    screen: &Arc<Screen>,
) -> Result<Ready, CliError> {
    let mut config = config::load(dir)?;
    if command::asked_again(&config)? {
        config = config::load(dir)?;
    }
    let home = store::of(&config)?;
    let model = model(options, &config).await?;
    let key = match &options.session {
        Some(name) => Key::new(name.as_str())?,
        None => fresh(&home.sessions, kind)?,
    };
    let terminal = Terminal::here(screen);
    let begin = Begin {
        workspace: config.root.clone(),
        cwd: std::env::current_dir().unwrap_or_else(|_| config.root.clone()),
        config,
        home,
        model,
        key,
        asks: terminal.map(|terminal| Arc::new(terminal) as Arc<dyn Approver>),
        servers: Vec::new(),
        host: None,
        holds: None,
        more: Vec::new(),
    };
    make(options, begin).await
}

/// How a conversation in this folder begins.
pub fn header(workspace: &Path) -> SessionHeader {
    SessionHeader {
        agent: Some("contexture".to_owned()),
        cwd: Some(workspace.display().to_string()),
        ..SessionHeader::default()
    }
}

/// Makes the agent, and opens its conversation.
pub async fn make(options: &AgentOptions, begin: Begin) -> Result<Ready, CliError> {
    let Begin {
        config,
        home,
        model,
        key,
        workspace,
        cwd,
        asks,
        servers,
        host,
        holds,
        more,
    } = begin;
    let log = Arc::clone(home.sessions.log());
    // Before anything of them is read: what came with the folder is not the user's conversation.
    store::check_own(&home.sessions, &key)?;
    let stores = Stores {
        transcripts: Transcripts::new(Arc::clone(&log)),
        memories: Memories::new(Arc::clone(&log), config.agent.memory_window),
    };
    let (settings, compactor) = settings_for(options, &config, &model)?;
    let header = header(&workspace);
    let mut notices = Vec::new();
    let (skills, untrusted) = skills::discover(&config)?;
    let folder = config.folder.at(&cwd);
    let none = Instructions::default();
    let instructions = match folder.state()? {
        State::Trusted => {
            folder.adopt();
            &folder.seen().instructions
        }
        State::Unknown | State::Changed => {
            notices.extend(withheld(&config, &folder, untrusted)?);
            &none
        }
    };
    let skills = Arc::new(skills);
    let (mut sections, said) = system::sections(&Project {
        instructions,
        skills: &skills,
        tokenizer: settings.tokenizer.as_ref(),
        skills_tokens: system::SKILLS_TOKENS,
        small: model.is_small(),
    });
    notices.extend(
        said.into_iter()
            .map(|notice| format!("{}: {}", notice.place, notice.what)),
    );
    let chat = Chat::open(&home.sessions, &key, header, settings)?;
    let before = || {
        let mut known = chat.view().sections().iter();
        known.find(|section| section.name == HOST).cloned()
    };
    sections.extend(host.or_else(before));
    let mut tools = builtin::tools(builtin::Stores {
        transcripts: stores.transcripts.clone(),
        memories: stores.memories.clone(),
        skills: Arc::clone(&skills),
    });
    tools.extend(more);
    match shell(&config, &workspace) {
        Ok(shell) => tools.push(Arc::new(shell)),
        Err(error) => notices.push(format!("no shell: {error}")),
    }
    let mut server_options = mcp_options(&std::path::absolute(&workspace)?)?;
    server_options.reserved = tools.iter().map(|tool| tool.spec().name.clone()).collect();
    let mut all = config.agent.mcp_servers.clone();
    all.retain(|known| servers.iter().all(|own| own.name != known.name));
    all.extend(servers);
    let given = all.iter().flat_map(|server| server.secrets());
    let secrets = Secrets::from_env().and(given.chain(crate::fleet::owner_secret(&config)));
    let servers = Arc::new(Servers::start(all, server_options));
    servers.settled(SETTLING).await;
    notices.extend(failing(&servers));
    let toolset = Toolset::new(
        ToolPolicy::default(),
        approvals(options, &config, asks),
        secrets,
    );
    let policies = policies(options, &config, model.as_ref());
    let toolset = policies.into_iter().fold(toolset, Toolset::within);
    let toolset = toolset
        .with(Arc::new(tools))
        .with(Arc::clone(&servers) as Arc<dyn Tools>)
        .holding(holds);
    let agent = Agent {
        model,
        tools: toolset,
        stores,
        compactor,
        options: Options {
            limits: Limits {
                max_steps: options.max_steps.unwrap_or(config.agent.max_steps),
                ..Limits::default()
            },
            history: Some(History {
                most: config.agent.max_chat_messages,
                keep: config.agent.keep_chat_messages,
            }),
            max_injected: config.agent.max_injected_messages,
            sections,
            refresh: None,
            runtime_init: runtime_init(&cwd),
            hints: hints(),
        },
    };
    Ok(Ready {
        agent,
        chat,
        sessions: home.sessions,
        skills,
        servers,
        config,
        notices,
    })
}

/// The servers that are down, and why.
pub fn failing(servers: &Servers) -> Vec<String> {
    let why = |status: mcp::Status| match &status.state {
        mcp::State::Failed { why } | mcp::State::Restarting { why, .. } => {
            Some(format!("MCP server {}: {why}", status.name))
        }
        _ => None,
    };
    servers.states().into_iter().filter_map(why).collect()
}

/// The parts of the project that do not count as the folder is now, and the remedy.
fn withheld(config: &Config, folder: &Folder, skills: usize) -> Result<Option<String>, CliError> {
    let keys = config.withheld.iter().map(|key| (*key).to_owned());
    let mut what: Vec<String> = keys.collect();
    if skills > 0 {
        what.push(plural(skills, "skill"));
    }
    let files = folder.seen().instructions.files().iter();
    what.extend(files.map(|file| file.shown().to_owned()));
    if what.is_empty() {
        return Ok(None);
    }
    let what = what.join(", ");
    Ok(Some(match folder.state()? {
        State::Changed => format!(
            "{} changed since this folder was trusted, so its {what} do not count: `ctx trust` shows the change, and \
             asks",
            folder.in_short()?
        ),
        _ => format!(
            "this folder is not trusted, so its {what} do not count: `ctx trust` shows what they would do"
        ),
    }))
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

/// How requests are built for this model, and what writes their summaries.
pub fn settings_for(
    options: &AgentOptions,
    config: &Config,
    model: &Arc<dyn Model>,
) -> Result<(Settings, Option<Arc<ModelCompactor>>), CliError> {
    let mut settings = settings::for_agent(options, config, model.as_ref())?;
    settings.wire = model.api().wire();
    settings.params.insert("stream".to_owned(), json!(true));
    if settings.wire == Wire::OpenAi {
        // Without it a stream does not say what it cost.
        let usage = json!({"include_usage": true});
        settings.params.insert("stream_options".to_owned(), usage);
    }
    let compactor = match options.compactor {
        Some(CompactorName::Extract) => None,
        Some(CompactorName::None) => {
            settings.compactors.clear();
            None
        }
        Some(CompactorName::Model) | None => {
            let made = Arc::new(ModelCompactor::new(Arc::clone(model), &settings));
            settings.compactors.insert(0, Arc::clone(&made) as _);
            Some(made)
        }
    };
    Ok((settings, compactor))
}

/// The policies that must allow a tool. A small model is confused by tools, and slow to read of them, so it has those
/// that somebody named.
fn policies(options: &AgentOptions, config: &Config, model: &dyn Model) -> Vec<ToolPolicy> {
    let mut policies = config.agent.tool_policies.clone();
    let named = policies.iter().any(|policy| policy.allowed_tools.is_some());
    if model.is_small() && !named && !options.allow_all {
        policies.push(ToolPolicy {
            allowed_tools: Some(options.allow.clone()),
            ..ToolPolicy::default()
        });
    }
    policies
}

/// What is allowed from the start, and whom to ask for the rest.
fn approvals(
    options: &AgentOptions,
    config: &Config,
    asks: Option<Arc<dyn Approver>>,
) -> Approvals {
    let prefixes = config.agent.shell.allow.clone();
    let standing = Standing {
        all: options.allow_all,
        tools: options.allow.clone(),
        calls: Some(Box::new(move |tool, arguments| {
            let command = arguments.get("command").and_then(Value::as_str);
            tool.name == "exec_shell"
                && command.is_some_and(|command| allowed_by_prefix(command, &prefixes))
        })),
    };
    let approvals = Approvals::new(standing);
    match asks {
        Some(approver) => approvals.asking(approver, PATIENCE),
        None => approvals,
    }
}

/// A name that no conversation has yet: the kind, the day and the time.
pub fn fresh(sessions: &Sessions, kind: &str) -> Result<Key, CliError> {
    let now = clock::now();
    let digits: String = now.chars().filter(char::is_ascii_digit).take(14).collect();
    let (day, time) = digits.split_at(8.min(digits.len()));
    let plain = format!("{kind}-{day}-{time}");
    let mut key = Key::new(plain.as_str())?;
    let mut n = 2;
    while sessions.exists(&key)? {
        key = Key::new(format!("{plain}-{n}"))?;
        n += 1;
    }
    Ok(key)
}

fn runtime_init(cwd: &Path) -> Map<String, Value> {
    Map::from_iter([
        (
            "workingDirectory".to_owned(),
            json!(cwd.display().to_string()),
        ),
        ("system".to_owned(), json!(std::env::consts::OS)),
    ])
}

/// The day, not the time: it is new once a day, and the request's beginning stays the same.
fn hints() -> Map<String, Value> {
    let day: String = clock::now().chars().take(10).collect();
    Map::from_iter([("date".to_owned(), json!(day))])
}
