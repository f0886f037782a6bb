//! Commands that change the conversation. Each is an entry of the log: nothing is lost by it.

use contexture::entry::Target;
use contexture::{EntryId, Message, Payload, Role, View};
use contexture_agent::{Chat, clock};
use contexture_store::{Key, resolve};
use serde_json::{Map, json};

use super::room::Room;
use crate::agent;
use crate::command::sessions::free_name;
use crate::error::CliError;
use crate::view::{clip, plural, safe, thousands};

/// `/undo`: the last turn, or what an entry did.
pub fn undo(room: &mut Room, rest: &str) -> Result<(), CliError> {
    room.chat.refresh()?;
    if !rest.is_empty() {
        let target = resolve(room.chat.view(), room.chat.key(), rest)?;
        let what = match &payload(room.chat.view(), &target) {
            Some(Payload::CompactionSummary(_)) => "the compaction".to_owned(),
            Some(Payload::Mask(_)) => "the mask".to_owned(),
            Some(Payload::Revert(_)) => "the undoing".to_owned(),
            _ => format!("everything after {}", short(&target)),
        };
        let id = revert(&mut room.chat, target)?;
        return said(room, "undone", &what, Some(&id));
    }
    let view = room.chat.view();
    let Some(turn) = last_turn(view) else {
        return Err(CliError::Usage {
            what: "there is no turn to take back".to_owned(),
            hint: "/undo ENTRY undoes a compaction, a mask or another undo".to_owned(),
        });
    };
    let Turn {
        text,
        messages,
        to,
        behind,
    } = turn;
    let what = format!("“{text}” ({})", plural(messages, "message"));
    let id = match (to, behind) {
        (Some(message), _) => Some(revert(&mut room.chat, message)?),
        (None, Some(entry)) => {
            // No message stands right before it: the log goes on from the entry that does.
            let why = json!({ "undo": text, "at": clock::now() });
            let why = why.as_object().cloned().unwrap_or_default();
            room.chat.go_back(&entry, Payload::Custom(why))?;
            None
        }
        (None, None) => None,
    };
    said(room, "taken back", &what, id.as_ref())
}

fn revert(chat: &mut Chat, entry_id: EntryId) -> Result<EntryId, CliError> {
    Ok(chat.say(Payload::Revert(Target { entry_id }))?)
}

/// The last turn that counts.
struct Turn {
    /// The beginning of what the user said.
    text: String,
    /// How many messages it has.
    messages: usize,
    /// The message before it, where nothing stands between that a person decided.
    to: Option<EntryId>,
    /// The entry before it.
    behind: Option<EntryId>,
}

fn last_turn(view: &View) -> Option<Turn> {
    let active = view.active();
    let log = view.log();
    let user = view
        .live(0)
        .rev()
        .find_map(|live| match &live.entry.payload {
            Payload::Message { message } if message.role == Role::User => {
                Some((live.position, message))
            }
            _ => None,
        });
    let (begins, message) = user?;
    let behind = (0..begins).rev().find(|&at| active[at]);
    let mut before = (0..begins).rev().filter(|&at| active[at]);
    // What a build says again by itself may go with the turn; what a person decided stays.
    let said_again = |payload: &Payload| {
        matches!(
            payload,
            Payload::Request(_)
                | Payload::Sections { .. }
                | Payload::Tools(_)
                | Payload::Hints { .. }
                | Payload::RuntimeInit { .. }
        )
    };
    let to = before.find(|&at| !said_again(&log[at].payload));
    let to = to.filter(|&at| matches!(log[at].payload, Payload::Message { .. }));
    let is_message =
        |at: &usize| active[*at] && matches!(log[*at].payload, Payload::Message { .. });
    let one_line = message
        .text()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    Some(Turn {
        text: clip(&safe(&one_line), 50),
        messages: (begins..log.len()).filter(is_message).count(),
        to: to.map(|at| log[at].id.clone()),
        behind: behind.map(|at| log[at].id.clone()),
    })
}

/// `/pin`: the last message, an entry, or something new.
pub fn pin(room: &mut Room, rest: &str) -> Result<(), CliError> {
    room.chat.refresh()?;
    let view = room.chat.view();
    let target = match rest {
        "" => last_user(view).ok_or_else(|| CliError::Usage {
            what: "there is no message to pin yet".to_owned(),
            hint: "/pin TEXT says something that is kept in every request".to_owned(),
        })?,
        id if is_id(id) => resolve(view, room.chat.key(), id)?,
        text => {
            let message = Message {
                pin: true,
                ..Message::user(text)
            };
            room.chat.say(Payload::Message { message })?;
            return said(room, "pinned", &format!("“{}”", safe(text)), None);
        }
    };
    room.chat.say(Payload::Pin(Target {
        entry_id: target.clone(),
    }))?;
    let what = described(room.chat.view(), &target);
    said(room, "pinned", &what, None)
}

/// `/unpin`: the last pin, or that of an entry.
pub fn unpin(room: &mut Room, rest: &str) -> Result<(), CliError> {
    room.chat.refresh()?;
    let view = room.chat.view();
    let target = match rest {
        "" => {
            let mut pinned = view.live(0).rev().filter(|live| live.pinned);
            let last = pinned.next().map(|live| live.entry.id.clone());
            last.ok_or_else(|| CliError::Usage {
                what: "nothing is pinned".to_owned(),
                hint: "/pin keeps something in every request".to_owned(),
            })?
        }
        id => resolve(view, room.chat.key(), id)?,
    };
    room.chat.say(Payload::Unpin(Target {
        entry_id: target.clone(),
    }))?;
    let what = described(room.chat.view(), &target);
    said(room, "no longer pinned", &what, None)
}

/// `/fork`: goes on in a session that begins as this one.
pub fn fork(room: &mut Room, rest: &str) -> Result<(), CliError> {
    room.chat.refresh()?;
    let from = room.chat.key().clone();
    let tail = room.chat.view().tail().cloned();
    let (Some(_), Some(tail)) = (room.written(), tail) else {
        return Err(CliError::Usage {
            what: "there is nothing to fork yet".to_owned(),
            hint: "say something first".to_owned(),
        });
    };
    let to = match rest {
        "" => free_name(&room.sessions, &from)?,
        name => Key::new(name)?,
    };
    room.sessions.fork(&from, &tail, &to, &clock::now())?;
    room.go_to(&to)
}

/// `/model`: which it is, or another one from now on.
pub fn model(room: &mut Room, rest: &str) -> Result<(), CliError> {
    if rest.is_empty() {
        let about = room.about();
        room.note(&room.paint().dim(&about));
        return Ok(());
    }
    let (old, base_url) = &room.spec;
    // An address is that of a provider: another one has its own.
    let same = agent::provider(old) == agent::provider(rest);
    let base_url = base_url.clone().filter(|_| same);
    let model = agent::of_spec(rest, base_url.as_deref(), &room.config)?;
    let (settings, compactor) = agent::settings_for(&room.options, &room.config, &model)?;
    room.chat.refresh()?;
    room.chat.reset(settings)?;
    room.chat.say(Payload::ModelChange(Map::from_iter([
        ("model".to_owned(), json!(model.name())),
        ("spec".to_owned(), json!(rest)),
    ])))?;
    room.agent.model = model;
    room.agent.compactor = compactor;
    room.spec = (rest.to_owned(), base_url);
    let about = room.about();
    room.note(&room.paint().dim(&about));
    Ok(())
}

/// `/compact`: makes room now.
pub fn compact(room: &mut Room, _: &str) -> Result<(), CliError> {
    let done = room.during(|room, cancel| room.agent.compact(&mut room.chat, cancel))?;
    let (before, after) = (thousands(done.tokens_before), thousands(done.tokens_after));
    // Not by the counts: of a request that changed there is only a bound, which may be above a count.
    if done.events.is_empty() {
        let text = format!("nothing to leave out: {before} tokens");
        room.note(&room.paint().dim(&text));
        return Ok(());
    }
    let view = room.chat.view();
    let decided =
        |payload: &Payload| matches!(payload, Payload::CompactionSummary(_) | Payload::Mask(_));
    let last = view
        .log()
        .iter()
        .rev()
        .find(|entry| decided(&entry.payload));
    let id = last.map(|entry| entry.id.clone());
    said(
        room,
        "compacted",
        &format!("{before} → {after} tokens"),
        id.as_ref(),
    )
}

impl Room {
    /// Goes on in another session.
    pub fn go_to(&mut self, key: &Key) -> Result<(), CliError> {
        crate::store::check_own(&self.sessions, key)?;
        let settings = self.chat.settings().clone();
        let header = contexture::entry::SessionHeader::default();
        self.chat = Chat::open(&self.sessions, key, header, settings)?;
        let shown = plural(self.chat.view().live_len(), "item");
        let name = self.paint().bold(&safe(key.as_str()));
        self.note(&format!("now in {name}, {shown}"));
        Ok(())
    }
}

fn said(room: &Room, done: &str, what: &str, id: Option<&EntryId>) -> Result<(), CliError> {
    let paint = room.paint();
    let back = match id {
        Some(id) => paint.dim(&format!(" · /undo {} brings it back", short(id))),
        None => String::new(),
    };
    room.note(&format!("{done}: {what}{back}"));
    Ok(())
}

/// Enough of an id to name it.
fn short(id: &EntryId) -> String {
    safe(&id.as_str().chars().take(10).collect::<String>())
}

/// One word of digits and letters as ids have them; anything else is text.
fn is_id(text: &str) -> bool {
    text.len() >= 6 && text.chars().all(|c| c.is_ascii_hexdigit())
}

fn last_user(view: &View) -> Option<EntryId> {
    let mut live = view.live(0).rev();
    let user = live.find(|live| {
        matches!(&live.entry.payload, Payload::Message { message } if message.role == Role::User)
    });
    user.map(|live| live.entry.id.clone())
}

fn payload<'a>(view: &'a View, id: &EntryId) -> Option<&'a Payload> {
    let position = view.position(id)?;
    Some(&view.log()[position].payload)
}

fn described(view: &View, id: &EntryId) -> String {
    match payload(view, id) {
        Some(Payload::Message { message }) => {
            let text = crate::view::describe(message);
            format!("“{}”", clip(&text, 50))
        }
        _ => short(id),
    }
}
