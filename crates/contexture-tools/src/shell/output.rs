//! What a command prints: the beginning and the end are kept, the whole goes to a file.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::CWD;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::words;
use crate::Secrets;

/// One stream of a command's output.
pub struct Capture<'a> {
    folder: &'a Folder,
    name: &'static str,
    /// Bytes that are kept in memory, half from the beginning and half from the end.
    cap: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    whole: Whole,
    /// The last line as far as it is known: keys are looked for in whole lines.
    line: Vec<u8>,
}

/// A longer line is written in parts.
const LONGEST_LINE: usize = 64 * 1024;

enum Whole {
    /// All of it is in memory.
    Kept,
    File(File, PathBuf),
    /// There is no file, and this is why.
    Lost(String),
}

impl<'a> Capture<'a> {
    pub fn new(folder: &'a Folder, name: &'static str, cap: usize) -> Self {
        Self {
            folder,
            name,
            cap: cap.max(256),
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
            whole: Whole::Kept,
            line: Vec::new(),
        }
    }

    /// Reads until the stream ends, or has printed more than a file may hold: then it is `full`.
    pub async fn fill(&mut self, stream: Option<impl AsyncRead + Unpin>, full: &AtomicBool) {
        let Some(mut stream) = stream else { return };
        let mut chunk = vec![0; 64 * 1024];
        loop {
            match stream.read(&mut chunk).await {
                Ok(0) | Err(_) => return self.write_line(),
                Ok(read) => self.push(&chunk[..read]),
            }
            if self.total > self.folder.largest {
                self.write_line();
                return full.store(true, Ordering::Relaxed);
            }
        }
    }

    fn push(&mut self, chunk: &[u8]) {
        self.total += chunk.len() as u64;
        if self.total > self.cap as u64 {
            self.write(chunk);
        }
        let half = self.cap / 2;
        let (first, rest) = chunk.split_at(chunk.len().min(half - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(half)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(half);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// Adds to the file. When it is made, all that came before is still in memory.
    fn write(&mut self, chunk: &[u8]) {
        if let Whole::Kept = self.whole {
            self.whole = match self.folder.create(self.name) {
                Ok((file, path)) => Whole::File(file, path),
                Err(error) => Whole::Lost(error.to_string()),
            };
            let (a, b) = self.tail.as_slices();
            let before = [&self.head, a, b].concat();
            self.write_lines(&before);
        }
        self.write_lines(chunk);
    }

    fn write_lines(&mut self, chunk: &[u8]) {
        for part in chunk.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") || self.line.len() > LONGEST_LINE {
                self.write_line();
            }
        }
    }

    /// Writes the line that is there, without keys: the file is on the disk, as a log is.
    fn write_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let Whole::File(file, _) = &mut self.whole else {
            return;
        };
        let written = match std::str::from_utf8(&line) {
            Ok(text) => file.write_all(self.folder.secrets.hide(text).as_bytes()),
            Err(_) => file.write_all(&line),
        };
        if let Err(error) = written {
            self.whole = Whole::Lost(error.to_string());
        }
    }

    /// What the model reads.
    pub fn text(&self) -> String {
        let kept = self.head.len() + self.tail.len();
        let (a, b) = self.tail.as_slices();
        if self.total <= kept as u64 {
            let all = [self.head.as_slice(), a, b].concat();
            return String::from_utf8_lossy(&all).into_owned();
        }
        let tail = [a, b].concat();
        // Neither side begins or ends inside a character.
        let head = whole_end(&self.head);
        let tail = whole_beginning(&tail);
        let cut = self.total - (head.len() + tail.len()) as u64;
        let mark = match &self.whole {
            Whole::File(_, path) => words::cut(cut, &self.folder.shown(path)),
            Whole::Lost(why) => words::cut_and_lost(cut, why),
            Whole::Kept => words::cut_and_lost(cut, ""),
        };
        let head = String::from_utf8_lossy(head);
        format!("{head}\n{mark}\n{}", String::from_utf8_lossy(tail))
    }
}

/// Without the character at the end that is there in part.
fn whole_end(bytes: &[u8]) -> &[u8] {
    let last = bytes.iter().rposition(|b| b & 0xC0 != 0x80).unwrap_or(0);
    match std::str::from_utf8(&bytes[last..]) {
        Err(error) if error.error_len().is_none() => &bytes[..last],
        _ => bytes,
    }
}

/// Without the character at the beginning that is there in part.
fn whole_beginning(bytes: &[u8]) -> &[u8] {
    let inside = bytes
        .iter()
        .take(3)
        .take_while(|b| *b & 0xC0 == 0x80)
        .count();
    &bytes[inside..]
}

/// The folder where whole outputs are.
pub struct Folder {
    path: PathBuf,
    root: PathBuf,
    /// The most bytes of a file.
    pub largest: u64,
    secrets: Secrets,
}

/// All files together. The oldest go first.
const MOST_BYTES: u64 = 256 << 20;
const MOST_FILES: usize = 200;

impl Folder {
    pub fn new(path: &Path, root: &Path, largest: u64) -> io::Result<Self> {
        plain_folders(path, root)?;
        private_folder(path, true)?;
        Ok(Self {
            path: path.to_owned(),
            root: root.to_owned(),
            largest,
            secrets: Secrets::from_env(),
        })
    }

    /// Moves something here, out of the way. Gives the path as the model may use it.
    pub fn take_in(&self, from: &Path) -> io::Result<String> {
        self.take_from(CWD, from.as_os_str())
    }

    /// The same for something in a folder that is open.
    pub fn take_from(&self, folder: impl AsFd, name: &OsStr) -> io::Result<String> {
        plain_folders(&self.path, &self.root)?;
        private_folder(&self.path, true)?;
        let last = Path::new(name).file_name().unwrap_or_default();
        let last = last.to_string_lossy();
        let to = self.path.join(format!("{}.refused-{last}", unique()));
        rustix::fs::renameat(folder, name, CWD, &to)?;
        Ok(self.shown(&to))
    }

    fn create(&self, name: &str) -> io::Result<(File, PathBuf)> {
        self.make_room();
        let path = self.path.join(format!("{}.{name}.txt", unique()));
        let file = private_file(&path)?;
        Ok((file, path))
    }

    /// A path in here as a command finds it: commands begin in the project's root.
    fn shown(&self, path: &Path) -> String {
        let inside = path.strip_prefix(&self.root).unwrap_or(path);
        inside.display().to_string()
    }

    fn make_room(&self) {
        let Ok(entries) = fs::read_dir(&self.path) else {
            return;
        };
        let mut files: Vec<_> = entries
            .flatten()
            .filter_map(|entry| {
                let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                Some((about.modified().ok()?, about.len(), entry.path()))
            })
            .collect();
        files.sort();
        let mut bytes: u64 = files.iter().map(|(_, length, _)| length).sum();
        let mut left = files.len();
        for (_, length, path) in files {
            if bytes <= MOST_BYTES && left < MOST_FILES {
                return;
            }
            _ = fs::remove_file(path);
            bytes -= length;
            left -= 1;
        }
    }
}

/// A file that only its owner can read, and that was not there before.
pub fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// A folder that only its owner can enter; with those above it where `deep`. A link is not taken.
pub fn private_folder(path: &Path, deep: bool) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(deep).create(path)?;
    if fs::symlink_metadata(path)?.is_dir() {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            "is a link, or no folder",
        ))
    }
}

/// Through a link above `path`, something outside of the project would be changed.
pub fn plain_folders(path: &Path, root: &Path) -> io::Result<()> {
    let above = path.ancestors().skip(1);
    for folder in above.take_while(|above| above.starts_with(root)) {
        if fs::symlink_metadata(folder).is_ok_and(|about| !about.is_dir()) {
            let what = format!("{} is a link, or no folder", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, what));
        }
    }
    Ok(())
}

/// A name that nobody has guessed.
pub fn unique() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}
