use std::collections::HashSet;

use serde::Serialize;
use serde_json::json;

use super::receipt::{Injected, InjectedKind, InjectedRule, InjectionReceipt};
use super::room::{Claim, share};
use super::{AgentInstanceMeta, Audience, Item, McpServerStdio, Offer, ToolDefinition, Traits};
use crate::ContextError;
use crate::build::hidden::visible_value;
use crate::prompt::{Template, Templates, arguments, signature};
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

/// The agent and session that a context is made for, and the means to make it.
#[derive(Clone, Copy)]
pub struct Weaving<'a> {
    /// The agent.
    pub meta: &'a AgentInstanceMeta,
    /// The session.
    pub session_id: &'a str,
    /// Counts what each item costs.
    pub tokenizer: &'a dyn Tokenizer,
    /// The templates of our own texts.
    pub templates: &'a Templates,
    /// The most tokens of all texts together. What is required, and the instructions for the tools, are in at any price.
    pub room: usize,
}

/// Makes a session's context of what the providers offer.
///
/// Of two servers or tools with one name the first wins; a tool that the archetype is not allowed claims
/// no name. Instructions for the tools come last, and only where there are tools and a token. A provider
/// that failed is left out, unless it is required: then there is no session.
pub fn weave(
    of: Weaving<'_>,
    offered: Vec<Offered>,
    token: Option<&str>,
) -> Result<(SessionContext, InjectionReceipt), ContextError> {
    let mut weaving = Loom {
        of,
        context: SessionContext {
            mcp_servers: Vec::new(),
            tools: Vec::new(),
            system_context_additions: Vec::new(),
            token: token.unwrap_or_default().to_owned(),
        },
        receipt: InjectionReceipt {
            tokenizer: of.tokenizer.name().to_owned(),
            room: of.room,
            ..InjectionReceipt::default()
        },
        texts: Vec::new(),
        servers: HashSet::new(),
        tools: HashSet::new(),
    };
    for one in offered {
        weaving.take(one)?;
    }
    if !weaving.context.tools.is_empty() && token.is_some() {
        let text = instructions(&weaving.context.tools, of.templates)?;
        let traits = Traits {
            required: true,
            ..Traits::default()
        };
        weaving.say(
            RESERVED,
            traits,
            InjectedKind::ToolInstructions,
            "tool-instructions",
            text,
        );
    }
    weaving.make_room();
    Ok((weaving.context, weaving.receipt))
}

/// How to call these tools, for the model.
pub fn instructions(
    tools: &[ToolDefinition],
    templates: &Templates,
) -> Result<String, ContextError> {
    let list: Vec<String> = tools.iter().map(in_words).collect();
    let values = json!({
        "toolList": list.join("\n"),
        "token": TOKEN_FILE_VARIABLE,
    });
    templates.render(Template::ToolInstructions, values)
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

struct Loom<'a> {
    of: Weaving<'a>,
    context: SessionContext,
    receipt: InjectionReceipt,
    /// The texts that want room, in order.
    texts: Vec<Text>,
    servers: HashSet<String>,
    tools: HashSet<String>,
}

/// A text that wants room.
struct Text {
    /// Its place in the receipt.
    item: usize,
    text: String,
    required: bool,
}

impl Loom<'_> {
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
        } else if !value.scope.has(self.of.meta.archetype) {
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
            value.provider = Some(provider.to_owned());
            self.context.tools.push(value);
        }
    }

    /// Adds a piece of system context, as far as there is room.
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
        }
        self.texts.push(Text {
            item: self.receipt.items.len() - 1,
            text,
            required: traits.required,
        });
    }

    /// Shares the room among the texts.
    fn make_room(&mut self) {
        let claim = |text: &Text| {
            let item = &self.receipt.items[text.item];
            Claim {
                tokens: item.tokens,
                priority: item.priority,
                required: text.required,
            }
        };
        let claims: Vec<Claim> = self.texts.iter().map(claim).collect();
        let shares = share(self.of.room, &claims);
        for (Text { item, text, .. }, has) in
            std::mem::take(&mut self.texts).into_iter().zip(shares)
        {
            let item = &mut self.receipt.items[item];
            if has {
                self.receipt.tokens += item.tokens;
                self.context.system_context_additions.push(text);
            } else {
                item.rule = InjectedRule::NoRoom;
                let room = self.of.room;
                item.why = Some(format!("no room: all texts have {room} tokens together"));
            }
        }
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
            tokens: self.of.tokenizer.count(is),
            bytes: is.len(),
            stability: traits.stability,
            priority: traits.priority,
            hidden: 0,
            why: None,
        });
    }

    fn is_for_us(&self, audience: &Audience) -> bool {
        audience.includes(&self.of.meta.name, self.of.session_id)
    }
}
