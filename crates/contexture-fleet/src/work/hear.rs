//! What comes in, sorted and checked: who said it, and what it means for the board.

use std::collections::{BTreeMap, HashMap};

use contexture::json;
use contexture::pool::{Locale, Name, NewResource};
use contexture::task::{Board, Now, Recall, State, TaskError, Word};

use super::DISPATCHER;
use super::message::{Answer, Card, Claim, Outcome, Question, Report};
use super::presence::Seen;
use super::seal::{HubKey, Opened, Voice};
use crate::hub::{Asked, Delivery, Presence, Sent};

/// What came in since the last round.
#[derive(Default)]
pub(super) struct Round {
    pub heard: Vec<Heard>,
    /// To be acknowledged once the board is written, in no order.
    pub sent: Vec<Sent>,
    /// To be answered then; by their place in `heard`.
    pub asked: HashMap<usize, Asked>,
    /// What nobody could have meant: to be told, and forgotten.
    pub refused: Vec<Refused>,
    /// Whether somebody beat who has not heard us ask who is here.
    pub unheard: bool,
}

/// A word that does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub by: String,
    pub task_id: Option<String>,
    pub why: String,
}

/// Something that was said, by whom is proven.
pub(super) struct Heard {
    by: Name,
    voice: Voice,
    word: Said,
}

enum Said {
    Claim(Claim),
    Hello,
    Report(Report),
    Here {
        resource: Box<NewResource>,
        instance: String,
    },
    Left {
        fleeting: bool,
    },
}

/// What comes of a round, beside what the board notes.
#[derive(Default)]
pub(super) struct Outcomes {
    /// What to answer, by the place in `heard`.
    pub answers: HashMap<usize, (Name, Voice, Answer)>,
    pub recalls: Vec<Recall>,
    pub refused: Vec<Refused>,
    /// Who speaks with a key that no longer counts.
    pub revoked: Vec<(Name, Voice)>,
}

/// What a card is held against.
pub(super) struct Roll<'a> {
    pub key: &'a HubKey,
    /// Which process asked last who is here.
    pub asks: &'a str,
    pub revoked: &'a BTreeMap<Name, u64>,
}

/// Whether a key counts, as often as keys of that name were revoked.
pub(super) fn counts(revoked: &BTreeMap<Name, u64>, name: &Name, voice: Voice) -> bool {
    match voice {
        Voice::Owner => true,
        Voice::Guest(generation) => generation == revoked.get(name).copied().unwrap_or_default(),
    }
}

impl Round {
    pub(super) fn take(&mut self, delivery: Delivery, key: &HubKey) {
        match delivery {
            Delivery::Told(_) => {}
            Delivery::Sent(sent) => {
                match said(key, &sent.text) {
                    Ok((opened, report)) => self.hear(opened, Said::Report(report)),
                    Err(refused) => self.refused.push(refused),
                }
                self.sent.push(sent);
            }
            Delivery::Asked(asked) => match said(key, &asked.text) {
                Ok((opened, question)) => {
                    self.asked.insert(self.heard.len(), asked);
                    let word = match question {
                        Question::Claim(claim) => Said::Claim(claim),
                        Question::Hello { .. } => Said::Hello,
                    };
                    self.hear(opened, word);
                }
                Err(refused) => self.refused.push(refused),
            },
        }
    }

    fn hear(&mut self, opened: Opened, word: Said) {
        self.heard.push(Heard {
            by: opened.from,
            voice: opened.voice,
            word,
        });
    }

    pub(super) fn presence(&mut self, word: Presence, roll: &Roll<'_>, seen: &mut Seen) {
        // That somebody has gone, only they can say: anybody could have taken their card away.
        let Presence::Here { module, card } = word else {
            return;
        };
        let refused = |why: &str| Refused {
            by: module.as_str().to_owned(),
            task_id: None,
            why: why.to_owned(),
        };
        let (opened, card): (Opened, Card) = match said(roll.key, &card) {
            Ok((opened, _)) if opened.from != module => {
                return self.refused.push(refused("it beats for another"));
            }
            Ok(said) => said,
            Err(error) => return self.refused.push(error),
        };
        let resource = match NewResource::from_value(card.resource) {
            Ok(resource) if resource.id == module => resource,
            _ => return self.refused.push(refused("its card is not its own")),
        };
        // It was written before we began, or by somebody who will hear us soon.
        if card.heard != roll.asks {
            self.unheard = true;
            return;
        }
        let current = counts(roll.revoked, &module, opened.voice);
        if current && !seen.beat(&module, card.at, opened.voice) {
            return;
        }
        let word = if card.leaving {
            if current {
                seen.left(&module);
            }
            let fleeting = card.fleeting && opened.voice == Voice::Owner;
            Said::Left { fleeting }
        } else {
            Said::Here {
                resource: Box::new(resource),
                instance: card.instance,
            }
        };
        self.hear(opened, word);
    }
}

/// Opens a sealed message, and reads it.
fn said<T: serde::de::DeserializeOwned>(
    key: &HubKey,
    sealed: &str,
) -> Result<(Opened, T), Refused> {
    let refused = |by: &str, why: &str| Refused {
        by: by.to_owned(),
        task_id: None,
        why: why.to_owned(),
    };
    let opened = key.open(sealed, DISPATCHER);
    let opened = opened.ok_or_else(|| refused("?", "its seal does not fit"))?;
    match json::from_text(&opened.text) {
        Ok(said) => Ok((opened, said)),
        Err(_) => Err(refused(opened.from.as_str(), "it cannot be read")),
    }
}

/// Does what was said to the board. Only what this gives is acted upon, after the board is written.
pub(super) fn act(
    heard: &[Heard],
    board: &mut Board,
    guests: Guests,
    locale: Locale,
    now: &Now,
) -> Result<Outcomes, TaskError> {
    let mut out = Outcomes::default();
    for (place, Heard { by, voice, word }) in heard.iter().enumerate() {
        if !counts(board.pool().revoked_keys(), by, *voice) {
            if matches!(word, Said::Claim(_) | Said::Hello) {
                out.answers
                    .insert(place, (by.clone(), *voice, Answer::Revoked));
            }
            out.refused.push(Refused {
                by: by.as_str().to_owned(),
                task_id: None,
                why: REVOKED.to_owned(),
            });
            out.revoked.push((by.clone(), *voice));
            continue;
        }
        match word {
            Said::Hello => {
                out.answers
                    .insert(place, (by.clone(), *voice, Answer::Welcome));
            }
            Said::Claim(claim) => {
                let word = Word {
                    task: &claim.task_id,
                    attempt: claim.attempt,
                    by,
                    instance: &claim.instance,
                };
                let answer = match board.claim(word, locale, now)? {
                    Ok(context) => Answer::Go {
                        task_id: claim.task_id.clone(),
                        attempt: claim.attempt,
                        context,
                    },
                    Err(refusal) => {
                        let why = refusal.to_string();
                        out.refuse(by, &claim.task_id, &why);
                        Answer::No { why }
                    }
                };
                out.answers.insert(place, (by.clone(), *voice, answer));
            }
            Said::Report(report) => {
                let word = Word {
                    task: &report.task_id,
                    attempt: report.attempt,
                    by,
                    instance: &report.instance,
                };
                let spent = report.spent();
                let counted = match &report.came {
                    Outcome::Done(result) => board.finish(word, result, spent, now)?,
                    Outcome::Failed { error, retry } => {
                        board.fail(word, error, *retry, spent, now)?
                    }
                };
                match counted {
                    Ok(recalls) => out.recalls.extend(recalls),
                    Err(refusal) => out.refuse(by, &report.task_id, &refusal.to_string()),
                }
            }
            Said::Here { resource, instance } => {
                let owner = *voice == Voice::Owner;
                here(board, resource, owner, instance, guests, &mut out, now)?;
            }
            Said::Left { fleeting } => out.recalls.extend(board.leave(by, *fleeting, now)?),
        }
    }
    Ok(out)
}

/// Why nothing that is said with an old key counts.
pub(super) const REVOKED: &str = "its key was revoked";

/// Who may join without being known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guests {
    /// Executors run with the dispatcher, but for those that say otherwise.
    Workers,
    /// All executors are workers.
    All,
}

fn here(
    board: &mut Board,
    resource: &NewResource,
    owner: bool,
    instance: &str,
    guests: Guests,
    out: &mut Outcomes,
    now: &Now,
) -> Result<(), TaskError> {
    let id = &resource.id;
    let mut refuse = |why: &str| {
        out.refused.push(Refused {
            by: id.as_str().to_owned(),
            task_id: None,
            why: why.to_owned(),
        });
    };
    let Some(known) = board.pool().get(id.as_str()) else {
        // What a guest says of itself makes nothing true.
        if owner {
            return board.join(resource, now);
        }
        refuse("the pool does not know it: `ctx pool add` makes it known");
        return Ok(());
    };
    if guests == Guests::Workers && resource.worker != known.is_worker() {
        refuse("it runs with the dispatcher: only what was added with --worker joins");
        return Ok(());
    }
    let task = known.task().and_then(|task| board.tasks().get(task));
    let other = task.is_some_and(|task| {
        task.state() == State::Running
            && task.executor() == Some(id)
            && task.instance() != Some(instance)
    });
    if other {
        out.recalls
            .extend(board.lost(id, "it was started anew", now)?);
    }
    board.join(resource, now)
}

impl Outcomes {
    fn refuse(&mut self, by: &Name, task: &str, why: &str) {
        self.refused.push(Refused {
            by: by.as_str().to_owned(),
            task_id: Some(task.to_owned()),
            why: why.to_owned(),
        });
    }
}
