//! `ctx chat`: a conversation at the terminal, or a message a line where there is none.

mod change;
mod editor;
mod lines;
mod look;
mod pick;
mod prompts;
mod room;
mod slash;

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use contexture_agent::Ended;

use self::editor::{Editor, Typed};
use self::room::Room;
use crate::agent;
use crate::args::Chat;
use crate::command::run::runtime;
use crate::error::{self, CliError};
use crate::output::{self, note};
use crate::view::{Screen, plural, safe};

/// What to do after a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flow {
    Go,
    Leave,
    /// Say this, as the user.
    Say(String),
}

/// The longest line of standard input, in bytes.
const LONGEST: u64 = 4 << 20;

/// `ctx chat`.
pub fn chat(options: &Chat, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let runtime = runtime()?;
    let screen = Arc::new(Screen::new());
    let terminal = std::io::stdin().is_terminal() && output::is_terminal() && !json;
    let mut room = runtime.block_on(async {
        let pick = |sessions: &_| pick::pick(options, sessions, terminal);
        let ready = agent::ready(&options.agent, dir, &screen, pick).await?;
        Ok::<_, CliError>(Room::new(ready, &options.agent, dir, &screen, json))
    })?;
    let first = options.prompt.clone();
    if terminal {
        at_terminal(&mut room, &runtime, first)
    } else {
        from_lines(&mut room, &runtime, first)
    }
}

/// Lines as a person edits them. What goes wrong in a turn is said, and the conversation goes on.
fn at_terminal(
    room: &mut Room,
    runtime: &tokio::runtime::Runtime,
    mut first: Option<String>,
) -> Result<(), CliError> {
    greet(room);
    let mut editor = Editor::new(room.paint())?;
    loop {
        note!();
        editor.knows(room.names());
        let typed = match first.take() {
            Some(line) => {
                room.echo(&line);
                editor.remembers(&line);
                Typed::Line(line)
            }
            None => editor.read(&room.typed_ahead())?,
        };
        let line = match typed {
            Typed::Line(line) => line,
            Typed::Cleared => continue,
            Typed::Nothing => {
                note!("  {}", room.paint().dim("Ctrl-D or /quit leaves"));
                continue;
            }
            Typed::End => break,
        };
        match runtime.block_on(heard(room, &line)) {
            Ok(Flow::Leave) => break,
            Ok(_) => {}
            Err(CliError::Pipe) => return Err(CliError::Pipe),
            Err(error) => {
                let (what, hint) = error::words(&error);
                room.note(&format!("{} {what}", room.paint().fg(167, "✗")));
                if !hint.is_empty() {
                    room.note(&room.paint().dim(&format!("  {hint}")));
                }
            }
        }
    }
    editor.save();
    if let Some(key) = room.written() {
        let key = safe(key.as_str());
        let bye = format!("`ctx chat --resume {key}` continues this session");
        note!("  {}", room.paint().dim(&bye));
    }
    Ok(())
}

/// A message a line. What goes wrong ends it: nobody is there to see it and go on.
fn from_lines(
    room: &mut Room,
    runtime: &tokio::runtime::Runtime,
    first: Option<String>,
) -> Result<(), CliError> {
    let mut input = std::io::stdin().lock();
    let read = |error| CliError::Io {
        place: "standard input".to_owned(),
        error,
    };
    for notice in &room.notices {
        note!("ctx: {}", safe(notice));
    }
    if let Some(line) = first
        && runtime.block_on(heard(room, &line))? == Flow::Leave
    {
        return Ok(());
    }
    while let Some(line) = lines::line(&mut input, LONGEST).map_err(read)? {
        if runtime.block_on(heard(room, &line))? == Flow::Leave {
            break;
        }
    }
    Ok(())
}

/// A message, or a command.
async fn heard(room: &mut Room, line: &str) -> Result<Flow, CliError> {
    if line.trim().is_empty() {
        return Ok(Flow::Go);
    }
    let mut line = line.trim().to_owned();
    if let Some((name, rest)) = slash::read(&line) {
        match slash::run(room, name, rest)? {
            Flow::Say(text) => line = text,
            other => return Ok(other),
        }
    }
    let paint = room.paint();
    let said = match room.turn(&line).await?.ended {
        Ended::Answered => return Ok(Flow::Go),
        Ended::Cancelled => paint.dim("stopped; what arrived is kept, /undo takes it back"),
        Ended::MaxSteps => paint.fg(
            179,
            "stopped after as many steps as it may take; say `go on`",
        ),
        Ended::Length => paint.fg(179, "the answer was cut at its longest length"),
        Ended::Budget => paint.fg(179, "what it may spend is spent"),
        Ended::Refused | Ended::Failed => paint.fg(167, "the provider withheld the answer"),
    };
    room.note(&said);
    Ok(Flow::Go)
}

/// Who is here, and with what.
fn greet(room: &Room) {
    let paint = room.paint();
    let (key, about) = (safe(room.chat.key().as_str()), room.about());
    note!(
        "\n  {}  {}",
        paint.bold(&paint.fg(37, "contexture")),
        paint.bold(&key)
    );
    note!("  {}", paint.dim(&about));
    let shown = room.chat.view().live_len();
    if shown > 0 {
        let so_far = format!("{} so far; /context shows them", plural(shown, "item"));
        note!("  {}", paint.dim(&so_far));
    }
    for notice in &room.notices {
        note!("  {}", paint.fg(179, &safe(notice)));
    }
    note!("  {}", paint.dim("/help says what else there is"));
    room.recall();
}
