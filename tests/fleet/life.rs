//! Starting, stopping, crashing; the daemon's end, however it comes.

use std::time::{Duration, Instant};

use crate::fleet::scene::{Daemon, processes, runs};

#[track_caller]
fn gone(pid: i64) {
    let until = Instant::now() + Duration::from_secs(15);
    while runs(pid) {
        assert!(Instant::now() < until, "{pid} still runs");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_agent_that_crashes_is_started_again_and_one_that_always_does_is_not() {
    let daemon = Daemon::start();
    let before = daemon.agent("bot", "repo");
    daemon
        .ctx(&["agent", "prompt", "bot", "crash"])
        .failure(1, "exit status: 3");
    let after = daemon.until("bot", "running");
    assert_eq!(after["restarts"], 1);
    assert_ne!(
        after["sessionId"], before["sessionId"],
        "it has forgotten what was said"
    );
    assert_eq!(daemon.prompt("bot", "say here"), "here");
    let states: Vec<String> = daemon
        .events("agent:state")
        .iter()
        .map(|event| event["state"].as_str().unwrap().to_owned())
        .collect();
    let all = [
        "created",
        "starting",
        "running",
        "crashed",
        "restarting",
        "starting",
        "running",
    ];
    assert_eq!(states, all);
}

#[test]
fn an_agent_that_cannot_start_says_why() {
    let daemon = Daemon::start();
    daemon
        .ctx(&[
            "agent",
            "create",
            "x",
            "--backend",
            "x",
            "--command",
            "no-such-program",
        ])
        .success();
    daemon
        .ctx(&["agent", "start", "x"])
        .failure(1, "no-such-program");
    assert_eq!(daemon.show("x")["state"], "failed");
    daemon
        .ctx(&[
            "agent",
            "create",
            "y",
            "--backend",
            "y",
            "--command",
            "sh",
            "-c",
            "echo help >&2; exit 7",
        ])
        .success();
    daemon.ctx(&["agent", "start", "y"]).failure(1, "help");
    daemon
        .ctx(&["agent", "create", "z", "--backend", "goos"])
        .failure(3, "goos");
    daemon
        .ctx(&["agent", "prompt", "x", "hello"])
        .failure(1, "does not run");
    daemon
        .ctx(&["agent", "start", "nobody"])
        .failure(1, "no agent `nobody`");
}

#[test]
fn a_stop_ends_all_that_an_agent_started() {
    let daemon = Daemon::start();
    daemon.agent("bot", "repo");
    let child: i64 = daemon.prompt("bot", "child").parse().unwrap();
    assert!(runs(child));
    daemon.ctx(&["agent", "stop", "bot"]).success();
    gone(child);
    assert_eq!(daemon.show("bot")["state"], "stopped");
    daemon.ctx(&["agent", "rm", "bot"]).success();
    daemon
        .ctx(&["agent", "show", "bot"])
        .failure(1, "no agent `bot`");
}

#[test]
fn workspaces_stay_or_go_as_their_policy_says() {
    let daemon = Daemon::start();
    daemon.create("short", "service", &["--ephemeral"], &[]);
    daemon.create("long", "service", &[], &[]);
    let data = daemon.project.path().join(".contexture");
    let (short, long) = (data.join("ephemeral/short"), data.join("workspaces/long"));
    for name in ["short", "long"] {
        daemon.ctx(&["agent", "start", name]).success();
    }
    assert!(short.is_dir() && long.is_dir());
    std::fs::write(long.join("notes"), "mine").unwrap();
    for name in ["short", "long"] {
        daemon.ctx(&["agent", "stop", name]).success();
    }
    assert!(!short.exists() && long.join("notes").is_file());
}

/// The state survives a restart of the daemon, and those that ran run again.
#[test]
fn a_daemon_that_is_told_to_end_leaves_nothing_and_comes_back_with_its_agents() {
    let mut daemon = Daemon::start();
    daemon.agent("on", "repo");
    daemon.agent("off", "repo");
    daemon.create("never", "repo", &[], &[]);
    daemon.ctx(&["agent", "stop", "off"]).success();
    let child: i64 = daemon.prompt("on", "child").parse().unwrap();
    assert_eq!(daemon.terminate(), Some(0));
    gone(child);
    assert!(!daemon.project.state().join("daemon.json").exists());
    // Without a daemon what is known is still known.
    let states = |daemon: &Daemon| {
        let all = daemon.ctx(&["agent", "list", "--json"]).json();
        let all = all.as_array().unwrap().iter();
        all.map(|agent| agent["state"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(states(&daemon), ["created", "stopped", "stopped"]);
    daemon
        .ctx(&["agent", "start", "off"])
        .failure(1, "no daemon runs");
    daemon.again();
    daemon.until("on", "running");
    assert_eq!(states(&daemon), ["created", "stopped", "running"]);
    assert_eq!(daemon.prompt("on", "say back"), "back");
}

/// F7 for agents: `kill -9` of the daemon while ten of them work.
#[test]
fn nothing_is_left_of_ten_agents_after_kill_9_and_all_come_back() {
    let mut daemon = Daemon::start();
    let names: Vec<String> = (0..10).map(|n| format!("a{n}")).collect();
    let mut children = Vec::new();
    for (n, name) in names.iter().enumerate() {
        let options: &[&str] = if n % 2 == 0 { &[] } else { &["--ephemeral"] };
        daemon.create(name, "service", options, &[]);
        daemon.ctx(&["agent", "start", name]).success();
        children.push(daemon.prompt(name, "child").parse::<i64>().unwrap());
    }
    let waiting: Vec<_> = names
        .iter()
        .map(|name| {
            daemon
                .ctx(&["agent", "prompt", name, "wait"])
                .command()
                .spawn()
                .unwrap()
        })
        .collect();
    daemon.logged("agent:prompted", 20);
    let folder = daemon.project.path().to_string_lossy().into_owned();
    let mut before = processes(&folder);
    before.extend(
        processes("agent.py")
            .iter()
            .filter(|pid| children.contains(pid)),
    );
    daemon.kill();
    for pid in children {
        gone(pid);
    }
    for child in waiting {
        assert!(!child.wait_with_output().unwrap().status.success());
    }
    for pid in before {
        gone(pid);
    }
    // The log still has them as running, which nobody may be told.
    for name in &names {
        assert_eq!(daemon.show(name)["state"], "stopped");
    }
    // The lock went with the process, and the file that it left is known to be old.
    daemon.again();
    assert!(
        !daemon
            .project
            .path()
            .join(".contexture/ephemeral/a1/left")
            .exists()
    );
    for name in &names {
        daemon.until(name, "running");
        assert_eq!(daemon.prompt(name, "say back"), "back");
    }
}

#[test]
fn a_session_is_loaded_again_where_the_agent_can() {
    let mut daemon = Daemon::start();
    daemon.create("bot", "repo", &[], &["--load"]);
    let before = daemon.ctx(&["agent", "start", "bot", "--json"]).json();
    daemon.prompt("bot", "say one");
    assert_eq!(daemon.terminate(), Some(0));
    daemon.again();
    let after = daemon.until("bot", "running");
    assert_eq!(before["sessionId"], after["sessionId"]);
    daemon.prompt("bot", "say two");
    let entries = daemon.project.entries(after["sessionId"].as_str().unwrap());
    let text = |kind: &str| entries.iter().filter(|entry| entry["type"] == kind).count();
    // What it told of the past is not written a second time, nor what it was told.
    assert_eq!((text("message"), text("sections")), (4, 1));
}
