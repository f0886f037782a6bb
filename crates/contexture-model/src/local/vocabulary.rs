//! The vocabulary of a model in this process: its template and its tokens, and so what a request costs, to the token.

use std::path::Path;
use std::sync::Arc;

use contexture::tokens::Tokenizer;
use contexture::{Message, Role, ToolCall};
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;
use serde_json::Value;

use super::engine::backend;
use super::form::Form;
use super::shield::{Piece, Shield};
use super::slots::{Id, common};
use super::template::Template;
use super::{LocalError, words};
use crate::gguf::Header;

/// How a model in this process reads: its template and its tokens. Counts what it counts.
pub struct Vocabulary {
    name: String,
    model: Arc<LlamaModel>,
    template: Template,
    shield: Shield,
    bos: Option<Id>,
    frames: Frames,
}

/// What a template puts around messages, in tokens.
#[derive(Debug, Clone, Copy, Default)]
struct Frames {
    /// Before everything.
    head: usize,
    /// The invitation to answer, behind everything.
    invitation: usize,
    /// The system message that it puts in where there is none.
    default_system: usize,
}

/// The texts of a question and its answer, among which the parts of a request are priced one by one.
const QUESTION: &str = "u";
const ANSWER: &str = "a";

impl Vocabulary {
    /// Reads the vocabulary and the template of a model's file, and nothing else of it.
    pub fn open(name: &str, path: &Path) -> Result<Self, LocalError> {
        let header = Header::of_file(path)?;
        let params = LlamaModelParams::default().with_vocab_only(true);
        let model = LlamaModel::load_from_file(backend()?, path, &params)
            .map_err(|error| LocalError::engine("the vocabulary cannot be read", error))?;
        Self::of(name, Arc::new(model), &header)
    }

    pub(super) fn of(
        name: &str,
        model: Arc<LlamaModel>,
        header: &Header,
    ) -> Result<Self, LocalError> {
        let vocab = model.vocab();
        let piece = |token: LlamaToken| {
            let bytes = vocab.token_to_piece(token, true, None);
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let known = |token: LlamaToken| (token.0 >= 0).then_some(token);
        let (bos, eos) = (known(vocab.bos()), known(vocab.eos()));
        let text = |token: Option<LlamaToken>| token.map(piece).unwrap_or_default();
        let chat = header.chat_template.as_deref();
        let for_tools = header.chat_templates.get("tool_use").map(String::as_str);
        let template = Template::new(chat, for_tools, &text(bos), &text(eos))?;
        let control = vocab.tokens().filter(|&token| {
            let attrs = vocab.attr(token);
            attrs.contains(LlamaTokenAttr::Control) || attrs.contains(LlamaTokenAttr::Unknown)
        });
        let shield = Shield::new(control.map(piece))?;
        let bos = bos.filter(|_| vocab.should_add_bos()).map(|token| token.0);
        let mut made = Self {
            name: name.to_owned(),
            model,
            template,
            shield,
            bos,
            frames: Frames::default(),
        };
        made.frames = made.measured()?;
        Ok(made)
    }

    /// What is read for these messages and tools: all of it, and how much of it stands before the
    /// invitation to answer.
    pub(super) fn prompt_ids<'a>(
        &self,
        messages: impl IntoIterator<Item = &'a Message> + Clone,
        tools: &[Value],
    ) -> Result<(Vec<Id>, usize), LocalError> {
        let all = self.ids(messages.clone(), tools, true)?;
        let plain = self.ids(messages, tools, false)?;
        let before = common(&all, &plain);
        Ok((all, before))
    }

    /// The tokens of a conversation, in the model's own form.
    pub(super) fn ids<'a>(
        &self,
        messages: impl IntoIterator<Item = &'a Message>,
        tools: &[Value],
        invite: bool,
    ) -> Result<Vec<Id>, LocalError> {
        let mut spoken = words::conversation(messages, tools, self.template.takes);
        let mut tools = match self.template.takes.tools {
            true => tools.to_vec(),
            false => Vec::new(),
        };
        let mark = self.shield.hide(&mut spoken, &mut tools);
        let text = self.template.render(&spoken, &tools, invite)?;
        Ok(self.read(&text, mark))
    }

    /// The tokens of a text that stands behind a prompt.
    pub(super) fn plain(&self, text: &str) -> Vec<Id> {
        let tokens = self.model.vocab().tokenize(text.as_bytes(), false, false);
        tokens.into_iter().map(|token| token.0).collect()
    }

    /// The tokens of a text at whose end a call was begun with its mark, which may be a control token.
    pub(super) fn called(&self, text: &str) -> Vec<Id> {
        let (before, mark) = match text.strip_suffix(&*self.form().mark) {
            Some(before) => (before, &*self.form().mark),
            None => (text, ""),
        };
        let mut ids = self.plain(before);
        let mark = self
            .model
            .vocab()
            .tokenize(mark.as_bytes(), false, self.calls_natively());
        ids.extend(mark.into_iter().map(|token| token.0));
        ids
    }

    /// Whether calls are in the model's own form.
    pub(super) fn calls_natively(&self) -> bool {
        self.template.takes.tools
    }

    /// The form in which a call is written.
    pub(super) fn form(&self) -> &Form {
        &self.template.form
    }

    /// A rendered text in tokens. Control tokens are those of the template alone: where data looks
    /// like one, it was marked, and stays text.
    fn read(&self, text: &str, mark: Option<char>) -> Vec<Id> {
        let vocab = self.model.vocab();
        let mut out: Vec<Id> = self.bos.into_iter().collect();
        let mut text = text;
        if let Some(bos) = self.bos {
            // Templates that write it themselves would say it twice.
            let own = vocab.token_to_piece(LlamaToken(bos), true, None);
            text = std::str::from_utf8(&own)
                .ok()
                .filter(|own| !own.is_empty())
                .and_then(|own| text.strip_prefix(own))
                .unwrap_or(text);
        }
        let mut read = |text: &str, special: bool| {
            let tokens = vocab.tokenize(text.as_bytes(), false, special);
            out.extend(tokens.into_iter().map(|token| token.0));
        };
        match mark {
            None => read(text, true),
            Some(mark) => {
                for piece in self.shield.split(text) {
                    match piece {
                        Piece::Control(text) => read(text, true),
                        Piece::Text(text) => read(&text.replace(mark, ""), false),
                    }
                }
            }
        }
        out
    }

    fn cost(&self, messages: &[Message], tools: &[Value]) -> Option<usize> {
        self.ids(messages, tools, false).ok().map(|ids| ids.len())
    }

    fn measured(&self) -> Result<Frames, LocalError> {
        let (user, reply) = (Message::user(QUESTION), Message::assistant(ANSWER));
        let count = |messages: &[Message], invite| -> Result<usize, LocalError> {
            Ok(self.ids(messages, &[], invite)?.len())
        };
        let alone = count(std::slice::from_ref(&user), false)?;
        let answered = [user.clone(), reply.clone()];
        let asked_again = [user.clone(), reply, user.clone()];
        let head = usize::from(self.bos.is_some());
        let question = count(&asked_again, false)?.saturating_sub(count(&answered, false)?);
        Ok(Frames {
            head,
            invitation: count(&[user], true)?.saturating_sub(alone),
            default_system: alone.saturating_sub(head + question),
        })
    }

    /// The cost of a message at the place where a template takes one of its kind.
    fn priced(&self, message: &Message) -> Option<usize> {
        let user = Message::user(QUESTION);
        let mut before = vec![user.clone()];
        match message.role {
            Role::System | Role::Developer => {
                let with = self.cost(&[message.clone(), user], &[])?;
                let without = self.cost(&before, &[])?;
                return Some((with + self.frames.default_system).saturating_sub(without));
            }
            Role::User => before.push(Message::assistant(ANSWER)),
            Role::Assistant => {}
            Role::Tool => {
                let id = message.tool_call_id.as_deref().unwrap_or_default();
                before.push(Message::calls([ToolCall::new(id, "f", "{}")]));
            }
        }
        let without = self.cost(&before, &[])?;
        before.push(message.clone());
        Some(self.cost(&before, &[])?.saturating_sub(without))
    }
}

impl Tokenizer for Vocabulary {
    fn name(&self) -> &str {
        &self.name
    }

    fn exact(&self) -> bool {
        true
    }

    fn count(&self, text: &str) -> usize {
        self.plain(text).len()
    }

    fn request(
        &self,
        messages: &mut dyn Iterator<Item = &Message>,
        tools: &[Value],
    ) -> Option<usize> {
        self.ids(messages, tools, true).ok().map(|ids| ids.len())
    }

    fn message(&self, message: &Message) -> usize {
        // A message that the template takes in company only: its text, and a frame of common size.
        self.priced(message)
            .unwrap_or_else(|| self.count(&message.text()) + 8)
    }

    fn tool(&self, spec: &Value) -> usize {
        let two = [spec.clone(), spec.clone()];
        self.tools(&two).saturating_sub(self.tools(&two[..1]))
    }

    fn tools(&self, specs: &[Value]) -> usize {
        if specs.is_empty() {
            return 0;
        }
        // Some templates say a word of their own where there are tools and no system message.
        let asked = [Message::system(QUESTION), Message::user(QUESTION)];
        match (self.cost(&asked, specs), self.cost(&asked, &[])) {
            (Some(with), Some(without)) => with.saturating_sub(without),
            _ => specs.iter().map(|spec| self.count(&spec.to_string())).sum(),
        }
    }

    fn frame(&self, first: Option<&Message>) -> usize {
        let own = first.is_some_and(|first| first.role.is_system());
        let default = if own { 0 } else { self.frames.default_system };
        self.frames.head + default + self.frames.invitation
    }

    fn prompt(
        &self,
        messages: &mut dyn Iterator<Item = &Message>,
        tools: &[Value],
    ) -> Option<Vec<u32>> {
        let ids = self.ids(messages, tools, false).ok()?;
        Some(ids.into_iter().map(Id::cast_unsigned).collect())
    }
}
