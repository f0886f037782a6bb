//! The account of a session's context: every item that was offered, its price, and what became of it.

use serde::Serialize;

use super::SessionContext;
use crate::prompt::{Section, Stability};

/// The account of a session's context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct InjectionReceipt {
    /// The tokenizer that counted the tokens.
    pub tokenizer: String,
    /// The tokens of all texts that are in.
    pub tokens: usize,
    /// The maximum tokens of all texts together.
    pub room: usize,
    /// Every item that was offered, and every provider that failed, in order.
    pub items: Vec<Injected>,
}

/// Something that was offered, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Injected {
    /// Its identity: the provider, the kind, and the name or the place.
    pub id: String,
    /// The provider that offered it.
    pub provider: String,
    /// Its kind.
    pub kind: InjectedKind,
    /// The reason that it is in, or not.
    pub rule: InjectedRule,
    /// `blake3:` of it.
    pub hash: String,
    /// Its length in tokens.
    pub tokens: usize,
    /// Its length in bytes.
    pub bytes: usize,
    /// Its stability: stable if it is the same for the whole session.
    pub stability: Stability,
    /// Its priority.
    pub priority: i32,
    /// The number of hidden characters that were made visible in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hidden: usize,
    /// More of why, where there is more to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde wants it")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The kind of an injected item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InjectedKind {
    /// An MCP server.
    McpServer,
    /// An internal tool.
    Tool,
    /// A piece of system context.
    SystemContext,
    /// The instructions for the tools.
    ToolInstructions,
    /// A provider, of which nothing is known.
    Provider,
}

/// The reason that something is in a session's context, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InjectedRule {
    /// It is in.
    Kept,
    /// Somebody before had the same name.
    Duplicate,
    /// The agent's archetype is below the tool's scope.
    OutOfScope,
    /// It was meant for another agent or session.
    Foreign,
    /// It says nothing.
    Empty,
    /// Its name is the host's own.
    Reserved,
    /// The provider failed.
    Failed,
    /// Texts of a higher priority took the room.
    NoRoom,
}

impl InjectionReceipt {
    /// The pieces of system context as sections of a prompt, for a host that builds its own requests.
    pub fn sections(&self, context: &SessionContext) -> Vec<Section> {
        let kinds = [InjectedKind::SystemContext, InjectedKind::ToolInstructions];
        let said = self
            .items
            .iter()
            .filter(|item| item.rule == InjectedRule::Kept && kinds.contains(&item.kind));
        let both = said.zip(&context.system_context_additions);
        both.map(|(item, text)| Section {
            name: item.id.clone(),
            origin: format!("provider:{}", item.provider),
            stability: item.stability,
            priority: item.priority,
            text: text.clone(),
        })
        .collect()
    }
}
