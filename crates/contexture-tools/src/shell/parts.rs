//! What a command line is made of, so that a policy sees every part of it.

use std::iter::Peekable;
use std::str::Chars;

/// Why a command line could not be taken apart. It counts as one unknown part then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the command cannot be taken apart: {0}")]
pub struct Unclear(&'static str);

/// Every simple command in a command line: what stands between `;`, `&&`, `||`, `|`, `&` and line ends,
/// and what stands inside `$(…)`, backticks, `<(…)`, `(…)` and `{…}`, in the order in which each ends.
///
/// Quotes are respected. What needs a real shell to be understood (`if`, loops, functions, here
/// documents, arithmetic) is [`Unclear`].
pub fn parts(command: &str) -> Result<Vec<String>, Unclear> {
    let found = split(command)?;
    Ok(found.into_iter().map(|part| part.text).collect())
}

/// Whether every part of the command begins with one of the prefixes, word by word: `git status`
/// allows `git status -s`, and neither `git statusx` nor `git status; rm x`.
///
/// A part that writes a file (`> file`) is never allowed so, nor one that sets variables first, nor a
/// command that is [`Unclear`]. What an allowed program does with its arguments is not looked at:
/// do not allow `find`, `xargs`, `env` or `sh` like this.
pub fn allowed_by_prefix<P: AsRef<str>>(command: &str, prefixes: &[P]) -> bool {
    let Ok(found) = split(command) else {
        return false;
    };
    let begins = |part: &Part, prefix: &str| {
        // As a shell sees it: other white space is part of a word.
        let mut words = part.text.split([' ', '\t']).filter(|word| !word.is_empty());
        let mut wanted = prefix.split_whitespace().peekable();
        wanted.peek().is_some() && wanted.all(|word| words.next() == Some(word))
    };
    !found.is_empty()
        && found
            .iter()
            .all(|part| !part.writes && prefixes.iter().any(|prefix| begins(part, prefix.as_ref())))
}

/// Words that begin a construct which this reader does not follow.
const COMPOUND: &[&str] = &[
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "in", "select", "function", "coproc", "[[", "]]",
];

/// How deep substitutions may be nested.
const DEEPEST: usize = 16;

struct Part {
    text: String,
    writes: bool,
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    found: Vec<Part>,
    depth: usize,
}

fn split(command: &str) -> Result<Vec<Part>, Unclear> {
    let mut reader = Reader {
        rest: command.chars().peekable(),
        found: Vec::new(),
        depth: 0,
    };
    reader.list(None)?;
    Ok(reader.found)
}

impl Reader<'_> {
    /// Reads commands up to `end`, or to the end of the text.
    fn list(&mut self, end: Option<char>) -> Result<(), Unclear> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Unclear("it is nested too deep"));
        }
        let mut now = Part {
            text: String::new(),
            writes: false,
        };
        // Whether a word could begin here. The text alone does not tell: a space may be quoted.
        let mut between = true;
        loop {
            let Some(c) = self.rest.next() else {
                self.finish(&mut now)?;
                self.depth -= 1;
                return match end {
                    None => Ok(()),
                    Some(_) => Err(Unclear("a bracket is not closed")),
                };
            };
            let word_begins = std::mem::replace(
                &mut between,
                matches!(c, ' ' | '\t' | ';' | '|' | '&' | '\n' | '('),
            );
            match c {
                c if Some(c) == end => {
                    self.finish(&mut now)?;
                    self.depth -= 1;
                    return Ok(());
                }
                ';' | '|' | '\n' => self.finish(&mut now)?,
                '&' if self.rest.peek() == Some(&'>') => now.text.push(c),
                '&' => self.finish(&mut now)?,
                '(' if now.text.trim().is_empty() => self.list(Some(')'))?,
                '(' => return Err(Unclear("a bracket inside a word")),
                ')' => return Err(Unclear("a bracket too many")),
                '#' if word_begins => while self.rest.next_if(|c| *c != '\n').is_some() {},
                '<' | '>' => self.redirection(c, &mut now)?,
                _ => self.piece(c, &mut now.text)?,
            }
        }
    }

    /// One sign of a word, or all that is quoted or substituted there.
    fn piece(&mut self, c: char, text: &mut String) -> Result<(), Unclear> {
        text.push(c);
        match c {
            '\\' => match self.rest.next() {
                Some('\n') => _ = text.pop(),
                Some(next) => text.push(next),
                None => return Err(Unclear("it ends with a backslash")),
            },
            '\'' => loop {
                let next = self.rest.next().ok_or(OPEN_QUOTE)?;
                text.push(next);
                if next == '\'' {
                    return Ok(());
                }
            },
            '"' => self.quoted('"', text)?,
            '`' => self.backticks(text)?,
            '$' => self.dollar(text)?,
            _ => {}
        }
        Ok(())
    }

    /// Reads up to `end`, through what is substituted on the way: `"…"`, `${…}`.
    fn quoted(&mut self, end: char, text: &mut String) -> Result<(), Unclear> {
        loop {
            match self.rest.next().ok_or(OPEN_QUOTE)? {
                c if c == end => {
                    text.push(c);
                    return Ok(());
                }
                '\'' if end == '"' => text.push('\''),
                // Whether it quotes depends on what is around, and on the shell.
                '\'' | '"' => return Err(Unclear("a quote inside ${…}")),
                c => self.piece(c, text)?,
            }
        }
    }

    fn dollar(&mut self, text: &mut String) -> Result<(), Unclear> {
        match self.rest.peek() {
            // Shells differ in what ends this.
            Some('\'') => Err(Unclear("$'…' means different things to different shells")),
            Some('{') => {
                text.extend(self.rest.next());
                self.depth += 1;
                if self.depth > DEEPEST {
                    return Err(Unclear("it is nested too deep"));
                }
                self.quoted('}', text)?;
                self.depth -= 1;
                Ok(())
            }
            Some('(') => self.substitution(text),
            _ => Ok(()),
        }
    }

    /// `(…)` behind `$`, `<` or `>`: its commands are parts of their own.
    fn substitution(&mut self, text: &mut String) -> Result<(), Unclear> {
        text.extend(self.rest.next());
        if self.rest.peek() == Some(&'(') {
            return Err(Unclear("arithmetic"));
        }
        text.push_str("…)");
        self.list(Some(')'))
    }

    fn backticks(&mut self, text: &mut String) -> Result<(), Unclear> {
        let mut inner = String::new();
        loop {
            match self.rest.next().ok_or(OPEN_QUOTE)? {
                '`' => break,
                '\\' => match self.rest.next().ok_or(OPEN_QUOTE)? {
                    next @ ('`' | '$' | '\\') => inner.push(next),
                    next => inner.extend(['\\', next]),
                },
                c => inner.push(c),
            }
        }
        text.push_str("…`");
        let mut reader = Reader {
            rest: inner.chars().peekable(),
            found: std::mem::take(&mut self.found),
            depth: self.depth,
        };
        reader.list(None)?;
        self.found = reader.found;
        Ok(())
    }

    fn redirection(&mut self, c: char, now: &mut Part) -> Result<(), Unclear> {
        now.text.push(c);
        match self.rest.peek() {
            Some('(') => return self.substitution(&mut now.text),
            Some('<') if c == '<' => return Err(Unclear("a here document")),
            _ => {}
        }
        now.writes |= c == '>' && !harmless_target(self.rest.clone());
        // Of `2>&1` and `>|file` the second sign is no operator.
        now.text
            .extend(self.rest.next_if(|next| matches!(next, '&' | '|')));
        Ok(())
    }

    fn finish(&mut self, now: &mut Part) -> Result<(), Unclear> {
        let mut text = now.text.trim();
        // A group and a negation change nothing of what runs.
        while let Some((first, rest)) = text.split_once([' ', '\t']) {
            match first {
                "{" | "!" => text = rest.trim_start(),
                _ => break,
            }
        }
        let first = text.split_whitespace().next().unwrap_or_default();
        if COMPOUND.contains(&first) {
            return Err(Unclear("a compound command"));
        }
        if !matches!(text, "" | "{" | "}" | "!") {
            self.found.push(Part {
                text: text.to_owned(),
                writes: now.writes,
            });
        }
        *now = Part {
            text: String::new(),
            writes: false,
        };
        Ok(())
    }
}

const OPEN_QUOTE: Unclear = Unclear("a quote is not closed");

/// Whether what follows `>` is another descriptor, or nothing that could be written.
fn harmless_target(rest: Peekable<Chars<'_>>) -> bool {
    let rest: String = rest.take(64).collect();
    if let Some(descriptor) = rest.strip_prefix('&') {
        let end = descriptor.find(|c: char| !c.is_ascii_digit() && c != '-');
        let (number, after) = descriptor.split_at(end.unwrap_or(descriptor.len()));
        return !number.is_empty() && ends_a_word(after);
    }
    let target = rest
        .strip_prefix('>')
        .unwrap_or(&rest)
        .trim_start_matches(' ');
    target.strip_prefix("/dev/null").is_some_and(ends_a_word)
}

fn ends_a_word(text: &str) -> bool {
    text.is_empty() || text.starts_with([' ', '\t', '\n', ';', '&', '|', ')', '<', '>'])
}
