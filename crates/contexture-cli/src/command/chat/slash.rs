//! Commands inside a chat. One table gives the name, the help, what completes, and what is done.

use contexture::text::nearest;

use super::room::Room;
use super::{Flow, change, look, prompts};
use crate::error::CliError;
use crate::view::safe;

/// A command.
pub struct Slash {
    pub name: &'static str,
    pub arguments: &'static str,
    pub help: &'static str,
    /// What its argument may be completed to.
    pub takes: Takes,
    run: fn(&mut Room, &str) -> Result<Flow, CliError>,
}

/// What an argument names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    Session,
    Skill,
    Model,
}

/// A row of the table that does something and goes on.
macro_rules! row {
    ($name:literal, $arguments:literal, $takes:ident, $run:path, $help:literal) => {
        Slash {
            name: $name,
            arguments: $arguments,
            help: $help,
            takes: Takes::$takes,
            run: |room, rest| $run(room, rest).map(|()| Flow::Go),
        }
    };
}

/// All of them, in the order of the help.
pub static TABLE: &[Slash] = &[
    row!(
        "context",
        "",
        Nothing,
        look::context,
        "what the model is told, item by item"
    ),
    row!(
        "diff",
        "[A B]",
        Nothing,
        look::diff,
        "what changed between the last two requests, or between two by number"
    ),
    row!(
        "undo",
        "[ENTRY]",
        Nothing,
        change::undo,
        "take back the last turn; or a compaction, a mask or an undo by its id"
    ),
    row!(
        "pin",
        "[ENTRY|TEXT]",
        Nothing,
        change::pin,
        "keep in every request: the last message, an entry, or a new rule"
    ),
    row!(
        "unpin",
        "[ENTRY]",
        Nothing,
        change::unpin,
        "end the last pin, or that of an entry"
    ),
    row!(
        "fork",
        "[NAME]",
        Nothing,
        change::fork,
        "go on in a copy; the session stays as it is"
    ),
    row!(
        "model",
        "[SPEC]",
        Model,
        change::model,
        "show the model, or go on with another: anthropic:NAME, ollama:NAME, …"
    ),
    row!(
        "tools",
        "",
        Nothing,
        look::tools,
        "what the model can do, and what each tool costs"
    ),
    row!(
        "skills",
        "[NAME]",
        Skill,
        look::skills,
        "list the skills, or load one"
    ),
    Slash {
        name: "prompt",
        arguments: "[NAME key=value…]",
        help: "list the prompts of MCP servers, or say one",
        takes: Takes::Nothing,
        run: prompts::prompt,
    },
    row!("compact", "", Nothing, change::compact, "make room now"),
    row!(
        "sessions",
        "[NAME]",
        Session,
        look::sessions,
        "list the sessions, or go on in one"
    ),
    row!("help", "", Nothing, help, "this"),
    Slash {
        name: "quit",
        arguments: "",
        help: "leave; so does Ctrl-D",
        takes: Takes::Nothing,
        run: |_, _| Ok(Flow::Leave),
    },
];

/// The command of a line, and the rest of it. A path is none.
pub fn read(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic());
    is_name.then(|| (name, rest.trim()))
}

/// Does what the command says.
pub fn run(room: &mut Room, name: &str, rest: &str) -> Result<Flow, CliError> {
    let lower = name.to_ascii_lowercase();
    if let Some(slash) = TABLE.iter().find(|slash| slash.name == lower) {
        return (slash.run)(room, rest);
    }
    let names: Vec<&str> = TABLE.iter().map(|slash| slash.name).collect();
    Err(CliError::Usage {
        what: format!("there is no command /{}", safe(name)),
        hint: match nearest(name, &names) {
            Some(near) => format!("did you mean /{near}? /help has them all"),
            None => "/help has them all; a message may begin with a space".to_owned(),
        },
    })
}

fn help(room: &mut Room, _: &str) -> Result<(), CliError> {
    let paint = room.paint();
    let mut text = String::new();
    let widest = TABLE.iter().map(Slash::width).max().unwrap_or(0);
    for slash in TABLE {
        let pad = " ".repeat(widest - slash.width() + 2);
        let name = paint.fg(37, &format!("/{}", slash.name));
        let arguments = paint.dim(slash.arguments);
        text.push_str(&format!("  {name} {arguments}{pad}{}\n", slash.help));
    }
    for (key, help) in KEYS {
        let pad = " ".repeat((widest + 4).saturating_sub(key.chars().count()));
        text.push_str(&format!("  {key}{pad}{}\n", paint.dim(help)));
    }
    room.print(&text)
}

/// The keys that are not every editor's.
const KEYS: [(&str, &str); 5] = [
    ("Tab", "completes commands, sessions and skills"),
    (
        "\\ Enter",
        "goes on in a new line; what is pasted keeps its lines",
    ),
    ("Ctrl-R", "looks for something you said before"),
    ("Ctrl-C", "stops the turn, or clears the line"),
    ("Ctrl-D", "leaves"),
];

impl Slash {
    fn width(&self) -> usize {
        self.name.len() + self.arguments.len() + 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_word_behind_a_slash() {
        assert_eq!(read("/pin be brief"), Some(("pin", "be brief")));
        assert_eq!(read("/help"), Some(("help", "")));
        assert_eq!(read("/undo\t3f "), Some(("undo", "3f")));
        for text in [
            "/etc/passwd is what?",
            "/",
            "// a comment",
            " /help",
            "a /b",
            "/2",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn names_are_once_and_plain() {
        let mut names: Vec<&str> = TABLE.iter().map(|slash| slash.name).collect();
        assert!(names.iter().all(|name| read(&format!("/{name}")).is_some()));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len());
    }
}
