use std::collections::HashSet;

use serde::Serialize;
use serde_json::json;

use super::{AgentInstanceMeta, Audience, Item, McpServerStdio, Offer, ToolDefinition, Traits};
use crate::ContextError;
use crate::build::hidden::visible_value;
use crate::prompt::{Section, Stability, Template, arguments, signature};
use crate::text::hidden::reveal;
use crate::tokens::Tokenizer;

/// The variable in which a session's token travels.
pub const TOKEN_VARIABLE: &str = "CONTEXTURE_SESSION_TOKEN";

/// The variable that names the file with a session's token.
pub const TOKEN_FILE_VARIABLE: &str = "CONTEXTURE_SESSION_TOKEN_FILE";

/// The name of the host's own MCP server: no provider may take it.
pub const RESERVED: &str = "contexture";

/// What a session begins with.
#[derive(Debug, Clone, PartialEq, Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionContext {
    /// MCP servers for the agent.
    pub mcp_servers: Vec<McpServerStdio>,
    /// Internal tools, by scope.
    pub tools: Vec<ToolDefinition>,
    /// Pieces of system context, in the order of the providers.
    pub system_context_additions: Vec<String>,
    /// The session's token; empty where there is no store for tokens.
    pub token: String,
}

/// What a provider came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Offered {
    /// Which.
    pub provider: String,
    /// How its items are to be treated.
    pub traits: Traits,
    /// What it offers, or why it does not.
    pub offer: Result<Offer, String>,
}

/// The account of a session's context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct InjectionReceipt {
    /// What counted the tokens.
    pub tokenizer: String,
    /// What the texts that are in cost together.
    pub tokens: usize,
    /// Every item that was offered, and every provider that failed, in order.
    pub items: Vec<Injected>,
}

/// Something that was offered, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Injected {
    /// Its identity: the provider, the kind, and the name or the place.
    pub id: String,
    /// Who offered it.
    pub provider: String,
    /// What it is.
    pub kind: InjectedKind,
    /// Why it is in, or not.
    pub rule: InjectedRule,
    /// `blake3:` of it.
    pub hash: String,
    /// What it costs.
    pub tokens: usize,
    /// How long it is.
    pub bytes: usize,
    /// Whether it is the same for the whole session.
    pub stability: Stability,
    /// How dearly it is held.
    pub priority: i32,
    /// How many hidden characters were made visible in it.
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

/// What an injected item is.
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

/// Why something is in a session's context, or not.
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
}

/// Makes a session's context of what the providers offer.
///
/// Of two servers or tools with one name the first wins; a tool that the archetype is not allowed claims
/// no name. Instructions for the tools come last, and only where there are tools and a token. A provider
/// that failed is left out, unless it is required: then there is no session.
pub fn weave(
    meta: &AgentInstanceMeta,
    session_id: &str,
    offered: Vec<Offered>,
    token: Option<&str>,
    tokenizer: &dyn Tokenizer,
) -> Result<(SessionContext, InjectionReceipt), ContextError> {
    let mut weaving = Weaving {
        meta,
        session_id,
        tokenizer,
        context: SessionContext {
            mcp_servers: Vec::new(),
            tools: Vec::new(),
            system_context_additions: Vec::new(),
            token: token.unwrap_or_default().to_owned(),
        },
        receipt: InjectionReceipt {
            tokenizer: tokenizer.name().to_owned(),
            ..InjectionReceipt::default()
        },
        servers: HashSet::new(),
        tools: HashSet::new(),
    };
    for one in offered {
        weaving.take(one)?;
    }
    if !weaving.context.tools.is_empty() && token.is_some() {
        let text = instructions(&weaving.context.tools)?;
        weaving.say(
            RESERVED,
            Traits::default(),
            InjectedKind::ToolInstructions,
            "tool-instructions",
            text,
        );
    }
    Ok((weaving.context, weaving.receipt))
}

/// How to call these tools, for the model.
pub fn instructions(tools: &[ToolDefinition]) -> Result<String, ContextError> {
    let list: Vec<String> = tools.iter().map(in_words).collect();
    Template::ToolInstructions.render(json!({
        "toolList": list.join("\n"),
        "token": TOKEN_FILE_VARIABLE,
    }))
}

/// A tool, how it is used, and a command that calls it.
fn in_words(tool: &ToolDefinition) -> String {
    let mut out = format!(
        "- {}: {}",
        signature(&tool.name, &tool.parameters),
        tool.description
    );
    if let Some(more) = &tool.context {
        out.push_str(&format!("\n  {}", more.trim()));
    }
    let given: String = arguments(&tool.parameters)
        .filter(|argument| argument.required)
        .map(|argument| format!(" --arg {}=…", argument.name))
        .collect();
    out.push_str(&format!("\n  `ctx tool call {}{given}`", tool.name));
    out
}

struct Weaving<'a> {
    meta: &'a AgentInstanceMeta,
    session_id: &'a str,
    tokenizer: &'a dyn Tokenizer,
    context: SessionContext,
    receipt: InjectionReceipt,
    servers: HashSet<String>,
    tools: HashSet<String>,
}

impl Weaving<'_> {
    fn take(&mut self, offered: Offered) -> Result<(), ContextError> {
        let Offered {
            provider,
            traits,
            offer,
        } = offered;
        let offer = match offer {
            Ok(offer) => offer,
            Err(why) if traits.required => {
                return Err(ContextError::invalid(
                    format!("provider `{provider}`"),
                    why,
                    "no session begins without this provider: mend it, or unregister it",
                ));
            }
            Err(why) => {
                let kind = InjectedKind::Provider;
                self.note(&provider, traits, kind, "", InjectedRule::Failed, "");
                if let Some(last) = self.receipt.items.last_mut() {
                    last.why = Some(why);
                }
                return Ok(());
            }
        };
        for server in offer.mcp_servers {
            self.server(&provider, traits, server);
        }
        for tool in offer.tools {
            self.tool(&provider, traits, tool);
        }
        for (n, Item { value, audience }) in offer.system_context.into_iter().enumerate() {
            let name = n.to_string();
            let kind = InjectedKind::SystemContext;
            if !self.is_for_us(&audience) {
                self.note(
                    &provider,
                    traits,
                    kind,
                    &name,
                    InjectedRule::Foreign,
                    &value,
                );
            } else if value.trim().is_empty() {
                self.note(&provider, traits, kind, &name, InjectedRule::Empty, &value);
            } else {
                self.say(&provider, traits, kind, &name, value);
            }
        }
        Ok(())
    }

    fn server(&mut self, provider: &str, traits: Traits, offered: Item<McpServerStdio>) {
        let Item { value, audience } = offered;
        let rule = if !self.is_for_us(&audience) {
            InjectedRule::Foreign
        } else if value.name == RESERVED {
            InjectedRule::Reserved
        } else if value.name.trim().is_empty() || value.command.trim().is_empty() {
            InjectedRule::Empty
        } else if !self.servers.insert(value.name.clone()) {
            InjectedRule::Duplicate
        } else {
            InjectedRule::Kept
        };
        // Values of its environment may be secrets, and are no part of what it is.
        let is = json!([value.name, value.command, value.args]).to_string();
        let kind = InjectedKind::McpServer;
        self.note(provider, traits, kind, &value.name, rule, &is);
        if rule == InjectedRule::Kept {
            self.context.mcp_servers.push(value);
        }
    }

    fn tool(&mut self, provider: &str, traits: Traits, offered: Item<ToolDefinition>) {
        let Item {
            mut value,
            audience,
        } = offered;
        let mut hidden = 0;
        for text in [Some(&mut value.description), value.context.as_mut()] {
            if let Some(text) = text
                && let Some((shown, found)) = reveal(text)
            {
                *text = shown;
                hidden += found;
            }
        }
        value.parameters = visible_value(&value.parameters, &mut hidden);
        let rule = if !self.is_for_us(&audience) {
            InjectedRule::Foreign
        } else if value.name.trim().is_empty() {
            InjectedRule::Empty
        } else if !value.scope.has(self.meta.archetype) {
            InjectedRule::OutOfScope
        } else if !self.tools.insert(value.name.clone()) {
            InjectedRule::Duplicate
        } else {
            InjectedRule::Kept
        };
        let is = json!([
            value.name,
            value.description,
            value.parameters,
            value.rpc_method
        ]);
        let kind = InjectedKind::Tool;
        self.note(provider, traits, kind, &value.name, rule, &is.to_string());
        if let Some(last) = self.receipt.items.last_mut() {
            last.hidden = hidden;
        }
        if rule == InjectedRule::Kept {
            self.context.tools.push(value);
        }
    }

    /// Adds a piece of system context.
    fn say(
        &mut self,
        provider: &str,
        traits: Traits,
        kind: InjectedKind,
        name: &str,
        text: String,
    ) {
        let (text, hidden) = reveal(&text).unwrap_or((text, 0));
        self.note(provider, traits, kind, name, InjectedRule::Kept, &text);
        if let Some(last) = self.receipt.items.last_mut() {
            last.hidden = hidden;
            self.receipt.tokens += last.tokens;
        }
        self.context.system_context_additions.push(text);
    }

    fn note(
        &mut self,
        provider: &str,
        traits: Traits,
        kind: InjectedKind,
        name: &str,
        rule: InjectedRule,
        is: &str,
    ) {
        let what = match kind {
            InjectedKind::McpServer => "mcp",
            InjectedKind::Tool => "tool",
            InjectedKind::SystemContext | InjectedKind::ToolInstructions => "system",
            InjectedKind::Provider => "provider",
        };
        let id = match name {
            "" => format!("{provider}/{what}"),
            name => format!("{provider}/{what}/{name}"),
        };
        self.receipt.items.push(Injected {
            id,
            provider: provider.to_owned(),
            kind,
            rule,
            hash: format!("blake3:{}", blake3::hash(is.as_bytes()).to_hex()),
            tokens: self.tokenizer.count(is),
            bytes: is.len(),
            stability: traits.stability,
            priority: traits.priority,
            hidden: 0,
            why: None,
        });
    }

    fn is_for_us(&self, audience: &Audience) -> bool {
        audience.includes(&self.meta.name, self.session_id)
    }
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
