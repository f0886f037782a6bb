//! `ctx schema`: strict schemas, held against what commands really print and read.

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::common::{Project, SESSION, ctx, message};

fn schema(name: &str) -> Value {
    ctx(&["schema", name]).json()
}

fn validator(name: &str) -> Validator {
    jsonschema::validator_for(&schema(name)).unwrap()
}

#[track_caller]
fn describes(validator: &Validator, value: &Value, what: &str) {
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect();
    assert!(
        errors.is_empty(),
        "{what}: describe it in crates/contexture-cli/src/schema: {errors:?}"
    );
}

#[test]
fn each_is_sound_and_strict() {
    let names = ctx(&["schema", "--json"]).json();
    let names: Vec<&str> = names
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "build", "update", "replay", "diff", "inspect", "compose", "inject", "pool", "config"
        ]
    );
    for name in names {
        let schema = schema(name);
        assert!(jsonschema::meta::is_valid(&schema), "{name}");
        validator(name);
        says_whether_it_is_open(&schema, name);
    }
    assert_eq!(
        ctx(&["schema", "config"]).success(),
        ctx(&["config", "schema"]).success()
    );
    ctx(&["schema", "nothing"]).failure(2, "possible values: build");
}

/// An object is strict, or says that it takes anything.
fn says_whether_it_is_open(schema: &Value, place: &str) {
    if schema["type"] == "object" && schema.get("properties").is_some() {
        let open = &schema["additionalProperties"];
        assert!(
            !open.is_null(),
            "{place} does not say whether it takes more"
        );
    }
    let inner = schema.as_object().into_iter().flatten();
    inner.for_each(|(name, inner)| says_whether_it_is_open(inner, &format!("{place}/{name}")));
}

#[test]
fn what_is_printed_is_described() {
    let project = Project::with_session("main");
    let build = validator("build");
    let tools = json!([{ "type": "function", "function": { "name": "read", "description": "a\u{202e}b", "parameters": {} } }]);
    let entries: Vec<Value> = std::fs::read_to_string(SESSION)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let input = json!({
        "sessionEntries": entries, "toolSpecs": tools, "systemPrompt": "Be brief.",
        "inputMessages": [message("user", "and now?")], "runtimeInitData": { "os": "linux" },
        "runtimeHints": { "time": "noon" }, "now": "2026-11-19T10:00:00Z",
    });
    project.write("input.json", input.to_string());
    let mut seen = (false, false, false);
    for options in [
        &[][..],
        &["--budget", "4k"],
        &["--budget", "2k"],
        &["--budget", "2k", "--compactor", "none"],
    ] {
        let built = project
            .ctx(&[&["build", "input.json", "--json"], options].concat())
            .json();
        describes(&build, &built, &format!("build {options:?}"));
        seen.0 |= built.get("compactionSummaryEntry").is_some();
        seen.1 |= built.get("dropEntry").is_some();
        seen.2 |= built["receipt"]["excluded"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        let updated = project
            .ctx(&[&["update", "input.json", "--json"], options].concat())
            .json();
        describes(
            &validator("update"),
            &updated,
            &format!("update {options:?}"),
        );
    }
    assert_eq!(
        seen,
        (true, true, true),
        "a summary, a drop, and something excluded"
    );
    let inspected = project
        .ctx(&["inspect", "main", "--at", "12", "--json"])
        .json();
    describes(&validator("inspect"), &inspected, "inspect");
    let replay = validator("replay");
    for args in [
        &["replay", "main", "--json"][..],
        &["replay", "main", "--verify", "--json"],
    ] {
        let lines = project.ctx(args).lines();
        assert!(lines.len() > 10);
        lines
            .iter()
            .for_each(|line| describes(&replay, line, "replay"));
    }
    // One that was recorded otherwise.
    let log = std::fs::read_to_string(project.log("main")).unwrap();
    let at = log.rfind("\"digest\":\"sha256:").unwrap() + "\"digest\":\"sha256:".len();
    let (head, tail) = (&log[..at], &log[at + 64..]);
    std::fs::write(
        project.log("main"),
        format!("{head}{}{tail}", "0".repeat(64)),
    )
    .unwrap();
    let (stdout, _) = project
        .ctx(&["replay", "main", "--verify", "--json"])
        .ends(1);
    let last: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert!(last["recordedDigest"].is_string(), "{last}");
    describes(&replay, &last, "replay of another digest");
}

#[test]
fn every_difference_is_described() {
    let project = Project::with_session("main");
    let diff = validator("diff");
    let mut broken = 0;
    for n in 0..15 {
        let (a, b) = (n.to_string(), (n + 1).to_string());
        let difference = project.ctx(&["diff", "main", &a, &b, "--json"]).json();
        describes(&diff, &difference, &format!("diff {a} {b}"));
        broken += usize::from(difference["prefix"].get("brokenBy").is_some());
    }
    assert!(broken > 0, "one of them breaks the prefix");
}

/// The test above can fail: a field that nobody described is refused, and so is one that is missing.
#[test]
fn what_nobody_described_is_refused() {
    let project = Project::with_session("main");
    let validator = validator("inspect");
    let whole = project.ctx(&["inspect", "main", "--json"]).json();
    for place in [
        "",
        "/receipt",
        "/receipt/budget",
        "/receipt/items/0",
        "/stats",
    ] {
        let mut more = whole.clone();
        more.pointer_mut(place).unwrap()["novel"] = json!(1);
        assert!(!validator.is_valid(&more), "{place}");
        let mut less = whole.clone();
        let object = less.pointer_mut(place).unwrap().as_object_mut().unwrap();
        let first = object.keys().next().unwrap().clone();
        object.shift_remove(&first);
        assert!(!validator.is_valid(&less), "{place} without {first}");
    }
}

/// A document with every field that a schema describes; the command takes it.
fn full(name: &str) -> Value {
    match name {
        "compose" => json!({
            "mode": "run",
            "messages": [
                {
                    "role": "assistant", "content": null, "name": "a", "id": "m1", "includeInContext": true, "pin": true,
                    "tool_calls": [{ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } }],
                },
                { "role": "tool", "content": "done", "tool_call_id": "c" },
                { "role": "user", "content": [{ "type": "text", "text": "hello" }] },
            ],
            "agent": {
                "id": "a", "name": "Ada", "role": "Reviewer", "identity": "Careful.", "communicationStyle": "Brief.",
                "principles": ["Read first."], "systemPrompt": "You are Ada.",
            },
            "toolPolicy": {
                "allowedCategories": ["fs"], "deniedCategories": ["net"], "allowedTools": ["read"], "deniedTools": ["rm"],
                "customRules": ["Ask first."],
            },
            "runContext": {
                "packageName": "p", "workflowName": "w",
                "currentStep": { "id": "s", "name": "Step", "instruction": "Do it." },
                "state": { "variables": { "a": 1 }, "stepsCompleted": ["r"], "artifacts": ["x"] },
                "graph": { "outgoingEdges": [{ "label": "ok", "targetNodeId": "t", "isDefault": true }] },
            },
            "settings": { "includeSystemPrompt": true, "maxMessages": 5 },
        }),
        "inject" => json!({
            "name": "ada", "archetype": "service", "backendType": "native", "workspacePolicy": "persistent",
            "launchMode": "managed", "anything": "else",
        }),
        _ => json!([
            {
                "id": "writer", "name": "Writer", "type": "executor", "capabilities": ["file_ops", { "type": "review", "level": 7 }],
                "tools": ["read_file", "write_file", "review"], "deniedTools": ["rm"], "worker": false,
            },
            { "id": "db", "type": "database", "capabilities": [{ "type": "sql" }] },
        ]),
    }
}

#[test]
fn what_is_described_is_read() {
    let project = Project::new();
    for (name, args) in [
        ("compose", &["compose", "full.json"][..]),
        ("inject", &["inject", "--meta", "full.json"]),
        ("pool", &["pool", "add", "--file", "full.json"]),
    ] {
        let (schema, document) = (schema(name), full(name));
        describes(&validator(name), &document, name);
        project.write("full.json", document.to_string());
        project.ctx(args).success();
        // Nothing that the schema describes is missing in the document.
        let mut keys = Vec::new();
        properties(&schema, &mut keys);
        let text = document.to_string();
        // Content that a composed message may have, and other spellings.
        let others = [
            "toolCalls",
            "toolCallId",
            "image_url",
            "file",
            "thinking",
            "signature",
            "custom",
            "input",
        ];
        for key in keys.iter().filter(|key| !others.contains(&key.as_str())) {
            assert!(
                text.contains(&format!("\"{key}\":")),
                "{name}: `{key}` is not tried"
            );
        }
    }
}

/// The names of all properties.
fn properties(schema: &Value, keys: &mut Vec<String>) {
    for (name, inner) in schema.as_object().into_iter().flatten() {
        if name == "properties" {
            keys.extend(inner.as_object().unwrap().keys().cloned());
        }
        properties(inner, keys);
    }
    for inner in schema.as_array().into_iter().flatten() {
        properties(inner, keys);
    }
}

#[test]
fn what_the_schema_refuses_the_command_refuses() {
    let project = Project::new();
    for (name, args, wrong) in [
        (
            "compose",
            &["compose", "-"][..],
            json!({ "mode": "chat", "messages": [], "novel": 1 }),
        ),
        (
            "compose",
            &["compose", "-"],
            json!({ "mode": "sing", "messages": [] }),
        ),
        ("compose", &["compose", "-"], json!({ "messages": [] })),
        (
            "compose",
            &["compose", "-"],
            json!({ "mode": "chat", "messages": [], "toolPolicy": { "allowedTools": "x" } }),
        ),
        (
            "inject",
            &["inject", "--meta", "-"],
            json!({ "name": "a", "archetype": "boss", "backendType": "native" }),
        ),
        (
            "inject",
            &["inject", "--meta", "-"],
            json!({ "archetype": "repo", "backendType": "native" }),
        ),
        (
            "pool",
            &["pool", "add", "--file", "-"],
            json!({ "id": "a", "capabilities": [{ "type": "x", "level": 11 }] }),
        ),
        (
            "pool",
            &["pool", "add", "--file", "-"],
            json!([{ "name": "no id" }]),
        ),
        (
            "pool",
            &["pool", "add", "--file", "-"],
            json!({ "id": "a", "novel": true }),
        ),
    ] {
        assert!(!validator(name).is_valid(&wrong), "{name}: {wrong}");
        let (code, said) = {
            let output = project.ctx(args).input(wrong.to_string()).run();
            (
                output.status.code(),
                String::from_utf8_lossy(&output.stderr).into_owned(),
            )
        };
        assert_eq!(code, Some(3), "{name}: {wrong}: {said}");
    }
}
