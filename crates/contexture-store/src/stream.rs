use std::fmt;
use std::time::SystemTime;

use crate::Key;

/// What a stream is for. The variants are the one table of the kinds there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The log of a session: everything the model was shown.
    Session,
    /// What was said in a chat, as its people saw it.
    Chat,
    /// What an agent did, run by run.
    Memory,
    /// What became of an agent of a fleet: made, started, stopped.
    Agent,
    /// The page that an agent shows.
    Canvas,
    /// What happened in a fleet, by day.
    Events,
    /// What happened to a pool of resources.
    Pool,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Session,
        Self::Chat,
        Self::Memory,
        Self::Agent,
        Self::Canvas,
        Self::Events,
        Self::Pool,
    ];

    /// Those that are data: they lie with the project.
    pub const DATA: [Self; 4] = [Self::Session, Self::Chat, Self::Memory, Self::Canvas];

    /// Those that make us act: they lie with the user.
    pub const ACTING: [Self; 3] = [Self::Agent, Self::Events, Self::Pool];

    /// Whether what is in such a stream makes us act.
    pub fn acts(self) -> bool {
        match self {
            Self::Session | Self::Chat | Self::Memory | Self::Canvas => false,
            Self::Agent | Self::Events | Self::Pool => true,
        }
    }

    /// Its name, in messages and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Chat => "chat",
            Self::Memory => "memory",
            Self::Agent => "agent",
            Self::Canvas => "canvas",
            Self::Events => "events",
            Self::Pool => "pool",
        }
    }
}

/// The name of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stream {
    /// What it is for.
    pub kind: Kind,
    /// Which one.
    pub key: Key,
}

impl Stream {
    /// The stream of this kind and name.
    pub fn new(kind: Kind, key: Key) -> Self {
        Self { kind, key }
    }

    /// The log of a session.
    pub fn session(key: Key) -> Self {
        Self::new(Kind::Session, key)
    }

    /// The transcript of a chat.
    pub fn chat(key: Key) -> Self {
        Self::new(Kind::Chat, key)
    }

    /// The execution memory of a chat's agent.
    pub fn memory(key: Key) -> Self {
        Self::new(Kind::Memory, key)
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind.as_str(), self.key)
    }
}

/// A stream in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamInfo {
    /// Which one.
    pub stream: Stream,
    /// How much it holds.
    pub bytes: u64,
    /// When it last grew, as far as its home knows.
    pub updated: Option<SystemTime>,
}
