//! Commands that show something.

use std::fmt::Write as _;

use contexture::{Message, Payload, Session, Turn};
use contexture_agent::{Chat, clock};
use contexture_store::Key;
use contexture_tools::Effect;
use contexture_tools::mcp::State;

use super::room::Room;
use crate::args::{Diff, Limits};
use crate::error::CliError;
use crate::view::{self, Shown, clip, plural, safe, thousands, width};

/// `/context`: the request as it stands.
pub fn context(room: &mut Room, _: &str) -> Result<(), CliError> {
    let (title, paint) = (room.chat.key().to_string(), room.paint());
    room.chat.refresh()?;
    let picture = |built: &contexture::Built<'_>| {
        let messages: Vec<&Message> = built.messages().collect();
        let shown = Shown {
            title: &title,
            receipt: &built.receipt(),
            messages: &messages,
            bytes: built.body().len(),
        };
        view::request(&shown, paint)
    };
    if room.chat.view().last_request().is_some() {
        let text = picture(&room.chat.session().current()?);
        return room.print(&text);
    }
    // Nothing was sent yet: this is what the first message will be added to. Nothing of it is logged.
    let log = room.chat.view().log().to_vec();
    let mut first = Session::open(room.chat.settings().clone(), log)?;
    let options = &room.agent.options;
    let text = picture(&first.build(Turn {
        sections: Some(options.sections.clone()),
        tools: Some(room.agent.tools.offer().specs()),
        runtime_init: Some(options.runtime_init.clone()).filter(|data| !data.is_empty()),
        hints: options.hints_now(),
        now: Some(clock::now()),
        ..Turn::default()
    })?);
    room.print(&text)
}

/// `/diff`: between the last two requests, or between two by number.
pub fn diff(room: &mut Room, rest: &str) -> Result<(), CliError> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let (a, b) = match words[..] {
        [a, b] => (a.to_owned(), b.to_owned()),
        [] => {
            let log = room.chat.view().log().iter();
            let requests = log
                .filter(|entry| matches!(entry.payload, Payload::Request(_)))
                .count();
            if requests < 2 {
                return Err(CliError::Usage {
                    what: "there are no two requests to compare yet".to_owned(),
                    hint: "/context shows the request as it stands".to_owned(),
                });
            }
            ((requests - 2).to_string(), (requests - 1).to_string())
        }
        _ => {
            return Err(CliError::Usage {
                what: "/diff takes two requests, or none".to_owned(),
                hint: "name them by number, as `ctx replay` does: /diff 0 3".to_owned(),
            });
        }
    };
    let options = Diff {
        session: room.chat.key().to_string(),
        a,
        b,
        limits: Limits::default(),
    };
    crate::command::diff(&options, false, room.dir.as_deref())
}

/// `/tools`: what the model can do, what it costs to say so, and what is left out.
pub fn tools(room: &mut Room, _: &str) -> Result<(), CliError> {
    let paint = room.paint();
    let offer = room.agent.tools.offer();
    let tokenizer = &room.chat.settings().tokenizer;
    let mut text = String::new();
    let mut sum = 0;
    let names = offer
        .tools()
        .iter()
        .map(|tool| tool.spec().name.chars().count());
    let widest = names.max().unwrap_or(0).min(40);
    for tool in offer.tools() {
        let spec = tool.spec();
        let price = tokenizer.tool(&spec.to_value());
        sum += price;
        let (effect, colour) = match spec.effect {
            Effect::Reads => ("reads", 71),
            Effect::Tells => ("tells", 37),
            Effect::Acts => ("acts", 179),
        };
        let head = format!(
            "  {} {} {:>6}  ",
            paint.bold(&format!("{:<widest$}", safe(&spec.name))),
            paint.fg(colour, &format!("{effect:<5}")),
            thousands(price),
        );
        let left = paint.width.saturating_sub(width(&head) + 1);
        let about = safe(&spec.description);
        let about = clip(&about, left);
        let _ = writeln!(text, "{head}{}", paint.dim(&about));
    }
    let all = format!(
        "{}, {} tokens",
        plural(offer.tools().len(), "tool"),
        thousands(sum)
    );
    let _ = writeln!(
        text,
        "  {}",
        paint.dim(&format!("{all}; what acts asks first"))
    );
    for server in room.servers.states() {
        let how = match &server.state {
            State::Ready { .. } => continue,
            State::Disabled => "is left alone".to_owned(),
            State::Starting => "has not answered yet".to_owned(),
            State::Restarting { why, .. } => format!("is started again: {why}"),
            State::Failed { why } => format!("does not run: {why}"),
            other => format!("{other:?}"),
        };
        let how = paint.dim(&safe(&how));
        let name = safe(&server.name);
        let _ = writeln!(text, "  {} {name} {how}", paint.fg(179, "!"));
    }
    for left in &offer.left_out {
        let (name, why) = (safe(&left.name), safe(&left.why));
        let _ = writeln!(text, "  {} {name} {}", paint.fg(167, "−"), paint.dim(&why));
    }
    room.print(&text)
}

/// `/skills`: all of them, or one that is loaded.
pub fn skills(room: &mut Room, rest: &str) -> Result<(), CliError> {
    let paint = room.paint();
    if rest.is_empty() {
        let mut text = String::new();
        for skill in room.skills.used() {
            let head = format!("  {} ", paint.bold(&safe(&skill.id())));
            let left = paint.width.saturating_sub(width(&head) + 1);
            let about = safe(&skill.description);
            let about = clip(&about, left);
            let _ = writeln!(text, "{head}{}", paint.dim(&about));
        }
        for refused in room.skills.refused() {
            let what = format!("{}: {}", refused.folder.display(), refused.fault);
            let _ = writeln!(text, "  {} {}", paint.fg(167, "−"), safe(&what));
        }
        let all = plural(room.skills.used().len(), "skill");
        let _ = writeln!(
            text,
            "  {}",
            paint.dim(&format!("{all}; /skills NAME loads one"))
        );
        return room.print(&text);
    }
    let found = room.skills.find(rest).map_err(|error| CliError::Usage {
        what: error.to_string(),
        hint: "/skills lists them".to_owned(),
    });
    let skill = found?.clone();
    let injection = skill.injection()?;
    let shown = |chat: &Chat| {
        let mut live = chat.view().live(0);
        live.any(|live| match &live.entry.payload {
            Payload::Injection(known) => known.fingerprint == injection.fingerprint,
            _ => false,
        })
    };
    room.chat.refresh()?;
    let id = safe(&skill.id());
    if shown(&room.chat) {
        room.note(&paint.dim(&format!("{id} is loaded already")));
        return Ok(());
    }
    let tokens = room.chat.settings().tokenizer.count(&injection.content);
    room.chat.say(Payload::Injection(injection))?;
    room.note(&format!(
        "loaded {}, {} tokens",
        paint.bold(&id),
        thousands(tokens)
    ));
    Ok(())
}

/// `/sessions`: all of them, or another one to go on in.
pub fn sessions(room: &mut Room, rest: &str) -> Result<(), CliError> {
    if rest.is_empty() {
        let listed = crate::command::sessions::listed(&room.sessions)?;
        return room.print(&view::sessions(&listed, room.paint()));
    }
    let key = Key::new(rest)?;
    // An unknown name is a mistake here, and no wish for a new session.
    room.sessions.open(&key)?;
    room.go_to(&key)
}
