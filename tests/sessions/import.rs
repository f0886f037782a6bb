use serde_json::{Value, json};

use crate::common::{Project, SESSION, message};

const FIXTURES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../contexture/tests/import/fixtures/"
);

#[test]
fn a_transcript_becomes_a_session_with_its_requests() {
    let project = Project::new();
    let args = ["sessions", "import", "s", SESSION, "--budget", "4k"];
    assert_eq!(
        project.ctx(&args).success(),
        "s: 61 entries from transcript, 16 requests as they would have been made\n"
    );
    let args = ["import", "t", SESSION, "--budget", "4k", "--json"];
    assert_eq!(
        project.ctx(&args).json(),
        json!({ "session": "t", "source": "transcript", "entries": 61, "requests": 16,
                "keptInMeta": {}, "skippedLines": [] })
    );
    let count = |kind: &str| {
        let entries = project.entries("s");
        entries.iter().filter(|entry| entry["type"] == kind).count()
    };
    assert_eq!(count("request"), 16);
    assert_eq!(count("compaction_summary"), 1);
    assert_eq!(count("session_header"), 2, "ours, and the file's own");
    project
        .ctx(&["sessions", "import", "u", SESSION, "--no-requests"])
        .success();
    let kinds: Vec<Value> = project
        .entries("u")
        .iter()
        .map(|e| e["type"].clone())
        .collect();
    assert_eq!(kinds.len(), 45);
    assert!(!kinds.contains(&json!("request")));
}

#[test]
fn a_name_that_is_taken_is_refused_before_the_file_is_read() {
    let project = Project::new();
    project.say("s", &["one"]);
    let before = std::fs::read(project.log("s")).unwrap();
    for file in [SESSION, "no/such/file"] {
        let error = project
            .ctx(&["sessions", "import", "s", file])
            .failure_json(1, "there is a session `s` already");
        assert_eq!(error["code"], "Exists");
        assert_eq!(error["hint"], "choose another name");
    }
    assert_eq!(std::fs::read(project.log("s")).unwrap(), before);
}

#[test]
fn session_files_of_other_tools_are_read_and_verified() {
    for name in [
        "claude-code-1.0",
        "claude-code-2.1",
        "claude-code-2.1-helper",
        "claude-code-compacted",
        "claude-code-tree",
        "codex-0.20",
        "codex-0.50",
        "codex-0.166",
        "codex-turns",
        "pi-1",
        "pi-3",
        "pi-tree",
    ] {
        let project = Project::new();
        let file = format!("{FIXTURES}{name}.jsonl");
        let imported = project
            .ctx(&["sessions", "import", "s", &file, "--json"])
            .json();
        let source = imported["source"].as_str().unwrap();
        assert!(name.starts_with(source), "{name} is read as {source}");
        let entries = project.entries("s").len();
        assert_eq!(imported["entries"], entries - 1, "{name}");
        assert!(!imported["keptInMeta"].as_object().unwrap().is_empty());
        let text = project.ctx(&["sessions", "import", "t", &file]).success();
        let kept: u64 = imported["keptInMeta"]
            .as_object()
            .unwrap()
            .values()
            .map(|count| count.as_u64().unwrap())
            .sum();
        // In a line; the list is for programs.
        assert!(text.contains(&format!("\n{kept} value")), "{name}: {text}");
        assert_eq!(text.lines().count(), 2, "{name}: {text}");
        let requests = imported["requests"].as_u64().unwrap();
        let verified = project.ctx(&["replay", "s", "--verify"]).ends(0).1;
        let expected = match requests {
            0 => "nothing to verify".to_owned(),
            n => format!("{n} recorded requests"),
        };
        assert!(verified.contains(&expected), "{name}: {verified}");
        project.ctx(&["doctor"]).success();
    }
}

#[test]
fn lines_that_cannot_be_read_are_named() {
    let project = Project::new();
    let mut text = std::fs::read_to_string(format!("{FIXTURES}pi-3.jsonl")).unwrap();
    text.push_str("{\"type\":\"message\",\"id\":\"cut of");
    let number = text.lines().count();
    let file = project.write("cut.jsonl", text);
    let import = ["sessions", "import", "s", file.to_str().unwrap(), "--json"];
    let (printed, said) = project.ctx(&import).ends(0);
    let imported: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(imported["skippedLines"], json!([number]));
    assert!(
        said.contains(&format!("line {number} was skipped")),
        "{said}"
    );
}

#[test]
fn nothing_is_left_behind_by_a_file_that_is_refused() {
    let good = message("user", "hi").to_string();
    let cases = [
        (String::new(), 3, "line 1"),
        (format!("{good}\n{{\"role\":\"user\""), 3, "line 2"),
        (
            format!("{good}\n{{\"role\":\"bard\"}}\n"),
            3,
            "line 2, role",
        ),
        (
            "{\"id\":\"p\",\"type\":\"pin\",\"payload\":{\"entryId\":\"nowhere\"}}".to_owned(),
            3,
            "`nowhere` is not in the log",
        ),
        (
            "{\"id\":\"d\",\"type\":\"diary\",\"payload\":{}}".to_owned(),
            3,
            "unknown entry type `diary`",
        ),
        (
            format!(
                "{}\n{}\n",
                message("user", &"much ".repeat(9_000)),
                message("assistant", "so much")
            ),
            4,
            "user",
        ),
    ];
    for (text, code, needle) in cases {
        let project = Project::new();
        let file = project.write("bad.jsonl", &text);
        let args = [
            "sessions",
            "import",
            "s",
            file.to_str().unwrap(),
            "--budget",
            "2k",
        ];
        project.ctx(&args).failure(code, needle);
        assert!(!project.log("s").parent().unwrap().exists(), "{needle}");
        assert_eq!(
            project.ctx(&["sessions", "list", "--json"]).json(),
            json!([])
        );
    }
}

#[test]
fn one_line_of_many_is_one_session() {
    let project = Project::new();
    let session = |name: &str| json!({ "session_id": name, "messages": [message("user", name)] });
    let file = project.write("all.jsonl", format!("{}\n{}\n", session("a"), session("b")));
    let file = file.to_str().unwrap();
    let imported = project
        .ctx(&["sessions", "import", "b", file, "--line", "2", "--json"])
        .json();
    assert_eq!(
        imported["keptInMeta"],
        json!({ "transcript.session_id": 1 })
    );
    let inspected = project.ctx(&["inspect", "b", "--json"]).json();
    assert_eq!(inspected["modelMessages"], json!([message("user", "b")]));
    project
        .ctx(&["sessions", "import", "c", file, "--line", "9"])
        .failure(2, "has no line 9");
    project
        .ctx(&["sessions", "import", "c", file])
        .failure(3, "--line N");
    project
        .ctx(&["sessions", "import", "d", "-"])
        .input(message("user", "piped").to_string())
        .success();
    assert_eq!(project.entries("d").len(), 2);
}

/// Numbers that are an estimate are never called exact, and what helpers said is one line.
#[test]
fn estimates_are_said_to_be_some_and_helpers_are_folded() {
    let project = Project::new();
    let file = |name: &str| format!("{FIXTURES}{name}.jsonl");
    let text = project
        .ctx(&["sessions", "import", "s", &file("claude-code-tree")])
        .success();
    assert!(text.contains(", 3 messages of sub-agents"), "{text}");
    for args in [&["inspect", "s"][..], &["inspect", "s", "--at", "0"]] {
        let picture = project.ctx(args).success();
        assert!(!picture.contains("exact"), "{picture}");
        assert!(picture.contains("upper bound"), "{picture}");
    }
    let page = project
        .ctx(&["sessions", "export", "s", "--format", "html"])
        .success();
    assert!(page.contains("≤ "), "{page}");
    let shown = project.ctx(&["sessions", "show", "s"]).success();
    assert!(shown.contains("▸ 3 entries of sub-agents"), "{shown}");
    assert!(!shown.contains("undone Count the dots"), "{shown}");
    assert!(shown.contains("The answer instead."), "{shown}");
    // A helper's own file is a conversation like any other.
    let text = project
        .ctx(&["sessions", "import", "t", &file("claude-code-2.1-helper")])
        .success();
    assert!(!text.contains("sub-agents"), "{text}");
    let shown = project.ctx(&["sessions", "show", "t"]).success();
    assert!(!shown.contains("sub-agents"), "{shown}");
}
