//! What is in a request, from where, why, and what was left out.

use serde::Serialize;
use serde_json::Value;

use super::account::Account;
use super::item::{Item, Kind, Rule, Source};
use super::session::Session;
use crate::entry::{DeferredTool, Gone, tool_name};
use crate::prompt::Stability;
use crate::{Message, Payload};

/// The account of a request. Items and exclusions together name every input item.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// `sha256:` of the body's bytes.
    pub digest: String,
    /// What counted.
    pub tokenizer: TokenizerUsed,
    /// What there was, and what is left of it.
    pub budget: BudgetUsed,
    /// The messages of the request, in order.
    pub items: Vec<ItemReceipt>,
    /// The tools of the request, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolReceipt>,
    /// The tools that exist and are not offered: what leaving them out saves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deferred_tools: Option<DeferredReceipt>,
    /// What was left out, in the order of the log.
    pub excluded: Vec<ExcludedReceipt>,
    /// What a provider's prompt cache can reuse.
    pub cache: CacheReceipt,
}

/// The tokenizer that counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TokenizerUsed {
    /// Its name.
    pub name: String,
    /// Whether it is exact. If not, counts are upper bounds.
    pub exact: bool,
}

/// The budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetUsed {
    /// All of it.
    pub max_input_tokens: usize,
    /// Kept free for the output.
    pub reserved: usize,
    /// The tokens of the request: its tools, its items and its frame.
    pub used: usize,
    /// The part of `used` that lies around tools and messages.
    pub frame: usize,
    /// What is left.
    pub free: usize,
}

/// A message, or a section of the system message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemReceipt {
    /// Which of the request's messages it is, or is in.
    pub index: usize,
    /// Where it comes from: `entry:ID`, `section:NAME`.
    pub origin: String,
    /// Why it is there as it is.
    pub rule: Rule,
    /// Its tokens.
    pub tokens: usize,
    /// Its bytes in the body.
    pub bytes: usize,
    /// Whether it holds for the session.
    pub stability: Stability,
    /// The message's role.
    pub role: &'static str,
    /// Which piece of the input it was, counted from 0; absent for what the build made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// How many hidden characters were made visible in it.
    #[serde(skip_serializing_if = "is_zero")]
    pub hidden: usize,
}

/// A tool spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolReceipt {
    /// `tool:NAME`.
    pub origin: String,
    /// Its tokens.
    pub tokens: usize,
    /// Its bytes.
    pub bytes: usize,
    /// How many hidden characters were made visible in it.
    #[serde(skip_serializing_if = "is_zero")]
    pub hidden: usize,
}

/// Tools that are not offered, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DeferredReceipt {
    /// How many.
    pub count: usize,
    /// What their specs would cost.
    pub tokens: usize,
}

/// Something that is not in the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExcludedReceipt {
    /// Where it comes from.
    pub origin: String,
    /// Why it is not there.
    pub rule: Rule,
    /// What it would cost.
    pub tokens: usize,
    /// The message's role.
    pub role: &'static str,
    /// Which piece of the input it was, counted from 0.
    pub position: usize,
}

/// What a prompt cache can reuse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheReceipt {
    /// The tokens that this request and the one before it begin with. For a model that runs in this
    /// process, to the token, and with its reply to that request, which it holds as well.
    pub shared_prefix_tokens: usize,
    /// The first thing that differs, where the earlier request did not simply grow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_change: Option<String>,
}

impl Receipt {
    pub(super) fn of(session: &Session) -> Self {
        let config = &session.settings.config;
        let used = session.tokens();
        let account = Account::new(session);
        Self {
            digest: session.body.digest().to_owned(),
            tokenizer: TokenizerUsed {
                name: session.settings.tokenizer.name().to_owned(),
                exact: session.settings.tokenizer.exact(),
            },
            budget: BudgetUsed {
                max_input_tokens: config.max_input_tokens,
                reserved: config.reserved_output,
                used,
                frame: account.frame,
                free: (config.max_input_tokens - config.reserved_output).saturating_sub(used),
            },
            items: items(session, &account.items),
            tools: session
                .tools
                .iter()
                .zip(&session.hidden)
                .zip(&account.tools)
                .map(|((spec, hidden), tokens)| tool(spec, *tokens, *hidden))
                .collect(),
            deferred_tools: deferred(session.view.deferred()),
            excluded: excluded(session),
            cache: CacheReceipt {
                shared_prefix_tokens: session.shared_prefix(),
                first_change: session.first_change(),
            },
        }
    }
}

fn items(session: &Session, tokens: &[usize]) -> Vec<ItemReceipt> {
    let mut out = Vec::with_capacity(session.weave.items.len());
    for (index, (item, &tokens)) in session.weave.items.iter().zip(tokens).enumerate() {
        let receipt = ItemReceipt {
            index,
            origin: session.origin(item),
            rule: item.rule,
            tokens,
            bytes: item.piece.bytes,
            stability: stability(item),
            role: item.piece.message.role.as_str(),
            position: match item.source {
                Source::Entry(position) => Some(position),
                Source::Sections | Source::Aborted(_) => None,
            },
            hidden: item.piece.hidden,
        };
        if item.source == Source::Sections {
            let sections = session.view.sections();
            let mut bytes = item.piece.bytes;
            let shares = session.section_tokens(tokens);
            for (n, tokens) in shares.into_iter().enumerate().rev() {
                let own = if n == 0 {
                    bytes
                } else {
                    sections[n].text.len().min(bytes)
                };
                bytes -= own;
                let origin = format!("section:{}", sections[n].name);
                out.push(ItemReceipt {
                    origin,
                    tokens,
                    bytes: own,
                    ..receipt.clone()
                });
            }
            out.reverse();
        } else {
            out.push(receipt);
        }
    }
    out
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn stability(item: &Item) -> Stability {
    match item.kind {
        Kind::Note => Stability::Volatile,
        _ => Stability::Stable,
    }
}

fn tool(spec: &Value, tokens: usize, hidden: usize) -> ToolReceipt {
    ToolReceipt {
        origin: format!("tool:{}", tool_name(spec).map_or("?", String::as_str)),
        tokens,
        bytes: spec.to_string().len(),
        hidden,
    }
}

fn deferred(tools: &[DeferredTool]) -> Option<DeferredReceipt> {
    let sum = |sum: usize, tool: &DeferredTool| sum.saturating_add(tool.tokens);
    (!tools.is_empty()).then(|| DeferredReceipt {
        count: tools.len(),
        tokens: tools.iter().fold(0, sum),
    })
}

fn excluded(session: &Session) -> Vec<ExcludedReceipt> {
    let view = &session.view;
    let left_out = session.weave.excluded.iter().copied();
    let gone = view.gone().map(|(position, gone)| {
        let rule = match gone {
            Gone::Summarised(by) if view.is_withheld(by) => Rule::Dropped,
            Gone::Summarised(_) => Rule::Summarised,
            Gone::Dropped(_) => Rule::Dropped,
            Gone::Reverted => Rule::Reverted,
            Gone::Duplicate => Rule::Duplicate,
            Gone::Moot => Rule::Empty,
        };
        (position, rule)
    });
    let repeated = view
        .duplicates()
        .iter()
        .map(|&position| (position, Rule::Duplicate));
    let mut all: Vec<(usize, Rule)> = left_out.chain(gone).chain(repeated).collect();
    all.sort_by_key(|(position, _)| *position);
    all.into_iter()
        .map(|(position, rule)| {
            let entry = &view.log()[position];
            let (role, tokens) = match &entry.payload {
                Payload::Message { message } => price(session, message),
                Payload::Injection(i) => price(session, &Message::new(i.role, i.content.clone())),
                Payload::CompactionSummary(c) => price(session, &Message::user(c.summary.clone())),
                _ => ("system", 0),
            };
            ExcludedReceipt {
                origin: format!("entry:{}", entry.id),
                rule,
                tokens,
                role,
                position,
            }
        })
        .collect()
}

fn price(session: &Session, message: &Message) -> (&'static str, usize) {
    (
        message.role.as_str(),
        session.settings.tokenizer.message(message),
    )
}
