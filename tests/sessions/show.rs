use serde_json::json;

use crate::common::{Project, id, ids};

#[test]
fn show_has_a_line_for_each_entry() {
    let project = Project::with_session("s");
    let shown = project.ctx(&["sessions", "show", "s"]).success();
    let entries = project.entries("s");
    assert_eq!(shown.lines().count(), entries.len());
    for (line, entry) in shown.lines().zip(&entries) {
        let short: String = id(entry).chars().take(16).collect();
        assert!(line.contains(&short), "{short} is not in {line}");
    }
    let line = |needle: &str| shown.lines().find(|line| line.contains(needle)).unwrap();
    assert!(line("e05").contains("user") && line("e05").contains("one cent"));
    assert!(line("compaction_summary").contains("tokens (extract)"));
    assert!(line("request").contains("tokens · no model · sha256:"));
    assert!(!shown.contains('\x1b'), "no colours without a terminal");
    assert!(
        shown.lines().all(|line| line.chars().count() <= 100),
        "{shown}"
    );
}

#[test]
fn json_gives_the_lines_as_they_are_in_the_log() {
    let project = Project::with_session("s");
    let shown = project.ctx(&["sessions", "show", "s", "--json"]).success();
    assert_eq!(shown, std::fs::read_to_string(project.log("s")).unwrap());
}

#[test]
fn a_fork_shows_what_it_began_with() {
    let project = Project::with_session("s");
    project
        .ctx(&["sessions", "fork", "s", "f", "--at", "e10"])
        .success();
    let own = project.say("f", &["another way"]);
    let entries = project.entries("f");
    let before = project.entries("s");
    let at = ids(&before).iter().position(|id| id == "e10").unwrap();
    assert_eq!(entries[..=at], before[..=at]);
    assert_eq!(entries[at + 1]["type"], "session_header");
    assert_eq!(
        entries[at + 1]["payload"]["forkedFrom"],
        json!({ "session": "s", "entryId": "e10" })
    );
    assert_eq!(ids(&entries[at + 2..]), own);
    let shown = project.ctx(&["sessions", "show", "f"]).success();
    assert!(shown.contains("── from: s"), "{shown}");
    assert!(shown.contains("── its own: f"), "{shown}");
    assert!(shown.contains("forked from s at e10"), "{shown}");
}

/// What is shown can be built, and gives what `inspect` gives.
#[test]
fn what_is_shown_can_be_built() {
    let project = Project::with_session("s");
    project
        .ctx(&["sessions", "fork", "s", "f", "--at", "e20"])
        .success();
    project.say("f", &["another way"]);
    for session in ["s", "f"] {
        let lines = project
            .ctx(&["sessions", "show", session, "--json"])
            .success();
        let built = project
            .ctx(&["build", "-", "--budget", "4k", "--json"])
            .input(lines)
            .json();
        let inspected = project
            .ctx(&["inspect", session, "--budget", "4k", "--json"])
            .json();
        assert_eq!(built, inspected, "{session}");
    }
}

#[test]
fn what_was_undone_is_marked() {
    let project = Project::new();
    let told = project.say("s", &["one", "two", "three"]);
    project.ctx(&["sessions", "undo", "s", &told[0]]).success();
    let shown = project.ctx(&["sessions", "show", "s"]).success();
    let undone: Vec<bool> = shown.lines().map(|line| line.contains("undone ")).collect();
    assert_eq!(undone, [false, false, true, true, false]);
}

#[test]
fn list_has_the_latest_first() {
    let project = Project::new();
    let (shown, said) = project.ctx(&["sessions", "list"]).ends(0);
    assert_eq!(shown, "");
    assert!(said.contains("ctx sessions import NAME FILE"), "{said}");
    for name in ["b", "a", "Main", "feat/login"] {
        project.say(name, &["hi"]);
        // The clock of a file system may tick slowly.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    project.say("b", &["again"]);
    let listed = project.ctx(&["sessions", "list", "--json"]).json();
    let names: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["session"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["b", "feat/login", "Main", "a"]);
    let size = std::fs::metadata(project.log("b")).unwrap().len();
    assert_eq!(listed[0]["bytes"], size);
    let updated = listed[0]["updated"].as_str().unwrap();
    assert!(
        updated.starts_with("20") && updated.ends_with('Z'),
        "{updated}"
    );
    let text = project.ctx(&["sessions", "list"]).success();
    let order: Vec<&str> = text
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(order[..4], names);
    assert!(text.contains("just now") && text.contains("4 sessions"));
}

#[test]
fn an_unknown_session_is_named_with_its_nearest() {
    let project = Project::new();
    project.say("invoices", &["hi"]);
    let commands: [&[&str]; 8] = [
        &["sessions", "show", "invoises"],
        &["sessions", "fork", "invoises"],
        &["sessions", "undo", "invoises"],
        &["sessions", "pin", "invoises", "e"],
        &["sessions", "export", "invoises"],
        &["sessions", "rm", "invoises"],
        &["inspect", "invoises"],
        &["diff", "invoises", "0", "1"],
    ];
    for command in commands {
        let error = project
            .ctx(command)
            .failure_json(1, "there is no session `invoises`");
        assert_eq!(error["code"], "NoStream");
        assert_eq!(error["hint"], "did you mean `invoices`?");
        project.ctx(command).failure(1, "did you mean `invoices`?");
    }
    project
        .ctx(&["sessions", "show", "else"])
        .failure(1, "`ctx sessions list` shows those there are");
}
