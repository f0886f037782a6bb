//! The numbers that `ctx` prints: parts sum to their totals, shares are shares, and commands agree on a request.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::{Project, SESSION};

/// The options for each kind of tokenizer: exact ones, and both estimates.
const TOKENIZERS: [&[&str]; 5] = [
    &[],
    &["--model", "gpt-4"],
    &["--model", "gemini-2.5-pro"],
    &["--model", "claude-opus-4-8"],
    &["--model", "claude-sonnet-4"],
];

/// The example, as if a provider had counted `percent` of what we did for each request.
fn counted(percent: u64) -> Project {
    let project = Project::new();
    let import = ["sessions", "import", "s", SESSION, "--budget", "4k"];
    let import = [&import[..], &["--model", "gemini-2.5-pro"]].concat();
    project.ctx(&import).success();
    let log = std::fs::read_to_string(project.log("s")).unwrap();
    let lines = log.lines().map(|line| {
        let blank = line.len() - line.trim_start().len();
        let mut entry: Value = serde_json::from_str(line).unwrap();
        if entry["type"] == "request" {
            let tokens = entry["payload"]["inputTokens"].as_u64().unwrap();
            entry["payload"]["usage"] = json!({ "prompt_tokens": tokens * percent / 100 });
        }
        format!("{}{entry}\n", &line[..blank])
    });
    let changed: String = lines.collect();
    std::fs::write(project.log("s"), changed).unwrap();
    project
}

fn number(text: &str) -> u64 {
    text.replace(',', "").parse().unwrap()
}

/// The number behind the first of these words in a text.
#[track_caller]
fn behind(text: &str, words: &str) -> u64 {
    let at = text
        .find(words)
        .unwrap_or_else(|| panic!("{words} is not in {text}"));
    let digits = text[at + words.len()..].trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != ',');
    number(&digits[..end.unwrap_or(digits.len())])
}

/// Holds the picture of a request against itself.
#[track_caller]
fn check_view(view: &str) {
    let totals = view
        .lines()
        .find(|line| line.contains(" tokens ("))
        .unwrap();
    let mut words = totals.split_whitespace();
    let used = number(words.next().unwrap());
    let most = number(words.nth(1).unwrap());
    let before = &view[..view.find(totals).unwrap()];
    let legend = before.lines().skip(3).collect::<Vec<_>>().join(" ");
    let names = [
        "frame",
        "tools",
        "system",
        "summary",
        "notes",
        "user",
        "assistant",
        "tool results",
    ];
    let of = |name: &str| match legend.contains(&format!(" {name} ")) {
        true => behind(&legend, &format!(" {name} ")),
        false => 0,
    };
    let parts: u64 = names.iter().map(|name| of(name)).sum();
    assert_eq!(parts, used, "the legend of {view}");
    if used <= most {
        assert_eq!(used + of("reserved") + of("free"), most, "{view}");
        let percent = behind(totals, "(");
        assert_eq!(percent, used * 100 / most, "{view}");
    }
    if let Some(line) = view
        .lines()
        .find(|line| line.contains("tokens shared with"))
    {
        let shared = number(line.split_whitespace().next().unwrap());
        assert!(shared <= used, "{view}");
    }
    let rows = view[view.find(totals).unwrap()..]
        .split("\n left out ")
        .next()
        .unwrap();
    let tokens = rows.lines().filter_map(|line| {
        let cells: Vec<char> = line.chars().collect();
        let rule: String = cells.get(17..28)?.iter().collect();
        let known = [
            "kept",
            "pinned",
            "truncated",
            "masked",
            "summary",
            "repaired",
        ];
        known.contains(&rule.trim()).then(|| {
            let cell: String = cells[28..36].iter().collect();
            number(cell.trim())
        })
    });
    assert_eq!(
        tokens.sum::<u64>() + of("frame"),
        used,
        "the rows of {view}"
    );
}

/// Holds the JSON of a request against itself; gives its tokens, and those that are shared.
#[track_caller]
fn check_result(result: &Value) -> (u64, u64) {
    let receipt = &result["receipt"];
    let budget = |key: &str| receipt["budget"][key].as_u64().unwrap();
    let sum = |key: &str| {
        let all = receipt[key].as_array().into_iter().flatten();
        all.map(|part| part["tokens"].as_u64().unwrap())
            .sum::<u64>()
    };
    let used = budget("used");
    assert_eq!(
        budget("frame") + sum("items") + sum("tools"),
        used,
        "{receipt}"
    );
    assert_eq!(result["stats"]["inputTokens"], used);
    let shared = receipt["cache"]["sharedPrefixTokens"].as_u64().unwrap();
    assert!(shared <= used, "{receipt}");
    (used, shared)
}

/// Shares above the whole never were.
#[track_caller]
fn check_shares(text: &str) {
    for (at, _) in text.match_indices(" %") {
        let share = text[..at].rsplit([' ', '(']).next().unwrap();
        let share: f64 = share.parse().unwrap();
        assert!((0.0..=100.0).contains(&share), "{share} % in {text}");
    }
}

/// Every command and every form, for a provider that counts less than our bound, the same, and more.
#[test]
fn parts_sum_to_their_totals() {
    // Only bounds give way to what a provider counted.
    for (percent, tokenizers) in [(50, &TOKENIZERS[..]), (140, &TOKENIZERS[2..4])] {
        let project = counted(percent);
        for tokenizer in tokenizers {
            let with = |words: &[&str]| project.ctx(&[words, *tokenizer].concat());
            for at in [
                &["inspect", "s"][..],
                &["inspect", "s", "--at", "9"],
                &["build", SESSION],
            ] {
                check_view(&with(at).success());
                check_result(&with(&[at, &["--json"]].concat()).json());
            }
            let over = with(&["inspect", "s", "--at", "9", "--budget", "100"]).success();
            check_view(&over);
            assert!(over.contains(" too many)"), "{over}");
            for verify in [&[][..], &["--verify"]] {
                let table = with(&[&["replay", "s"], verify].concat()).success();
                check_shares(&table);
                for row in with(&[&["replay", "s", "--json"], verify].concat()).lines() {
                    assert!(
                        row["sharedPrefixTokens"].as_u64() <= row["inputTokens"].as_u64(),
                        "{row}"
                    );
                }
            }
            let diff = with(&["diff", "s", "8", "9", "--json"]).json();
            let tokens = |value: &Value| value.as_u64().unwrap();
            let parts = [
                &diff["prefix"]["sharedTokens"],
                &diff["rebilledTokens"],
                &diff["newTokens"],
            ];
            let all = tokens(&diff["b"]["inputTokens"]);
            assert_eq!(parts.map(tokens).iter().sum::<u64>(), all, "{diff}");
            let shown = with(&["diff", "s", "8", "9"]).success();
            let parts = ["shared ", "billed again ", "new "]
                .map(|name| behind(&shown, &format!(" {name}")));
            assert_eq!(parts.iter().sum::<u64>(), all, "{shown}");
            let count = with(&["tokens", SESSION, "--json"]).json();
            let messages = count["messages"].as_array().unwrap().iter();
            let messages: u64 = messages.map(|row| tokens(&row["tokens"])).sum();
            let sum = messages + tokens(&count["toolTokens"]) + tokens(&count["frameTokens"]);
            assert_eq!(tokens(&count["tokens"]), sum);
            let printed = with(&["tokens", SESSION]).success();
            assert_eq!(number(printed.trim()), sum);
        }
    }
}

/// The same for real transcripts.
// needs: data
#[test]
fn parts_of_real_transcripts_sum_to_their_totals() {
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    let folder = std::env::var_os("CONTEXTURE_DATA").map_or(beside, PathBuf::from);
    if !folder.is_dir() {
        println!("skipped: ../shared/data is not here");
        return;
    }
    let file = folder.join("sessions.jsonl");
    let file = file.to_str().unwrap();
    let project = Project::new();
    for (n, line) in ["3", "150", "440"].into_iter().enumerate() {
        let tokenizer = TOKENIZERS[1 + n];
        let source = [file, "--line", line, "--budget", "20k"];
        let source = [&source[..], tokenizer].concat();
        check_view(&project.ctx(&[&["build"], &source[..]].concat()).success());
        check_shares(&project.ctx(&[&["replay"], &source[..]].concat()).success());
        let import = [&["sessions", "import", line], &source[..]].concat();
        project.ctx(&import).success();
        let inspect = [&["inspect", line, "--at", "1"], tokenizer].concat();
        check_view(&project.ctx(&inspect).success());
    }
}

/// A request has one number, and the same tokens and digest wherever it is named by it.
#[test]
fn commands_agree_on_a_request() {
    let recorded = counted(60);
    let unrecorded = Project::new();
    let import = ["sessions", "import", "s", SESSION, "--no-requests"];
    unrecorded.ctx(&import).success();
    for (project, verify) in [(recorded, &["--verify"][..]), (unrecorded, &[])] {
        let all = project
            .ctx(&[&["replay", "s", "--json"], verify].concat())
            .lines();
        let without = project.ctx(&["replay", "s", "--json"]).lines();
        assert_eq!(all.len(), without.len(), "with and without --verify");
        for n in [0, 7, all.len() - 1] {
            let (row, number) = (&all[n], n.to_string());
            assert_eq!(row["request"], n);
            assert!(row["entryId"].is_string());
            let shown = project
                .ctx(&["inspect", "s", "--at", &number, "--json"])
                .json();
            let (used, shared) = check_result(&shown);
            assert_eq!(row["digest"], shown["receipt"]["digest"], "request {n}");
            assert_eq!(
                (&row["inputTokens"], &row["sharedPrefixTokens"]),
                (&json!(used), &json!(shared))
            );
            if n > 0 {
                let before = (n - 1).to_string();
                let diff = project
                    .ctx(&["diff", "s", &before, &number, "--json"])
                    .json();
                assert_eq!(diff["b"]["digest"], row["digest"]);
                assert_eq!(diff["b"]["inputTokens"], row["inputTokens"]);
                assert_eq!(
                    diff["prefix"]["sharedTokens"], row["sharedPrefixTokens"],
                    "request {n}"
                );
            }
        }
        // A fork at a request goes on from there.
        let made = project
            .ctx(&["sessions", "fork", "s", "f", "--at", "7", "--json"])
            .json();
        let inspect = project.ctx(&["inspect", "f", "--json"]).json();
        assert_eq!(inspect["receipt"]["digest"], all[7]["digest"], "{made}");
        project
            .ctx(&["sessions", "fork", "s", "--at", "9999"])
            .failure(2, "neither a request nor an entry");
    }
}

/// The count of `ctx tokens` is what `ctx build` makes of it.
#[test]
fn a_request_costs_what_was_counted() {
    let project = Project::new();
    let body = json!({
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is in the folder?"},
        ],
        "tools": [{"type": "function", "function": {"name": "list", "parameters": {"type": "object"}}}],
    });
    for tokenizer in TOKENIZERS {
        let of = |command: &str| {
            let args = [&[command, "--json"], tokenizer].concat();
            project.ctx(&args).input(body.to_string()).json()
        };
        assert_eq!(of("tokens")["tokens"], of("build")["stats"]["inputTokens"]);
    }
}
