//! The same commands with the log in PostgreSQL.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::common::{Ctx, Project, SESSION, id, message};
use crate::postgres_server::{PASSWORD, Server};

/// No part of the password, as it is or as a URL has it.
#[track_caller]
fn keeps_the_secret(text: &str) {
    for secret in [PASSWORD, "s3cret", "p%40ss", "p@ss"] {
        assert!(!text.contains(secret), "a password in: {text}");
    }
}

/// Runs it, and looks for the password in all that it says.
#[track_caller]
fn quiet(ctx: Ctx, code: i32) -> (String, String) {
    let (stdout, stderr) = ctx.ends(code);
    keeps_the_secret(&stdout);
    keeps_the_secret(&stderr);
    (stdout, stderr)
}

/// A project that names its database, and whose user trusts it.
fn with_url(url: &str) -> Project {
    let project = shipped(url);
    project.ctx(&["trust", "--yes"]).success();
    project
}

/// A project that names a database, as it comes from anybody.
fn shipped(url: &str) -> Project {
    let project = Project::new();
    project.write(
        "contexture.json",
        json!({ "store": { "url": url } }).to_string(),
    );
    project
}

// needs: postgres
#[test]
fn every_command_does_what_it_does_on_files() {
    let Some(server) = Server::get() else { return };
    let database = server.database();
    let project = with_url(&database.url());
    let files = Project::with_session("s");
    let run = |args: &[&str]| quiet(project.ctx(args), 0).0;
    let import = ["sessions", "import", "s", SESSION, "--budget", "4k"];
    assert_eq!(
        run(&import),
        "s: 61 entries from transcript, 16 requests as they would have been made\n"
    );
    let (_, said) = quiet(project.ctx(&import), 1);
    assert!(said.contains("there is a session `s` already"), "{said}");
    // Nothing beside the database: the folder holds what it held.
    assert!(!project.path().join(".contexture/sessions").exists());

    let listed: Value = serde_json::from_str(&run(&["sessions", "list", "--json"])).unwrap();
    assert_eq!(listed[0]["session"], "s");
    assert!(listed[0]["bytes"].as_u64() > Some(20_000));
    assert!(listed[0]["updated"].is_string());

    // All but our header, whose time and folder differ, byte for byte.
    let shown = |project: &Project| {
        let text = quiet(project.ctx(&["sessions", "show", "s", "--json"]), 0).0;
        text.lines().skip(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(shown(&project), shown(&files));
    for command in [
        &["inspect", "s", "--json"][..],
        &["inspect", "s", "--at", "7", "--json"],
        &["diff", "s", "13", "14", "--json"],
        &["diff", "s", "13", "14"],
        &["replay", "s", "--verify", "--json"],
        &["replay", "s", "--budget", "2k"],
        &["sessions", "export", "s"],
        &["sessions", "export", "s", "--format", "openai"],
        &["doctor"],
    ] {
        assert_eq!(run(command), files.ctx(command).success(), "{command:?}");
    }

    let told = project.say("s", &["more"]);
    assert_eq!(id(project.entries("s").last().unwrap()), told[0]);
    assert_eq!(run(&["sessions", "fork", "s", "f", "--at", "e20"]), "f\n");
    project.say("f", &["another way"]);
    let (_, said) = quiet(project.ctx(&["replay", "f", "--verify"]), 0);
    assert!(
        said.contains("recorded requests, each made again"),
        "{said}"
    );
    run(&["sessions", "undo", "s"]);
    run(&["sessions", "pin", "s", "e17"]);
    let (_, said) = quiet(project.ctx(&["sessions", "rm", "s"]), 5);
    assert!(said.contains("is the beginning of f"), "{said}");
    run(&["sessions", "rm", "f"]);
    run(&["sessions", "rm", "s"]);
    assert_eq!(run(&["sessions", "list", "--json"]), "[]\n");
    let (_, said) = quiet(project.ctx(&["inspect", "s"]), 1);
    assert!(said.contains("there is no session `s`"), "{said}");
}

// needs: postgres
#[test]
fn a_bad_line_and_a_damaged_body_are_told_as_on_files() {
    let Some(server) = Server::get() else { return };
    let database = server.database();
    let project = with_url(&database.url());
    let input = format!("{}\n{{\"role\":\"bard\"}}\n", message("user", "one"));
    let (told, said) = quiet(project.ctx(&["sessions", "append", "s"]).input(input), 3);
    assert_eq!(told.lines().count(), 1);
    assert!(said.contains("line 2, role"), "{said}");
    assert_eq!(project.entries("s").len(), 2);
    let quoted = |text: &str| text.replace('\'', "''");
    let pin = quoted(r#"{"id":"p","type":"pin","payload":{"entryId":"nowhere"}}"#);
    database.query(&format!(
        "INSERT INTO contexture.entries (stream, position, id, body)
         SELECT id, entries + 1, 'p', '{pin}' FROM contexture.streams;
         UPDATE contexture.streams SET entries = entries + 1, tail = 'p'"
    ));
    let (found, _) = quiet(project.ctx(&["doctor"]), 1);
    assert!(found.contains("`nowhere` is not in the log"), "{found}");
    // What cannot be mended there is not said to be.
    let (_, said) = quiet(project.ctx(&["doctor", "--fix"]), 1);
    assert!(!said.contains("ctx doctor --fix` repairs"), "{said}");
}

// needs: postgres
#[test]
fn the_users_word_beats_the_projects() {
    let Some(server) = Server::get() else { return };
    let (ours, theirs) = (server.database(), server.database());
    let project = with_url(&theirs.url());
    let own = |args: &[&str]| project.ctx(args).env("CONTEXTURE_STORE_URL", &ours.url());
    quiet(
        own(&["sessions", "append", "s"]).input(message("user", "hi").to_string()),
        0,
    );
    let listed = quiet(own(&["sessions", "list"]), 0).0;
    assert!(listed.contains("1 session"), "{listed}");
    assert_eq!(
        quiet(project.ctx(&["sessions", "list", "--json"]), 0).0,
        "[]\n"
    );
    // An empty word is none.
    let empty = project
        .ctx(&["sessions", "list", "--json"])
        .env("CONTEXTURE_STORE_URL", "");
    assert_eq!(quiet(empty, 0).0, "[]\n");
}

// needs: postgres
#[test]
fn what_the_database_refuses_is_told_without_the_password() {
    let Some(server) = Server::get() else { return };
    let database = server.database();
    let url = database.url();
    let Some(port) = server.port() else { return };
    let wrong = [
        url.replace("s3cret", "s3cret0"),
        url.replace(database.name(), "no_such_database"),
        url.replace(&format!(":{port}/"), ":1/"),
        format!("{url}?sslmode=never"),
        url.replace("postgres://", "mysql://"),
        url.replace("%40", "@"),
    ];
    for url in wrong {
        let project = with_url(&url);
        for args in [&["sessions", "list"][..], &["doctor", "--json"]] {
            let output = project.ctx(args).run();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            keeps_the_secret(&said);
            assert!(output.stdout.is_empty());
            assert!(
                matches!(output.status.code(), Some(1 | 3 | 5)),
                "{:?}: {said}",
                output.status
            );
            assert!(said.lines().count() >= 2, "no hint: {said}");
        }
    }
}

/// Attack 42: a project comes from anybody. Before it is trusted nothing is connected to that it names, on this machine
/// or elsewhere, and nothing that is said here goes there.
#[test]
fn a_project_cannot_send_the_log_elsewhere() {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    for host in ["127.0.0.1", "localhost", "0.0.0.0", "192.0.2.1"] {
        let project = shipped(&format!("postgres://u:s3cret@{host}:{port}/d"));
        for args in [
            &["sessions", "list"][..],
            &["sessions", "append", "s"],
            &["doctor", "--fix"],
            &["replay", "s"],
            &["pool", "list"],
            &["task", "list"],
            &["agent", "list"],
        ] {
            let begun = std::time::Instant::now();
            let said = message("user", "hi").to_string();
            let (_, said) = quiet(project.ctx(args).input(said), 0);
            assert!(
                said.contains("not trusted, so its store.url does not count"),
                "{said}"
            );
            assert!(begun.elapsed().as_secs() < 2, "it waited for somebody");
        }
        assert!(project.log("s").exists());
    }
    assert!(listener.accept().is_err(), "somebody called");
    let trusted = with_url(&format!("postgres://u:s3cret@127.0.0.1:{port}/d"));
    let begun = trusted.ctx(&["sessions", "list"]).command().spawn();
    let mut child = begun.unwrap();
    let called = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        listener.accept().is_ok()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(called, "with trust it counts");
}
