//! 9: a key that is meant as a path is refused before any path is made.

use crate::common::{Project, SESSION, message};

const KEYS: [&str; 18] = [
    "../../x",
    "..",
    "/etc/x",
    "a/../../b",
    "%2e%2e",
    "%2E%2e%2fx",
    "%252e%252e%252fx",
    "..\\x",
    "a\\..\\..\\b",
    "C:\\x",
    "CON",
    "con.txt",
    "LPT9",
    "",
    ".hidden",
    "x.",
    "~root",
    "a\nb",
];

#[test]
fn a_key_is_never_a_path() {
    let project = Project::new();
    project.say("ours", &["one"]);
    let long = "k".repeat(4_096);
    let keys = KEYS.into_iter().chain([long.as_str()]);
    let mut tried = 0;
    for key in keys {
        let commands: [&[&str]; 12] = [
            &["sessions", "append", key],
            &["sessions", "import", key, SESSION],
            &["sessions", "show", key],
            &["sessions", "export", key],
            &["sessions", "fork", key],
            &["sessions", "fork", "ours", key],
            &["sessions", "undo", key],
            &["sessions", "pin", key, "e"],
            &["sessions", "unpin", key, "e"],
            &["sessions", "rm", key],
            &["inspect", key],
            &["diff", key, "0", "1"],
        ];
        for command in commands {
            let ctx = project
                .ctx(command)
                .input(message("user", "hi").to_string());
            let error = ctx.failure_json(3, "cannot be a key");
            assert_eq!(error["code"], "BadKey", "{command:?}");
            assert!(error["hint"].as_str().unwrap().contains("letters, digits"));
            assert!(error["message"].as_str().unwrap().len() < 300, "{error}");
            tried += 1;
        }
    }
    // Nothing was made, here or above.
    let names = |folder: &str| -> Vec<String> {
        let folder = std::fs::read_dir(project.path().join(folder)).unwrap();
        let names = folder.map(|item| item.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != ".home").collect()
    };
    assert_eq!(names("."), [".contexture"]);
    assert_eq!(names(".contexture"), ["sessions"]);
    assert_eq!(names(".contexture/sessions"), ["ours"]);
    println!("9: {tried} commands with keys that look like paths, none made a file");
}

/// A log can name a key, too: the session that it was forked from.
#[test]
fn a_fork_cannot_name_a_path() {
    let project = Project::new();
    project.say("s", &["one"]);
    project.ctx(&["sessions", "fork", "s", "f"]).success();
    let log = std::fs::read_to_string(project.log("f")).unwrap();
    for key in ["../../x", "/etc/passwd", "%2e%2e"] {
        let hostile = log.replace("\"session\":\"s\"", &format!("\"session\":\"{key}\""));
        assert_ne!(hostile, log);
        std::fs::write(project.log("f"), hostile).unwrap();
        for command in [
            &["inspect", "f"][..],
            &["sessions", "show", "f"],
            &["sessions", "fork", "f", "g"],
        ] {
            project.ctx(command).failure(3, "cannot be a key");
        }
        assert!(!project.log("g").exists());
        // The doctor says it, and goes on.
        let (found, _) = project.ctx(&["doctor"]).ends(1);
        assert!(found.contains("cannot be a key"), "{found}");
    }
    // Nor itself, nor in a ring.
    let ring = log.replace("\"session\":\"s\"", "\"session\":\"f\"");
    std::fs::write(project.log("f"), ring).unwrap();
    project
        .ctx(&["inspect", "f"])
        .failure(3, "forked from itself");
    let (found, _) = project.ctx(&["doctor", "--fix"]).ends(1);
    assert!(found.contains("forked from itself"), "{found}");
}
