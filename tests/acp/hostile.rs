//! What comes in is not always the protocol.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::acp::scene::Scene;

/// `ctx acp` with nothing in between.
struct Raw {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Raw {
    fn new(scene: &Scene) -> Self {
        let args = [
            "acp",
            "--model",
            "openai:m",
            "--base-url",
            &scene.server.url,
        ];
        let mut command = scene.ctx(&args).command();
        let mut child = command.stderr(Stdio::inherit()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn send(&mut self, bytes: &[u8]) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.write_all(b"\n").unwrap();
        stdin.flush().unwrap();
    }

    fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(request.to_string().as_bytes());
        loop {
            let answer = self.read();
            if answer["id"] == id {
                return answer;
            }
        }
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "it ended");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON on stdout: {line}"))
    }

    /// Ends it as a host does; all that it said is JSON, and it ends well.
    fn end(mut self) {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        for line in rest.lines() {
            serde_json::from_str::<Value>(line).unwrap();
        }
        assert!(self.child.wait().unwrap().success());
    }
}

fn initialize(version: u64) -> Value {
    json!({"protocolVersion": version, "clientCapabilities": {}})
}

/// Attack 36: what is no message is answered as such, and the next message counts.
#[test]
fn garbage_on_standard_input_ends_nothing() {
    let scene = Scene::new([]);
    let mut raw = Raw::new(&scene);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let lines: [&[u8]; 12] = [
        b"hello",
        b"\xff\xfe\x00\x01",
        b"{",
        b"[]",
        b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}]",
        b"17",
        b"null",
        b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"no/such/thing\",\"params\":{}}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"x\"}}",
        b"{\"id\":1,\"n\":1e400,\"s\":\"\\ud800\"}",
        deep.as_bytes(),
    ];
    for line in lines {
        raw.send(line);
    }
    let answer = raw.ask(100, "initialize", &initialize(1));
    assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
    let unknown = raw.ask(101, "no/such/thing", &json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let wrong = raw.ask(102, "session/new", &json!({"cwd": 7}));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    raw.end();
}

/// Attack 36: a line without end takes no memory without end.
#[test]
fn a_line_that_is_too_long_is_passed_over() {
    let scene = Scene::new([]);
    let mut raw = Raw::new(&scene);
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..40 {
        raw.child.stdin.as_mut().unwrap().write_all(&piece).unwrap();
    }
    raw.send(b"");
    let answer = raw.ask(1, "initialize", &initialize(1));
    assert_eq!(answer["result"]["protocolVersion"], 1);
    raw.end();
}

#[test]
fn a_newer_host_is_told_which_version_is_spoken_here() {
    let scene = Scene::new([]);
    for version in [0, 1, 2, 99] {
        let mut raw = Raw::new(&scene);
        let answer = raw.ask(1, "initialize", &initialize(version));
        assert_eq!(
            answer["result"]["protocolVersion"], 1,
            "{version}: {answer}"
        );
        raw.end();
    }
}

#[test]
fn the_host_names_sessions_and_nobody_else() {
    let scene = Scene::new([]);
    scene
        .ctx(&["acp", "--session", "x"])
        .failure(2, "--session");
}
