//! The line that a person edits: history, several lines, completion.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use contexture::text::hidden::stray;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hint, Hinter};
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Helper};

use super::slash::{TABLE, Takes};
use crate::error::CliError;
use crate::view::{Paint, safe};

/// What came of editing.
pub enum Typed {
    Line(String),
    /// Ctrl-C, with something on the line.
    Cleared,
    /// Ctrl-C, with nothing.
    Nothing,
    /// Ctrl-D.
    End,
}

/// Names that complete.
#[derive(Default)]
pub struct Names {
    pub sessions: Vec<String>,
    pub skills: Vec<String>,
}

pub struct Editor {
    line: rustyline::Editor<Help, DefaultHistory>,
    history: Option<PathBuf>,
}

/// The most lines that are remembered, the longest of them, and the largest file that is read.
const LINES: usize = 1_000;
const LONGEST: usize = 10_000;
const LARGEST: u64 = 4 << 20;

impl Editor {
    /// An editor that remembers what was said in earlier chats.
    pub fn new(paint: Paint) -> Result<Self, CliError> {
        let config = Config::builder()
            .max_history_size(LINES)
            .map_err(failed)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .bracketed_paste(true)
            .build();
        let mut line = rustyline::Editor::with_config(config).map_err(failed)?;
        line.set_helper(Some(Help {
            paint,
            names: RefCell::default(),
            empty: Cell::new(true),
            went_on: RefCell::default(),
        }));
        let history = history_file();
        if let Some(path) = &history
            && std::fs::metadata(path).is_ok_and(|file| file.len() <= LARGEST)
        {
            // A history that cannot be read is none.
            let _ = line.load_history(path);
        }
        Ok(Self { line, history })
    }

    /// What may be named in the next line.
    pub fn knows(&mut self, names: Names) {
        if let Some(help) = self.line.helper() {
            help.names.replace(names);
        }
    }

    /// Lets a person edit a line that begins with what they have typed already.
    pub fn read(&mut self, typed: &str) -> Result<Typed, CliError> {
        if let Some(help) = self.line.helper() {
            help.empty.set(true);
            help.went_on.borrow_mut().clear();
        }
        let line = match self.line.readline_with_initial("› ", (typed, "")) {
            Ok(line) => line,
            Err(ReadlineError::Eof) => return Ok(Typed::End),
            Err(ReadlineError::Interrupted) => {
                let empty = self.line.helper().is_none_or(|help| help.empty.get());
                return Ok(if empty {
                    Typed::Nothing
                } else {
                    Typed::Cleared
                });
            }
            Err(error) => return Err(failed(error)),
        };
        let line = match self.line.helper() {
            Some(help) => joined(line, &help.went_on.borrow()),
            None => line,
        };
        self.remembers(&line);
        Ok(Typed::Line(line))
    }

    /// Remembers what was said.
    pub fn remembers(&mut self, line: &str) {
        if line.len() <= LONGEST {
            let _ = self.line.add_history_entry(line);
        }
        self.save();
    }

    /// Keeps what was said for later chats, for this user's eyes only.
    pub fn save(&mut self) {
        let Some(path) = &self.history else {
            return;
        };
        let folder = path.parent().map(|folder| {
            use std::os::unix::fs::DirBuilderExt;
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(folder)
        });
        // To remember is a convenience: where it cannot be, the chat goes on.
        if matches!(folder, Some(Ok(()))) {
            let _ = self.line.append_history(path);
        }
    }
}

/// In the user's state folder.
fn history_file() -> Option<PathBuf> {
    let set = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
    Some(state?.join("contexture/history"))
}

fn failed(error: ReadlineError) -> CliError {
    CliError::Io {
        place: "the terminal".to_owned(),
        error: match error {
            ReadlineError::Io(error) => error,
            other => std::io::Error::other(other.to_string()),
        },
    }
}

/// The lines as they were meant: without the backslashes behind which Enter went on. Others stay, such
/// as those of a command that was pasted.
fn joined(mut line: String, went_on: &[String]) -> String {
    for before in went_on.iter().rev() {
        if line.starts_with(before) && line[before.len()..].starts_with("\\\n") {
            line.remove(before.len());
        }
    }
    line
}

/// What helps while typing.
struct Help {
    paint: Paint,
    names: RefCell<Names>,
    empty: Cell<bool>,
    /// What stood before each backslash at which the line went on.
    went_on: RefCell<Vec<String>>,
}

impl Helper for Help {}

impl Validator for Help {
    fn validate(&self, line: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let typed = line.input();
        let slashes = typed.chars().rev().take_while(|c| *c == '\\').count();
        if slashes % 2 == 0 {
            return Ok(ValidationResult::Valid(None));
        }
        let before = typed[..typed.len() - 1].to_owned();
        self.went_on.borrow_mut().push(before);
        Ok(ValidationResult::Incomplete)
    }
}

impl Completer for Help {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        Ok(candidates(&line[..pos], &self.names.borrow()))
    }
}

/// Where the word begins that is completed, and what it may become.
fn candidates(line: &str, names: &Names) -> (usize, Vec<Pair>) {
    let Some(typed) = line.strip_prefix('/') else {
        return (0, Vec::new());
    };
    let pair = |shown: &str, text: String| Pair {
        display: safe(shown),
        replacement: text,
    };
    let Some((name, begun)) = typed.split_once(' ') else {
        let begins = TABLE.iter().filter(|slash| slash.name.starts_with(typed));
        let pairs = begins.map(|slash| {
            let more = if slash.arguments.is_empty() { "" } else { " " };
            pair(&format!("/{}", slash.name), format!("{}{more}", slash.name))
        });
        return (1, pairs.collect());
    };
    let takes = TABLE.iter().find(|slash| slash.name == name);
    let known: Vec<&str> = match takes.map(|slash| slash.takes) {
        Some(Takes::Session) => names.sessions.iter().map(String::as_str).collect(),
        Some(Takes::Skill) => names.skills.iter().map(String::as_str).collect(),
        Some(Takes::Model) => PROVIDERS.to_vec(),
        Some(Takes::Nothing) | None => Vec::new(),
    };
    // The editor writes it as it is.
    let plain = |name: &&str| stray(name).next().is_none();
    let begins = known
        .into_iter()
        .filter(|name| name.starts_with(begun))
        .filter(plain);
    let pairs = begins.map(|name| pair(name, name.to_owned())).collect();
    (line.len() - begun.len(), pairs)
}

const PROVIDERS: [&str; 4] = ["anthropic:", "ollama:", "openai:", "openai-responses:"];

/// The rest of a command, shown behind the cursor.
struct Rest {
    shown: String,
    typed: Option<String>,
}

impl Hint for Rest {
    fn display(&self) -> &str {
        &self.shown
    }

    fn completion(&self) -> Option<&str> {
        self.typed.as_deref()
    }
}

impl Hinter for Help {
    type Hint = Rest;

    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<Rest> {
        self.empty.set(line.is_empty());
        let typed = line
            .strip_prefix('/')
            .filter(|typed| !typed.is_empty() && pos == line.len())?;
        let mut begins = TABLE.iter().filter(|slash| slash.name.starts_with(typed));
        let (slash, other) = (begins.next()?, begins.next());
        if other.is_some() && slash.name != typed {
            return None;
        }
        let rest = &slash.name[typed.len()..];
        let arguments = if slash.arguments.is_empty() { "" } else { " " };
        Some(Rest {
            shown: format!("{rest}{arguments}{}  {}", slash.arguments, slash.help),
            typed: Some(rest.to_owned()).filter(|rest| !rest.is_empty()),
        })
    }
}

impl Highlighter for Help {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Owned(self.paint.bold(&self.paint.fg(71, prompt)))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(self.paint.dim(hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(line: &str) -> Vec<String> {
        let names = Names {
            sessions: ["main", "main-2", "other", "main\u{202e}"]
                .map(str::to_owned)
                .to_vec(),
            skills: vec!["pdf".to_owned()],
        };
        let (at, pairs) = candidates(line, &names);
        pairs
            .iter()
            .map(|pair| format!("{}{}", &line[..at], pair.replacement))
            .collect()
    }

    #[test]
    fn a_backslash_goes_on_and_one_that_was_pasted_stays() {
        let went_on = ["one".to_owned(), "one\\\ntwo".to_owned()];
        let typed = "one\\\ntwo\\\nls \\\n -l".to_owned();
        assert_eq!(joined(typed, &went_on), "one\ntwo\nls \\\n -l");
        assert_eq!(joined("other".to_owned(), &went_on), "other");
    }

    #[test]
    fn commands_sessions_and_skills_complete() {
        assert_eq!(completed("/con"), ["/context"]);
        assert_eq!(completed("/s"), ["/skills ", "/sessions "]);
        assert_eq!(
            completed("/sessions ma"),
            ["/sessions main", "/sessions main-2"]
        );
        assert_eq!(completed("/skills "), ["/skills pdf"]);
        assert_eq!(completed("/model an"), ["/model anthropic:"]);
        assert!(completed("con").is_empty());
        assert!(completed("/help x").is_empty());
        assert!(completed("/nothing x").is_empty());
    }
}
