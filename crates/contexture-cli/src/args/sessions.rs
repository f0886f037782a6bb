//! Sessions, and what is asked of them.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::{Format, Limits, Source, within};
use crate::config::range;

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
        /// The last entry that they share, or the request of this number; the session's last unless given
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
    #[arg(long, value_name = "N", value_parser = within(range::LINE))]
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
