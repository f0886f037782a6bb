//! Arguments of the commands that describe `ctx` itself: its configuration, schemas, events and manual pages.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::{Build, within};
use crate::config::range;

#[derive(Debug, ClapArgs)]
pub struct BuildCommand {
    #[command(flatten)]
    pub build: Build,
    /// Build each line of the file, a session each: a result a line, in order
    #[arg(long, conflicts_with = "line")]
    pub all: bool,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the JSON Schema of contexture.json
    Schema,
    /// Each setting with its value and where that comes from; secrets are masked
    Show(ConfigShow),
}

/// The options of `ctx run` that stand over a setting.
#[derive(Debug, Default, ClapArgs)]
pub struct ConfigShow {
    /// The model, as `ctx run` takes it
    #[arg(long, value_name = "SPEC")]
    pub model: Option<String>,
    /// The address of a server that speaks like the model's provider
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Maximum model replies per run
    #[arg(long, value_name = "N", value_parser = within(range::STEPS))]
    pub max_steps: Option<usize>,
    /// Maximum tokens of a request (32k, 1m)
    #[arg(long, value_name = "N", value_parser = within(range::TOKENS))]
    pub budget: Option<usize>,
    /// Tokens of the budget that are kept free for the output
    #[arg(long, value_name = "N", value_parser = within(range::RESERVED_TOKENS))]
    pub reserve: Option<usize>,
}

#[derive(Debug, ClapArgs)]
pub struct Schema {
    /// The document; all of them are listed unless given
    #[arg(value_enum)]
    pub name: Option<SchemaName>,
}

/// The documents that have a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaName {
    /// The output of `ctx build --json`
    Build,
    /// The output of `ctx update --json`
    Update,
    /// A line of the output of `ctx replay --json`
    Replay,
    /// The output of `ctx diff --json`
    Diff,
    /// The output of `ctx inspect --json`
    Inspect,
    /// The input of `ctx compose`
    Compose,
    /// The input of `ctx inject --meta`
    Inject,
    /// The input of `ctx pool add --file`
    Pool,
    /// contexture.json
    Config,
}

impl SchemaName {
    /// Its name on the command line.
    pub fn title(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The document in a few words.
    pub fn about(self) -> String {
        let value = self.to_possible_value();
        let help = value.as_ref().and_then(|value| value.get_help());
        help.map(ToString::to_string).unwrap_or_default()
    }
}

#[derive(Debug, ClapArgs)]
pub struct Events {
    /// Print events as they happen, until Ctrl-C or the end of the daemon
    #[arg(long)]
    pub follow: bool,
    /// Only from this time on: 2026-11-19, 2026-11-19T10:30:00Z, or 15m, 2h, 3d ago
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only of this type, or of the types that begin so (`task:`)
    #[arg(
        long = "type",
        value_name = "TYPE",
        default_value = "",
        hide_default_value = true
    )]
    pub kind: String,
    /// Only of this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub struct Man {
    /// A folder for a page of each command; without it the page of `ctx` is printed
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
}
