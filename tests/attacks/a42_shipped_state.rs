//! 42: a folder that ships `.contexture`. Data is data: nothing of it acts, and nothing is continued as ours.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use contexture::pool::Name;
use contexture_fleet::work::seal::HubKey;
use serde_json::{Value, json};

use crate::acp::host;
use crate::agent::scene::{Scene, says};
use crate::common::{Project, id, message};
use crate::fleet::scene::Daemon;

/// An agent that wants to run, as a file of an earlier version has it.
fn wanted(command: &str) -> String {
    let record = json!({
        "id": "1", "name": "h", "backendType": "x", "archetype": "repo", "command": ["sh", "-c", command],
        "env": ["SECRET"], "permissions": "allow", "state": "running", "wanted": true,
        "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z",
    });
    format!("{record}\n")
}

fn put(project: &Project, name: &str, text: &str) -> PathBuf {
    let path = project.path().join(".contexture").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

/// The data of a project, as somebody else's repository brings it.
fn shipped(from: &Project) -> Project {
    let to = Project::new();
    copy(
        &from.path().join(".contexture"),
        &to.path().join(".contexture"),
    );
    to
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-rT").args([from, to]).status();
    assert!(done.unwrap().success());
}

#[test]
fn a_shipped_agent_is_not_started() {
    let project = Project::new();
    let ran = project.path().join("ran");
    let file = put(
        &project,
        "agents/h.jsonl",
        &wanted(&format!("touch {}", ran.display())),
    );
    let before = std::fs::read(&file).unwrap();
    let daemon = Daemon::over(project);
    // An agent of ours has been started and has answered since.
    daemon.agent("own", "repo");
    assert_eq!(daemon.prompt("own", "say back"), "back");
    let all = daemon.ctx(&["agent", "list", "--json"]).json();
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
    daemon
        .ctx(&["agent", "start", "h"])
        .failure(1, "no agent `h`");
    assert!(!ran.exists(), "a shipped agent ran");
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn a_shipped_board_hands_out_nothing() {
    let theirs = Project::new();
    theirs
        .ctx(&["pool", "add", "e", "--capability", "x"])
        .success();
    theirs
        .ctx(&["task", "dispatch", "do it", "--requires", "x"])
        .success();
    let project = Project::new();
    let board = theirs.state().join("pool");
    copy(&board, &project.path().join(".contexture/pool"));
    for (args, key) in [
        (["pool", "list", "--json"], "resources"),
        (["task", "list", "--json"], ""),
    ] {
        let (printed, said) = project.ctx(&args).ends(0);
        let value: Value = serde_json::from_str(&printed).unwrap();
        let list = if key.is_empty() { &value } else { &value[key] };
        assert_eq!(list.as_array().map(Vec::len), Some(0), "{value}");
        let note = "tasks in .contexture ignored: `ctx trust` shows them";
        assert!(said.contains(note), "{said}");
    }
    assert!(project.path().join(".contexture/pool/main.jsonl").exists());
}

#[test]
fn a_shipped_key_is_nobodys() {
    let project = Project::new();
    let shipped = "ab".repeat(32);
    let file = put(&project, "hub.key", &shipped);
    std::fs::set_permissions(file, PermissionsExt::from_mode(0o600)).unwrap();
    let add = ["pool", "add", "e", "--capability", "x", "--worker"];
    project.ctx(&add).success();
    let given = project.ctx(&["pool", "key", "e"]).success();
    let theirs = HubKey::parse(&shipped, "here").unwrap();
    let theirs = theirs.seat(&Name::new("e").unwrap(), false).secret();
    assert!(given.contains("ctxw1-guest-") && !given.contains(&theirs));
    let own = std::fs::read_to_string(project.state().join("hub.key")).unwrap();
    let own = HubKey::parse(own.trim(), "here").unwrap();
    let own = own.seat(&Name::new("e").unwrap(), false).secret();
    assert!(given.contains(&own), "{given}");
}

#[test]
fn a_shipped_session_is_read_and_not_continued() {
    let scene = Scene::new([says("one"), says("two"), says("three")]);
    scene.run("openai:m", &["hello"]).success();
    let project = shipped(&scene.project);
    let log = std::fs::read(project.log("s")).unwrap();
    let listed = project.ctx(&["sessions", "list", "--json"]).json();
    assert_eq!(listed[0]["foreign"], true);
    let own = scene.ctx(&["sessions", "list", "--json"]).json();
    assert_eq!(own[0]["foreign"], false);
    let text = project.ctx(&["sessions", "list"]).success();
    assert!(
        text.contains("(not yours)") && text.contains("ctx trust"),
        "{text}"
    );
    for reading in [
        &["sessions", "show", "s"][..],
        &["sessions", "export", "s"],
        &["inspect", "s"],
        &["replay", "s", "--verify"],
        &["doctor"],
    ] {
        project.ctx(reading).success();
    }
    let run = |again: &str| {
        let args = ["run", again, "--session", "s", "--model", "openai:m"];
        let args = [&args[..], &["--base-url", &scene.server.url]].concat();
        project
            .ctx(&args)
            .env("OPENAI_API_KEY", "sk-of-the-tests-1")
    };
    let chat = [
        "chat",
        "--session",
        "s",
        "--model",
        "openai:m",
        "--base-url",
    ];
    let chat = [&chat[..], &[&scene.server.url]].concat();
    let said = message("user", "and now?").to_string();
    let entry = id(&project.entries("s")[1]);
    for command in [
        run("and now?"),
        project.ctx(&chat).input("and now?\n"),
        project.ctx(&["sessions", "append", "s"]).input(said),
        project.ctx(&["sessions", "fork", "s", "f"]),
        project.ctx(&["sessions", "undo", "s", &entry]),
        project.ctx(&["sessions", "pin", "s", &entry]),
    ] {
        let (printed, said) = command.ends(5);
        assert!(printed.is_empty(), "{printed}");
        assert!(said.contains("not created by you here"), "{said}");
        assert!(said.contains("`ctx trust`"), "{said}");
    }
    assert_eq!(scene.server.seen().len(), 1, "the model was asked");
    assert_eq!(std::fs::read(project.log("s")).unwrap(), log);
    // For once, and not for good.
    run("and now?").env("CONTEXTURE_TRUST", "1").success();
    run("and now?").failure(5, "not created by you here");
    assert_eq!(scene.server.seen().len(), 2);
}

#[test]
fn another_log_in_the_place_of_our_own_is_not_continued() {
    let (ours, theirs) = (Project::new(), Project::new());
    for project in [&ours, &theirs] {
        project.say("s", &["one", "two"]);
    }
    ours.say("s", &["three"]);
    std::fs::copy(theirs.log("s"), ours.log("s")).unwrap();
    let append = ours.ctx(&["sessions", "append", "s"]);
    append
        .input(message("user", "four").to_string())
        .failure(5, "not created by you here");
    // What is gone leaves its name free.
    ours.ctx(&["sessions", "rm", "s"]).success();
    ours.say("s", &["anew"]);
}

#[test]
fn a_shipped_chat_or_memory_is_not_taken_for_ours() {
    for part in ["chats", "memory"] {
        let theirs = Scene::new([says("one")]);
        theirs.run("openai:m", &["hello"]).success();
        let ours = Scene::new([says("one")]);
        let inside = |scene: &Scene| scene.project.path().join(".contexture").join(part);
        copy(&inside(&theirs), &inside(&ours));
        ours.run("openai:m", &["hello"])
            .failure(5, "not created by you here");
        assert!(ours.server.seen().is_empty(), "{part}");
        assert!(!ours.project.log("s").exists(), "{part}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_cannot_load_a_shipped_session() {
    let theirs = Project::new();
    theirs.say("s", &["one", "two"]);
    let scene = Scene::new([says("one")]);
    copy(
        &theirs.path().join(".contexture"),
        &scene.project.path().join(".contexture"),
    );
    let agent = host::agent(&scene, &[]);
    host::hosting(agent, None, async |host| {
        host.initialize().await;
        let refused = host.load("s", scene.project.path()).await.unwrap_err();
        assert!(format!("{refused:?}").contains("not created by you here"));
    })
    .await;
    assert!(scene.server.seen().is_empty());
}

#[test]
fn a_daemon_does_not_go_on_with_a_shipped_session() {
    let theirs = Project::new();
    theirs.say("s", &["one", "two"]);
    let daemon = Daemon::over(shipped(&theirs));
    let secret = daemon.secret();
    let listed = daemon.call(&secret, "session.list", &json!({}));
    assert_eq!(listed["result"]["sessions"][0]["foreign"], true);
    let shown = daemon.call(&secret, "session.show", &json!({"session": "s"}));
    assert_eq!(shown["result"]["entries"].as_array().unwrap().len(), 3);
    let meta = json!({"name": "bot", "archetype": "repo", "backendType": "native"});
    for (method, params) in [
        (
            "session.append",
            json!({"session": "s", "messages": [message("user", "x")]}),
        ),
        ("session.prepare", json!({"sessionId": "s", "meta": meta})),
    ] {
        let answer = daemon.call(&secret, method, &params);
        let said = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(
            said.contains("not created by you here"),
            "{method}: {answer}"
        );
    }
    assert_eq!(
        std::fs::read(daemon.project.log("s")).unwrap(),
        std::fs::read(theirs.log("s")).unwrap()
    );
}

/// Without a home there is nowhere to keep what acts: whoever needs it is told so, and nobody else is.
#[test]
fn without_a_home_what_only_reads_goes_on() {
    let project = Project::new();
    project.say("s", &["one", "two"]);
    let homeless = |args: &[&str]| project.ctx(args).home("");
    for args in [
        &["sessions", "list"][..],
        &["sessions", "show", "s"],
        &["doctor"],
    ] {
        homeless(args).success();
    }
    for args in [
        &["sessions", "append", "s"][..],
        &["sessions", "append", "new"],
        &["agent", "list"],
        &["serve", "--listen", "127.0.0.1:0"],
        &["pool", "list"],
    ] {
        let said = message("user", "x").to_string();
        homeless(args)
            .input(said)
            .failure(3, "set HOME or XDG_STATE_HOME");
    }
}
