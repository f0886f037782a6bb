//! From a request to an answer.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use contexture::Message;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use serde_json::{Map, Value, json};

use super::ask::{Ask, Taste, Wanted};
use super::calls;
use super::constraint::{Constraint, Constraints};
use super::engine::{Job, News};
use super::reader::{Broken, Reader};
use super::said::{Met, Said};
use super::slots::Id;
use super::vocabulary::Vocabulary;
use super::{LocalError, Size};
use crate::{Delta, ModelError, Reply, Stop, Usage};

/// The longest answer where the request does not say: a small model that has lost its way goes round
/// in circles.
const REPLY: usize = 768;

/// How many tokens count as lately.
const LATELY: i32 = 128;

/// Answers requests, one at a time.
pub(super) struct Worker<'m> {
    model: &'m LlamaModel,
    vocabulary: &'m Vocabulary,
    reader: Reader<'m>,
    constraints: Option<Constraints>,
    window: usize,
}

/// A request that can be answered.
struct Task {
    began: Instant,
    prompt: Vec<Id>,
    /// How many of the prompt's tokens may be there already.
    reusable: usize,
    /// The longest that the answer may be.
    most: usize,
    held: Held,
}

/// An answer that is growing.
struct Growing {
    /// How many of the prompt's tokens were there.
    cached: usize,
    prompt: Vec<Id>,
    began: Instant,
    reading: Duration,
    /// How many tokens it has.
    made: usize,
    said: Said,
    /// The form that its rest must have.
    held: Held,
    /// True once it was seen to begin with a call in plain JSON.
    is_begun: bool,
}

/// The form that the rest of an answer must have.
enum Held {
    /// None: text.
    Free,
    /// A value of a schema.
    Value(Constraint),
    /// The rest of a call.
    Call(Constraint),
}

impl<'m> Worker<'m> {
    pub fn new(
        model: &'m LlamaModel,
        vocabulary: &'m Vocabulary,
        size: Size,
        stop: &'m AtomicBool,
    ) -> Result<Self, LocalError> {
        Ok(Self {
            model,
            vocabulary,
            reader: Reader::new(model, size, stop)?,
            constraints: None,
            window: size.window,
        })
    }

    pub fn work(&mut self, job: &Job) {
        let Job { ask, news } = job;
        let waits = || !news.is_closed();
        if self.reader.stopped() || !waits() {
            return;
        }
        let done = |done| drop(news.send(News::Done(Box::new(done))));
        // A request that cannot be answered leaves everything as it was.
        let task = match self.accept(ask) {
            Ok(task) => task,
            Err(error) => return done(Err(error)),
        };
        let mut tell = |delta| drop(news.send(News::Delta(delta)));
        let said = match self.answer(ask, task, &waits, &mut tell) {
            Ok(reply) => {
                let message = reply.message.clone();
                done(Ok(reply));
                Some(message)
            }
            Err(Broken::CalledOff) => None,
            Err(Broken::Failed(error)) => {
                done(Err(error));
                None
            }
        };
        self.settle(ask, said.as_ref());
    }

    fn accept(&mut self, ask: &Ask) -> Result<Task, ModelError> {
        let held = match &ask.wanted {
            Wanted::Json(schema) => Held::Value(self.constraints()?.json(schema)?),
            Wanted::Call(_) => Held::Call(self.call(ask)?),
            Wanted::Any | Wanted::Text => Held::Free,
        };
        let began = Instant::now();
        let (prompt, reusable) = self
            .vocabulary
            .prompt_ids(&ask.messages, &ask.tools)
            .map_err(|error| ModelError::Invalid {
                what: error.to_string(),
            })?;
        if prompt.is_empty() || prompt.len() >= self.window {
            let (has, reads) = (prompt.len(), self.window);
            return Err(ModelError::Overflow {
                what: format!("it has {has} tokens, and {reads} are read"),
                limit: Some(reads as u64),
            });
        }
        let most = ask.max_tokens.unwrap_or(REPLY);
        let most = most.min(self.window - prompt.len());
        Ok(Task {
            began,
            prompt,
            reusable,
            most,
            held,
        })
    }

    /// A call of one of the tools that may be called, behind the mark of a call.
    fn call(&mut self, ask: &Ask) -> Result<Constraint, ModelError> {
        let form = self.vocabulary.form();
        self.constraints()?.call(form, ask.callable())
    }

    fn answer(
        &mut self,
        ask: &Ask,
        task: Task,
        waits: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(Delta),
    ) -> Result<Reply, Broken> {
        let native = self.vocabulary.calls_natively();
        let most = task.most;
        let mut growing = self.begin(ask, task, waits)?;
        if matches!(ask.wanted, Wanted::Call(_)) {
            let mark = &self.vocabulary.form().mark;
            growing.said.append(mark.as_bytes());
            self.stand_at_call(&growing, waits)?;
        }
        let mut free = self.sampler(ask.taste);
        // A schema repeats itself: quotes, commas, names.
        let mut held = self.sampler(Taste {
            repeats: 1.0,
            ..ask.taste
        });
        let stop = loop {
            if growing.made >= most {
                break Stop::Length;
            }
            let token = match &mut growing.held {
                Held::Free => self.choose(&mut free, None)?,
                Held::Value(constraint) | Held::Call(constraint) => {
                    self.choose(&mut held, Some(constraint))?
                }
            };
            growing.made += 1;
            let ended = self.model.vocab().is_eog(token);
            let bytes = match ended {
                true => Vec::new(),
                false => self.model.vocab().token_to_piece(token, native, None),
            };
            match &mut growing.held {
                Held::Value(constraint) => {
                    let whole = ended || constraint.take(token.0)?;
                    if growing.said.push(&bytes) == Met::Stop || whole {
                        break Stop::End;
                    }
                }
                Held::Call(constraint) => {
                    let whole = ended || constraint.take(token.0)?;
                    growing.said.append(&bytes);
                    if whole {
                        // A model with a form of its own knows how a call ends, and may go on with another.
                        if ended || !native || matches!(ask.wanted, Wanted::Call(_)) {
                            break Stop::End;
                        }
                        growing.held = Held::Free;
                    }
                }
                Held::Free if ended => break Stop::End,
                Held::Free => match growing.said.push(&bytes) {
                    Met::Nothing => self.hold_arguments(ask, &mut growing)?,
                    Met::Stop => break Stop::End,
                    Met::Call => {
                        growing.held = Held::Call(self.call(ask)?);
                        self.stand_at_call(&growing, waits)?;
                        continue;
                    }
                },
            }
            let may_be_a_call = ask.may_call() && growing.said.may_be_a_call();
            if !may_be_a_call && let Some(text) = growing.said.fresh() {
                tell(Delta::Text(text.to_owned()));
            }
            self.reader.read(&[token.0], true, waits)?;
        };
        Ok(self.reply(ask, growing, stop, tell))
    }

    /// Reads the prompt, as far as it is not there yet.
    fn begin(
        &mut self,
        ask: &Ask,
        task: Task,
        waits: &dyn Fn() -> bool,
    ) -> Result<Growing, Broken> {
        let cached = self.reader.place(&task.prompt, task.reusable);
        self.reader.read(&task.prompt[cached..], true, waits)?;
        let mark = self.vocabulary.form().mark.clone();
        let mark = Some(mark).filter(|mark| ask.may_call() && !mark.is_empty());
        Ok(Growing {
            cached,
            prompt: task.prompt,
            began: task.began,
            reading: task.began.elapsed(),
            made: 0,
            said: Said::new(ask.stop.clone(), mark),
            held: task.held,
            is_begun: false,
        })
    }

    /// A call begins at a clean edge: the cells hold what was said, token by token as it would be read
    /// again.
    fn stand_at_call(&mut self, growing: &Growing, waits: &dyn Fn() -> bool) -> Result<(), Broken> {
        let mut want = growing.prompt.clone();
        want.extend(self.vocabulary.called(growing.said.text()));
        self.reader.hold(&want, true, waits)
    }

    /// Holds the rest of a call that was begun in plain JSON to the schema of its tool, unless it is at odds with that
    /// already.
    fn hold_arguments(&mut self, ask: &Ask, growing: &mut Growing) -> Result<(), ModelError> {
        if growing.is_begun || !ask.may_call() {
            return Ok(());
        }
        let Some((tool, behind)) = calls::begun(growing.said.text(), &ask.tools) else {
            return Ok(());
        };
        let behind = self.vocabulary.plain(behind);
        let mut constraint = self.constraints()?.arguments(tool)?;
        growing.is_begun = true;
        if constraint.has(&behind) {
            growing.held = Held::Call(constraint);
        }
        Ok(())
    }

    fn choose(
        &mut self,
        sampler: &mut LlamaSampler,
        constraint: Option<&mut Constraint>,
    ) -> Result<LlamaToken, ModelError> {
        let mut next = self.reader.next();
        if let Some(constraint) = constraint {
            constraint.mask(&mut next)?;
        }
        next.apply_sampler(sampler);
        let token = next.selected_token().ok_or_else(|| ModelError::Garbage {
            what: "no token can come next".to_owned(),
        })?;
        sampler.accept(token);
        Ok(token)
    }

    fn constraints(&mut self) -> Result<&Constraints, ModelError> {
        if self.constraints.is_none() {
            let made = Constraints::new(self.model).map_err(|error| ModelError::Invalid {
                what: error.to_string(),
            })?;
            self.constraints = Some(made);
        }
        self.constraints.as_ref().ok_or(ModelError::Cut)
    }

    fn sampler(&self, taste: Taste) -> LlamaSampler {
        let mut all = Vec::new();
        #[expect(clippy::float_cmp, reason = "a constant that changes nothing")]
        if taste.repeats != 1.0 {
            let words = self.model.n_vocab();
            all.push(LlamaSampler::penalties(
                words,
                LATELY,
                taste.repeats,
                0.0,
                0.0,
            ));
        }
        if taste.temperature <= 0.0 {
            all.push(LlamaSampler::greedy());
        } else {
            all.extend([
                LlamaSampler::top_k(40),
                LlamaSampler::top_p(taste.top_p, 1),
                LlamaSampler::temp(taste.temperature),
                LlamaSampler::dist(taste.seed),
            ]);
        }
        LlamaSampler::chain_simple(all)
    }

    fn reply(
        &self,
        ask: &Ask,
        mut growing: Growing,
        mut stop: Stop,
        tell: &mut dyn FnMut(Delta),
    ) -> Reply {
        let usage = usage(&growing);
        let id = format!("call_{}", growing.prompt.len());
        let rest = growing.said.rest().map(str::to_owned);
        let text = growing.said.text();
        let message = match ask.may_call() {
            true => calls::message(text, self.vocabulary.form(), &ask.tools, &id),
            false => Message::assistant(text),
        };
        if let (Some(rest), true) = (rest, message.tool_calls.is_empty()) {
            tell(Delta::Text(rest));
        }
        for call in &message.tool_calls {
            tell(Delta::Call {
                name: call.name.clone(),
            });
            stop = Stop::Tools;
        }
        Reply {
            message,
            stop,
            usage: Some(usage),
            model: None,
        }
    }

    /// Leaves in the cache what the next request of this conversation begins with: the request, and
    /// the answer as it will be read again. Nobody waits for it.
    fn settle(&mut self, ask: &Ask, said: Option<&Message>) {
        let all = ask.messages.iter().chain(said);
        let Ok(want) = self.vocabulary.ids(all, &ask.tools, false) else {
            return;
        };
        let want = &want[..want.len().min(self.window)];
        match said {
            // What cannot be read now is read with the next request.
            Some(_) => drop(self.reader.hold(want, false, &|| true)),
            None => self.reader.trim(want),
        }
    }
}

/// What it cost, as llama.cpp's own server says it.
fn usage(growing: &Growing) -> Usage {
    let millis = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    let writing = growing.began.elapsed().saturating_sub(growing.reading);
    let (read, made) = (growing.prompt.len(), growing.made);
    let all = json!({
        "prompt_tokens": read,
        "completion_tokens": made,
        "total_tokens": read + made,
        "prompt_tokens_details": {"cached_tokens": growing.cached},
        "timings": {"prompt_ms": millis(growing.reading), "predicted_ms": millis(writing)},
    });
    Usage(match all {
        Value::Object(all) => all,
        _ => Map::new(),
    })
}
