//! An MCP server that sends what nobody expects.

use std::io::Write;

use serde_json::{Value, json};

use super::leaks::{self, Secret};
use super::model::{Server, write_parts};
use super::text::{HOSTILE, harm, mutations, sample};
use super::watch::{on_a_terminal, script_missing, watched};
use super::{many, peer, result};
use crate::common::{Ctx, Project};
use crate::model_server::{Answer, ModelServer, Piece};

const KEY: &str = "sk-of-the-user-0123456789abcdef";
/// How many servers a command has at once.
const AT_ONCE: usize = 8;

/// A user who has these servers, and whose model calls the tool `t` of the first.
struct Scene {
    project: Project,
    plans: tempfile::TempDir,
    model: ModelServer,
}

impl Scene {
    fn new() -> Self {
        let call = Answer::Says(vec![Piece::Call("c", "p0__t", json!({}))]);
        Self {
            project: Project::new(),
            plans: tempfile::tempdir().unwrap(),
            model: ModelServer::start([call, Answer::Says(vec![Piece::Text("done")])]),
        }
    }

    /// A scene with servers that answer by these plans.
    fn with(plans: &[Value]) -> Self {
        let scene = Self::new();
        let servers = plans.iter().enumerate().map(|(n, plan)| {
            let name = format!("p{n}");
            let command = peer("mcp", scene.plans.path(), &name, plan);
            (name, json!({"command": command[0], "args": command[1..]}))
        });
        scene.configure(&Value::Object(servers.collect()));
        scene
    }

    fn configure(&self, servers: &Value) {
        let folder = self.project.path().join(".home/.config/contexture");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(
            folder.join("contexture.json"),
            json!({"mcpServers": servers}).to_string(),
        )
        .unwrap();
    }

    fn ctx(&self, args: &[&str]) -> Ctx {
        self.project.ctx(args).env("OPENAI_API_KEY", KEY)
    }

    fn run(&self) -> Ctx {
        self.ctx(&[
            "run",
            "hello",
            "--session",
            "s",
            "--allow-all",
            "--model",
            "openai:gpt-4o",
            "--base-url",
            &self.model.url,
        ])
    }
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// An answer whose result has these values before its end, so many times.
fn flooded(before: &str, value: &str, times: usize, after: &str) -> Value {
    json!([
        format!("{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{before}"),
        [value, times],
        format!("{after}}}")
    ])
}

/// 50.
#[test]
fn what_a_server_sends_is_held_in_bounded_memory() {
    let plain = Scene::with(&[json!({})]);
    let usual = watched(&plain.ctx(&["mcp", "tools"])).peak;
    let mut found = Vec::new();
    let tools = "{\"name\":\"t\",\"inputSchema\":{}},";
    for (name, plan) in [
        (
            "a list of tiny values",
            json!({"tools/list": flooded("{\"tools\":[", "{},", 5 << 20, "{}]}")}),
        ),
        (
            "a list of tools",
            json!({"tools/list": flooded("{\"tools\":[", tools, 300_000, "{\"name\":\"t\",\"inputSchema\":{}}]}")}),
        ),
        (
            "a line without an end",
            json!({"tools/list": ["{\"x\":\"", ["x", 300 << 20], "\"}"]}),
        ),
        (
            "values inside values",
            json!({"tools/list": flooded("", "{\"a\":[", 1 << 20, "")}),
        ),
        (
            "a schema of tiny values",
            json!({"tools/list": flooded("{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"enum\":[", "{},", 4 << 20, "{}]}}]}")}),
        ),
        (
            "an error of tiny values",
            json!({"tools/list": ["{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":1,\"message\":\"x\",\"data\":[", ["{},", 5 << 20], "{}]}}"]}),
        ),
        (
            "an endless list",
            json!({"tools/list": result(&json!({"tools": [tool("t", "d")], "nextCursor": "x"}))}),
        ),
    ] {
        let scene = Scene::with(&[plan]);
        let seen = watched(&scene.ctx(&["mcp", "tools"]));
        found.extend(seen.unbounded(&format!("MCP, {name}"), usual));
    }
    for (name, answer) in [
        (
            "a result of tiny values",
            flooded(
                "{\"content\":[],\"structuredContent\":{\"a\":[",
                "{},",
                5 << 20,
                "{}]}}",
            ),
        ),
        (
            "a result of texts",
            flooded(
                "{\"content\":[",
                "{\"type\":\"text\",\"text\":\"\"},",
                500_000,
                "{\"type\":\"text\",\"text\":\"\"}]}",
            ),
        ),
        (
            "a result without an end",
            flooded(
                "{\"content\":[{\"type\":\"text\",\"text\":\"",
                "x",
                300 << 20,
                "\"}]}",
            ),
        ),
    ] {
        let scene = Scene::with(&[json!({"tools/call": answer})]);
        found.extend(watched(&scene.run()).unbounded(&format!("MCP, {name}"), usual));
    }
    super::none(found);
}

#[test]
fn what_a_server_sends_over_http_is_held_in_bounded_memory() {
    let scene = Scene::new();
    let usual = watched(&scene.ctx(&["mcp", "tools"])).peak;
    let mut found = Vec::new();
    for (name, part, times) in [
        ("a long result", "x", 400 << 20),
        ("a result of tiny values", "{},", 20 << 20),
    ] {
        let tiny = part != "x";
        let server = Server::new(move |body, out| {
            let asked: Value = serde_json::from_slice(body).unwrap_or_default();
            let text = match asked["method"].as_str().unwrap_or_default() {
                "initialize" => {
                    json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "p", "version": "1"}})
                }
                "tools/list" => json!({"tools": [tool("t", "d")]}),
                "tools/call" => Value::Null,
                _ => {
                    return write!(
                        out,
                        "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                    );
                }
            };
            write!(
                out,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
            )?;
            if !text.is_null() {
                return write!(
                    out,
                    "{}",
                    json!({"jsonrpc": "2.0", "id": asked["id"], "result": text})
                );
            }
            let (before, after) = match tiny {
                true => ("\"content\":[],\"structuredContent\":{\"a\":[", "{}]}"),
                false => ("\"content\":[{\"type\":\"text\",\"text\":\"", "\"}]"),
            };
            write!(
                out,
                "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{{before}",
                asked["id"]
            )?;
            write_parts(out, &[(part.to_owned(), times)])?;
            write!(out, "{after}}}}}")
        });
        let scene = Scene::new();
        scene.configure(&json!({"p0": {"url": server.url}}));
        found.extend(watched(&scene.run()).unbounded(&format!("MCP over HTTP, {name}"), usual));
    }
    super::none(found);
}

#[test]
fn a_value_of_another_type_ends_nothing_badly() {
    let begun = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "p", "version": "1"}, "instructions": "x"});
    let listed = json!({"tools": [{"name": "t", "title": "T", "description": "d", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                                   "annotations": {"readOnlyHint": true}}], "nextCursor": null});
    let begun = mutations(&begun)
        .into_iter()
        .map(|value| json!({"initialize": result(&value)}));
    let listed = mutations(&listed)
        .into_iter()
        .map(|value| json!({"tools/list": result(&value)}));
    let plans = sample(begun.chain(listed).collect(), many(40));
    let plans: Vec<&[Value]> = plans.chunks(AT_ONCE).collect();
    let mut found = super::each(&plans, |plans| {
        let seen = watched(&Scene::with(plans).ctx(&["mcp", "tools", "--json"]));
        seen.bad_end(&format!("{plans:?}")).into_iter().collect()
    });
    let called = json!({"content": [{"type": "text", "text": "x", "annotations": {}}], "structuredContent": {"a": 1}, "isError": false});
    found.extend(super::each(
        &sample(mutations(&called), many(12)),
        |value| {
            let scene = Scene::with(&[json!({"tools/call": result(value)})]);
            watched(&scene.run())
                .bad_end(&value.to_string())
                .into_iter()
                .collect()
        },
    ));
    super::none(found);
}

// needs: script
#[test]
fn what_a_server_says_commands_no_terminal() {
    if script_missing() {
        return;
    }
    let mut found = Vec::new();
    let begun = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": HOSTILE, "version": HOSTILE}, "instructions": HOSTILE});
    let listed = json!({"tools": [tool("t", HOSTILE), tool(HOSTILE, HOSTILE)]});
    let error = json!([format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{}}}",
        json!({"code": 1, "message": HOSTILE, "data": HOSTILE})
    )]);
    for (name, plan) in [
        (
            "its tools",
            json!({"initialize": result(&begun), "tools/list": result(&listed), "tools/call": result(&json!({"content": [{"type": "text", "text": HOSTILE}]}))}),
        ),
        ("an error at the start", json!({"initialize": error})),
        ("an error", json!({"tools/list": error})),
        ("an error of a call", json!({"tools/call": error})),
        ("no message", json!({"initialize": [HOSTILE]})),
        (
            "another version",
            json!({"initialize": result(&json!({"protocolVersion": HOSTILE}))}),
        ),
    ] {
        let scene = Scene::with(&[plan]);
        for command in [&["mcp", "list"][..], &["mcp", "tools"]] {
            found.extend(harm(
                &format!("{name}: {command:?}"),
                &on_a_terminal(&scene.ctx(command)),
            ));
        }
        found.extend(harm(name, &on_a_terminal(&scene.run())));
        for command in [&["sessions", "show", "s"][..], &["inspect", "s"]] {
            found.extend(harm(
                &format!("{name}: {command:?}"),
                &on_a_terminal(&scene.ctx(command)),
            ));
        }
    }
    super::none(found);
}

/// 41 and 53.
#[test]
fn a_key_that_a_server_knows_is_in_no_file_and_no_output() {
    let secrets = [Secret {
        name: "key",
        text: KEY.to_owned(),
    }];
    let text = json!({"content": [{"type": "text", "text": format!("a {KEY} b")}]});
    let structured = json!({"content": [], "structuredContent": {KEY: {"a": [KEY]}}});
    let failed = json!({"content": [{"type": "text", "text": KEY}], "isError": true});
    let error = json!([format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{}}}",
        json!({"code": 1, "message": KEY, "data": {KEY: KEY}})
    )]);
    let begun = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": KEY, "version": KEY}, "instructions": KEY});
    let mut found = Vec::new();
    for (name, plan) in [
        ("a text", json!({"tools/call": result(&text)})),
        ("a structure", json!({"tools/call": result(&structured)})),
        ("a failure", json!({"tools/call": result(&failed)})),
        ("an error", json!({"tools/call": error})),
        ("an error at the start", json!({"initialize": error})),
        (
            "its description",
            json!({"initialize": result(&begun), "tools/list": result(&json!({"tools": [tool("t", KEY), tool(KEY, "d")]}))}),
        ),
    ] {
        let scene = Scene::with(&[plan]);
        for ctx in [
            scene.run(),
            scene.ctx(&["mcp", "tools"]),
            scene.ctx(&["mcp", "list", "--json"]),
        ] {
            let seen = watched(&ctx);
            leaks::in_text(&format!("{name}: stdout"), &seen.out, &secrets, &mut found);
            leaks::in_text(&format!("{name}: stderr"), &seen.err, &secrets, &mut found);
        }
        leaks::in_files(scene.project.path(), None, &secrets, &mut found);
    }
    super::none(found);
}
