//! 50: many small values in a permitted number of bytes. What is bounded is the memory that they take, at every
//! door: each input here stays below 256 MiB above what the program takes by itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};

use crate::attacks::agent::{Scene, calls, says};
use crate::common::{Ctx, Measured, Project, ROOT, peak_kib, status_kib};
use crate::fleet::scene::Daemon;
use crate::model_server::Answer;

const MAX_KIB: u64 = 256 << 10;
const LONGEST: Duration = Duration::from_secs(60);

/// What the program takes by itself.
fn base_kib() -> u64 {
    static BASE: OnceLock<u64> = OnceLock::new();
    *BASE.get_or_init(|| {
        let input = "{\"role\":\"user\",\"content\":\"hi\"}\n";
        let base = Project::new().ctx(&["build"]).input(input).measured();
        assert_eq!(base.code, Some(0), "{}", base.stderr);
        base.peak_kib
    })
}

/// Runs it, and holds it to the limits of memory and time.
#[track_caller]
fn bounded(name: &str, ctx: Ctx) -> Measured {
    let done = ctx.measured();
    let more = done.peak_kib.saturating_sub(base_kib());
    println!("50: {name}: {} MiB more, {:.1?}", more >> 10, done.took);
    assert!(more < MAX_KIB, "{name} took {} MiB more", more >> 10);
    assert!(done.took < LONGEST, "{name} took {:?}", done.took);
    assert!(!done.stderr.contains("panicked"), "{name}: {}", done.stderr);
    done
}

/// Small values, as many as fit into so many bytes.
fn small(value: &str, bytes: usize) -> String {
    let many = format!("{value},").repeat(bytes / (value.len() + 1));
    format!("[{many}{value}]")
}

#[test]
fn small_values_in_a_file_are_refused_with_the_line_and_the_limit() {
    let words = "line 1: too large: it would take more than 96 MiB of memory";
    let lines = "{\"role\":\"user\",\"content\":\"a\"}\n".repeat((20 << 20) / 30);
    let content = |value: &str| {
        format!(
            "{{\"role\":\"user\",\"content\":{}}}\n",
            small(value, 21 << 20)
        )
    };
    let custom = |value: &str| {
        let values = small(value, 21 << 20);
        format!("{{\"id\":\"a\",\"type\":\"custom\",\"payload\":{{\"x\":{values}}}}}\n")
    };
    for (name, input) in [
        ("objects", small("{}", 21 << 20)),
        ("arrays in a message", content("[0]")),
        ("keys in an entry", custom("{\"\":0}")),
        ("numbers in an entry", custom("0")),
        ("lines", lines),
    ] {
        let project = Project::new();
        for args in [
            &["build"][..],
            &["sessions", "import", "s"],
            &["sessions", "append", "t"],
        ] {
            // Line by line, there is no end to what may be appended.
            if args[1..].contains(&"append") && name == "lines" {
                continue;
            }
            let run = project.ctx(args).input(input.clone());
            let done = bounded(&format!("{name}, {}", args.join(" ")), run);
            assert_eq!(done.code, Some(3), "{name}: {}", done.stderr);
            assert!(done.stderr.contains(words), "{name}: {}", done.stderr);
        }
    }
}

/// What is just allowed is held within the limit too, wherever it goes.
#[test]
fn what_is_just_allowed_stays_below_the_limit() {
    let project = Project::new();
    let text = "a ".repeat(23 << 20);
    let text = format!("{{\"role\":\"user\",\"content\":\"{text}\"}}\n");
    let args = ["build", "--budget", "100m", "--json"];
    let built = bounded("text", project.ctx(&args).input(text.clone()));
    assert_eq!(built.code, Some(0), "{}", built.stderr);
    let append = project.ctx(&["sessions", "append", "s"]).input(text);
    assert_eq!(bounded("append text", append).code, Some(0));
    let lines = "{\"role\":\"user\",\"content\":\"a\"}\n".repeat(100_000);
    let many = bounded("many lines", project.ctx(&["build"]).input(lines));
    assert_eq!(many.code, Some(0), "{}", many.stderr);
    let export = ["sessions", "export", "s", "--format", "html"];
    bounded("export text", project.ctx(&export));
}

/// The same in a log that came with a folder.
#[test]
fn small_values_in_a_log_are_bounded_too() {
    let project = Project::new();
    project.say("s", &["one", "two"]);
    let values = small("[0]", 4 << 20);
    let line = format!("{{\"id\":\"x\",\"type\":\"custom\",\"payload\":{{\"x\":{values}}}}}\n");
    let mut log = std::fs::read_to_string(project.log("s")).unwrap();
    log.push_str(&line);
    std::fs::write(project.log("s"), log).unwrap();
    for args in [
        &["sessions", "show", "s"][..],
        &["sessions", "export", "s"],
        &["replay", "s"],
        &["doctor"],
    ] {
        bounded(&args.join(" "), project.ctx(args));
    }
}

/// The doctor's search for sound records in a damaged line was quadratic.
#[test]
fn the_doctor_takes_time_for_the_length_of_a_line_alone() {
    let project = Project::new();
    project.say("s", &["one"]);
    let mut log = std::fs::read(project.log("s")).unwrap();
    log.extend(b"{\"id\":[".repeat((8 << 20) / 7));
    log.extend(b"\n");
    log.extend(b"{\"id\":\"a\"}".repeat((8 << 20) / 10));
    log.extend(b"\n");
    std::fs::write(project.log("s"), log).unwrap();
    let done = bounded("doctor", project.ctx(&["doctor"]));
    assert!(
        done.stdout.contains("line 3"),
        "{} {}",
        done.stdout,
        done.stderr
    );
    assert!(done.took < Duration::from_secs(20), "{:?}", done.took);
}

#[test]
fn small_values_from_a_model_are_refused_and_not_asked_for_again() {
    let json = || vec![("content-type", "application/json".to_owned())];
    let leaked = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let objects = small("{}", 60 << 20);
    let choices = format!("data: {{\"choices\":{}}}\n\n", small("[0]", 12 << 20));
    let text = format!(
        "{{\"choices\":[{{\"message\":{{\"content\":{}}}}}]}}",
        json!("x".repeat(20 << 20))
    );
    for (name, answer, words) in [
        (
            "reply",
            Answer::Status(200, json(), objects.clone()),
            "too large",
        ),
        (
            "small reply",
            Answer::Status(200, json(), small("{}", 14 << 20)),
            "too large",
        ),
        (
            "long reply",
            Answer::Status(200, json(), text),
            "at most 16 MiB",
        ),
        ("error", Answer::Status(400, json(), objects.clone()), ""),
        ("error page", Answer::Status(401, vec![], objects), ""),
        ("event", Answer::Garbage(leaked(choices)), "too large"),
    ] {
        let scene = Scene::new([answer]);
        let done = bounded(name, scene.run("openai:m", &["go"]));
        assert!(
            done.code.is_some_and(|code| code != 0),
            "{name}: {}",
            done.stdout
        );
        assert!(done.stderr.contains(words), "{name}: {}", done.stderr);
        assert_eq!(scene.server.seen().len(), 1, "{name}");
    }
}

/// As much as a reply may hold goes through the log and the next request.
#[test]
fn a_reply_that_is_just_allowed_stays_below_the_limit() {
    let text = "x ".repeat(7 << 20);
    let body = json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]});
    let reply = Answer::Status(
        200,
        vec![("content-type", "application/json".to_owned())],
        body.to_string(),
    );
    // Its summary, by the same model, comes before what is said to the next request.
    let scene = Scene::new([reply, says("long"), says("and on"), says("and on")]);
    let done = bounded("a long reply", scene.run("openai:m", &["go"]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let again = bounded("the next request", scene.run("openai:m", &["on"]));
    assert_eq!(again.code, Some(0), "{}", again.stderr);
}

/// An MCP server whose tool `big` answers with `content`, in Python.
const STDIO: &str = r#"
import json, sys
def send(id, result):
    sys.stdout.write('{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (json.dumps(id), result))
    sys.stdout.flush()
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        send(asked["id"], json.dumps({"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}))
    elif asked.get("method") == "tools/list":
        send(asked["id"], json.dumps({"tools": [{"name": "big", "inputSchema": {"type": "object"}}]}))
    elif asked.get("method") == "tools/call":
        value, bytes = sys.argv[1], int(sys.argv[2])
        values = (value + ",") * (bytes // (len(value) + 1)) + value
        if sys.argv[3] == "text":
            send(asked["id"], '{"content":[{"type":"text","text":"%s"}]}' % values)
        else:
            send(asked["id"], '{"content":[],"structuredContent":{"x":[%s]}}' % values)
    elif "id" in asked:
        send(asked["id"], "{}")
"#;

fn asks_for_much(server: &Value) -> (Scene, Measured) {
    let scene = Scene::new([calls("c", "s__big", json!({})), says("done")]);
    let config = json!({"mcpServers": {"s": server}});
    scene.project.write("contexture.json", config.to_string());
    let run = scene
        .run("openai:m", &["go", "--json", "--allow", "s:*"])
        .env("CONTEXTURE_TRUST", "1");
    let done = bounded(
        &server.to_string().chars().take(60).collect::<String>(),
        run,
    );
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    (scene, done)
}

#[test]
fn small_values_over_mcp() {
    let most = (14 << 20).to_string();
    for (value, kind, held) in [
        ("{}", "values", false),
        ("[0]", "values", false),
        ("x", "text", true),
    ] {
        let args = json!(["-c", STDIO, value, most, kind]);
        let (scene, _) = asks_for_much(&json!({"command": "python3", "args": args}));
        // What the model was sent may have left it out again.
        let log = std::fs::read_to_string(scene.project.log("s")).unwrap();
        let words = match held {
            true => "bytes left out",
            false => "would take more than 48 MiB of memory",
        };
        assert!(log.contains(words), "{value}");
    }
}

/// Answers one request after another as an MCP server over HTTP; the call with 400 MB, for as long as they are read.
fn http_server(events: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || http_answers(stream, events));
        }
    });
    url
}

fn http_answers(mut stream: TcpStream, events: bool) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let (mut line, mut length, mut post) = (String::new(), 0, None);
        while reader.read_line(&mut line)? > 2 {
            post.get_or_insert(line.starts_with("POST"));
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let asked: Value = match post {
            Some(true) => serde_json::from_slice(&body)?,
            Some(false) => {
                stream.write_all(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n")?;
                continue;
            }
            None => return Ok(()),
        };
        let result = match asked["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": asked["params"]["protocolVersion"],
                "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"},
            }),
            Some("tools/list") => {
                json!({"tools": [{"name": "big", "inputSchema": {"type": "object"}}]})
            }
            Some("tools/call") => {
                let kind = if events {
                    "text/event-stream"
                } else {
                    "application/json"
                };
                let before = if events { "data: " } else { "" };
                write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{before}{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"",
                    400 << 20,
                    asked["id"],
                )?;
                let block = vec![b'x'; 1 << 20];
                for _ in 0..400 {
                    stream.write_all(&block)?;
                }
                return Ok(());
            }
            _ => {
                stream.write_all(b"HTTP/1.1 202 Fine\r\ncontent-length: 0\r\n\r\n")?;
                continue;
            }
        };
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
        write!(stream, "{head} {}\r\n\r\n{answer}", answer.len())?;
    }
}

#[test]
fn a_result_of_400_mb_over_http_is_answered_with_an_error() {
    for events in [false, true] {
        let (scene, done) = asks_for_much(&json!({"url": http_server(events)}));
        let sent = scene.sent(1);
        assert!(sent.contains("too large: 15 MiB of JSON"), "{sent}");
        assert!(done.took < Duration::from_secs(30), "{:?}", done.took);
    }
}

/// A database that answers the first statement with one row that does not end.
fn hostile_database() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!(
        "postgres://u@{}/d?sslmode=disable",
        listener.local_addr().unwrap()
    );
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || -> std::io::Result<()> {
                let mut length = [0; 4];
                stream.read_exact(&mut length)?;
                let rest = u32::from_be_bytes(length) as usize - 4;
                stream.read_exact(&mut vec![0; rest])?;
                // It is let in, and the server is ready.
                stream.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I")?;
                stream.read_exact(&mut [0])?;
                stream.write_all(b"D\x7f\xff\xff\xff")?;
                let block = vec![0; 1 << 20];
                loop {
                    stream.write_all(&block)?;
                }
            });
        }
    });
    url
}

#[test]
fn a_row_without_an_end_is_given_up() {
    let project = Project::new();
    let list = project
        .ctx(&["sessions", "list"])
        .env("CONTEXTURE_STORE_URL", &hostile_database());
    let done = bounded("a database", list);
    assert_ne!(done.code, Some(0), "{}", done.stdout);
    let words = "an answer has more than 96 MiB";
    assert!(done.stderr.contains(words), "{}", done.stderr);
}

/// What an agent said is kept within bounds while it runs, and not at all when it has stopped.
#[test]
fn what_an_agent_said_is_not_kept() {
    let daemon = Daemon::start();
    daemon.agent("bot", "service");
    let before = peak_kib(daemon.pid()).unwrap();
    assert_eq!(daemon.prompt("bot", "flood 60 4000"), "done");
    let more = peak_kib(daemon.pid()).unwrap() - before;
    println!("50: 60 updates of 4 MB: {} MiB more", more >> 10);
    assert!(more < MAX_KIB, "{} MiB more", more >> 10);
    daemon.ctx(&["agent", "stop", "bot"]).success();
    let kept = status_kib(daemon.pid(), "VmRSS:")
        .unwrap()
        .saturating_sub(before);
    println!("50: {} MiB kept", kept >> 10);
    // Much of it is what the allocator has not given back.
    assert!(kept < MAX_KIB / 2, "{} MiB kept", kept >> 10);
    // All of it is in the session's log.
    let session = daemon.show("bot")["sessionId"].as_str().unwrap().to_owned();
    let log = std::fs::metadata(daemon.project.log(&session)).unwrap();
    assert!(log.len() > 230 << 20, "{}", log.len());
}

/// JSON from outside is read through `contexture::json`, and nowhere else.
#[test]
fn json_is_read_through_one_door() {
    /// What reads only what it wrote itself, or what allocates nothing.
    const OTHERS: [(&str, usize); 8] = [
        ("contexture/src/json.rs", 2),
        ("contexture/src/message/openai.rs", 1),
        ("contexture/src/export/wire.rs", 2),
        ("contexture/src/build/input.rs", 1),
        ("contexture-model/src/local/ask.rs", 1),
        ("contexture-store/src/doctor.rs", 1),
        ("contexture-store/src/files/lines.rs", 2),
        ("contexture-tools/src/mcp/result.rs", 1),
    ];
    let mut found = Vec::new();
    sources(&Path::new(ROOT).join("crates"), &mut found);
    let reads = [
        "serde_json::from_str",
        "serde_json::from_slice",
        "serde_json::from_reader",
        "serde_json::Deserializer",
    ];
    let mut wrong = Vec::new();
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        let ours = text.split("#[cfg(test)]").next().unwrap();
        let many = reads
            .iter()
            .map(|read| ours.matches(read).count())
            .sum::<usize>();
        let path = path.to_string_lossy();
        let allowed = OTHERS.iter().find(|(other, _)| path.ends_with(other));
        if many > allowed.map_or(0, |(_, many)| *many) {
            wrong.push(path.into_owned());
        }
    }
    assert!(
        wrong.is_empty(),
        "use `contexture::json::read` in {wrong:?}"
    );
}

fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let aside = ["tests", "tests.rs", "examples", "target"];
        if aside.iter().any(|other| name == *other) {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}
