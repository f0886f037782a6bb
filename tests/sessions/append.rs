use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use crate::common::{Project, id, ids, message};

#[test]
fn ids_come_one_a_line_and_name_what_is_there() {
    let project = Project::new();
    let told = project.say("s", &["one", "two"]);
    assert_eq!(told.len(), 2);
    let entries = project.entries("s");
    assert_eq!(entries[0]["type"], "session_header");
    assert_eq!(entries[0]["payload"]["chatKey"], "s");
    assert_eq!(ids(&entries[1..]), told);
    assert_eq!(entries[2]["parentId"], told[0]);
    assert_eq!(
        entries[2]["payload"]["message"],
        message("assistant", "two")
    );
    // Each follows the one before it, also in another run.
    let later = project.say("s", &["three"]);
    let entries = project.entries("s");
    assert_eq!(entries.len(), 4, "the header is written once");
    assert_eq!(entries[3]["parentId"], told[1]);
    assert_eq!(id(&entries[3]), later[0]);
}

#[test]
fn json_gives_an_object_a_line() {
    let project = Project::new();
    let input = format!("{}\n\n{}", message("user", "a"), message("user", "b"));
    let told = project
        .ctx(&["sessions", "append", "s", "--json"])
        .input(input)
        .lines();
    assert_eq!(ids(&told), ids(&project.entries("s")[1..]));
}

#[test]
fn a_file_does_as_well() {
    let project = Project::new();
    let file = project.write("m.jsonl", format!("{}\n", message("user", "a")));
    let told = project
        .ctx(&["sessions", "append", "s", file.to_str().unwrap()])
        .success();
    assert_eq!(told.trim(), id(&project.entries("s")[1]));
    let error = project
        .ctx(&["sessions", "append", "s", "nowhere.jsonl"])
        .failure_json(1, "nowhere.jsonl");
    assert_eq!(error["code"], "Io");
    assert!(error["hint"].as_str().unwrap().contains("check the path"));
}

#[test]
fn an_entry_keeps_its_bytes() {
    let project = Project::new();
    // Unknown fields, blanks, numbers and escapes as their writer had them.
    let line = r#"{"id":"x1", "type":"message","timestamp":"2026-01-01T00:00:00Z","payload":{"message":{"role":"user","content":"a\u0062c","cost":1.50,"big":12345678901234567890123,"e":1E5}},"meta":{"ours":[ ]},"later":null}"#;
    let told = project
        .ctx(&["sessions", "append", "s"])
        .input(line)
        .success();
    assert_eq!(told, "x1\n");
    let shown = project.ctx(&["sessions", "show", "s", "--json"]).success();
    assert_eq!(shown.lines().nth(1), Some(line));
    let log = std::fs::read_to_string(project.log("s")).unwrap();
    assert!(log.lines().any(|written| written == line), "{log}");
}

#[test]
fn what_stands_before_a_bad_line_is_kept_and_told() {
    let good = |text: &str| format!("{}\n", message("user", text));
    let cases = [
        ("{\"role\":\"user\"", "line 3, column"),
        (
            "{\"role\":\"bard\",\"content\":\"x\"}",
            "line 3, role: unknown role `bard`",
        ),
        ("7", "line 3"),
        (
            "{\"id\":\"q\",\"type\":\"diary\",\"payload\":{}}",
            "line 3, type: unknown entry type `diary`",
        ),
        ("{\"type\":\"custom\",\"payload\":{}}", "line 3"),
        // Sound by themselves, but not in this log.
        (
            "{\"id\":\"q\",\"type\":\"pin\",\"payload\":{\"entryId\":\"nowhere\"}}",
            "line 3, entry q: entryId `nowhere`",
        ),
        (
            "{\"id\":\"q\",\"parentId\":\"nowhere\",\"type\":\"custom\",\"payload\":{}}",
            "line 3",
        ),
    ];
    for (bad, needle) in cases {
        let project = Project::new();
        let input = [&good("one"), &good("two"), bad, "\n", &good("four")].concat();
        let (told, stderr) = project
            .ctx(&["sessions", "append", "s"])
            .input(input)
            .ends(3);
        assert!(stderr.contains(needle), "`{needle}` is not in: {stderr}");
        let told: Vec<&str> = told.lines().collect();
        assert_eq!(told.len(), 2, "{bad}: {stderr}");
        assert_eq!(ids(&project.entries("s")[1..]), told, "{bad}");
    }
}

#[test]
fn nothing_makes_no_session() {
    for (input, code) in [("", 0), ("\n \n", 0), ("{", 3), ("[]", 3)] {
        let project = Project::new();
        project
            .ctx(&["sessions", "append", "s"])
            .input(input)
            .ends(code);
        assert_eq!(
            project.ctx(&["sessions", "list", "--json"]).json(),
            json!([]),
            "{input:?}"
        );
        assert!(!project.log("s").exists(), "{input:?}");
    }
}

#[test]
fn what_has_an_id_is_there_once() {
    let project = Project::new();
    let entry = json!({ "id": "e", "type": "custom", "payload": { "n": 1 } });
    let said = json!({ "id": "m", "role": "user", "content": "hi" });
    let input = format!("{said}\n{entry}\n{said}\n");
    let append = || {
        project
            .ctx(&["sessions", "append", "s"])
            .input(input.clone())
    };
    assert_eq!(append().success(), "m\ne\nm\n");
    let before = std::fs::read(project.log("s")).unwrap();
    assert_eq!(append().success(), "m\ne\nm\n");
    assert_eq!(std::fs::read(project.log("s")).unwrap(), before);
    // Something else under the same id is refused, whichever form it has.
    let other = json!({ "id": "m", "role": "user", "content": "other" });
    let stderr = project
        .ctx(&["sessions", "append", "s"])
        .input(format!("{said}\n{other}\n"))
        .ends(3)
        .1;
    assert!(
        stderr.contains("line 2") && stderr.contains("`m` already"),
        "{stderr}"
    );
    assert!(stderr.contains("an id of its own"), "{stderr}");
    let other = json!({ "id": "e", "type": "custom", "payload": { "n": 2 } });
    let stderr = project
        .ctx(&["sessions", "append", "s"])
        .input(format!("{entry}\n{other}\n"))
        .ends(3)
        .1;
    assert!(
        stderr.contains("line 2") && stderr.contains("`e` already"),
        "{stderr}"
    );
    assert_eq!(std::fs::read(project.log("s")).unwrap(), before);
}

/// A copy of a session that both sides went on with: what is new goes behind what is there.
#[test]
fn entries_that_are_there_do_not_hinder_those_that_are_new() {
    let project = Project::new();
    let entry = |id: &str| json!({ "id": id, "type": "custom", "payload": {} });
    let append = |input: String| project.ctx(&["sessions", "append", "s"]).input(input);
    append(format!("{}\n{}\n", entry("a"), entry("b"))).success();
    append(format!("{}\n", entry("x"))).success();
    let told = append(format!(
        "{}\n{}\n{}\n{}\n",
        entry("a"),
        entry("b"),
        entry("c"),
        message("user", "more")
    ))
    .success();
    let told: Vec<&str> = told.lines().collect();
    assert_eq!(told[..3], ["a", "b", "c"]);
    let entries = project.entries("s");
    assert_eq!(ids(&entries[1..]), ["a", "b", "x", "c", told[3]]);
    assert_eq!(entries[5]["parentId"], "c");
}

/// Whoever reads the ids may rely on each at once, not only when the input ends.
#[test]
fn an_id_is_told_while_the_input_goes_on() {
    let project = Project::new();
    let mut child = project
        .ctx(&["sessions", "append", "s"])
        .command()
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for n in 0..3 {
        writeln!(stdin, "{}", message("user", &format!("{n}"))).unwrap();
        let mut told = String::new();
        stdout.read_line(&mut told).unwrap();
        let entries = project.entries("s");
        assert_eq!(told.trim(), id(entries.last().unwrap()));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn durability_is_the_projects_choice() {
    let project = Project::new();
    project.write("contexture.json", r#"{"store":{"durability":"os"}}"#);
    project.say("s", &["one"]);
    assert_eq!(project.entries("s").len(), 2);
    project.write("contexture.json", r#"{"store":{"durability":"maybe"}}"#);
    let error: Value = project
        .ctx(&["sessions", "list"])
        .failure_json(3, "store.durability: `maybe` is unknown");
    assert!(error["hint"].as_str().unwrap().contains("power cut"));
}
