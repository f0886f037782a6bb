//! A model's server that sends what nobody expects.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use serde_json::{Value, json};

use super::leaks::{self, Secret};
use super::text::{HOSTILE, harm, mutations, sample};
use super::watch::{on_a_terminal, script_missing, watched};
use crate::common::{Ctx, Project};
use crate::model_server::{Answer, ModelServer, Piece};

/// A server that writes an answer by hand.
pub struct Server {
    pub url: String,
}

impl Server {
    /// One that answers the body of a request like this, and closes the connection.
    pub fn new(
        answer: impl Fn(&[u8], &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let answer = Arc::clone(&answer);
                std::thread::spawn(move || one(stream, &*answer));
            }
        });
        Self { url }
    }

    /// One whose answers have this head and these parts, each so many times.
    fn saying(head: &'static str, parts: Vec<(String, usize)>) -> Self {
        Self::new(move |_, stream| {
            write!(stream, "HTTP/1.1 {head}\r\nconnection: close\r\n\r\n")?;
            write_parts(stream, &parts)
        })
    }
}

fn one(
    mut stream: TcpStream,
    answer: &dyn Fn(&[u8], &mut TcpStream) -> std::io::Result<()>,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok()?;
            }
            None if line.trim_end().is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    // A client that has had enough is the point.
    let _ = answer(&body, &mut stream);
    Some(())
}

/// Writes parts, each so many times, in blocks.
pub fn write_parts(out: &mut impl Write, parts: &[(String, usize)]) -> std::io::Result<()> {
    for (text, times) in parts {
        let block = ((1 << 20) / text.len().max(1)).clamp(1, *times);
        let many = text.repeat(block);
        for _ in 0..times / block {
            out.write_all(many.as_bytes())?;
        }
        out.write_all(text.repeat(times % block).as_bytes())?;
    }
    Ok(())
}

const EVENTS: &str = "200 OK\r\ncontent-type: text/event-stream";
const KEY: &str = "sk-of-the-user-0123456789abcdef";

fn run(project: &Project, url: &str) -> Ctx {
    project
        .ctx(&[
            "run",
            "hello",
            "--session",
            "s",
            "--model",
            "openai:gpt-4o",
            "--base-url",
            url,
        ])
        .env("OPENAI_API_KEY", KEY)
}

fn chunk(delta: &Value, reason: Option<&str>) -> Value {
    json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
           "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
           "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
}

/// 50 and 51.
#[test]
fn what_a_model_sends_is_held_in_bounded_memory() {
    let usual = {
        let server = ModelServer::start([Answer::Says(vec![Piece::Text("hi")])]);
        watched(&run(&Project::new(), &server.url)).peak
    };
    let part = |text: &str, times: usize| (text.to_owned(), times);
    let tiny = |head: &str, tail: &str| vec![part(head, 1), part("{},", 20 << 20), part(tail, 1)];
    let call = json!({"index": 0, "id": "c", "type": "function", "function": {"name": "recall", "arguments": "{}"}});
    let mut calls: Vec<(String, usize)> = (0..100_000)
        .map(|n| {
            let mut call = call.clone();
            call["index"] = json!(n);
            call["id"] = json!(format!("c{n}"));
            part(
                &format!("data: {}\n\n", chunk(&json!({"tool_calls": [call]}), None)),
                1,
            )
        })
        .collect();
    calls.push(part(
        &format!(
            "data: {}\n\ndata: [DONE]\n\n",
            chunk(&json!({}), Some("tool_calls"))
        ),
        1,
    ));
    let far = chunk(
        &json!({"tool_calls": [{"index": u32::MAX, "id": "c", "function": {"name": "t", "arguments": "{}"}}]}),
        Some("tool_calls"),
    );
    let word = format!("data: {}\n\n", chunk(&json!({"content": "x"}), None));
    let mut found = Vec::new();
    for (name, head, parts) in [
        (
            "an event of tiny values",
            EVENTS,
            tiny("data: {\"choices\":[", "{}]}\n\n"),
        ),
        (
            "an error of tiny values",
            "400 No\r\ncontent-type: application/json",
            tiny("{\"error\":[", "{}]}"),
        ),
        (
            "a body of tiny values",
            "200 OK\r\ncontent-type: application/json",
            tiny("{\"choices\":[", "{}]}"),
        ),
        (
            "a line without an end",
            EVENTS,
            vec![part("data: ", 1), part("x", 300 << 20)],
        ),
        (
            "headers without an end",
            "200 OK",
            vec![part("x: y\r\n", 20 << 20)],
        ),
        (
            "values inside values",
            EVENTS,
            vec![part("data: ", 1), part("{\"a\":[", 1 << 20)],
        ),
        ("a word at a time", EVENTS, vec![(word, 200_000)]),
        ("a hundred thousand calls", EVENTS, calls),
        (
            "a call far away",
            EVENTS,
            vec![part(&format!("data: {far}\n\n"), 1)],
        ),
    ] {
        let project = Project::new();
        let server = Server::saying(head, parts);
        let seen = watched(&run(&project, &server.url));
        found.extend(seen.unbounded(&format!("model, {name}"), usual));
        let log = std::fs::metadata(project.log("s")).map_or(0, |about| about.len());
        found.extend((log >= 64 << 20).then(|| format!("{name}: the log has {log} bytes")));
    }
    super::none(found);
}

#[test]
fn a_value_of_another_type_ends_nothing_badly() {
    let call = json!([{"index": 0, "id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}]);
    let whole = chunk(
        &json!({"role": "assistant", "content": "x", "reasoning_content": "y", "tool_calls": call}),
        Some("stop"),
    );
    let events = sample(mutations(&whole), super::many(60));
    super::none(super::each(&events, |event| {
        let server = Server::saying(
            EVENTS,
            vec![(format!("data: {event}\n\ndata: [DONE]\n\n"), 1)],
        );
        let seen = watched(&run(&Project::new(), &server.url));
        seen.bad_end(&event.to_string()).into_iter().collect()
    }));
}

// needs: script
#[test]
fn what_a_model_says_commands_no_terminal() {
    if script_missing() {
        return;
    }
    let mut found = Vec::new();
    let hostile: &'static str = HOSTILE;
    let error =
        json!({"error": {"message": HOSTILE, "type": HOSTILE, "code": HOSTILE, "param": HOSTILE}})
            .to_string();
    for (name, answers) in [
        (
            "text",
            vec![Answer::Says(vec![
                Piece::Thinking(hostile),
                Piece::Text(hostile),
            ])],
        ),
        (
            "a call",
            vec![
                Answer::Says(vec![Piece::Call(
                    hostile,
                    hostile,
                    json!({HOSTILE: HOSTILE}),
                )]),
                Answer::Says(vec![Piece::Text("x")]),
            ],
        ),
        (
            "arguments",
            vec![
                Answer::Says(vec![Piece::Call(
                    "c",
                    "exec_shell",
                    json!({"command": HOSTILE}),
                )]),
                Answer::Says(vec![Piece::Text("x")]),
            ],
        ),
        ("an error", vec![Answer::Status(400, vec![], error)]),
        (
            "a page",
            vec![Answer::Status(403, vec![], HOSTILE.to_owned())],
        ),
        (
            "a header",
            vec![Answer::Status(
                429,
                vec![("retry-after", "0".to_owned())],
                HOSTILE.to_owned(),
            )],
        ),
    ] {
        let project = Project::new();
        let server = ModelServer::start(answers);
        found.extend(harm(name, &on_a_terminal(&run(&project, &server.url))));
        for command in [
            &["sessions", "show", "s"][..],
            &["inspect", "s"],
            &["replay", "s"],
            &["sessions", "list"],
        ] {
            found.extend(harm(
                &format!("{name}: {command:?}"),
                &on_a_terminal(&project.ctx(command)),
            ));
        }
    }
    super::none(found);
}

/// 41 and 53: the key that the model's server was sent comes back from it.
#[test]
fn a_key_that_a_model_repeats_is_in_no_file_and_no_output() {
    let secrets = [Secret {
        name: "key",
        text: KEY.to_owned(),
    }];
    let mut found = Vec::new();
    let error = json!({"error": {"message": format!("no such key: {KEY}"), KEY: KEY}}).to_string();
    for (name, answers) in [
        (
            "arguments",
            vec![
                Answer::Says(vec![Piece::Call("c", "recall", json!({KEY: KEY}))]),
                Answer::Says(vec![Piece::Text("x")]),
            ],
        ),
        (
            "a tool's name",
            vec![
                Answer::Says(vec![Piece::Call("c", KEY, json!({}))]),
                Answer::Says(vec![Piece::Text("x")]),
            ],
        ),
        ("an error", vec![Answer::Status(401, vec![], error)]),
    ] {
        let project = Project::new();
        let server = ModelServer::start(answers);
        let seen = watched(&run(&project, &server.url));
        leaks::in_text(&format!("{name}: stdout"), &seen.out, &secrets, &mut found);
        leaks::in_text(&format!("{name}: stderr"), &seen.err, &secrets, &mut found);
        leaks::in_files(project.path(), None, &secrets, &mut found);
    }
    super::none(found);
}
