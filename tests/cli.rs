//! The built `ctx`, as a script sees it: output, exit code, and what it says when it refuses.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::common::ctx;
use crate::terminal::script_missing;
use serde_json::{Value, json};
use sha2::Digest;

const SESSION: &str = "examples/session.jsonl";

#[test]
fn the_view_shows_the_budget_and_every_item() {
    let view = ctx(&["build", SESSION, "--budget", "4k"]).success();
    let lines: Vec<&str> = view.lines().collect();
    assert!(lines[0].contains("o200k_base · exact"));
    assert!(
        lines[2].trim().chars().all(|c| "TSsnuarfo·".contains(c)),
        "{}",
        lines[2]
    );
    assert!(view.contains("of 4,000 tokens"));
    for rule in ["pinned", "summary", "masked", "left out", "summarised"] {
        assert!(view.contains(rule), "`{rule}` is not in\n{view}");
    }
    assert!(
        !view.contains('\x1b'),
        "no colours where there is no terminal"
    );
    assert!(
        lines.iter().all(|line| line.chars().count() <= 100),
        "{view}"
    );
}

#[test]
fn the_digest_is_of_the_exact_bytes() {
    for format in ["openai", "anthropic", "responses"] {
        let args = [
            "build", SESSION, "--budget", "4k", "--model", "gpt-4o", "--format", format,
        ];
        let output = ctx(&args).run();
        let hex: String = sha2::Sha256::digest(&output.stdout)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        let body: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(body["model"], "gpt-4o");
        if format == "openai" {
            let result = ctx(&[
                "build", SESSION, "--budget", "4k", "--model", "gpt-4o", "--json",
            ])
            .json();
            assert_eq!(result["receipt"]["digest"], format!("sha256:{hex}"));
            assert_eq!(result["modelMessages"], body["messages"]);
            assert_eq!(result["modelToolSpecs"], body["tools"]);
        }
    }
}

#[test]
fn the_result_has_the_contracts_shape() {
    let result = ctx(&["build", SESSION, "--budget", "4k", "--json"]).json();
    assert_eq!(result["compacted"], true);
    assert_eq!(
        result["compactionSummaryEntry"]["type"],
        "compaction_summary"
    );
    let stats = &result["stats"];
    assert_eq!(
        stats["messageCount"],
        result["modelMessages"].as_array().unwrap().len()
    );
    let receipt = &result["receipt"];
    assert_eq!(receipt["budget"]["used"], stats["inputTokens"]);
    assert_eq!(
        receipt["tokenizer"],
        json!({ "name": "o200k_base", "exact": true })
    );
    let sum = |key: &str| -> u64 {
        let rows = receipt[key].as_array().unwrap();
        rows.iter().map(|row| row["tokens"].as_u64().unwrap()).sum()
    };
    assert_eq!(
        sum("items") + sum("tools") + 3,
        stats["inputTokens"].as_u64().unwrap()
    );
    for item in receipt["items"].as_array().unwrap() {
        for key in ["index", "origin", "rule", "tokens", "bytes", "stability"] {
            assert!(!item[key].is_null(), "{item} has no {key}");
        }
    }
    // What is left out and what is in name each of the 38 messages once.
    let origins = |key: &str| -> Vec<String> {
        let rows = receipt[key].as_array().unwrap().iter();
        rows.map(|row| row["origin"].as_str().unwrap().to_owned())
            .collect()
    };
    let mut named = [origins("items"), origins("excluded")].concat();
    named.retain(|origin| origin.starts_with("entry:e"));
    named.sort();
    let before = named.len();
    named.dedup();
    assert_eq!(before, named.len(), "something is accounted for twice");
}

#[test]
fn what_a_build_decides_is_in_the_entries_to_append() {
    let first = ctx(&["build", SESSION, "--budget", "4k", "--json"]).json();
    let mut log = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/session.jsonl"
    ))
    .unwrap();
    for entry in first["entriesToAppend"].as_array().unwrap() {
        log.push_str(&format!("{entry}\n"));
    }
    let again = ctx(&["build", "--budget", "4k", "--json"])
        .input(log)
        .json();
    assert_eq!(again["receipt"]["digest"], first["receipt"]["digest"]);
    assert_eq!(again["entriesToAppend"], json!([]));
    assert_eq!(again["compacted"], false);
}

#[test]
fn every_shape_of_input_gives_the_same_request() {
    let messages = json!([
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "Hello 世界" },
    ]);
    let lines: String = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|m| format!("{m}\n"))
        .collect();
    let bodies: Vec<String> = [
        messages.to_string(),
        lines,
        json!({ "messages": messages, "session_id": "x" }).to_string(),
        format!(
            "{{\"messages\": [\n  {},\n  {}\n]}}\n",
            messages[0], messages[1]
        ),
        format!("{:#}", json!({ "sessionEntries": messages })),
        json!({ "systemPrompt": "Be brief.", "inputMessages": [messages[1]] }).to_string(),
    ]
    .into_iter()
    .map(|input| {
        ctx(&["build", "-", "--format", "openai"])
            .input(input)
            .success()
    })
    .collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:#?}");
    assert_eq!(
        serde_json::from_str::<Value>(&bodies[0]).unwrap(),
        json!({ "messages": messages })
    );
}

#[test]
fn parameters_of_a_request_pass_through() {
    let body = json!({ "model": "gpt-4o", "temperature": 0.2, "session_id": "x",
                       "messages": [{ "role": "user", "content": "hi" }] });
    let out = ctx(&["build", "--format", "openai"])
        .input(body.to_string())
        .json();
    assert_eq!(
        out,
        json!({ "model": "gpt-4o", "temperature": 0.2, "messages": body["messages"] })
    );
}

#[test]
fn what_cannot_fit_is_refused_with_the_sizes() {
    let input = json!([
        { "role": "system", "content": "rule ".repeat(3_000) },
        { "role": "user", "content": "hi" },
    ])
    .to_string();
    let stderr = ctx(&["build", "--budget", "2k", "--json"])
        .input(input.clone())
        .failure(4, "system side 30");
    let last: Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "ContextOverflow");
    assert!(last["error"]["hint"].as_str().unwrap().contains("--budget"));
    ctx(&["build", "--max-bytes", "1k"])
        .input(input)
        .failure(4, "bytes");
    let called = json!([
        { "role": "user", "content": "hi" },
        { "role": "assistant", "tool_calls": [
            { "id": "1", "type": "function", "function": { "name": "ls", "arguments": "{}" } },
        ] },
        { "role": "tool", "tool_call_id": "1", "content": "a" },
    ]);
    ctx(&["build", "--max-messages", "1"])
        .input(called.to_string())
        .failure(4, "messages");
}

#[test]
fn bad_input_is_refused_with_its_place() {
    let message = |content: &str| format!("{{\"role\":\"user\",\"content\":{content}}}");
    let lines = |third: &str| format!("{}\n{}\n{third}\n", message("\"a\""), message("\"b\""));
    let deep = format!("[{}]", "[".repeat(100_000));
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"{".to_vec(), "line 1, column 1"),
        (b"[{\"role\":\"user\",\n\"content\":\"a\"},]".to_vec(), "line 2, column 16"),
        (lines("{\"role\":\"user\",").into(), "line 3"),
        (lines("{\"role\":\"narrator\",\"content\":\"x\"}").into(), "line 3, role: unknown role `narrator`"),
        (b"[{\"role\":\"wizard\"}]".to_vec(), "[0].role"),
        (b"[{\"content\":\"x\"}]".to_vec(), "[0]"),
        (b"[{\"role\":\"user\",\"content\":7}]".to_vec(), "[0].content: must be a string"),
        (b"[{\"role\":\"user\",\"role\":\"system\"}]".to_vec(), "`role` stands twice"),
        (b"[{\"role\":\"user\",\"content\":\"a\",\"x\":1e400}]".to_vec(), "out of range"),
        (b"[{\"role\":\"user\",\"content\":\"\\ud800\"}]".to_vec(), "hex escape"),
        (b"[{\"role\":\"user\",\"content\":\"\xff\"}]".to_vec(), "column"),
        (b"7".to_vec(), "must be an object or an array"),
        (b"".to_vec(), "line 1"),
        (deep.into(), "recursion limit"),
        (b"{\"sesionEntries\":[]}".to_vec(), "did you mean `sessionEntries`?"),
        (b"{\"config\":{\"maxInputTokens\":0}}".to_vec(), "a budget of 0 tokens"),
        (b"{\"config\":{\"maxInputToken\":9}}".to_vec(), "did you mean `maxInputTokens`?"),
        (lines("{\"id\":\"x\",\"type\":\"diary\",\"payload\":{}}").into(), "unknown entry type `diary`"),
        (lines("{\"id\":\"x\",\"type\":\"session_header\",\"payload\":{\"version\":99}}").into(), "newer `ctx`"),
        (lines("{\"messages\":[]}").into(), "--line N"),
        (
            b"[{\"role\":\"user\",\"content\":\"a\",\"id\":\"1\"},{\"role\":\"user\",\"content\":\"b\",\"id\":\"1\"}]".to_vec(),
            "the id was used before",
        ),
    ];
    for (input, needle) in cases {
        ctx(&["build"]).input(input).failure(3, needle);
    }
}

#[test]
fn a_line_of_200_megabytes_is_refused_early() {
    let mut line = b"[{\"role\":\"user\",\"content\":\"".to_vec();
    line.resize(200 << 20, b'a');
    ctx(&["build"])
        .input(line)
        .failure(3, "line 1: the input is longer than 48 MiB");
}

#[test]
fn wrong_usage_has_its_own_code() {
    ctx(&["build", "--budget", "0"]).failure(2, "must be a whole number from 1");
    ctx(&["build", "--budget", "lots"]).failure(2, "write 32000, 32k or 1m");
    ctx(&["build", "--format", "yaml"]).failure(2, "yaml");
    ctx(&["biuld"]).failure(2, "build");
    let stderr =
        ctx(&["build", "--json", "--budget", "0"]).failure(2, "must be a whole number from 1");
    let last: Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "Usage");
    ctx(&["build", "no/such/file.json"]).failure(1, "no/such/file.json");
    ctx(&["build", "examples"]).failure(1, "folder");
    ctx(&["build", SESSION, "--line", "999"]).failure(2, "has no line 999");
}

#[test]
fn arguments_that_are_no_json_are_repaired_and_said() {
    let input = json!([
        { "role": "user", "content": "go" },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "c", "type": "function", "function": { "name": "f", "arguments": "{not json" } } ] },
        { "role": "tool", "tool_call_id": "c", "content": "done" },
    ]);
    let result = ctx(&["build", "--json"]).input(input.to_string()).json();
    let arguments = &result["modelMessages"][1]["tool_calls"][0]["function"]["arguments"];
    assert_eq!(arguments, r#"{"_invalid":"{not json"}"#);
    assert_eq!(result["receipt"]["items"][1]["rule"], "repaired");
}

#[test]
fn tokens_are_counted_by_the_contracts_formula() {
    let input = r#"[{"role":"user","content":"hello world"}]"#;
    assert_eq!(ctx(&["tokens"]).input(input).success(), "10\n");
    let counted = ctx(&["tokens", "--json", "--model", "gpt-4"])
        .input(input)
        .json();
    assert_eq!(counted["tokens"], 10);
    assert_eq!(counted["tokenizer"]["name"], "cl100k_base");
    assert_eq!(
        counted["messages"][0],
        json!({ "index": 0, "role": "user", "tokens": 7 })
    );
    assert_eq!(
        ctx(&["tokens", "--text"]).input("hello world").success(),
        "2\n"
    );
    let claude = ctx(&["tokens", "--json", "--model", "claude-sonnet-4-5"])
        .input(input)
        .json();
    assert_eq!(claude["tokenizer"]["exact"], false);
}

#[test]
fn compose_follows_spec_004() {
    let options = json!({
        "mode": "run",
        "messages": [
            { "role": "system", "content": "stored" },
            { "role": "user", "content": "hi", "id": "m1", "timestamp": 5 },
            { "role": "assistant", "content": "secret", "includeInContext": false },
            { "role": "assistant", "content": null, "toolCalls": [
                { "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } } ] },
            { "role": "tool", "toolCallId": "c", "content": "done" },
        ],
        "agent": { "id": "a", "name": "Ada", "role": "analyst", "principles": "be exact" },
        "toolPolicy": { "allowedTools": ["f"], "deniedCategories": ["net"] },
        "runContext": { "packageName": "p", "workflowName": "w",
                        "currentStep": { "id": "s1", "name": "First", "instruction": "Do {{it}}." },
                        "state": { "stepsCompleted": ["s0"] },
                        "graph": { "outgoingEdges": [{ "label": "next", "targetNodeId": "s2", "isDefault": true }] } },
    })
    .to_string();
    let composed = ctx(&["compose", "--json"]).input(options.clone()).json();
    let prompt = composed["messages"][0]["content"].as_str().unwrap();
    assert_eq!(
        composed["metadata"],
        json!({ "inputCount": 5, "outputCount": 4, "filteredCount": 1, "emptyCount": 0, "droppedCount": 0,
                "systemPromptIncluded": true,
                "systemPromptLength": prompt.encode_utf16().count() })
    );
    assert_eq!(
        composed["messages"].as_array().unwrap()[1..],
        [
            json!({ "role": "user", "content": "hi" }),
            json!({ "role": "assistant", "content": null, "tool_calls": [
                { "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } } ] }),
            json!({ "role": "tool", "content": "done", "tool_call_id": "c" }),
        ]
    );
    assert_eq!(
        ctx(&["compose"]).input(options).success(),
        format!("{prompt}\n")
    );
    let parts: Vec<&str> = prompt.split("\n\n---\n\n").collect();
    assert_eq!(parts[0], "# Mode: RUN");
    assert_eq!(
        parts[2],
        "## Tool Policy\nDenied categories: net\nAllowed tools: f"
    );
    assert_eq!(
        parts[3],
        "## Agent Persona\n**Name:** Ada\n**Role:** analyst\n\n**Principles:**\n- be exact"
    );
    assert_eq!(
        parts[4],
        "## Run Directive\n**Package:** p\n**Workflow:** w\n**Current Step:** First (s1)\n\n### Step Instruction\n\
         Do {{it}}.\n\n**Completed Steps:** s0\n\n### Available Transitions\n- **next** → s2 (default)"
    );
    ctx(&["compose"])
        .input("{\"mode\":\"dream\",\"messages\":[]}")
        .failure(3, "mode");
    // Every message that went in and did not come out is counted.
    let sparse = json!({
        "mode": "chat", "settings": { "includeSystemPrompt": false, "maxMessages": 2 },
        "messages": [
            { "role": "user", "content": "one" },
            { "role": "user", "content": "" },
            { "role": "assistant", "content": "   " },
            { "role": "tool", "tool_call_id": "nobody", "content": "x" },
            { "role": "assistant", "content": "hidden", "includeInContext": false },
            { "role": "assistant", "content": "two" },
            { "role": "user", "content": "three" },
        ],
    });
    let metadata = ctx(&["compose", "--json"]).input(sparse.to_string()).json()["metadata"].clone();
    assert_eq!(
        metadata,
        json!({ "inputCount": 7, "outputCount": 2, "filteredCount": 1, "emptyCount": 2, "droppedCount": 2,
                "systemPromptIncluded": false, "systemPromptLength": 0 })
    );
}

#[test]
fn update_compacts_when_told_that_it_was_too_long() {
    let log = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/session.jsonl"
    ))
    .unwrap();
    let entries: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let request = json!({ "sessionEntries": entries, "overflowHint": true });
    let result = ctx(&["update", "--json"]).input(request.to_string()).json();
    assert_eq!(result["compacted"], true);
    assert!(result["stats"]["inputTokens"].as_u64().unwrap() < 5_133 * 40 / 100);
    let request = json!({ "sessionEntries": entries, "newMessages": [{ "role": "user", "content": "more" }] });
    let result = ctx(&["update", "--json"]).input(request.to_string()).json();
    assert_eq!(result["compacted"], false);
    assert_eq!(
        result["entriesToAppend"][0]["payload"]["message"]["content"],
        "more"
    );
    assert_eq!(
        result["updatedMessages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()["content"],
        "more"
    );
}

#[test]
fn replay_makes_every_request_and_verifies_what_was_recorded() {
    let args = ["replay", SESSION, "--budget", "4k"];
    let rows: Vec<Value> = ctx(&[&args[..], &["--json"]].concat())
        .success()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(rows.len() > 10);
    for key in [
        "request",
        "entryId",
        "digest",
        "inputTokens",
        "messageCount",
        "sharedPrefixTokens",
        "droppedMessagesCount",
        "compacted",
    ] {
        assert!(!rows[3][key].is_null(), "{key}");
    }
    assert!(rows.iter().any(|row| row["compacted"] == true));
    let bodies = ctx(&[&args[..], &["--format", "openai"]].concat()).success();
    for (body, row) in bodies.lines().zip(&rows) {
        let hex: String = sha2::Sha256::digest(body)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(row["digest"], format!("sha256:{hex}"));
    }
    let table = ctx(&args).success();
    assert!(
        table.contains("requests ·") && table.contains("% cached"),
        "{table}"
    );

    // A log with a recorded request: the true digest passes, another is named.
    let log = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/session.jsonl"
    ))
    .unwrap();
    let built = ctx(&["build", SESSION, "--json"]).json();
    let digest = built["receipt"]["digest"].as_str().unwrap();
    let record = |digest: &str| {
        format!(
            "{log}{}\n",
            json!({ "id": "r1", "type": "request", "payload": { "digest": digest } })
        )
    };
    ctx(&["replay", "-", "--verify"])
        .input(record(digest))
        .success();
    let output = ctx(&["replay", "-", "--verify"])
        .input(record("sha256:00"))
        .run();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains(") differs: recorded sha256:00"));
}

#[test]
fn the_projects_configuration_is_found_upwards() {
    let project = tempfile::tempdir().unwrap();
    let deep = project.path().join("a/b");
    std::fs::create_dir_all(&deep).unwrap();
    let file = project.path().join("contexture.json");
    std::fs::write(&file, r#"{"context":{"maxInputTokens":5000,"chatHistory":{"inMemoryMaxMessages":10}},"mcpServers":{}}"#).unwrap();
    let input = r#"[{"role":"user","content":"hi"}]"#;
    let build = |args: &[&str]| {
        ctx(&[&["build", "--json"], args].concat())
            .input(input)
            .dir(&deep)
            .json()
    };
    assert_eq!(build(&[])["receipt"]["budget"]["maxInputTokens"], 5_000);
    assert_eq!(
        build(&["--budget", "9k"])["receipt"]["budget"]["maxInputTokens"],
        9_000
    );
    std::fs::write(&file, r#"{"context":{"maxInputTokenz":5000}}"#).unwrap();
    ctx(&["build"])
        .input(input)
        .dir(&deep)
        .failure(3, "did you mean `context.maxInputTokens`?");
    let schema = ctx(&["config", "schema"]).json();
    assert_eq!(
        schema["properties"]["context"]["properties"]["maxInputTokens"]["default"],
        128_000
    );
    assert_eq!(
        schema["properties"]["agent"]["properties"]["maxSteps"]["default"],
        30
    );
}

#[test]
fn what_is_shown_cannot_command_the_terminal() {
    let hostile = "\u{1b}]52;c;aGk=\u{7}\u{1b}[2J\u{202e}\u{200b}\u{e0041}evil";
    let input = json!([{ "role": "user", "content": hostile }]).to_string();
    let view = ctx(&["build"]).input(input.clone()).success();
    assert!(view.contains("⟨ESC⟩]52;c;aGk=⟨BEL⟩"), "{view}");
    for c in ['\u{1b}', '\u{7}', '\u{202e}', '\u{200b}', '\u{e0041}'] {
        assert!(!view.contains(c), "{c:?} reaches the terminal");
    }
    // The request itself has the words as they were said.
    let body = ctx(&["build", "--format", "openai"]).input(input).json();
    assert_eq!(body["messages"][0]["content"], hostile);
}

/// A person at a terminal who gave no input is told what is waited for.
#[test]
fn a_command_that_waits_for_input_says_so() {
    if script_missing() {
        return;
    }
    let line = format!("'{}' build --json", env!("CARGO_BIN_EXE_ctx"));
    let mut child = Command::new("script")
        .args(["-q", "-e", "-c", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut seen, mut piece) = (String::new(), [0; 4096]);
    while !seen.contains("waiting for standard input") {
        let read = screen.read(&mut piece).unwrap();
        assert!(read > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    keys.write_all(b"[{\"role\":\"user\",\"content\":\"hi\"}]\n\x04")
        .unwrap();
    screen.read_to_string(&mut seen).unwrap();
    assert!(child.wait().unwrap().success(), "{seen}");
    assert!(seen.contains("\"inputTokens\""), "{seen}");
    // A script that gives the input is told nothing.
    let (_, said) = ctx(&["build", "--json"])
        .input(r#"[{"role":"user","content":"hi"}]"#)
        .ends(0);
    assert_eq!(said, "");
}
