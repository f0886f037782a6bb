//! `ctx events`: what was logged, and with `--follow` what the daemon tells.

use std::io::{BufRead, BufReader};

use serde_json::Value;

use crate::fleet::scene::Daemon;

#[test]
fn what_happened_is_told_and_can_be_chosen() {
    let daemon = Daemon::start();
    daemon.ctx(&["agent", "create", "ada"]).success();
    daemon.ctx(&["agent", "create", "bob"]).success();
    daemon
        .ctx(&["pool", "add", "one", "--capability", "c"])
        .success();
    // Events are written behind what they tell.
    daemon.logged("agent:state", 2);
    let all = daemon.ctx(&["events", "--json"]).lines();
    assert!(
        all.iter()
            .all(|line| line["at"].is_string() && line["id"].is_string()),
        "{all:?}"
    );
    let of_bob = daemon
        .ctx(&["events", "--json", "--agent", "bob", "--type", "agent:"])
        .lines();
    assert_eq!(of_bob.len(), 1, "{of_bob:?}");
    assert_eq!(
        (&of_bob[0]["agent"], &of_bob[0]["type"]),
        (&"bob".into(), &"agent:state".into())
    );
    let at = of_bob[0]["at"].as_str().unwrap();
    let day = &at[..10];
    assert_eq!(
        daemon
            .ctx(&["events", "--json", "--since", day, "--agent", "bob"])
            .lines(),
        of_bob
    );
    assert_eq!(
        daemon
            .ctx(&["events", "--json", "--since", at, "--agent", "bob"])
            .lines(),
        of_bob
    );
    assert_eq!(
        daemon
            .ctx(&["events", "--json", "--since", "1h", "--agent", "bob"])
            .lines(),
        of_bob
    );
    assert_eq!(
        daemon.ctx(&["events", "--since", "9999-01-01"]).success(),
        ""
    );
    let shown = daemon.ctx(&["events", "--agent", "ada"]).success();
    assert!(
        shown.contains("agent:state") && shown.contains("state=created"),
        "{shown}"
    );
    for wrong in ["yesterday", "5", "2026-1-1", "-3m", "99999999999999999999d"] {
        let since = format!("--since={wrong}");
        daemon.ctx(&["events", &since]).failure(2, "not a time");
    }
}

#[test]
fn followed_events_come_as_they_happen_and_end_with_the_daemon() {
    let mut daemon = Daemon::start();
    daemon.ctx(&["agent", "create", "before"]).success();
    let follow = daemon.ctx(&[
        "events", "--follow", "--json", "--since", "1h", "--type", "agent:",
    ]);
    let mut child = follow.command().spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut next = || {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| serde_json::from_str::<Value>(&line).unwrap())
    };
    // What was, then what is.
    assert_eq!(next().unwrap()["agent"], "before");
    daemon
        .ctx(&["pool", "add", "one", "--capability", "c"])
        .success();
    daemon.ctx(&["agent", "create", "after"]).success();
    assert_eq!(next().unwrap()["agent"], "after");
    daemon.terminate();
    assert_eq!(next(), None);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("the daemon ended"), "{said}");
    daemon
        .ctx(&["events", "--follow"])
        .failure(1, "no daemon runs");
}
