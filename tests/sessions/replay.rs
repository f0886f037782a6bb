use serde_json::Value;

use crate::common::{Project, SESSION, id};

#[test]
fn what_was_imported_verifies_and_so_does_its_fork() {
    let project = Project::with_session("s");
    let (table, said) = project.ctx(&["replay", "s", "--verify"]).ends(0);
    assert!(table.contains("16 requests"), "{table}");
    assert!(!table.contains("differs"), "{table}");
    assert_eq!(
        said,
        "16 recorded requests, each made again byte for byte\n"
    );
    project
        .ctx(&["sessions", "fork", "s", "f", "--at", "e30"])
        .success();
    let said = project.ctx(&["replay", "f", "--verify"]).ends(0).1;
    assert!(
        said.contains("recorded requests, each made again"),
        "{said}"
    );
    // The log of the session as a file verifies as well.
    let log = project.log("s");
    let rows = project
        .ctx(&["replay", log.to_str().unwrap(), "--verify", "--json"])
        .lines();
    assert_eq!(rows.len(), 16);
    let digests: Vec<Value> = rows.iter().map(|row| row["digest"].clone()).collect();
    let entries = project.entries("s");
    let recorded: Vec<Value> = entries
        .iter()
        .filter(|entry| entry["type"] == "request")
        .map(|entry| entry["payload"]["digest"].clone())
        .collect();
    assert_eq!(digests, recorded);
}

/// One word of one message, and the first request that it was in is named.
#[test]
fn a_word_that_was_changed_is_found() {
    let project = Project::with_session("s");
    let log = std::fs::read_to_string(project.log("s")).unwrap();
    let at = log.find("\"id\":\"e21\"").unwrap();
    let word = at + log[at..].find("reproduced").unwrap();
    let mut bytes = log.into_bytes();
    bytes[word] = b'R';
    std::fs::write(project.log("s"), bytes).unwrap();
    let entries = project.entries("s");
    let position = entries
        .iter()
        .position(|entry| entry["id"] == "e21")
        .unwrap();
    let is_request = |entry: &&Value| entry["type"] == "request";
    let before = entries[..position].iter().filter(is_request).count();
    let first = id(entries[position..].iter().find(is_request).unwrap());
    let (table, said) = project.ctx(&["replay", "s", "--verify"]).ends(1);
    let needle = format!("request {before} (entry {first}) differs: recorded sha256:");
    assert!(said.contains(&needle), "{needle} is not in {said}");
    assert!(said.contains("ctx inspect SESSION --at"), "{said}");
    assert_eq!(
        table.matches("differs from its record").count(),
        14 - before,
        "those between the change and the compaction: {table}"
    );
    let (rows, said) = project.ctx(&["replay", "s", "--verify", "--json"]).ends(1);
    let rows: Vec<Value> = rows
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows.len(), 16, "those behind it are checked as well");
    assert_eq!(
        rows.iter().position(|row| !row["recordedDigest"].is_null()),
        Some(before)
    );
    let last: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "Differs");
}

#[test]
fn what_if_shows_other_limits() {
    let project = Project::with_session("s");
    let keys = [
        "request",
        "entryId",
        "digest",
        "inputTokens",
        "messageCount",
        "sharedPrefixTokens",
        "droppedMessagesCount",
        "compacted",
    ];
    let replay = |more: &[&str]| {
        let args = [&["replay", "s", "--json"], more].concat();
        let rows = project.ctx(&args).lines();
        assert_eq!(rows.len(), 16);
        for key in keys {
            assert!(!rows[7][key].is_null(), "{key}");
        }
        rows
    };
    let compactions = |rows: &[Value]| rows.iter().filter(|row| row["compacted"] == true).count();
    assert_eq!(compactions(&replay(&[])), 0, "the default has room for all");
    assert_eq!(compactions(&replay(&["--budget", "4k"])), 1);
    let tight = replay(&["--budget", "2k"]);
    assert!(compactions(&tight) > 1);
    assert!(
        tight
            .iter()
            .all(|row| row["inputTokens"].as_u64() <= Some(2_000))
    );
    let none = replay(&["--budget", "2k", "--compactor", "none"]);
    assert_ne!(tight, none);
    let table = project
        .ctx(&["replay", "s", "--budget", "2k", "--compactor", "none"])
        .success();
    for needle in [
        "request ",
        "  dropped\n",
        "16 requests ·",
        "% cached",
        "2,000",
    ] {
        assert!(table.contains(needle), "{needle} is not in {table}");
    }
    // The same as of the file that it was imported from.
    let of_file = project
        .ctx(&["replay", SESSION, "--budget", "2k", "--json"])
        .lines();
    let digests =
        |rows: &[Value]| -> Vec<Value> { rows.iter().map(|row| row["digest"].clone()).collect() };
    assert_eq!(digests(&of_file), digests(&tight));
    project.ctx(&["replay", "s", "--budget", "300"]).ends(4);
}

#[test]
fn bodies_come_a_line_each() {
    let project = Project::with_session("s");
    for format in ["openai", "anthropic"] {
        let bodies = project.ctx(&["replay", "s", "--format", format]).lines();
        assert_eq!(bodies.len(), 16);
        assert!(bodies.iter().all(|body| body["messages"].is_array()));
    }
}

/// Lines that were appended together are marked by a blank before them.
#[test]
fn a_log_that_was_appended_to_is_a_file_like_others() {
    let project = Project::new();
    project.say("s", &["one", "two", "three", "four"]);
    let log = std::fs::read_to_string(project.log("s")).unwrap();
    assert!(log.starts_with(' '));
    let file = project.log("s");
    let of_file = project
        .ctx(&["replay", file.to_str().unwrap(), "--json"])
        .lines();
    assert_eq!(of_file.len(), 2);
    assert_eq!(project.ctx(&["replay", "s", "--json"]).lines(), of_file);
}

/// Neither a session without records nor a file of messages counts as verified.
#[test]
fn nothing_to_verify_is_a_failure() {
    let project = Project::new();
    project.say("s", &["hi", "ho"]);
    let file = project.write("f.jsonl", "{\"role\":\"user\",\"content\":\"hi\"}\n");
    for what in ["s", SESSION, file.to_str().unwrap()] {
        let (shown, said) = project.ctx(&["replay", what, "--verify"]).ends(1);
        assert_eq!(shown, "", "a table without requests says nothing");
        assert!(said.contains("nothing to verify"), "{said}");
        let error = project
            .ctx(&["replay", what, "--verify"])
            .failure_json(1, "nothing to verify");
        assert_eq!(error["code"], "NothingToVerify", "{error}");
    }
    let table = project.ctx(&["replay", "s"]).success();
    assert!(table.contains("1 request "), "{table}");
}
