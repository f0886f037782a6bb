//! A model server that says what it is told to, in the forms that providers speak.
//!
//! It answers one request after another from a script and keeps what it was sent, to the byte. No
//! client code of ours is in it, so that both sides cannot be wrong in the same way.
#![allow(dead_code, reason = "each test binary uses its own share")]

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// What to say to a request.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A reply, as a stream of events.
    Says(Vec<Piece>),
    /// The same, cut off behind so many events.
    Cut(Vec<Piece>, usize),
    /// The same, ended behind so many events as if that were all: some gateways do.
    Ends(Vec<Piece>, usize),
    /// The same, but after so many events nothing more comes.
    Stalls(Vec<Piece>, usize),
    /// The same, with a pause before each event.
    Drips(Vec<Piece>, Duration),
    /// A status with headers and a body.
    Status(u16, Vec<(&'static str, String)>, String),
    /// Bytes instead of a stream.
    Garbage(&'static str),
    /// The connection is closed before a word.
    HangsUp,
}

/// A piece of a reply.
#[derive(Debug, Clone)]
pub enum Piece {
    Text(&'static str),
    Thinking(&'static str),
    /// Id, tool, arguments. A tool of a namespace is `space::name`.
    Call(&'static str, &'static str, Value),
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Seen {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

pub struct ModelServer {
    pub url: String,
    script: Arc<Script>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// Where answers come from.
enum Script {
    /// One after another.
    List(Mutex<VecDeque<Answer>>),
    /// As the request asks for.
    Made(Box<dyn Fn(&Seen) -> Answer + Send + Sync>),
}

impl Script {
    fn answer(&self, request: &Seen) -> Answer {
        let over = || Answer::Status(418, vec![], "the script is over".to_owned());
        match self {
            Self::List(answers) => answers.lock().unwrap().pop_front().unwrap_or_else(over),
            Self::Made(make) => make(request),
        }
    }
}

impl ModelServer {
    pub fn start(script: impl IntoIterator<Item = Answer>) -> Self {
        Self::with(Script::List(Mutex::new(script.into_iter().collect())))
    }

    /// One that looks at a request before it answers.
    pub fn answering(make: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::with(Script::Made(Box::new(make)))
    }

    fn with(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            url: format!("http://{}/v1", listener.local_addr().unwrap()),
            script: Arc::new(script),
            seen: Arc::default(),
        };
        let (script, seen) = (Arc::clone(&server.script), Arc::clone(&server.seen));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
                std::thread::spawn(move || {
                    let _ = serve(stream, &script, &seen);
                });
            }
        });
        server
    }

    /// What it was sent, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The same, and forgets it.
    pub fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    /// How much of the script is left.
    pub fn left(&self) -> usize {
        match &*self.script {
            Script::List(answers) => answers.lock().unwrap().len(),
            Script::Made(_) => 0,
        }
    }
}

fn serve(stream: TcpStream, script: &Script, seen: &Mutex<Vec<Seen>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    while let Some(request) = read(&mut reader)? {
        let path = request.path.clone();
        let answer = script.answer(&request);
        seen.lock().unwrap().push(request);
        let open = match answer {
            Answer::Says(pieces) => events(&mut stream, &path, &pieces, usize::MAX)?,
            Answer::Drips(pieces, pause) => drip(&mut stream, &path, &pieces, usize::MAX, pause)?,
            Answer::Cut(pieces, after) => {
                events(&mut stream, &path, &pieces, after)?;
                return Ok(());
            }
            Answer::Ends(pieces, after) => {
                if !events(&mut stream, &path, &pieces, after)? {
                    stream.write_all(b"0\r\n\r\n")?;
                }
                true
            }
            Answer::Stalls(pieces, after) => {
                events(&mut stream, &path, &pieces, after)?;
                std::thread::sleep(Duration::from_secs(30));
                return Ok(());
            }
            Answer::Status(status, headers, body) => {
                write!(
                    stream,
                    "HTTP/1.1 {status} Said\r\ncontent-length: {}\r\n",
                    body.len()
                )?;
                for (name, value) in headers {
                    write!(stream, "{name}: {value}\r\n")?;
                }
                write!(stream, "\r\n{body}")?;
                true
            }
            Answer::Garbage(text) => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
                write!(stream, "{head}content-length: {}\r\n\r\n{text}", text.len())?;
                true
            }
            Answer::HangsUp => false,
        };
        stream.flush()?;
        if !open {
            return Ok(());
        }
    }
    Ok(())
}

fn read(reader: &mut impl BufRead) -> std::io::Result<Option<Seen>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut headers, mut length) = (Vec::new(), 0);
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        let (name, value) = (name.to_ascii_lowercase(), value.trim().to_owned());
        if name == "content-length" {
            length = value.parse().unwrap();
        }
        headers.push((name, value));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Seen {
        path,
        headers,
        body,
    }))
}

/// Sends the first events of a reply, as chunks; whether all of them.
fn events(
    stream: &mut TcpStream,
    path: &str,
    pieces: &[Piece],
    most: usize,
) -> std::io::Result<bool> {
    drip(stream, path, pieces, most, Duration::ZERO)
}

fn drip(
    stream: &mut TcpStream,
    path: &str,
    pieces: &[Piece],
    most: usize,
    pause: Duration,
) -> std::io::Result<bool> {
    let all = match path {
        _ if path.ends_with("/chat/completions") => chat(pieces),
        _ if path.ends_with("/responses") => responses(pieces),
        _ if path.contains(":streamGenerateContent") => {
            vec![format!("data: {}\n\n", gemini(pieces))]
        }
        _ => messages(pieces),
    };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )?;
    for event in all.iter().take(most) {
        std::thread::sleep(pause);
        // In two chunks, cut in the middle of whatever is there.
        let bytes = event.as_bytes();
        for part in [&bytes[..bytes.len() / 2], &bytes[bytes.len() / 2..]] {
            write!(stream, "{:x}\r\n", part.len())?;
            stream.write_all(part)?;
            stream.write_all(b"\r\n")?;
            stream.flush()?;
        }
    }
    if all.len() <= most {
        stream.write_all(b"0\r\n\r\n")?;
    }
    Ok(all.len() <= most)
}

/// How many events a reply has on an API's path.
pub fn event_count(path: &str, pieces: &[Piece]) -> usize {
    match path {
        "chat/completions" => chat(pieces).len(),
        "responses" => responses(pieces).len(),
        _ => messages(pieces).len(),
    }
}

fn halves(text: &str) -> [&str; 2] {
    let middle = (0..=text.len() / 2)
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap();
    [&text[..middle], &text[middle..]]
}

fn chat(pieces: &[Piece]) -> Vec<String> {
    let chunk = |delta: Value, reason: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "scripted-1", "choices": [choice]})
    };
    let mut all = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
    let mut calls = 0;
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                all.extend(halves(text).map(|half| chunk(json!({"content": half}), None)));
            }
            Piece::Thinking(text) => {
                all.extend(
                    halves(text).map(|half| chunk(json!({"reasoning_content": half}), None)),
                );
            }
            Piece::Call(id, name, arguments) => {
                let first = json!({"index": calls, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
                all.push(chunk(json!({"tool_calls": [first]}), None));
                for half in halves(&arguments.to_string()) {
                    let more = json!({"index": calls, "function": {"arguments": half}});
                    all.push(chunk(json!({"tool_calls": [more]}), None));
                }
                calls += 1;
            }
        }
    }
    let reason = if calls > 0 { "tool_calls" } else { "stop" };
    all.push(chunk(json!({}), Some(reason)));
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107, "prompt_tokens_details": {"cached_tokens": 64}});
    all.push(json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "scripted-1", "choices": [], "usage": usage}));
    let mut lines: Vec<String> = all
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    lines.push("data: [DONE]\n\n".to_owned());
    lines
}

fn messages(pieces: &[Piece]) -> Vec<String> {
    let usage = json!({"input_tokens": 36, "cache_read_input_tokens": 64, "cache_creation_input_tokens": 0, "output_tokens": 1});
    // A client may take two messages of one id for one.
    static NUMBER: AtomicUsize = AtomicUsize::new(1);
    let id = format!("m{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let message = json!({"id": id, "type": "message", "role": "assistant", "model": "scripted-1", "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage});
    let mut all = vec![
        json!({"type": "message_start", "message": message}),
        json!({"type": "ping"}),
    ];
    for (index, piece) in pieces.iter().enumerate() {
        let (block, deltas) = match piece {
            Piece::Text(text) => (
                json!({"type": "text", "text": ""}),
                halves(text)
                    .map(|half| json!({"type": "text_delta", "text": half}))
                    .to_vec(),
            ),
            Piece::Thinking(text) => {
                let mut deltas = halves(text)
                    .map(|half| json!({"type": "thinking_delta", "thinking": half}))
                    .to_vec();
                deltas.push(json!({"type": "signature_delta", "signature": "sealed"}));
                (
                    json!({"type": "thinking", "thinking": "", "signature": ""}),
                    deltas,
                )
            }
            Piece::Call(id, name, arguments) => (
                json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                halves(&arguments.to_string())
                    .map(|half| json!({"type": "input_json_delta", "partial_json": half}))
                    .to_vec(),
            ),
        };
        all.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        all.extend(
            deltas.into_iter().map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ),
        );
        all.push(json!({"type": "content_block_stop", "index": index}));
    }
    let calls = pieces.iter().any(|piece| matches!(piece, Piece::Call(..)));
    let reason = if calls { "tool_use" } else { "end_turn" };
    all.push(json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 7}}));
    all.push(json!({"type": "message_stop"}));
    all.iter()
        .map(|event| {
            format!(
                "event: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap()
            )
        })
        .collect()
}

/// A whole reply in Gemini's form.
pub fn gemini(pieces: &[Piece]) -> Value {
    let part = |piece: &Piece| match piece {
        Piece::Text(text) => json!({"text": text}),
        Piece::Thinking(text) => json!({"text": text, "thought": true}),
        Piece::Call(id, name, arguments) => {
            json!({"functionCall": {"id": id, "name": name, "args": arguments}})
        }
    };
    let parts: Vec<Value> = pieces.iter().map(part).collect();
    let content = json!({"role": "model", "parts": parts});
    json!({
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 7, "totalTokenCount": 107},
    })
}

fn responses(pieces: &[Piece]) -> Vec<String> {
    let response = |status: &str, output: &[Value], usage: Value| {
        json!({
            "id": "r1", "object": "response", "created_at": 1, "status": status, "model": "scripted-1", "output": output,
            "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "usage": usage,
        })
    };
    let begun = response("in_progress", &[], Value::Null);
    let mut all = vec![json!({"type": "response.created", "response": begun})];
    let mut output = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let (item, parts) = item(index, piece);
        let mut new = item.clone();
        for (field, empty) in [
            ("status", json!("in_progress")),
            ("content", json!([])),
            ("summary", json!([])),
            ("arguments", json!("")),
        ] {
            if new.get(field).is_some() {
                new[field] = empty;
            }
        }
        all.push(json!({"type": "response.output_item.added", "output_index": index, "item": new}));
        all.extend(parts.into_iter().map(|mut part| {
            part["output_index"] = index.into();
            part["item_id"] = item["id"].clone();
            part
        }));
        all.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
        output.push(item);
    }
    let usage = json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 0}, "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 107});
    let response = response("completed", &output, usage);
    all.push(json!({"type": "response.completed", "response": response}));
    for (number, event) in all.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    all.iter()
        .map(|event| {
            format!(
                "event: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap()
            )
        })
        .collect()
}

/// An item of a response, and the events that make it.
fn item(index: usize, piece: &Piece) -> (Value, Vec<Value>) {
    let number = index + 1;
    match piece {
        Piece::Text(text) => {
            let part = |text| json!({"type": "output_text", "text": text, "annotations": []});
            let event = |kind: &str, name: &str, value: Value| json!({"type": kind, "content_index": 0, name: value});
            let mut parts = vec![event("response.content_part.added", "part", part(""))];
            parts.extend(
                halves(text).map(|half| event("response.output_text.delta", "delta", half.into())),
            );
            parts.push(event("response.output_text.done", "text", (*text).into()));
            for part in &mut parts[1..] {
                part["logprobs"] = json!([]);
            }
            parts.push(event("response.content_part.done", "part", part(text)));
            (
                json!({"type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed", "content": [part(text)]}),
                parts,
            )
        }
        Piece::Thinking(text) => {
            let part = |text| json!({"type": "summary_text", "text": text});
            let event = |kind: &str, name: &str, value: Value| json!({"type": kind, "summary_index": 0, name: value});
            let mut parts = vec![event(
                "response.reasoning_summary_part.added",
                "part",
                part(""),
            )];
            parts.extend(halves(text).map(|half| {
                event(
                    "response.reasoning_summary_text.delta",
                    "delta",
                    half.into(),
                )
            }));
            parts.push(event(
                "response.reasoning_summary_text.done",
                "text",
                (*text).into(),
            ));
            parts.push(event(
                "response.reasoning_summary_part.done",
                "part",
                part(text),
            ));
            (
                json!({"type": "reasoning", "id": format!("rs_{number}"), "summary": [part(text)], "encrypted_content": "sealed"}),
                parts,
            )
        }
        Piece::Call(id, name, arguments) => {
            let arguments = arguments.to_string();
            let mut parts = halves(&arguments)
                .map(
                    |half| json!({"type": "response.function_call_arguments.delta", "delta": half}),
                )
                .to_vec();
            parts.push(json!({"type": "response.function_call_arguments.done", "name": name, "arguments": arguments}));
            let (space, name) = name.rsplit_once("::").unwrap_or(("", name));
            let mut call = json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": id, "name": name, "arguments": arguments, "status": "completed"});
            if !space.is_empty() {
                call["namespace"] = json!(space);
            }
            (call, parts)
        }
    }
}
