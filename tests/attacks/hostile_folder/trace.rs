//! Reads what `strace` saw: each system call with its words, so that rules can be held against them.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The system calls that are traced: those that start a program, reach another process or machine, or change or open a
/// file.
pub const CALLS: &str = "execve,execveat,connect,bind,sendto,sendmsg,sendmmsg,chdir,fchdir,\
    open,openat,openat2,creat,unlink,unlinkat,rmdir,rename,renameat,renameat2,mkdir,mkdirat,mknod,mknodat,link,linkat,\
    symlink,symlinkat,truncate,ftruncate,chmod,fchmod,fchmodat,chown,lchown,fchown,fchownat,utime,utimes,utimensat,\
    futimesat,setxattr,lsetxattr,fsetxattr,removexattr,lremovexattr,fremovexattr,mount,umount2,pivot_root,chroot";

/// A system call that returned.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    pub args: Vec<Arg>,
    pub result: Result,
    /// The folder that relative paths begin in.
    pub cwd: PathBuf,
    /// The call as `strace` wrote it.
    pub line: String,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Arg {
    Text(PathBuf),
    /// A descriptor, with the file that it stands for.
    File(PathBuf),
    Other(String),
}

#[derive(Debug, PartialEq, Eq)]
pub enum Result {
    Done,
    /// A descriptor of this file, links resolved.
    Opened(PathBuf),
    Failed(String),
}

/// Reads a trace that began in `cwd`.
pub fn read(text: &[u8], cwd: &Path) -> Vec<Call> {
    let mut begun: HashMap<&[u8], Vec<u8>> = HashMap::new();
    let mut folders: HashMap<Vec<u8>, PathBuf> = HashMap::new();
    let mut calls = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        let Some(at) = line.iter().position(|&byte| byte == b' ') else {
            continue;
        };
        let (pid, rest) = (&line[..at], line[at..].trim_ascii_start());
        if let Some(head) = rest.strip_suffix(b" <unfinished ...>") {
            begun.insert(pid, head.to_vec());
            continue;
        }
        let whole = match resumed(rest) {
            Some(tail) => [&begun.remove(pid).unwrap_or_default(), tail].concat(),
            None => rest.to_vec(),
        };
        let here = folders.get(pid).map_or(cwd, PathBuf::as_path);
        let Some(call) = call(&whole, here) else {
            continue;
        };
        if call.name == "chdir"
            && call.result == Result::Done
            && let [Arg::Text(path)] = &call.args[..]
        {
            folders.insert(pid.to_vec(), call.cwd.join(path));
        }
        calls.push(call);
    }
    calls
}

/// What stands behind `<... openat resumed>`.
fn resumed(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"<... ")?;
    let mark = b" resumed>";
    let at = rest.windows(mark.len()).position(|part| part == mark)?;
    Some(&rest[at + mark.len()..])
}

/// `name(arg, …) = result`; none for what is no call.
fn call(line: &[u8], cwd: &Path) -> Option<Call> {
    let open = line.iter().position(|&byte| byte == b'(')?;
    let name = std::str::from_utf8(&line[..open]).ok()?;
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return None;
    }
    let (words, end) = split(&line[open + 1..])?;
    let tail = line[open + 1 + end..]
        .trim_ascii_start()
        .strip_prefix(b"=")?
        .trim_ascii();
    Some(Call {
        name: name.to_owned(),
        args: words.into_iter().map(arg).collect(),
        result: result(tail),
        cwd: cwd.to_owned(),
        line: String::from_utf8_lossy(line).chars().take(400).collect(),
    })
}

/// The words up to the closing bracket, and where that ends.
fn split(text: &[u8]) -> Option<(Vec<&[u8]>, usize)> {
    let (mut words, mut start, mut depth, mut at) = (Vec::new(), 0, 0, 0);
    while at < text.len() {
        match text[at] {
            b'"' => at += 1 + quoted(&text[at + 1..])?,
            // The file of a descriptor: a bracket in its name is escaped.
            b'<' => at += text[at..].iter().position(|&byte| byte == b'>')?,
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                words.push(text[start..at].trim_ascii());
                return Some((words, at + 1));
            }
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                words.push(text[start..at].trim_ascii());
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Where the text ends that began before this.
fn quoted(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 1,
            b'"' => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

fn arg(word: &[u8]) -> Arg {
    let other = || Arg::Other(String::from_utf8_lossy(word).into_owned());
    if let Some(text) = word.strip_prefix(b"\"") {
        return quoted(text).map_or_else(other, |end| Arg::Text(plain(&text[..end])));
    }
    file(word).map_or_else(other, Arg::File)
}

/// The file of a descriptor: `3</a/b>` or `AT_FDCWD</a>`.
fn file(word: &[u8]) -> Option<PathBuf> {
    let open = word.iter().position(|&byte| byte == b'<')?;
    let number = |&byte: &u8| byte.is_ascii_digit() || byte.is_ascii_uppercase() || byte == b'_';
    let path = word[open + 1..].strip_suffix(b">")?;
    word[..open].iter().all(number).then(|| plain(path))
}

fn result(tail: &[u8]) -> Result {
    let end = tail
        .iter()
        .rposition(|&byte| byte == b'>')
        .map_or(tail.len(), |at| at + 1);
    match file(&tail[..end]) {
        Some(path) => Result::Opened(path),
        None if tail.starts_with(b"-1 ") || tail.starts_with(b"?") => {
            let name = tail.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
            Result::Failed(String::from_utf8_lossy(name).into_owned())
        }
        None => Result::Done,
    }
}

/// A text without its escapes.
fn plain(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'\\' {
            bytes.push(text[at]);
            at += 1;
            continue;
        }
        let digits = text[at + 1..].iter().take(3);
        let octal: Vec<u8> = digits
            .copied()
            .take_while(|b| (b'0'..b'8').contains(b))
            .collect();
        if octal.is_empty() {
            let byte = text.get(at + 1).copied().unwrap_or(b'\\');
            let controls = [(b'n', 10), (b't', 9), (b'r', 13), (b'v', 11), (b'f', 12)];
            let known = controls.iter().find(|(letter, _)| *letter == byte);
            bytes.push(known.map_or(byte, |(_, control)| *control));
            at += 2;
        } else {
            let value = octal
                .iter()
                .fold(0u32, |value, digit| value * 8 + u32::from(digit - b'0'));
            bytes.push(value as u8);
            at += 1 + octal.len();
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[test]
fn a_trace_is_read_with_its_links_escapes_and_interruptions() {
    let text = br#"7 execve("/bin/ctx", ["ctx", "a, (b"], 0x1 /* 3 vars */) = 0
7 openat(AT_FDCWD</p>, "l/x", O_WRONLY|O_CREAT, 0666 <unfinished ...>
8 connect(5<socket:[1]>, {sa_family=AF_INET, sin_port=htons(9), sin_addr=inet_addr("127.0.0.1")}, 16) = -1 ECONNREFUSED (Connection refused)
7 <... openat resumed>) = 3</out/a\33\76 b>
7 chdir("/q") = 0
7 unlink("a\"\n\\") = 0
7 fchmod(3</out/a>, 0600) = 0
7 +++ exited with 0 +++
"#;
    let calls = read(text, Path::new("/p"));
    let text = |text: &str| Arg::Text(text.into());
    let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(
        names,
        ["execve", "connect", "openat", "chdir", "unlink", "fchmod"]
    );
    assert_eq!(calls[0].args[0], text("/bin/ctx"));
    assert_eq!(calls[1].result, Result::Failed("ECONNREFUSED".to_owned()));
    assert_eq!(calls[2].args[..2], [Arg::File("/p".into()), text("l/x")]);
    assert_eq!(calls[2].result, Result::Opened("/out/a\u{1b}> b".into()));
    assert_eq!(
        (calls[4].cwd.as_path(), &calls[4].args[0]),
        (Path::new("/q"), &text("a\"\n\\"))
    );
    assert_eq!(calls[5].args[0], Arg::File("/out/a".into()));
}
