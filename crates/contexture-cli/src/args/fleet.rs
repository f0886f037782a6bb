//! The daemon, its agents, and what agents call.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::AgentOptions;

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Serve {
    #[command(subcommand)]
    pub command: Option<ServeCommand>,
    /// Where to listen; port 0 takes any that is free [default: 127.0.0.1:4100]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Listen where other machines reach it: it speaks plain HTTP, so put TLS before it
    #[arg(long)]
    pub public: bool,
    /// How the log on standard error looks
    #[arg(long, value_enum, default_value = "text")]
    pub log: LogFormat,
    #[command(flatten, next_help_heading = "Executors that run with the daemon")]
    pub agent: AgentOptions,
}

#[derive(Debug, Subcommand)]
pub enum ServeCommand {
    /// Print a new sign-in link of the running daemon; it opens the dashboard once, within ten minutes
    Link {
        /// First sign out every page, and void the links that were not used
        #[arg(long)]
        revoke: bool,
    },
}

/// How a log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// A JSON document a line
    Json,
}

#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Make an agent
    Create(AgentCreate),
    /// Start it with its context; needs the daemon
    Start { name: String },
    /// Send it a prompt, and show what it does; needs the daemon
    Prompt {
        name: String,
        /// The prompt; `-` is standard input
        text: String,
    },
    /// Answer what it asks: without a request, list what waits
    Permit {
        name: String,
        /// The request, as it is listed
        #[arg(requires = "answer")]
        request: Option<String>,
        /// Allow it this once, or reject it
        answer: Option<Permission>,
    },
    /// Call off what it does
    Cancel { name: String },
    /// Stop it, and end its tokens
    Stop { name: String },
    /// Stop it and start it again
    Restart { name: String },
    /// All agents
    List,
    /// One agent
    Show { name: String },
    /// Forget an agent; its sessions stay
    Rm { name: String },
    /// The backends that are known by name
    Backends,
}

/// The answer to a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Permission {
    /// This once
    Allow,
    /// Not this time
    Reject,
}

#[derive(Debug, ClapArgs)]
pub struct AgentCreate {
    pub name: String,
    /// What runs it: native, claude-code, codex, gemini, opencode, goose, pi, or any name with --command
    #[arg(long, default_value = "native")]
    pub backend: String,
    /// What it is for, which decides what it may do: repo, service or employee
    #[arg(long, default_value = "repo", value_parser = ["repo", "service", "employee"])]
    pub archetype: String,
    /// The model that answers, for a native agent; that of `ctx serve`, or of the project, unless given
    #[arg(long, value_name = "SPEC")]
    pub model: Option<String>,
    /// The folder that it works in
    #[arg(long, value_name = "FOLDER", conflicts_with = "ephemeral")]
    pub workspace: Option<PathBuf>,
    /// Give it a new folder that goes when it stops
    #[arg(long)]
    pub ephemeral: bool,
    /// Somebody else starts it, and only asks for its context
    #[arg(long)]
    pub direct: bool,
    /// A variable of the daemon's environment that it gets
    #[arg(long, value_name = "NAME")]
    pub env: Vec<String>,
    /// Who answers when it asks whether it may do something
    #[arg(long, default_value = "ask", value_parser = ["ask", "allow", "deny"])]
    pub permissions: String,
    /// The command that starts it, and all that follows
    #[arg(long, num_args = 1.., allow_hyphen_values = true, value_name = "CMD")]
    pub command: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub enum Canvas {
    /// What an agent shows: its HTML
    Show { name: String },
    /// Who shows something
    List,
}

/// The address of the daemon that a session belongs to. Its token is in CONTEXTURE_SESSION_TOKEN, or in the file that
/// CONTEXTURE_SESSION_TOKEN_FILE names.
#[derive(Debug, ClapArgs)]
pub struct At {
    /// The daemon's address; CONTEXTURE_URL unless given, else that of this project's daemon
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Tool {
    /// The tools that this session may call
    List {
        #[command(flatten)]
        at: At,
    },
    /// Call one
    Call {
        /// Its name
        name: String,
        /// An argument; a number, a boolean, an object or a list where the tool says so, else text
        #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = pair)]
        arguments: Vec<(String, String)>,
        /// All arguments as a JSON object; `-` is standard input
        #[arg(long, value_name = "JSON")]
        args: Option<String>,
        #[command(flatten)]
        at: At,
    },
}

#[derive(Debug, ClapArgs)]
pub struct Inject {
    /// What is known of the agent, as JSON; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub meta: Option<PathBuf>,
    /// The agent's name
    #[arg(long)]
    pub name: Option<String>,
    /// What the agent is for
    #[arg(long, value_enum)]
    pub archetype: Option<ArchetypeName>,
    /// What runs it: native, claude-code, …
    #[arg(long)]
    pub backend: Option<String>,
    /// The session's id; a new one unless given
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Show the token, and the values of servers' environments; where a daemon runs, it prepares the session
    #[arg(long)]
    pub show_token: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArchetypeName {
    /// Works in a repository, on request
    Repo,
    /// Runs for long, and serves others
    Service,
    /// Acts on its own account
    Employee,
}

impl ArchetypeName {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Repo => "repo",
            Self::Service => "service",
            Self::Employee => "employee",
        }
    }
}

/// `name=value`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}
