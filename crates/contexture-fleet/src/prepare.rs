//! Asks the providers and makes a session's context, with its token (spec 000's `prepare`).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use contexture::ContextError;
use contexture::inject::{
    AgentInstanceMeta, ContextProvider, InjectionReceipt, Injector, Offer, Offered, ProviderCall,
    SessionContext, ToolDefinition, Weaving, gather, instructions, weave,
};
use contexture::prompt::Templates;
use contexture::tokens::Tokenizer;
use contexture_store::{Key, StateError, StoreError};
use futures_util::future::join_all;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::tokens::{Grant, TokenError, Tokens, hex, random};
use crate::{Bus, Event};

/// How long a provider may take.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// How much a provider may say.
pub const MOST_BYTES: usize = 256 << 10;
/// The most tokens of all texts of providers together, unless the host says otherwise.
const ROOM: usize = 32_000;
/// Maximum calls of one provider's tools under way. One that hangs holds a thread for each.
const MAX_CALLS: usize = 8;

/// Spec 000's injector: providers, tokens and events.
pub struct SessionInjector {
    injector: RwLock<Injector>,
    tokens: Option<Arc<Tokens>>,
    bus: Arc<Bus>,
    tokenizer: Arc<dyn Tokenizer>,
    templates: Arc<Templates>,
    patience: Duration,
    room: usize,
    /// Permits for calls, by provider.
    calls: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A session that may begin.
#[derive(Debug, Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prepared {
    /// Its id.
    pub session_id: String,
    /// What it begins with.
    #[serde(flatten)]
    pub context: SessionContext,
    /// Who offered what, and what became of it.
    pub receipt: InjectionReceipt,
    /// The file with its token, where a daemon keeps one for its programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// What its token allows.
    #[serde(skip)]
    pub grant: Option<Arc<Grant>>,
}

/// Why a session does not begin.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// A provider that it needs failed.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// Its name, or its agent's, cannot be one.
    #[error(transparent)]
    Key(#[from] StoreError),
    /// It gets no token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// Its token cannot be kept for its programs.
    #[error(transparent)]
    State(#[from] StateError),
}

impl SessionInjector {
    /// Without providers. Where there are no tokens, sessions have none, and no instructions for tools.
    pub fn new(tokens: Option<Arc<Tokens>>, bus: Arc<Bus>, tokenizer: Arc<dyn Tokenizer>) -> Self {
        Self {
            injector: RwLock::default(),
            tokens,
            bus,
            tokenizer,
            templates: Arc::default(),
            patience: PATIENCE,
            room: ROOM,
            calls: Mutex::default(),
        }
    }

    /// With these templates for our own texts.
    #[must_use]
    pub fn templates(self, templates: Arc<Templates>) -> Self {
        Self { templates, ..self }
    }

    /// With another limit for the tokens of all texts together.
    #[must_use]
    pub fn room(self, room: usize) -> Self {
        Self { room, ..self }
    }

    /// With another time limit for a provider.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Adds a provider, or puts it in the place of one of the same name.
    pub fn register(&self, provider: Arc<dyn ContextProvider>) {
        let mut injector = self
            .injector
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        injector.register(provider);
    }

    /// Takes a provider out. Whether it was there.
    pub fn unregister(&self, name: &str) -> bool {
        let mut injector = self
            .injector
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        injector.unregister(name)
    }

    /// The names of the providers, in order.
    pub fn list_providers(&self) -> Vec<String> {
        let injector = self.injector.read().unwrap_or_else(PoisonError::into_inner);
        injector.list().into_iter().map(str::to_owned).collect()
    }

    /// Ends the tokens of an agent, and gives how many there were.
    pub fn revoke_tokens(&self, agent: &str) -> usize {
        let count = self
            .tokens
            .as_ref()
            .map_or(0, |all| all.revoke_agent(agent));
        if count > 0 {
            self.bus.tell(Event::TokensRevoked {
                agent: agent.to_owned(),
                count,
            });
        }
        count
    }

    /// The instructions for calling a session's tools, for its agent; none where it has no tools.
    pub fn instructions(&self, tools: &[ToolDefinition]) -> Result<Option<String>, ContextError> {
        let text = instructions(tools, &self.templates);
        text.map(|text| (!tools.is_empty()).then_some(text))
    }

    /// Makes the context of a session that is about to begin.
    pub async fn prepare(
        &self,
        meta: &AgentInstanceMeta,
        session_id: Option<String>,
    ) -> Result<Prepared, PrepareError> {
        let session_id = match session_id {
            Some(given) => given,
            None => format!("{}-{}", meta.name, hex(&random()?[..8])),
        };
        // Both become names of files. What cannot be one is refused before anybody is asked.
        Key::new(meta.name.as_str())?;
        Key::new(session_id.as_str())?;
        let providers = {
            let injector = self.injector.read().unwrap_or_else(PoisonError::into_inner);
            injector.providers().to_vec()
        };
        self.bus.tell(Event::Preparing {
            agent: meta.name.clone(),
            session_id: session_id.clone(),
            provider_count: providers.len(),
        });
        let asked = providers.iter().map(|provider| self.ask(provider, meta));
        let offered = join_all(asked).await;
        for Offered {
            provider, offer, ..
        } in &offered
        {
            if let Err(why) = offer {
                self.bus.tell(Event::ProviderFailed {
                    agent: meta.name.clone(),
                    session_id: session_id.clone(),
                    provider: provider.clone(),
                    why: why.clone(),
                });
            }
        }
        // The token comes behind the providers, so that a session that cannot begin leaves none; what it
        // opens does not depend on it, so weaving before it would do as well.
        let of = Weaving {
            meta,
            session_id: &session_id,
            tokenizer: self.tokenizer.as_ref(),
            templates: &self.templates,
            room: self.room,
        };
        let weave = |token: Option<&str>| weave(of, offered, token);
        let (context, receipt, grant) = match &self.tokens {
            None => {
                let (context, receipt) = weave(None)?;
                (context, receipt, None)
            }
            Some(tokens) => {
                let (token, grant) = tokens.generate(&meta.name, &session_id, meta.archetype)?;
                let woven = weave(Some(token.reveal()));
                if woven.is_err() {
                    tokens.revoke_session(&meta.name, &session_id);
                }
                let (context, receipt) = woven?;
                (context, receipt, Some(grant))
            }
        };
        self.bus.tell(Event::ContextReady {
            agent: meta.name.clone(),
            session_id: session_id.clone(),
            mcp_server_count: context.mcp_servers.len(),
            tool_count: context.tools.len(),
            context_additions: context.system_context_additions.len(),
        });
        Ok(Prepared {
            session_id,
            context,
            receipt,
            token_file: None,
            grant,
        })
    }

    /// Has a provider answer a call of one of its tools, within the limits that it is asked under. Whatever goes wrong is
    /// a sentence for the model.
    pub async fn call(&self, provider: &str, call: ProviderCall) -> Result<Value, String> {
        let found = {
            let injector = self.injector.read().unwrap_or_else(PoisonError::into_inner);
            let mut all = injector.providers().iter();
            all.find(|known| known.name() == provider).cloned()
        };
        let found = found.ok_or("it is not registered any more")?;
        let permits = {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || Arc::new(Semaphore::new(MAX_CALLS));
            Arc::clone(calls.entry(provider.to_owned()).or_insert_with(new))
        };
        let permit = permits
            .try_acquire_owned()
            .map_err(|_| format!("{MAX_CALLS} of its calls are under way: try again later"))?;
        let answering = tokio::task::spawn_blocking(move || {
            // Held until it is really over, which may be long after nobody waits any more.
            let _permit = permit;
            found.call(&call)
        });
        let answer = match tokio::time::timeout(self.patience, answering).await {
            Ok(Ok(answer)) => answer?,
            Ok(Err(_)) => return Err("it ended in the middle of its answer".to_owned()),
            Err(_) => return Err(self.late()),
        };
        match answer.to_string().len() {
            0..=MOST_BYTES => Ok(answer),
            bytes => Err(too_much(bytes)),
        }
    }

    fn late(&self) -> String {
        let patience = self.patience.as_millis();
        format!("it did not answer within {patience} ms")
    }

    /// Asks one provider, for so long and for so much.
    async fn ask(&self, provider: &Arc<dyn ContextProvider>, meta: &AgentInstanceMeta) -> Offered {
        let offer = if provider.is_quick() {
            gather(provider.as_ref(), meta)
        } else {
            let (asked, meta) = (Arc::clone(provider), meta.clone());
            let asking = tokio::task::spawn_blocking(move || gather(asked.as_ref(), &meta));
            match tokio::time::timeout(self.patience, asking).await {
                Ok(Ok(offer)) => offer,
                Ok(Err(_)) => Err("it ended in the middle of its answer".to_owned()),
                Err(_) => Err(self.late()),
            }
        };
        Offered {
            provider: provider.name().to_owned(),
            traits: provider.traits(),
            offer: offer.and_then(bounded),
        }
    }
}

/// Refuses an offer that is too long to be meant.
fn bounded(offer: Offer) -> Result<Offer, String> {
    let text: usize = offer
        .system_context
        .iter()
        .map(|item| item.value.len())
        .sum();
    let tools: usize = offer
        .tools
        .iter()
        .map(|item| item.value.description.len() + item.value.parameters.to_string().len())
        .sum();
    let bytes = text + tools;
    match bytes {
        0..=MOST_BYTES => Ok(offer),
        _ => Err(too_much(bytes)),
    }
}

fn too_much(bytes: usize) -> String {
    format!("it gave {bytes} bytes, and {MOST_BYTES} are taken")
}
