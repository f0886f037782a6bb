//! The pool, its tasks, and who does them.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::{AgentOptions, within};
use crate::config::range;

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
    /// Have resources work again that failed or were retired
    Repair {
        /// Their ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Take resources out of service that are available or failed; `ctx pool repair` brings them back
    Retire {
        /// Their ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Say which tools a capability takes, for every agent of the pool; without tools, show what it takes
    Map {
        /// The capability; all of them unless given
        capability: Option<String>,
        /// Its tools: an agent needs all of them
        #[arg(value_name = "TOOL")]
        tools: Vec<String>,
    },
    /// What those in service can do, and who is available
    Catalog,
    /// Who would take a task that needs this, or what is missing
    Match {
        /// What it needs: a capability, or one with the least level behind a colon
        #[arg(required = true, value_name = "CAPABILITY[:LEVEL]")]
        needs: Vec<String>,
    },
    /// The secret with which a worker on another machine is a resource; for CONTEXTURE_WORKER_KEY
    Key {
        /// The resource
        id: String,
    },
    /// End the secret of a resource's worker; `ctx pool key` gives the next one
    RevokeKey {
        /// The resource
        id: String,
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
    /// It runs in a process of its own, which joins: `ctx worker --id ID`
    #[arg(long)]
    pub worker: bool,
    /// A resource as JSON, or a list of them; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "kind", "name", "capabilities", "tools", "denied_tools", "worker"])]
    pub file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Task {
    /// Have a task done by whoever can
    Dispatch(Box<TaskDispatch>),
    /// All tasks
    List {
        /// Only those that are queued, blocked, dispatched, running, done, failed or cancelled
        #[arg(long, value_name = "STATE")]
        state: Option<String>,
    },
    /// A task, who has it, and what came of it
    Show {
        /// Its id
        id: String,
        /// Wait until it is over
        #[arg(long)]
        wait: bool,
    },
    /// Call tasks off, with all their parts
    Cancel {
        /// Their ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

#[derive(Debug, ClapArgs)]
pub struct TaskDispatch {
    /// What is to be done; `-` is standard input
    pub description: String,
    /// What it takes: a capability, with the least level behind a colon
    #[arg(long = "requires", value_name = "CAPABILITY[:LEVEL]")]
    pub requires: Vec<String>,
    /// Who is to do it; whoever can unless given
    #[arg(long, value_name = "ID")]
    pub to: Option<String>,
    /// What whoever does it is told beside
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    /// Its id; the same twice is one task
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Its id in the tracker of work (bd), for whoever does it
    #[arg(long, value_name = "ID")]
    pub bd_task: Option<String>,
    /// The task that it is a part of
    #[arg(long, value_name = "ID")]
    pub parent: Option<String>,
    /// What is higher goes first
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t)]
    pub priority: i64,
    #[command(flatten)]
    pub spending: Spending,
    /// How many seconds an attempt may take [default: 900]
    #[arg(long, value_name = "SECONDS", value_parser = within(range::TASK_SECONDS))]
    pub timeout: Option<usize>,
    /// How often it is tried [default: 3]
    #[arg(long, value_name = "N", value_parser = within(range::TASK_ATTEMPTS))]
    pub attempts: Option<usize>,
    /// Wait until it is over, and print its result; without a daemon it is done here
    #[arg(long)]
    pub wait: bool,
    #[command(flatten)]
    pub agent: AgentOptions,
}

/// What may be spent.
#[derive(Debug, Clone, ClapArgs)]
pub struct Spending {
    /// The most tokens, of all requests and replies (20k); 0 is none
    #[arg(long, value_name = "N", value_parser = within(range::TASK_TOKENS))]
    pub max_tokens: Option<usize>,
    /// The most money, in dollars; what models cost is `prices` in contexture.json
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub max_cost: Option<u64>,
}

#[derive(Debug, ClapArgs)]
pub struct Worker {
    /// What it can do, with a level from 1 to 10 behind a colon (5 unless given)
    #[arg(long = "capability", value_name = "NAME[:LEVEL]")]
    pub capabilities: Vec<String>,
    /// Its id in the pool [default: this machine's name and the process's number]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// A tool that it holds; those that its capabilities need unless given
    #[arg(long = "tool", value_name = "TOOL")]
    pub tools: Vec<String>,
    /// Have this agent of the project do the tasks, of whatever make (`ctx agent create`)
    #[arg(long = "agent", value_name = "NAME", conflicts_with = "command")]
    pub by: Option<String>,
    /// Have a program do the tasks: it reads each on its standard input, and prints the result
    #[arg(long, num_args = 1.., allow_hyphen_values = true, value_name = "CMD")]
    pub command: Vec<String>,
    #[command(flatten)]
    pub agent: AgentOptions,
}

#[derive(Debug, ClapArgs)]
pub struct Orchestrate {
    /// What is to be achieved; `-` is standard input
    pub goal: String,
    #[command(flatten)]
    pub spending: Spending,
    #[command(flatten)]
    pub agent: AgentOptions,
}

/// `0.25` dollars, in millionths.
fn dollars(text: &str) -> Result<u64, String> {
    match text.trim().trim_start_matches('$').parse::<f64>() {
        Ok(value) if (0.0..=1e9).contains(&value) => Ok((value * 1e6).round() as u64),
        _ => Err("not an amount: write 0.25".to_owned()),
    }
}
