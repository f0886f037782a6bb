use std::path::Path;
use std::sync::Arc;

use contexture::Message;
use contexture::tokens::Tokenizer;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;
use serde_json::Value;

use super::engine::backend;
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
    exact: bool,
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
    /// A request of nothing but the system message [`SYSTEM`].
    system: usize,
}

/// The system message of probes.
const SYSTEM: &str = "s";

impl Vocabulary {
    /// Reads the vocabulary and the template of a model's file, and nothing else of it.
    pub fn open(name: &str, path: &Path) -> Result<Self, LocalError> {
        let header = Header::of_file(path)?;
        let params = LlamaModelParams::default().with_vocab_only(true);
        let model = LlamaModel::load_from_file(backend()?, path, &params)
            .map_err(|error| LocalError::engine("the vocabulary cannot be read", error))?;
        Self::of(name, Arc::new(model), header.chat_template.as_deref())
    }

    pub(super) fn of(
        name: &str,
        model: Arc<LlamaModel>,
        template: Option<&str>,
    ) -> Result<Self, LocalError> {
        let vocab = model.vocab();
        let piece = |token: LlamaToken| {
            let bytes = vocab.token_to_piece(token, true, None);
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let known = |token: LlamaToken| (token.0 >= 0).then_some(token);
        let (bos, eos) = (known(vocab.bos()), known(vocab.eos()));
        let text = |token: Option<LlamaToken>| token.map(piece).unwrap_or_default();
        let template = Template::new(template, &text(bos), &text(eos))?;
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
            exact: false,
        };
        made.frames = made.measured()?;
        made.exact = made.adds_up()?;
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

    /// Whether calls are in the model's own form.
    pub(super) fn calls_natively(&self) -> bool {
        self.template.takes.tools
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

    fn cost(&self, messages: &[Message], tools: &[Value], invite: bool) -> Option<usize> {
        self.ids(messages, tools, invite).ok().map(|ids| ids.len())
    }

    fn measured(&self) -> Result<Frames, LocalError> {
        let system = [Message::system(SYSTEM)];
        let user = [Message::user("u")];
        let both = [Message::system(SYSTEM), Message::user("u")];
        let head = usize::from(self.bos.is_some());
        let count =
            |messages: &[Message], invite| self.ids(messages, &[], invite).map(|ids| ids.len());
        let with_user = count(&both, false)?;
        // Some templates say nothing without a question.
        let alone = count(&system, false).unwrap_or(with_user);
        let user_costs = with_user.saturating_sub(alone);
        let default_system = count(&user, false)?.saturating_sub(head + user_costs);
        Ok(Frames {
            head,
            invitation: count(&both, true)?.saturating_sub(with_user),
            default_system,
            system: alone,
        })
    }

    /// Whether a request's tokens are the sum of its parts', tried on a conversation of every kind.
    fn adds_up(&self) -> Result<bool, LocalError> {
        let call = contexture::ToolCall::new("c", "look", "{\"at\": \"x\"}");
        let all = [
            Message::system("Be brief.\n"),
            Message::user("\nWhat is there?"),
            Message::calls([call]),
            Message::tool_result("c", "Nothing."),
            Message::assistant(" Nothing. "),
            Message::user("  Look again\n\n"),
        ];
        let tools = [
            serde_json::json!({"type": "function", "function": {"name": "look",
            "description": "Looks.", "parameters": {"type": "object", "properties": {}}}}),
        ];
        let adds = |messages: &[Message], tools: &[Value]| -> Result<bool, LocalError> {
            let whole = self.ids(messages, tools, true)?.len();
            let parts: usize = messages.iter().map(|m| self.message(m)).sum();
            Ok(whole == self.frame(messages.first()) + parts + self.tools(tools))
        };
        Ok(adds(&all, &[])? && adds(&all, &tools)? && adds(&all[1..], &[])?)
    }
}

impl Tokenizer for Vocabulary {
    fn name(&self) -> &str {
        &self.name
    }

    fn exact(&self) -> bool {
        self.exact
    }

    fn count(&self, text: &str) -> usize {
        self.plain(text).len()
    }

    fn message(&self, message: &Message) -> usize {
        let priced = match message.role.is_system() {
            true => self
                .cost(std::slice::from_ref(message), &[], false)
                .map(|all| all - self.frames.head),
            false => self
                .cost(&[Message::system(SYSTEM), message.clone()], &[], false)
                .map(|all| all.saturating_sub(self.frames.system)),
        };
        // A message that the template takes in company only: its text, and a frame of common size.
        priced.unwrap_or_else(|| self.count(&message.text()) + 8)
    }

    fn tool(&self, spec: &Value) -> usize {
        match self.template.takes.tools {
            true => self.count(&spec.to_string()),
            false => self.count(&format!("\n- {}", words::line(spec))),
        }
    }

    fn tools(&self, specs: &[Value]) -> usize {
        if specs.is_empty() {
            return 0;
        }
        let with = self.cost(&[Message::system(SYSTEM)], specs, false);
        with.map_or_else(
            || specs.iter().map(|spec| self.tool(spec)).sum(),
            |with| with.saturating_sub(self.frames.system),
        )
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
