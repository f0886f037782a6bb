//! A question to the model, with what the receipt said of it beforehand.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use contexture::{Built, Message, Session, Turn};
use contexture_agent::{Agent, Cancel, Chat, Ended, Event, Spent, clock};

use super::facts::Asked;
use super::show::Show;
use crate::error::CliError;

/// How often the line that moves is drawn.
const FRAME: Duration = Duration::from_millis(100);

/// The request that this question makes. Nothing of it is logged.
pub fn build<T>(
    agent: &Agent,
    chat: &Chat,
    question: &str,
    show: impl FnOnce(&Built<'_>) -> T,
) -> Result<T, CliError> {
    let log = chat.view().log().to_vec();
    let mut session = Session::open(chat.settings().clone(), log)?;
    let built = session.build(Turn {
        sections: Some(agent.options.sections.clone()),
        tools: Some(agent.tools.offer().specs()),
        messages: vec![Message::user(question)],
        now: Some(clock::now()),
        ..Turn::default()
    })?;
    Ok(show(&built))
}

/// Asks, and measures.
pub async fn ask(
    agent: &Agent,
    chat: &mut Chat,
    cancel: &Cancel,
    question: &str,
    show: &Show,
) -> Result<Asked, CliError> {
    let receipt = build(agent, chat, question, |built| built.receipt())?;
    let (input, predicted) = (receipt.budget.used, receipt.cache.shared_prefix_tokens);
    let began = Instant::now();
    let heard = Mutex::new(Heard::default());
    let on = |event: Event| lock(&heard).take(event, began);
    let key = chat.key().clone();
    let result = {
        let run = agent.run(chat, Message::user(question), cancel, &on);
        tokio::pin!(run);
        let mut frames = tokio::time::interval(FRAME);
        loop {
            tokio::select! {
                biased;
                done = &mut run => break done?,
                _ = frames.tick() => {
                    let said = lock(&heard).text.clone();
                    show.waiting(input.saturating_sub(predicted), began.elapsed(), &said)?;
                }
            }
        }
    };
    let ended = match result.ended {
        Ended::Answered | Ended::Length => Ok(()),
        Ended::Cancelled => Err("stopped"),
        _ => Err("the provider withheld the answer"),
    };
    ended.map_err(|what| CliError::Unfinished {
        what: what.to_owned(),
        hint: format!("what there is so far: `ctx inspect {key}`"),
    })?;
    let heard = heard.into_inner().unwrap_or_else(PoisonError::into_inner);
    if heard.digest != receipt.digest {
        return Err(CliError::Unhealthy {
            what: "the request that was sent is not the one that was built".to_owned(),
            hint: format!("something else writes to session `{key}`: try it alone"),
        });
    }
    let first_word = heard.first_word.unwrap_or_else(|| began.elapsed());
    Ok(Asked {
        question: question.to_owned(),
        answer: result.text,
        digest: heard.digest,
        input_tokens: input,
        predicted_tokens: predicted,
        reused_tokens: usize::try_from(heard.spent.cached_tokens).unwrap_or(usize::MAX),
        first_word_ms: u64::try_from(first_word.as_millis()).unwrap_or(u64::MAX),
        first_change: receipt.cache.first_change,
    })
}

/// What a run told so far.
#[derive(Default)]
struct Heard {
    text: String,
    first_word: Option<Duration>,
    digest: String,
    spent: Spent,
}

impl Heard {
    fn take(&mut self, event: Event, began: Instant) {
        match event {
            Event::Text(text) => {
                self.first_word.get_or_insert_with(|| began.elapsed());
                self.text.push_str(&text);
            }
            Event::Again { .. } => self.text.clear(),
            Event::StepFinish { digest, usage, .. } => {
                self.digest = digest;
                self.spent = usage.unwrap_or_default();
            }
            _ => {}
        }
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}
