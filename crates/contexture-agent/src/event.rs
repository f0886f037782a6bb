use contexture::{Message, ToolCall};
use contexture_tools::Effect;
use serde::Serialize;

use crate::{AgentResult, Spent};

/// What a run tells on the way: spec 001's `onStep`, and what a terminal shows beside it.
///
/// What serialises is what `ctx run --json` prints. People read these: no raw JSON, and tools in a few
/// words.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum Event {
    /// Something for the user to read, whole.
    Assistant {
        /// What.
        text: String,
    },
    /// A tool begins, or has ended.
    Tool {
        /// The call.
        id: String,
        /// The tool, as people call it.
        tool: String,
        /// `started` or `finished`.
        status: ToolStatus,
        /// The arguments, on one line, clipped; of a call that begins.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<String>,
        /// Whether it worked; of a call that has ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        success: Option<bool>,
        /// What came of it, in at most 500 characters; of a call that has ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// A step is over: one request, its reply, and the tools that it asked for.
    StepFinish {
        /// Which, from 1.
        step: usize,
        /// What its tools did, each in at most 500 characters.
        tools: Vec<String>,
        /// The request's tokens by our count, or its bound.
        input_tokens: usize,
        /// `sha256:` of the request.
        digest: String,
        /// What the provider says that it cost.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Spent>,
    },
    /// History was masked, summarised or dropped to make room.
    Compaction {
        /// Who wrote the summary: `extract`, `model`; `drop` for none, `mask` for masks alone.
        strategy: String,
        /// The request's tokens before.
        tokens_before: usize,
        /// And after.
        tokens_after: usize,
        /// What was tried first and refused, with the reason.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        refused: Vec<String>,
    },
    /// Something that a person may want to know.
    Notice {
        /// What.
        text: String,
    },
    /// The run is over.
    Done(AgentResult),
    /// Text as it arrives.
    #[serde(skip)]
    Text(String),
    /// A thought as it arrives.
    #[serde(skip)]
    Thinking(String),
    /// The call is made again: what arrived so far is void.
    #[serde(skip)]
    Again {
        /// Why.
        why: String,
    },
    /// A tool begins: its call, whole, for those who show more than a line of it.
    #[serde(skip)]
    Call {
        /// The call, without keys.
        call: ToolCall,
        /// The tool, as people call it.
        tool: String,
        /// What it does to the world, where there is such a tool.
        effect: Option<Effect>,
    },
    /// A tool has ended: its result, as the model reads it.
    #[serde(skip)]
    Result(Message),
}

/// Where a tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    /// It begins.
    Started,
    /// It has ended.
    Finished,
}

impl Event {
    /// Whether it is for those who watch closely, and no line of `ctx run --json`.
    pub fn is_live(&self) -> bool {
        match self {
            Self::Text(_)
            | Self::Thinking(_)
            | Self::Again { .. }
            | Self::Call { .. }
            | Self::Result(_) => true,
            Self::Assistant { .. }
            | Self::Tool { .. }
            | Self::StepFinish { .. }
            | Self::Compaction { .. }
            | Self::Notice { .. }
            | Self::Done(_) => false,
        }
    }
}
