//! From a request to an answer.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use contexture::Message;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use serde_json::{Map, Value, json};

use super::ask::{Ask, Taste, Wanted, name};
use super::constraint::{Constraint, Constraints};
use super::engine::{Job, News};
use super::reader::{Broken, Reader};
use super::said::{self, Met, Said};
use super::slots::Id;
use super::vocabulary::Vocabulary;
use super::words::CALL;
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
    constraint: Option<Constraint>,
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
    /// The call that stands at its end, as far as it is written.
    call: Option<Vec<u8>>,
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
        let constraint = match &ask.wanted {
            Wanted::Json(schema) => Some(self.constraints()?.json(schema)?),
            Wanted::Call(_) if !self.vocabulary.calls_natively() => {
                Some(self.constraints()?.call(ask.callable())?)
            }
            _ => None,
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
            constraint,
        })
    }

    fn answer(
        &mut self,
        ask: &Ask,
        mut task: Task,
        waits: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(Delta),
    ) -> Result<Reply, Broken> {
        let native = self.vocabulary.calls_natively();
        let (most, mut constraint) = (task.most, task.constraint.take());
        let mut growing = self.begin(ask, task, waits)?;
        if constraint.is_some() && matches!(ask.wanted, Wanted::Call(_)) {
            growing.said.push(CALL.0.as_bytes());
            self.open_call(&mut growing, waits)?;
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
            let token = match &mut constraint {
                Some(constraint) => self.choose(&mut held, Some(constraint))?,
                None => self.choose(&mut free, None)?,
            };
            growing.made += 1;
            let ended = self.model.vocab().is_eog(token);
            let bytes = match ended {
                true => Vec::new(),
                false => self.model.vocab().token_to_piece(token, native, None),
            };
            if let Some(constraint) = &mut constraint {
                let whole = ended || constraint.take(token.0)?;
                let met = match &mut growing.call {
                    Some(json) => {
                        json.extend_from_slice(&bytes);
                        Met::Nothing
                    }
                    None => growing.said.push(&bytes),
                };
                if whole || met == Met::Stop {
                    break match growing.call {
                        Some(_) => Stop::Tools,
                        None => Stop::End,
                    };
                }
            } else {
                if ended {
                    break Stop::End;
                }
                match growing.said.push(&bytes) {
                    Met::Nothing => {}
                    Met::Stop => break Stop::End,
                    Met::Call => {
                        constraint = Some(self.constraints()?.call(ask.callable())?);
                        self.open_call(&mut growing, waits)?;
                        continue;
                    }
                }
            }
            let own_call = native && !ask.tools.is_empty() && growing.said.may_be_a_call();
            if growing.call.is_none()
                && !own_call
                && let Some(text) = growing.said.fresh()
            {
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
        let words = ask.wanted == Wanted::Any && !self.vocabulary.calls_natively();
        Ok(Growing {
            cached,
            prompt: task.prompt,
            began: task.began,
            reading: task.began.elapsed(),
            made: 0,
            said: Said::new(ask.stop.clone(), words.then_some(CALL.0)),
            call: None,
        })
    }

    /// A call begins at a clean edge: the cells hold what was said, token by token as it would be read
    /// again.
    fn open_call(&mut self, growing: &mut Growing, waits: &dyn Fn() -> bool) -> Result<(), Broken> {
        let mut want = growing.prompt.clone();
        want.extend(self.vocabulary.plain(growing.said.text()));
        growing.call = Some(Vec::new());
        self.reader.hold(&want, true, waits)
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
        let json = growing
            .call
            .as_ref()
            .map(|json| String::from_utf8_lossy(json));
        let message = match json {
            Some(json) if stop == Stop::Tools => {
                let text = growing.said.text().strip_suffix(CALL.0).unwrap_or_default();
                said::message(text, Some(&json), &id)
            }
            // Half a call is no call: it is shown for what it is.
            Some(json) => Message::assistant(format!("{}{json}", growing.said.text())),
            None => {
                let known = |wish: &str| ask.tools.iter().any(|tool| name(tool) == Some(wish));
                let native = self.vocabulary.calls_natively() && !ask.tools.is_empty();
                let rest = growing.said.rest().map(str::to_owned);
                let message = match native {
                    true => said::native(growing.said.text(), &known, &id),
                    false => Message::assistant(growing.said.text()),
                };
                if let (Some(text), true) = (rest, message.tool_calls.is_empty()) {
                    tell(Delta::Text(text));
                }
                message
            }
        };
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
