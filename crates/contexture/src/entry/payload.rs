use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::EntryId;
use crate::prompt::Section;
use crate::{ContextError, Message, Role, Wire};

/// The version of the log's format that this code writes, and the newest that it reads.
pub const VERSION: u64 = 1;

/// What an entry says. The variants are the one table of entry types.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
pub enum Payload {
    /// Opens a session.
    SessionHeader(SessionHeader),
    /// A message of the conversation.
    Message {
        /// The message.
        message: Message,
    },
    /// System-side sections that changed.
    Sections {
        /// Each by its name; an empty text takes the section away.
        sections: Vec<Section>,
    },
    /// Tools that came or went.
    Tools(ToolDelta),
    /// Facts that hold for the session, such as the working directory.
    RuntimeInit {
        /// The facts.
        data: Map<String, Value>,
    },
    /// Facts that change from turn to turn, such as the time.
    Hints {
        /// The facts.
        data: Map<String, Value>,
    },
    /// Context that a tool or provider brought in during a run.
    Injection(Injection),
    /// A span of history that a summary stands for from now on, or that was dropped.
    CompactionSummary(Compaction),
    /// Items that show a mark, or less of themselves, from now on.
    Mask(Mask),
    /// Keeps an entry in every later request, verbatim.
    Pin(Target),
    /// Ends a pin.
    Unpin(Target),
    /// Takes an entry's content out of every later request.
    Redaction(Target),
    /// Undoes a compaction, a mask or a revert, or everything after a message.
    Revert(Target),
    /// What happened on a branch that was left.
    BranchSummary(BranchSummary),
    /// Another model from here on.
    ModelChange(Map<String, Value>),
    /// Something of another program's.
    Custom(Map<String, Value>),
    /// A request that was sent.
    Request(RequestRecord),
}

/// The first entry of a session.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionHeader {
    /// The log's format.
    pub version: u64,
    /// The conversation's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_key: Option<String>,
    /// The agent's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Where it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Fields we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Tools that came or went.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolDelta {
    /// Specs to add; one of a name that is there replaces it, in its place.
    #[serde(default)]
    pub add: Vec<Value>,
    /// Names to take away.
    #[serde(default)]
    pub remove: Vec<String>,
    /// All tools that exist and are not offered, as of now; absent means as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred: Option<Vec<DeferredTool>>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A tool that exists and is not offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeferredTool {
    /// Its name.
    pub name: String,
    /// What its spec would cost.
    pub tokens: usize,
}

/// Context that was brought in during a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Injection {
    /// As whom it speaks.
    #[serde(with = "role_name")]
    pub role: Role,
    /// What it says.
    pub content: String,
    /// Its identity: the same fingerprint is shown once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Who brought it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The message that it stands before, behind earlier injections that stand there: those that
    /// speak as the system first. Absent, or where that message is covered, undone or unknown, it
    /// stands where it was logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_entry_id: Option<EntryId>,
}

/// A span of history that a summary stands for, or that was dropped when the summary is empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// What the model reads in the span's place.
    pub summary: String,
    /// The first entry after the span.
    pub first_kept_entry_id: EntryId,
    /// How it was made: `extract`, `model`, `drop`.
    #[serde(default)]
    pub strategy: String,
    /// The request's tokens before.
    #[serde(default)]
    pub tokens_before: usize,
    /// The request's tokens after.
    #[serde(default)]
    pub tokens_after: usize,
    /// The first entry of the span; absent means the first of the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_covered_entry_id: Option<EntryId>,
    /// Entries inside the span that stay: pins, the latest user message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_entry_ids: Vec<EntryId>,
    /// What was tried before it, and why that would not do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
}

/// A strategy that gave no summary, or none that would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Its name.
    pub strategy: String,
    /// Why, for people.
    pub why: String,
}

/// Items that show a mark, or less of themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mask {
    /// Which.
    pub entry_ids: Vec<EntryId>,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// How many bytes of each text stay around the mark; none means the mark alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_bytes: Option<usize>,
}

/// The entry that a pin, a redaction or a revert is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Its id.
    pub entry_id: EntryId,
}

/// What happened on a branch that was left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BranchSummary {
    /// The summary.
    #[serde(default)]
    pub summary: String,
    /// Fields we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A request that was sent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestRecord {
    /// `sha256:` of the body's bytes.
    pub digest: String,
    /// The model it went to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Our count.
    #[serde(default)]
    pub input_tokens: usize,
    /// The budget that it was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_input_tokens: Option<usize>,
    /// The form in which it went out; absent means OpenAI's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<Wire>,
    /// The parameters as they were given; which of them went out, the form decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Value>>,
    /// How long the answer might be, where the form says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
    /// The entry that the log ended with when the request was made, where that is not the one before
    /// this record: others may write to a log while a model thinks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<EntryId>,
    /// What the provider reported, in its own form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Map<String, Value>>,
    /// Fields we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl RequestRecord {
    /// The input tokens that the provider counted, cached ones included.
    ///
    /// OpenAI's `prompt_tokens` includes what came from its cache; Anthropic's `input_tokens` does
    /// not, and gives it apart.
    pub fn reported_input(&self) -> Option<usize> {
        let usage = self.usage.as_ref()?;
        let field = |name: &str| usage.get(name).and_then(Value::as_u64);
        let tokens = match field("prompt_tokens").or(field("inputTokens")) {
            Some(all) => all,
            None => field("input_tokens")?
                .saturating_add(field("cache_read_input_tokens").unwrap_or(0))
                .saturating_add(field("cache_creation_input_tokens").unwrap_or(0)),
        };
        usize::try_from(tokens)
            .ok()
            .filter(|tokens| *tokens <= MAX_REPORTED_TOKENS)
    }
}

/// A provider that says more than this did not count.
const MAX_REPORTED_TOKENS: usize = 1 << 40;

impl Payload {
    /// Reads the payload of an entry of type `tag`.
    pub fn read(tag: &str, payload: Value) -> Result<Self, ContextError> {
        let whole = Map::from_iter([
            ("type".to_owned(), tag.into()),
            ("payload".to_owned(), payload),
        ]);
        let read: Self = serde_json::from_value(Value::Object(whole)).map_err(|error| {
            let what = error.to_string();
            if what.starts_with("unknown variant") {
                ContextError::invalid(
                    "type",
                    format!(
                        "unknown entry type `{}`",
                        tag.chars().take(40).collect::<String>()
                    ),
                    Self::known_types(),
                )
            } else {
                ContextError::invalid("payload", what, format!("see the payload of `{tag}`"))
            }
        })?;
        if let Self::SessionHeader(header) = &read
            && header.version > VERSION
        {
            return Err(ContextError::invalid(
                "payload.version",
                format!(
                    "the log has format {}, this program reads up to {VERSION}",
                    header.version
                ),
                "use a newer `ctx`",
            ));
        }
        if let Self::Injection(injection) = &read
            && injection.role == Role::Tool
        {
            return Err(ContextError::invalid(
                "payload.role",
                "an injection cannot be a tool's result",
                "inject as system, assistant or user",
            ));
        }
        Ok(read)
    }

    /// The type's name.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::SessionHeader(_) => "session_header",
            Self::Message { .. } => "message",
            Self::Sections { .. } => "sections",
            Self::Tools(_) => "tools",
            Self::RuntimeInit { .. } => "runtime_init",
            Self::Hints { .. } => "hints",
            Self::Injection(_) => "injection",
            Self::CompactionSummary(_) => "compaction_summary",
            Self::Mask(_) => "mask",
            Self::Pin(_) => "pin",
            Self::Unpin(_) => "unpin",
            Self::Redaction(_) => "redaction",
            Self::Revert(_) => "revert",
            Self::BranchSummary(_) => "branch_summary",
            Self::ModelChange(_) => "model_change",
            Self::Custom(_) => "custom",
            Self::Request(_) => "request",
        }
    }

    pub(super) fn known_types() -> String {
        "an entry's type is session_header, message, sections, tools, runtime_init, hints, injection, \
         compaction_summary, mask, pin, unpin, redaction, revert, branch_summary, model_change, custom \
         or request"
            .to_owned()
    }
}

mod role_name {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::Role;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
    pub fn serialize<S: Serializer>(role: &Role, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(role.as_str())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Role, D::Error> {
        let name = String::deserialize(deserializer)?;
        Role::parse(&name).ok_or_else(|| de::Error::custom(format!("unknown role `{name}`")))
    }
}
