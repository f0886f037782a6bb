//! 23: what commands a terminal is harmless on it, and as it was in the log and in JSON.

use serde_json::{Value, json};

use crate::common::{Project, message};

/// Clears the screen, writes to the clipboard, links, turns the text around, hides.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]52;c;aGk=\u{7}\u{1b}]8;;http://x\u{7}\u{9b}31m\u{8}\u{7f}\u{202e}\u{200b}\u{e0041}evil";

#[track_caller]
fn harmless(what: &str, text: &str) {
    for c in text.chars() {
        let hidden = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}');
        let control = c.is_control() && c != '\n';
        assert!(
            !hidden && !control,
            "{what}: {c:?} reaches the terminal: {text:?}"
        );
    }
}

/// Runs it and looks at both ends.
#[track_caller]
fn shown(project: &Project, args: &[&str], input: &str) -> (i32, String, String) {
    let output = project.ctx(args).input(input).run();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    harmless(&format!("{args:?}"), &stdout);
    harmless(&format!("{args:?}"), &stderr);
    (output.status.code().unwrap(), stdout, stderr)
}

/// An entry with hostile text wherever there is text.
fn entries() -> Vec<Value> {
    let entry = |id: &str, kind: &str, payload: Value| {
        json!({ "id": format!("{id}{HOSTILE}"), "type": kind, "timestamp": format!("2026-01-01T{HOSTILE}"),
                "payload": payload })
    };
    let call = json!([{ "id": "c", "type": "function", "function": { "name": HOSTILE, "arguments": HOSTILE } }]);
    vec![
        entry(
            "1",
            "sections",
            json!({ "sections": [{ "name": HOSTILE, "origin": HOSTILE, "stability": "stable", "priority": 0, "text": HOSTILE }] }),
        ),
        entry(
            "2",
            "tools",
            json!({ "add": [{ "type": "function", "function": { "name": HOSTILE, "description": HOSTILE } }] }),
        ),
        entry(
            "3",
            "message",
            json!({ "message": message("user", HOSTILE) }),
        ),
        entry(
            "4",
            "message",
            json!({ "message": { "role": "assistant", "content": HOSTILE, "tool_calls": call } }),
        ),
        entry(
            "5",
            "message",
            json!({ "message": { "role": "tool", "tool_call_id": "c", "content": HOSTILE } }),
        ),
        entry("6", "custom", json!({ HOSTILE: HOSTILE })),
        entry(
            "7",
            "injection",
            json!({ "role": "user", "content": HOSTILE, "fingerprint": HOSTILE, "origin": HOSTILE }),
        ),
        entry("8", "branch_summary", json!({ "summary": HOSTILE })),
        entry("9", "model_change", json!({ "model": HOSTILE })),
        entry(
            "r",
            "request",
            json!({ "digest": HOSTILE, "model": HOSTILE, "inputTokens": 1 }),
        ),
        entry(
            "m",
            "mask",
            json!({ "entryIds": [format!("5{HOSTILE}")], "reason": HOSTILE }),
        ),
        entry(
            "a",
            "message",
            json!({ "message": message("assistant", HOSTILE) }),
        ),
        entry(
            "b",
            "message",
            json!({ "message": message("user", HOSTILE) }),
        ),
    ]
}

#[test]
fn nothing_that_a_log_says_commands_the_terminal() {
    let project = Project::new();
    let lines: String = entries().iter().map(|entry| format!("{entry}\n")).collect();
    // A key has no control characters; what turns or hides text it may have.
    let key = "k\u{202e}\u{200b}";
    let (code, _, said) = shown(&project, &["sessions", "append", key], &lines);
    assert_eq!(code, 0, "{said}");
    let (third, last) = (format!("3{HOSTILE}"), format!("b{HOSTILE}"));
    let mut succeeded = 0;
    let commands: [&[&str]; 22] = [
        &["sessions", "list"],
        &["sessions", "show", key],
        &["sessions", "export", key],
        &["sessions", "export", key, "--format", "html"],
        &["inspect", key],
        &["inspect", key, "--at", &third],
        &["inspect", key, "--at", HOSTILE],
        &["diff", key, &third, &last],
        &["diff", key, HOSTILE, HOSTILE],
        &["replay", key],
        &["replay", key, "--verify"],
        &["sessions", "pin", key, &third],
        &["sessions", "unpin", key, &third],
        &["sessions", "undo", key],
        &["sessions", "undo", key, &third],
        &["sessions", "undo", key, "1"],
        &["sessions", "undo", key, HOSTILE],
        &["sessions", "fork", key],
        &["sessions", "fork", key, "f", "--at", &third],
        &["sessions", "show", "f"],
        &["sessions", "rm", key],
        &["doctor"],
    ];
    for command in commands {
        let (code, _, said) = shown(&project, command, "");
        assert!((0..=5).contains(&code), "{command:?}: {code} {said}");
        succeeded += usize::from(code == 0);
    }
    assert!(succeeded > 14, "{succeeded}");
    for fork in ["f", "k\u{202e}\u{200b}-2", key] {
        assert_eq!(shown(&project, &["sessions", "rm", fork], "").0, 0);
    }
}

#[test]
fn the_log_and_json_have_it_as_it_was() {
    let project = Project::new();
    let entries = entries();
    let lines: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
    let told = project
        .ctx(&["sessions", "append", "s", "--json"])
        .input(lines.clone())
        .lines();
    for (told, entry) in told.iter().zip(&entries) {
        assert_eq!(told["id"], entry["id"]);
    }
    assert_eq!(project.entries("s")[1..], entries);
    let log = std::fs::read_to_string(project.log("s")).unwrap();
    for line in lines.lines() {
        assert!(log.contains(line));
    }
    let inspected = project.ctx(&["inspect", "s", "--json"]).json();
    let said = inspected["modelMessages"].as_array().unwrap().iter();
    assert!(
        said.filter(|message| message["content"] == HOSTILE).count() >= 3,
        "{inspected}"
    );
}

/// Errors and notices speak of what they met.
#[test]
fn errors_and_notices_are_harmless() {
    let project = Project::new();
    project.say("s", &["one", "two"]);
    let log = std::fs::read_to_string(project.log("s")).unwrap();
    let stray = json!({ "id": format!("x{HOSTILE}"), "parentId": HOSTILE, "type": "custom", "payload": {} });
    let pin =
        json!({ "id": format!("p{HOSTILE}"), "type": "pin", "payload": { "entryId": HOSTILE } });
    let mut lines: Vec<String> = log.lines().map(str::to_owned).collect();
    lines.insert(2, stray.to_string());
    lines.insert(2, pin.to_string());
    lines.insert(2, format!("{HOSTILE} rubbish {HOSTILE}"));
    std::fs::write(project.log("s"), format!("{}\n", lines.join("\n"))).unwrap();
    let (_, _, said) = shown(&project, &["sessions", "show", "s"], "");
    assert!(
        said.contains("skipped") && said.contains("left aside"),
        "{said}"
    );
    assert_eq!(shown(&project, &["doctor"], "").0, 1);
    assert_eq!(shown(&project, &["doctor", "--fix"], "").0, 0);
    assert!(!project.entries("s").is_empty());

    let bad = [
        format!("{{\"role\":{}}}", json!(HOSTILE)),
        json!({ "id": "q", "type": HOSTILE, "payload": {} }).to_string(),
        json!({ "id": "q", "type": "pin", "payload": { "entryId": HOSTILE } }).to_string(),
        format!(
            "{{\"role\":\"user\",{}:1,{}:2}}",
            json!(HOSTILE),
            json!(HOSTILE)
        ),
        HOSTILE.to_owned(),
    ];
    for line in bad {
        for args in [
            &["sessions", "append", "s"][..],
            &["sessions", "import", "new"],
        ] {
            let (code, _, said) = shown(&project, args, &line);
            assert_eq!(code, 3, "{line:?}: {said}");
            // With --json the last line is data: JSON, and still nothing that commands.
            let args = [args, &["--json"]].concat();
            let (code, _, said) = shown(&project, &args, &line);
            assert_eq!(code, 3);
            let last: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
            assert!(last["error"]["message"].is_string());
        }
    }
    // Names of other tools' fields are told, too.
    let line = json!({ "type": "user", "uuid": "u", "sessionId": "s", "version": "2.1.0", HOSTILE: HOSTILE,
                       "message": { "role": "user", "content": "hi", HOSTILE: 1 } });
    let (code, told, _) = shown(&project, &["sessions", "import", "cc"], &line.to_string());
    assert_eq!(code, 0);
    assert!(told.contains("from claude-code"), "{told}");
}
