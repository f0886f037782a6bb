//! Reading what a command is given, within bounds.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::Path;

use contexture::ContextError;
use contexture::json::{MAX_BYTES, too_long};

use crate::args::Source;
use crate::error::CliError;
use crate::output::note;

/// The most bytes of an input that is read as a whole, or of a line that is picked out of it. A request, its result
/// and their text hold it several times over.
const MAX_INPUT_BYTES: usize = 48 << 20;

/// The most bytes of a text on standard input.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// All of the input, or the line of it that was asked for, if that is no longer than the core reads.
pub fn read(source: &Source) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let mut reader = open(&source.file)?;
    let mut line = 0;
    loop {
        line += 1;
        let before = bytes.len();
        let more =
            read_line(reader.as_mut(), &mut bytes).map_err(|error| failed(&source.file, error))?;
        if bytes.len() > MAX_INPUT_BYTES {
            return Err(CliError::Context {
                place: place(&source.file),
                error: ContextError::invalid(
                    format!("line {line}"),
                    format!("the input is longer than {} MiB", MAX_INPUT_BYTES >> 20),
                    "give it in parts",
                ),
            });
        }
        if source.line == Some(line) {
            return Ok(bytes.split_off(before));
        }
        if source.line.is_some() {
            bytes.truncate(before);
        }
        if !more {
            break;
        }
    }
    match source.line {
        Some(wanted) => Err(CliError::Usage {
            what: format!("{} has no line {wanted}", source.file.display()),
            hint: format!("it has {}", line - 1),
        }),
        None => Ok(bytes),
    }
}

/// A line of the input.
pub struct Line {
    /// Which one, from 1.
    pub number: usize,
    /// What it holds, with its end.
    pub bytes: Vec<u8>,
}

/// Hands over the lines as they come, until there are no more, one cannot be read, or nobody wants
/// any.
pub fn lines(file: &Path, mut take: impl FnMut(Result<Line, CliError>) -> bool) {
    let mut reader = match open(file) {
        Ok(reader) => reader,
        Err(error) => {
            take(Err(error));
            return;
        }
    };
    for number in 1.. {
        let mut bytes = Vec::new();
        let line = match read_line(reader.as_mut(), &mut bytes) {
            Err(error) => Err(failed(file, error)),
            Ok(_) if bytes.len() > MAX_BYTES => Err(CliError::Context {
                place: place(file),
                error: too_long(number),
            }),
            Ok(_) if bytes.is_empty() => return,
            Ok(_) => Ok(Line { number, bytes }),
        };
        let last = line.is_err();
        if !take(line) || last {
            return;
        }
    }
}

/// The text on standard input, which a person or a script says to a model.
pub fn standard_text() -> Result<String, CliError> {
    let file = Path::new("-");
    say_waiting();
    let bytes = at_most(io::stdin().lock(), MAX_TEXT_BYTES).map_err(|error| failed(file, error))?;
    String::from_utf8(bytes).map_err(|_| failed(file, io::Error::other("is not UTF-8")))
}

/// All of a file that must be small.
pub fn small_file(path: &Path, most: usize) -> Result<Vec<u8>, CliError> {
    let read = File::open(path).and_then(|file| at_most(file, most));
    read.map_err(|error| failed(path, error))
}

fn at_most(from: impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = from
        .take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .and_then(|_| match bytes.len() > most {
            true => Err(io::Error::other(format!(
                "is longer than {} KiB",
                most >> 10
            ))),
            false => Ok(()),
        });
    read.map(|()| bytes)
}

/// The file's name for messages; none for standard input.
pub fn place(file: &Path) -> Option<std::path::PathBuf> {
    (file != Path::new("-")).then(|| file.to_owned())
}

fn open(file: &Path) -> Result<Box<dyn BufRead>, CliError> {
    if file == Path::new("-") {
        say_waiting();
        return Ok(Box::new(io::stdin().lock()));
    }
    let opened = File::open(file).and_then(|opened| {
        if opened.metadata()?.is_dir() {
            return Err(io::Error::other("is a folder"));
        }
        Ok(opened)
    });
    match opened {
        Ok(opened) => Ok(Box::new(BufReader::new(opened))),
        Err(error) => Err(failed(file, error)),
    }
}

/// Tells a person who gave no input what is waited for.
fn say_waiting() {
    if io::stdin().is_terminal() {
        note!(
            "ctx: waiting for standard input: type or paste it, and end it with Ctrl-D; or name a FILE"
        );
    }
}

fn failed(file: &Path, error: io::Error) -> CliError {
    CliError::Io {
        place: file.display().to_string(),
        error,
    }
}

/// Appends the next line, at most one byte more than may be read. Whether there is more.
fn read_line(reader: &mut dyn BufRead, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let mut room = MAX_BYTES + 1;
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            return Ok(false);
        }
        let end = chunk.iter().position(|&b| b == b'\n').map(|at| at + 1);
        let take = end.unwrap_or(chunk.len()).min(room);
        bytes.extend_from_slice(&chunk[..take]);
        reader.consume(take);
        room -= take;
        if room == 0 || end.is_some() {
            return Ok(true);
        }
    }
}
