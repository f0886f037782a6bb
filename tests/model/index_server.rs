//! A package index that does as it is told: pages and files, whole, cut, stalled or wrong. No client code
//! of ours is in it, so that both sides cannot be wrong in the same way.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use crate::model::scene::{PROJECT, WHEEL};

/// What the project's page is.
#[derive(Debug, Clone)]
pub enum Page {
    /// As JSON, with the length and the hash of the file.
    Json,
    /// The same with another length and another hash.
    JsonSaying { size: u64, sha256: String },
    /// As HTML, with the hash.
    Html,
    /// As HTML, without.
    HtmlWithoutHash,
    /// As HTML, with this address in it.
    HtmlTo(String),
    /// Bytes of this kind.
    Is(&'static str, String),
    /// It never ends.
    Endless,
    /// It leads elsewhere.
    Leads(String),
    /// It is refused.
    Status(u16),
}

/// How the file is given.
#[derive(Debug, Clone)]
pub enum Serve {
    /// As it is asked for.
    Whole,
    /// Whole, whatever is asked for.
    NoRanges,
    /// So many bytes, then the connection ends.
    Cut(usize),
    /// So many bytes, then nothing more comes.
    Stalls(usize),
    /// So many bytes a moment.
    Drips(usize),
    /// Only so many bytes, as if that were all.
    Shorter(usize),
    /// Another part than was asked for.
    WrongPart,
    /// Without an announced length, and without an end.
    Endless,
    /// It leads elsewhere.
    Leads(String),
    /// It is refused, with a time to wait.
    Status(u16),
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Seen {
    pub path: String,
    headers: Vec<(String, String)>,
}

impl Seen {
    /// Returns true if it asks for the file, under any name, and not for a page.
    fn is_of_file(&self) -> bool {
        self.path.ends_with(".whl") || self.path.ends_with(".gguf")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// What the index has, and how it gives it.
pub struct Index {
    pub page: Page,
    pub wheel: Vec<u8>,
    pub sha256: String,
    /// For one request after another; whole when they are used up.
    pub serves: Mutex<VecDeque<Serve>>,
    /// The file's mark.
    pub etag: Mutex<Option<&'static str>>,
    /// What every request must bring.
    pub authorization: Option<&'static str>,
    /// The page is that of every project.
    any_project: bool,
    seen: Mutex<Vec<Seen>>,
}

impl Index {
    pub fn new(wheel: Vec<u8>, sha256: String) -> Self {
        Self {
            page: Page::Json,
            wheel,
            sha256,
            serves: Mutex::default(),
            etag: Mutex::default(),
            authorization: None,
            any_project: false,
            seen: Mutex::default(),
        }
    }

    pub fn page(mut self, page: Page) -> Self {
        self.page = page;
        self
    }

    pub fn serves(self, serves: impl IntoIterator<Item = Serve>) -> Self {
        *self.serves.lock().unwrap() = serves.into_iter().collect();
        self
    }

    pub fn etag(self, etag: &'static str) -> Self {
        *self.etag.lock().unwrap() = Some(etag);
        self
    }

    pub fn authorization(mut self, authorization: &'static str) -> Self {
        self.authorization = Some(authorization);
        self
    }

    pub fn any_project(mut self) -> Self {
        self.any_project = true;
        self
    }

    pub fn start(self) -> IndexServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let index = Arc::new(self);
        let server = IndexServer {
            host: listener.local_addr().unwrap().to_string(),
            index: Arc::clone(&index),
        };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let index = Arc::clone(&index);
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    let mut stream = stream;
                    while index.answer(&mut reader, &mut stream).unwrap_or(false) {}
                    let _ = stream.shutdown(std::net::Shutdown::Both);
                });
            }
        });
        server
    }

    /// Answers a request. Whether another may come.
    pub fn answer(&self, from: &mut dyn BufRead, to: &mut dyn Write) -> std::io::Result<bool> {
        let Some(seen) = read(from)? else {
            return Ok(false);
        };
        self.seen.lock().unwrap().push(seen.clone());
        if self.authorization.is_some() && seen.header("authorization") != self.authorization {
            return status(to, 401, "");
        }
        match seen.is_of_file() {
            true => {
                let serve = self.serves.lock().unwrap().pop_front();
                self.file(&seen, serve.unwrap_or(Serve::Whole), to)
            }
            false if self.any_project || seen.path.ends_with(&format!("/{PROJECT}/")) => {
                self.project(to)
            }
            false => status(to, 404, ""),
        }
    }

    fn project(&self, to: &mut dyn Write) -> std::io::Result<bool> {
        // Relative, as many indexes have it.
        let address = format!("../../files/{WHEEL}");
        let json = |size: u64, sha256: &str| {
            json!({
                "meta": { "api-version": "1.1" },
                "name": PROJECT,
                "files": [
                    { "filename": "other-1.0.tar.gz", "url": "x", "hashes": {} },
                    { "filename": WHEEL, "url": address, "hashes": { "sha256": sha256 }, "size": size },
                ],
            })
            .to_string()
        };
        let html = |address: &str| {
            format!(
                "<!DOCTYPE html><html><body><a href='x.tar.gz'>x</a><br/>\n<a href=\"{address}\" data-requires-python=\"&gt;=3.9\">{WHEEL}</a></body></html>"
            )
        };
        const JSON: &str = "application/vnd.pypi.simple.v1+json";
        let (kind, body) = match &self.page {
            Page::Json => (JSON, json(self.wheel.len() as u64, &self.sha256)),
            Page::JsonSaying { size, sha256 } => (JSON, json(*size, sha256)),
            Page::Html => (
                "text/html",
                html(&format!("{address}#sha256={}", self.sha256)),
            ),
            Page::HtmlWithoutHash => ("text/html", html(&address)),
            Page::HtmlTo(address) => ("text/html", html(address)),
            Page::Is(kind, body) => (*kind, body.clone()),
            Page::Endless => {
                write!(to, "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n")?;
                loop {
                    to.write_all(&[b' '; 64 << 10])?;
                }
            }
            Page::Leads(address) => return leads(to, address),
            Page::Status(code) => return status(to, *code, ""),
        };
        write!(
            to,
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        Ok(true)
    }

    fn file(&self, seen: &Seen, serve: Serve, to: &mut dyn Write) -> std::io::Result<bool> {
        let (length, etag) = (self.wheel.len(), *self.etag.lock().unwrap());
        let same = seen
            .header("if-range")
            .is_none_or(|mark| Some(mark) == etag);
        let range = seen.header("range").filter(|_| same);
        let start = match (&serve, range) {
            (Serve::NoRanges | Serve::Shorter(_), _) | (_, None) => None,
            (Serve::WrongPart, Some(_)) => Some(length / 3),
            (_, Some(range)) => {
                let start = range.strip_prefix("bytes=").unwrap();
                Some(start.strip_suffix('-').unwrap().parse::<usize>().unwrap())
            }
        };
        let most = match serve {
            Serve::Leads(address) => return leads(to, &address),
            Serve::Status(code) => return status(to, code, "retry-after: 0\r\n"),
            Serve::Endless => {
                write!(to, "HTTP/1.1 200 OK\r\n\r\n")?;
                loop {
                    to.write_all(&[7; 64 << 10])?;
                }
            }
            Serve::Cut(most) | Serve::Stalls(most) => most,
            Serve::Shorter(most) => {
                write!(to, "HTTP/1.1 200 OK\r\ncontent-length: {most}\r\n\r\n")?;
                to.write_all(&self.wheel[..most])?;
                return Ok(true);
            }
            _ => usize::MAX,
        };
        if start.is_some_and(|start| start >= length) {
            return status(to, 416, &format!("content-range: bytes */{length}\r\n"));
        }
        let body = &self.wheel[start.unwrap_or_default()..];
        match start {
            None => write!(to, "HTTP/1.1 200 OK\r\n")?,
            Some(start) => write!(
                to,
                "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes {start}-{}/{length}\r\n",
                length - 1
            )?,
        }
        if let Some(etag) = etag {
            write!(to, "etag: {etag}\r\n")?;
        }
        write!(to, "content-length: {}\r\n\r\n", body.len())?;
        if let Serve::Drips(bytes) = serve {
            for drop in body.chunks(bytes) {
                to.write_all(drop)?;
                std::thread::sleep(Duration::from_millis(20));
            }
            return Ok(true);
        }
        let given = &body[..body.len().min(most)];
        to.write_all(given)?;
        to.flush()?;
        if matches!(serve, Serve::Stalls(_)) {
            std::thread::sleep(Duration::from_secs(60));
        }
        Ok(given.len() == body.len())
    }
}

/// The index, at work.
pub struct IndexServer {
    pub host: String,
    pub index: Arc<Index>,
}

impl IndexServer {
    /// Its address, as pip has it.
    pub fn url(&self) -> String {
        format!("http://{}/simple", self.host)
    }

    /// What it was asked for, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.index.seen.lock().unwrap().clone()
    }

    /// What it was asked for of the file.
    pub fn asked(&self) -> Vec<Seen> {
        let all = self.seen().into_iter();
        all.filter(Seen::is_of_file).collect()
    }

    /// From which byte on, each time.
    pub fn ranges(&self) -> Vec<Option<String>> {
        let range = |seen: &Seen| seen.header("range").map(str::to_owned);
        self.asked().iter().map(range).collect()
    }
}

fn leads(to: &mut dyn Write, address: &str) -> std::io::Result<bool> {
    status(to, 302, &format!("location: {address}\r\n"))
}

fn status(to: &mut dyn Write, status: u16, headers: &str) -> std::io::Result<bool> {
    write!(
        to,
        "HTTP/1.1 {status} Said\r\n{headers}content-length: 0\r\n\r\n"
    )?;
    Ok(true)
}

fn read(from: &mut dyn BufRead) -> std::io::Result<Option<Seen>> {
    let mut line = String::new();
    if from.take(8_000).read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        from.take(8_000).read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            return Ok(Some(Seen { path, headers }));
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}
