use contexture::Message;
use serde_json::{Map, Value};

/// The most calls of a reply that are run. One more is kept, to say that it was not: whatever stands behind
/// it is neither kept nor run.
pub const MAX_CALLS: usize = 128;

/// What a model said.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The assistant's message: text, thoughts with their seals, calls.
    pub message: Message,
    /// Why it ended.
    pub stop: Stop,
    /// What it cost, where the provider says so.
    pub usage: Option<Usage>,
    /// The model that answered, as the provider calls it.
    pub model: Option<String>,
}

/// Why a reply ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// It was done.
    End,
    /// It waits for its tools.
    Tools,
    /// It was as long as it may be.
    Length,
    /// The provider withheld it.
    Refused,
    /// The provider paused it: sending the same conversation again goes on.
    Paused,
    /// Something that we do not know, in the provider's word.
    Other(String),
}

/// What a request cost, in the provider's own form: the log keeps it so.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Usage(pub Map<String, Value>);

impl Usage {
    /// The tokens of the request, what came from a cache included.
    pub fn input(&self) -> Option<u64> {
        let record = contexture::entry::RequestRecord {
            usage: Some(self.0.clone()),
            ..Default::default()
        };
        record.reported_input().map(|tokens| tokens as u64)
    }

    /// The tokens of the request that came from a cache.
    pub fn cached(&self) -> Option<u64> {
        let inside = |name: &str| self.0.get(name)?.get("cached_tokens")?.as_u64();
        self.number("cache_read_input_tokens")
            .or_else(|| inside("prompt_tokens_details"))
            .or_else(|| inside("input_tokens_details"))
            .or_else(|| self.number("prompt_cache_hit_tokens"))
    }

    /// The tokens of the reply.
    pub fn output(&self) -> Option<u64> {
        self.number("completion_tokens")
            .or_else(|| self.number("output_tokens"))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }
}

/// A piece of a reply, as it arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// Text for the user.
    Text(String),
    /// A thought.
    Thinking(String),
    /// A call has begun; its arguments are on their way.
    Call {
        /// The tool.
        name: String,
    },
    /// What arrived so far is void: the call is made again.
    Again {
        /// Why.
        why: String,
    },
}
