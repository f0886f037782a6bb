use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Project, ctx};
use crate::nats_server::NatsServer;
use crate::work::scene::Daemon;
use crate::work::{ENV, SEARCH, SOON, Worker, asks, model, status, until, with};

/// Without NATS workers join the daemon.
#[test]
fn a_worker_of_another_process_joins_the_daemon() {
    let daemon = Daemon::start();
    let project = &daemon.project;
    let join = [
        "worker",
        "--json",
        "--id",
        "w",
        "--capability",
        "upper",
        "--command",
        "tr",
        "a-z",
        "A-Z",
    ];
    let mut worker = Worker::start(&project.ctx(&join));
    let done = project
        .ctx(&[
            "task",
            "dispatch",
            "hello",
            "--requires",
            "upper",
            "--wait",
            "--json",
        ])
        .json();
    assert_eq!(
        (done["result"].as_str(), done["executor"].as_str()),
        (Some("HELLO"), Some("w"))
    );
    // It says when it goes.
    assert_eq!(worker.interrupt(), Some(0));
    until("released", SOON, || {
        status(project, "w").filter(|status| status == "released")
    });
}

#[test]
fn one_that_is_killed_loses_its_task_to_another() {
    let daemon = Daemon::with(patient(Project::new()), &[]);
    let project = &daemon.project;
    let slow = [
        "worker",
        "--json",
        "--id",
        "slow",
        "--capability",
        "work:9",
        "--command",
        "sleep",
        "60",
    ];
    let mut slow = Worker::start(&project.ctx(&slow));
    project
        .ctx(&["task", "dispatch", "x", "--requires", "work"])
        .success();
    let show = || project.ctx(&["task", "show", "task-1", "--json"]).json();
    until("running", SOON, || {
        (show()["state"] == "running").then_some(())
    });
    let quick = [
        "worker",
        "--json",
        "--id",
        "quick",
        "--capability",
        "work",
        "--command",
        "cat",
    ];
    let _quick = Worker::start(&project.ctx(&quick));
    slow.kill();
    let done = project
        .ctx(&["task", "show", "task-1", "--wait", "--json"])
        .json();
    assert_eq!(
        (done["executor"].as_str(), done["attempt"].as_u64()),
        (Some("quick"), Some(2))
    );
    assert_eq!(status(project, "slow").unwrap(), "error");
    // It is retired, and comes back when somebody says so.
    let pool = |what: &str| project.ctx(&["pool", what, "slow"]).success();
    assert_eq!(pool("retire"), "retired: slow\n");
    assert_eq!(status(project, "slow").unwrap(), "released");
    assert_eq!(pool("repair"), "repaired: slow\n");
}

#[test]
fn a_worker_is_refused_that_cannot_do_what_it_says() {
    let model = model();
    let daemon = Daemon::with(asks(Project::new(), &model), &ENV);
    let project = &daemon.project;
    let join = [
        "worker",
        "--id",
        "w",
        "--json",
        "--capability",
        "web_search",
    ];
    let said = with(project.ctx(&join)).failure(5, "--capability web_search: no tool here");
    assert!(
        said.contains("it takes web_search")
            && said.contains("Here: ")
            && said.contains("skills_list"),
        "{said}"
    );
    project
        .ctx(&["worker", "--capability", "x", "--agent", "nobody"])
        .failure(1, "there is no agent `nobody`");
    assert_eq!(status(project, "w"), None);
    // The project says which tool does it.
    let map = ["pool", "map", "web_search", "skills_list", "--json"];
    assert_eq!(
        project.ctx(&map).json(),
        json!({"mapped": {"capability": "web_search", "tools": ["skills_list"]}})
    );
    assert_eq!(
        project.ctx(&["pool", "map", "web_search"]).success(),
        "web_search: skills_list\n"
    );
    let _worker = Worker::start(&with(project.ctx(&join)));
    let done = with(project.ctx(&SEARCH)).json();
    assert_eq!(
        (&done["executor"], &done["result"]),
        (&json!("w"), &json!("did: search"))
    );
    let tools = &model.seen()[0].json()["tools"];
    assert_eq!(tools[0]["function"]["name"], "skills_list");
}

/// A project whose dispatcher soon misses who is silent.
pub fn patient(project: Project) -> Project {
    project.write(
        "contexture.json",
        json!({"hub": {"patienceSeconds": 4}}).to_string(),
    );
    project
}

// needs: nats
#[test]
fn over_nats_a_worker_needs_only_its_key() {
    let Some(nats) = NatsServer::get() else {
        return;
    };
    let url = nats.url();
    let daemon = Daemon::with(patient(Project::new()), &[("CONTEXTURE_HUB_URL", &url)]);
    let project = &daemon.project;
    let add = ["pool", "add", "far", "--capability", "upper", "--worker"];
    project.ctx(&add).success();
    let key = project.ctx(&["pool", "key", "far", "--json"]).json();
    let key = key["key"].as_str().unwrap();
    // A machine that has nothing of the project.
    let elsewhere = Project::new();
    let join = |more: &[&str]| {
        let args = [
            &["worker", "--json", "--command", "tr", "a-z", "A-Z"][..],
            more,
        ]
        .concat();
        elsewhere
            .ctx(&args)
            .env("CONTEXTURE_HUB_URL", &url)
            .env("CONTEXTURE_WORKER_KEY", key)
    };
    join(&[])
        .env("CONTEXTURE_WORKER_KEY", "ctxw1-guest-x")
        .failure(3, "CONTEXTURE_WORKER_KEY holds no key");
    let _worker = Worker::start(&join(&[]));
    let done = project
        .ctx(&[
            "task",
            "dispatch",
            "hello",
            "--requires",
            "upper",
            "--wait",
            "--json",
        ])
        .json();
    assert_eq!(
        (done["result"].as_str(), done["executor"].as_str()),
        (Some("HELLO"), Some("far"))
    );
}

/// A key is revoked: its worker ends and says why, at once and after restarts, and the next key works.
fn a_key_is_revoked(daemon: &mut Daemon, elsewhere: &Path, env: &[(&str, &str)]) {
    let key = |daemon: &Daemon| {
        let key = daemon.project.ctx(&["pool", "key", "far", "--json"]).json();
        key["key"].as_str().unwrap().to_owned()
    };
    let join = |key: &str| {
        let args = ["worker", "--json", "--command", "tr", "a-z", "A-Z"];
        let join = ctx(&args).dir(elsewhere).env("CONTEXTURE_WORKER_KEY", key);
        env.iter()
            .fold(join, |join, (name, value)| join.env(name, value))
    };
    let add = ["pool", "add", "far", "--capability", "upper", "--worker"];
    daemon.project.ctx(&add).success();
    let old = key(daemon);
    let mut worker = Worker::start(&join(&old));
    until("there", SOON, || {
        status(&daemon.project, "far").filter(|status| status == "available")
    });
    daemon
        .project
        .ctx(&["pool", "revoke-key", "nobody"])
        .failure(1, "there is no resource");
    let revoked = daemon.project.ctx(&["pool", "revoke-key", "far", "--json"]);
    assert_eq!(revoked.json(), json!({"revoked": ["far"]}));
    assert_eq!(worker.child.wait().unwrap().code(), Some(5));
    let next = key(daemon);
    assert_ne!(next, old);
    let refused = || {
        let (_, said) = join(&old).ends(5);
        assert!(said.contains("the key of `far` was revoked"), "{said}");
    };
    refused();
    let mut worker = Worker::start(&join(&next));
    daemon.kill();
    daemon.again();
    // Whoever comes with the old key takes nothing from the next one.
    refused();
    let dispatch = [
        "task",
        "dispatch",
        "hello",
        "--requires",
        "upper",
        "--wait",
        "--json",
    ];
    let done = daemon.project.ctx(&dispatch).json();
    assert_eq!(done["result"], "HELLO");
    // Nor does removing and adding it bring the old one back.
    assert_eq!(worker.interrupt(), Some(0));
    until("gone", SOON, || {
        status(&daemon.project, "far").filter(|status| status == "released")
    });
    assert_eq!(key(daemon), next);
    assert_eq!(daemon.logged("key:revoked", 1)[0]["resource"], "far");
}

/// In the project's folder a worker needs no broker: it has its own key, and joins the daemon.
#[test]
fn a_revoked_key_is_refused_by_the_daemon() {
    let mut daemon = Daemon::with(patient(Project::new()), &[]);
    let here = daemon.project.path().to_owned();
    a_key_is_revoked(&mut daemon, &here, &[]);
}

// needs: nats
#[test]
fn a_revoked_key_is_refused_over_nats() {
    let Some(nats) = NatsServer::get() else {
        return;
    };
    let url = nats.url();
    let env = [("CONTEXTURE_HUB_URL", url.as_str())];
    let mut daemon = Daemon::with(patient(Project::new()), &env);
    let elsewhere = Project::new();
    a_key_is_revoked(&mut daemon, elsewhere.path(), &env);
}

// needs: nats
#[test]
fn an_outage_of_the_broker_delays_and_loses_nothing() {
    let Some(nats) = NatsServer::get() else {
        return;
    };
    let url = nats.url();
    let daemon = Daemon::with(patient(Project::new()), &[("CONTEXTURE_HUB_URL", &url)]);
    let project = &daemon.project;
    let join = [
        "worker",
        "--json",
        "--id",
        "w",
        "--capability",
        "work",
        "--command",
        "sh",
        "-c",
        "sleep 3; cat",
    ];
    let _worker = Worker::start(&project.ctx(&join).env("CONTEXTURE_HUB_URL", &url));
    project
        .ctx(&["task", "dispatch", "x", "--requires", "work"])
        .success();
    let show = || project.ctx(&["task", "show", "task-1", "--json"]).json();
    until("running", SOON, || {
        (show()["state"] == "running").then_some(())
    });
    nats.stop();
    // Longer than a worker may be silent, and than the task takes.
    std::thread::sleep(Duration::from_secs(7));
    assert_eq!(
        show()["state"],
        "running",
        "whom nobody can hear is not gone"
    );
    nats.restart();
    let done = project
        .ctx(&["task", "show", "task-1", "--wait", "--json"])
        .json();
    assert_eq!(
        (done["result"].as_str(), done["attempt"].as_u64()),
        (Some("x"), Some(1)),
        "done once"
    );
}

/// The pool does not fill up with the names of processes that were.
#[test]
fn one_that_nobody_named_is_forgotten_when_it_goes() {
    let daemon = Daemon::start();
    let project = &daemon.project;
    let mut worker =
        Worker::start(&project.ctx(&["worker", "--json", "--capability", "x", "--command", "cat"]));
    let known = || {
        let pool = project.ctx(&["pool", "list", "--json"]).json();
        pool["resources"].as_array().unwrap().len()
    };
    until("there", SOON, || (known() == 1).then_some(()));
    assert_eq!(worker.interrupt(), Some(0));
    until("gone", SOON, || (known() == 0).then_some(()));
}

#[test]
fn a_worker_finds_the_daemon_that_was_started_again() {
    let mut daemon = Daemon::start();
    let join = [
        "worker",
        "--json",
        "--id",
        "w",
        "--capability",
        "upper",
        "--command",
        "tr",
        "a-z",
        "A-Z",
    ];
    let _worker = Worker::start(&daemon.project.ctx(&join));
    let project = &daemon.project;
    until("there", SOON, || {
        status(project, "w").filter(|status| status == "available")
    });
    daemon.kill();
    daemon.again();
    let dispatch = [
        "task",
        "dispatch",
        "hello",
        "--requires",
        "upper",
        "--wait",
        "--json",
    ];
    let done = daemon.project.ctx(&dispatch).json();
    assert_eq!(done["result"], "HELLO");
}

/// Executors are agents of any make: the one of the resource's name, or the one that a worker hands on to.
#[test]
fn agents_over_acp_do_tasks() {
    let daemon = Daemon::start();
    let project = &daemon.project;
    let does = |requires: &str| {
        let dispatch = [
            "task",
            "dispatch",
            "take notes",
            "--requires",
            requires,
            "--wait",
            "--json",
        ];
        project.ctx(&dispatch).json()
    };
    daemon.create("scribe", "repo", &[], &["--load"]);
    project
        .ctx(&["pool", "add", "scribe", "--capability", "notes"])
        .success();
    let done = does("notes");
    assert_eq!(
        (done["result"].as_str(), done["executor"].as_str()),
        (Some("did: take notes"), Some("scribe"))
    );
    assert_eq!(
        daemon.show("scribe")["state"],
        "running",
        "it was started for the task"
    );
    // Another task knows nothing of it: its session is its own, also with an agent that remembers.
    let session = |name: &str| daemon.show(name)["sessionId"].as_str().unwrap().to_owned();
    let first = session("scribe");
    does("notes");
    let second = session("scribe");
    assert_ne!(first, second);
    for session in [first, second] {
        let entries = project.entries(&session);
        let asked = |entry: &&Value| entry["payload"]["message"]["role"] == "user";
        assert_eq!(entries.iter().filter(asked).count(), 1);
    }
    daemon.create("other", "repo", &[], &[]);
    let join = [
        "worker",
        "--json",
        "--id",
        "far",
        "--capability",
        "more",
        "--agent",
        "other",
    ];
    let _worker = Worker::start(&project.ctx(&join));
    let done = does("more");
    assert_eq!(
        (done["result"].as_str(), done["executor"].as_str()),
        (Some("did: take notes"), Some("far"))
    );
}
