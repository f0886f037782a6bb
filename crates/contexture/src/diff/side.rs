use serde::Serialize;
use serde_json::{Map, Value};

use crate::build::held::Told;
use crate::build::{Built, Rule};
use crate::message::openai;
use crate::prompt::Section;

/// One request, as the log stood for it.
#[derive(Debug, Clone)]
pub struct Side {
    pub(super) summary: SideSummary,
    /// Every section and message, as the receipt lists them.
    pub(super) lines: Vec<Line>,
    pub(super) tools: Vec<Line>,
    /// The messages whole: the sections are one of them.
    pub(super) messages: Vec<Whole>,
    pub(super) sections: Vec<Section>,
    pub(super) model: Option<String>,
    pub(super) params: Map<String, Value>,
    /// How many entries the log had.
    pub(super) log_len: usize,
    /// Its tokens, where the tokenizer knows them.
    pub(super) told: Option<Told>,
}

/// A request in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SideSummary {
    /// `sha256:` of its body.
    pub digest: String,
    /// Its tokens.
    pub input_tokens: usize,
    /// Its messages.
    pub message_count: usize,
}

/// A line of the receipt, and what it says.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub index: usize,
    pub origin: String,
    pub role: &'static str,
    pub rule: Rule,
    pub tokens: usize,
    pub bytes: usize,
    pub hash: blake3::Hash,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Whole {
    pub hash: blake3::Hash,
    pub tokens: usize,
    pub bytes: usize,
}

impl Side {
    /// The request that was built, taken out of its session.
    pub fn of(built: &Built<'_>) -> Self {
        let receipt = built.receipt();
        let stats = built.stats();
        let mut messages: Vec<Whole> = built
            .sized()
            .map(|(message, bytes)| Whole {
                hash: openai::hash(message),
                tokens: 0,
                bytes,
            })
            .collect();
        for item in &receipt.items {
            messages[item.index].tokens += item.tokens;
        }
        let sections = built.sections();
        let lines = receipt.items.into_iter().enumerate();
        let lines = lines.map(|(n, item)| Line {
            hash: match sections.get(n) {
                Some(section) => blake3::hash(section.text.as_bytes()),
                None => messages[item.index].hash,
            },
            index: item.index,
            origin: item.origin,
            role: item.role,
            rule: item.rule,
            tokens: item.tokens,
            bytes: item.bytes,
        });
        let tools = receipt.tools.into_iter().zip(built.tools()).enumerate();
        let tools = tools.map(|(index, (tool, spec))| Line {
            index,
            origin: tool.origin,
            role: "tool",
            rule: Rule::Kept,
            tokens: tool.tokens,
            bytes: tool.bytes,
            hash: blake3::hash(spec.to_string().as_bytes()),
        });
        Self {
            lines: lines.collect(),
            tools: tools.collect(),
            summary: SideSummary {
                digest: receipt.digest,
                input_tokens: stats.input_tokens,
                message_count: stats.message_count,
            },
            messages,
            sections: sections.to_vec(),
            model: built.model().map(str::to_owned),
            params: built.params().clone(),
            log_len: built.log_len(),
            told: built.told(),
        }
    }

    /// How many entries the log had when the request was made.
    pub fn log_len(&self) -> usize {
        self.log_len
    }

    /// The first line of the message there.
    pub(super) fn at(&self, index: usize) -> Option<&Line> {
        self.lines.iter().find(|line| line.index == index)
    }

    pub(super) fn summary(&self) -> SideSummary {
        self.summary.clone()
    }
}
