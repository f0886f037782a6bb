//! `ctx build --all`: a session a line in, a result a line out, in order, in bounded memory.

use serde_json::{Value, json};

use crate::common::{Project, message};

#[test]
fn each_line_is_built_as_it_is_alone() {
    let project = Project::new();
    let session = |n: usize| json!({ "messages": [message("user", &format!("session {n}"))] });
    let lines: String = (1..=5).map(|n| format!("{}\n", session(n))).collect();
    project.write("many.jsonl", lines);
    let all = project
        .ctx(&["build", "many.jsonl", "--all", "--json"])
        .lines();
    for (n, result) in all.iter().enumerate() {
        let line = (n + 1).to_string();
        let alone = project
            .ctx(&["build", "many.jsonl", "--line", &line, "--json"])
            .json();
        assert_eq!(*result, alone);
    }
    assert_eq!(all.len(), 5);
    let bodies = project
        .ctx(&["build", "many.jsonl", "--all", "--format", "openai"])
        .lines();
    assert_eq!(bodies[4]["messages"][0]["content"], "session 5");
    let view = project.ctx(&["build", "many.jsonl", "--all"]).success();
    assert_eq!(view.lines().count(), 5);
}

#[test]
fn a_line_that_fails_is_named_and_ends_nothing() {
    let project = Project::new();
    let good = json!({ "messages": [message("user", "hello")] });
    let large = json!({ "messages": [message("user", &"word ".repeat(2_000))] });
    let input = format!("{good}\nnot JSON\n\n{large}\n{good}\n");
    let ctx = project
        .ctx(&["build", "--all", "--json", "--budget", "500"])
        .input(input);
    let (stdout, stderr) = ctx.ends(1);
    let results: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let codes: Vec<&str> = results
        .iter()
        .map(|one| one["error"]["code"].as_str().unwrap_or("built"))
        .collect();
    assert_eq!(
        codes,
        ["built", "ContextInvalidInput", "ContextOverflow", "built"]
    );
    assert_eq!(
        (&results[1]["line"], &results[2]["line"]),
        (&json!(2), &json!(4))
    );
    for said in [
        "-:2: ",
        "-:4: ",
        "2 sessions built, 2 failed",
        "2 sessions could not be built",
    ] {
        assert!(stderr.contains(said), "{said}: {stderr}");
    }
    // People see the same without a line for what failed.
    let input = format!("{good}\nnot JSON\n");
    let (stdout, _) = project.ctx(&["build", "--all"]).input(input).ends(1);
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
}

/// A hundred sessions take no more memory than a few.
#[test]
fn one_session_at_a_time_is_in_memory() {
    let project = Project::new();
    let text = "what was said of the log ".repeat(20_000);
    let session = json!({ "messages": [message("user", &text)] }).to_string();
    let peak = |sessions: usize| {
        let input: String = (0..sessions).map(|_| format!("{session}\n")).collect();
        project.write("many.jsonl", input);
        let measured = project
            .ctx(&["build", "many.jsonl", "--all", "--budget", "2m"])
            .measured();
        assert_eq!(measured.code, Some(0), "{}", measured.stderr);
        measured.peak_kib
    };
    let (few, many) = (peak(3), peak(40));
    assert!(
        many < few + 10 * 1024,
        "{few} KiB for 3 sessions, {many} KiB for 40"
    );
}
