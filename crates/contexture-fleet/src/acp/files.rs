//! Files that an agent asks us to read or write: text, in its workspace, and not too long.
//!
//! Where a path leads is found out first, links and all. Then it is opened from the workspace's folder
//! without following any link, so that nobody can swap one in between.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};

use contexture_tools::shell::is_protected;
use rustix::fs::{Mode, OFlags};
use serde_json::{Value, json};

use super::serve::Fault;

/// The most bytes of text that are read or written at once.
const MOST: usize = 1 << 20;
/// The most bytes that are passed over to come to a line.
const FARTHEST: u64 = 64 << 20;

/// `fs/read_text_file`. The root has no links in it.
pub(super) fn read(root: &Path, params: &Value) -> Result<Value, Fault> {
    let path = asked(params)?;
    let inside = existing(root, &path)?.ok_or_else(|| no_file(&path))?;
    let file = open(root, &inside, OFlags::RDONLY).map_err(|error| refused(&path, &error))?;
    let number = |name: &str| match &params[name] {
        Value::Null => Ok(None),
        value => value
            .as_u64()
            .map(Some)
            .ok_or_else(|| Fault::invalid(format!("`{name}` is no number"))),
    };
    // Lines are counted from 1; some count from 0.
    let skip = number("line")?.unwrap_or(1).saturating_sub(1);
    let text = lines(file, skip, number("limit")?)
        .map_err(|why| Fault::failed(format!("{}: {why}", path.display())))?;
    Ok(json!({ "content": text }))
}

/// `fs/write_text_file`.
pub(super) fn write(root: &Path, params: &Value) -> Result<Value, Fault> {
    let path = asked(params)?;
    let text = params["content"].as_str();
    let text = text.ok_or_else(|| Fault::invalid("`content` is missing"))?;
    if text.len() > MOST {
        return Err(Fault::invalid(format!(
            "{} bytes are too many: {MOST} are written at once",
            text.len()
        )));
    }
    let inside = match existing(root, &path)? {
        Some(inside) => inside,
        None => fresh(root, &path)?,
    };
    if is_protected(root, &inside) {
        return Err(Fault::invalid(format!(
            "{} is not written by agents: it decides what runs later",
            path.display()
        )));
    }
    let failed = |error: io::Error| refused(&path, &error);
    if let Some(folder) = inside.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let how = OFlags::WRONLY | OFlags::CREATE;
    let mut file = open(root, &inside, how).map_err(failed)?;
    file.set_len(0).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    Ok(json!({}))
}

/// The folder that a command is to run in.
pub(super) fn folder(root: &Path, cwd: &Value) -> Result<PathBuf, Fault> {
    let Some(cwd) = cwd.as_str() else {
        return Ok(root.to_owned());
    };
    let inside = existing(root, Path::new(cwd))?;
    inside
        .filter(|inside| inside.is_dir())
        .ok_or_else(|| Fault::missing(format!("there is no folder {cwd}")))
}

fn asked(params: &Value) -> Result<PathBuf, Fault> {
    match params["path"].as_str() {
        Some(path) if !path.is_empty() && !path.contains('\0') => Ok(PathBuf::from(path)),
        _ => Err(Fault::invalid("`path` is missing")),
    }
}

/// Where a path leads to, if there is something, and if that is inside of the root.
fn existing(root: &Path, path: &Path) -> Result<Option<PathBuf>, Fault> {
    match root.join(path).canonicalize() {
        Ok(real) if real.starts_with(root) => Ok(Some(real)),
        Ok(_) => Err(outside(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(refused(path, &error)),
    }
}

/// Where a file that is not there yet would be: in a folder inside of the root, or in folders to be made
/// in one.
fn fresh(root: &Path, path: &Path) -> Result<PathBuf, Fault> {
    let whole = root.join(path);
    let mut missing = Vec::new();
    for above in whole.ancestors() {
        match above.canonicalize() {
            Ok(real) if real.starts_with(root) => {
                return Ok(missing
                    .iter()
                    .rev()
                    .fold(real, |path, name| path.join(name)));
            }
            Ok(_) => return Err(outside(path)),
            // `..` behind what is not there leads anywhere.
            Err(_) => match above.components().next_back() {
                Some(Component::Normal(name)) => missing.push(name),
                _ => return Err(outside(path)),
            },
        }
    }
    Err(outside(path))
}

/// Opens an ordinary file that lies at this path without links; a pipe is not waited for.
fn open(root: &Path, inside: &Path, how: OFlags) -> io::Result<File> {
    let how = how | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mode = Mode::from_raw_mode(0o666);
    let below = inside.strip_prefix(root).map_err(io::Error::other)?;
    #[cfg(target_os = "linux")]
    let opened = {
        use rustix::fs::{CWD, ResolveFlags, openat, openat2};
        let folder = openat(CWD, root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        // The kernel takes a mode only where something may be made.
        let mode = match how.contains(OFlags::CREATE) {
            true => mode,
            false => Mode::empty(),
        };
        openat2(&folder, below, how, mode, resolve)?
    };
    #[cfg(not(target_os = "linux"))]
    let opened = rustix::fs::open(root.join(below), how, mode)?;
    let file = File::from(opened);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("is no ordinary file")),
    }
}

/// So many lines behind so many others.
fn lines(file: File, skip: u64, limit: Option<u64>) -> Result<String, String> {
    let words = |error: io::Error| error.to_string();
    let mut reader = BufReader::new(file.take(FARTHEST));
    let mut passed = 0;
    for _ in 0..skip {
        let read = reader.skip_until(b'\n').map_err(words)?;
        passed += read as u64;
        if read == 0 {
            return match passed >= FARTHEST {
                true => Err(format!("that line is behind {FARTHEST} bytes")),
                false => Ok(String::new()),
            };
        }
    }
    let mut bytes = Vec::new();
    let mut rest = reader.take(MOST as u64 + 1);
    match limit {
        None => {
            rest.read_to_end(&mut bytes).map_err(words)?;
        }
        Some(limit) => {
            for _ in 0..limit {
                if rest.read_until(b'\n', &mut bytes).map_err(words)? == 0 {
                    break;
                }
            }
        }
    }
    if bytes.len() > MOST {
        return Err(format!(
            "more than {MOST} bytes are not read at once: ask for fewer lines"
        ));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

fn outside(path: &Path) -> Fault {
    Fault::invalid(format!("{} is outside of the workspace", path.display()))
}

fn no_file(path: &Path) -> Fault {
    Fault::missing(format!("there is no file {}", path.display()))
}

fn refused(path: &Path, error: &io::Error) -> Fault {
    Fault::failed(format!("{}: {error}", path.display()))
}
