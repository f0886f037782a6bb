use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::common::Project;
use crate::model_server::{Answer, ModelServer, Piece};
use crate::nats_server::NatsServer;
use crate::work::scene::Daemon;
use crate::work::{ENV, Worker, asks, model, model_with_busy_executors, until, with};

const GOAL: &str = "research DeepSeek";

/// The two executors of the spec's scenes.
fn project(model: &ModelServer) -> Project {
    let project = asks(Project::new(), model);
    can_do(&project);
    project
        .ctx(&["pool", "add", "research", "--capability", "web_search:8"])
        .success();
    project
        .ctx(&["pool", "add", "writer", "--capability", "file_ops:5"])
        .success();
    project
}

/// Each of their capabilities takes a tool that our own loop has.
fn can_do(project: &Project) {
    for [capability, tool] in [
        ["web_search", "skills_list"],
        ["file_ops", "context_recall"],
    ] {
        let map = ["pool", "map", capability, tool];
        project.ctx(&map).success();
    }
}

fn ends(lines: &[Value], id: &str) -> Value {
    let mut of = lines.iter().rev().filter(|line| line["type"] == "task");
    of.find(|line| line["task"]["id"] == id).unwrap()["task"].clone()
}

#[test]
fn two_executors_in_one_process() {
    let model = model_with_busy_executors();
    let project = project(&model);
    let lines = with(project.ctx(&["orchestrate", GOAL, "--json"])).lines();
    let (search, report) = (ends(&lines, "task-2"), ends(&lines, "task-3"));
    assert_eq!(
        (search["executor"].as_str(), search["result"].as_str()),
        (Some("research"), Some("did: search for papers"))
    );
    assert_eq!(
        (report["executor"].as_str(), report["result"].as_str()),
        (Some("writer"), Some("did: write the report"))
    );
    let done = lines.iter().find(|line| line["type"] == "done").unwrap();
    assert_eq!(
        done["text"],
        "Both done: did: search for papers / did: write the report"
    );
    // The goal is a task too, with what all of it cost.
    let goal = project.ctx(&["task", "show", "task-1", "--json"]).json();
    assert_eq!(
        (
            goal["state"].as_str(),
            goal["parts"].as_array().unwrap().len()
        ),
        (Some("done"), 2)
    );
    assert!(goal["used"]["tokens"].as_u64() > goal["spent"]["tokens"].as_u64());
    // It was told of the pool behind a prefix that stayed the same, and anew when the pool had changed.
    let requests: Vec<Value> = model.seen().iter().map(|seen| seen.json()).collect();
    let own: Vec<&Value> = requests
        .iter()
        .filter(|body| body["tools"].to_string().contains("dispatch_task"))
        .collect();
    assert_eq!(own.len(), 3);
    assert_eq!(
        own[0]["messages"][0], own[2]["messages"][0],
        "the system side"
    );
    let told = |body: &Value| body["messages"].to_string().matches("Available: ").count();
    assert!(
        told(own[0]) == 1 && told(own[2]) > 1,
        "{} {}",
        told(own[0]),
        told(own[2])
    );
}

#[test]
fn as_a_person_sees_it() {
    let model = model();
    let project = project(&model);
    let (out, said) = with(project.ctx(&["orchestrate", GOAL])).ends(0);
    assert!(out.contains("Plan: search, and write the report."), "{out}");
    assert!(out.contains("Both done: "), "{out}");
    for needle in [
        "task-2",
        "research",
        "did: search for papers",
        "task-3",
        "writer",
        "done",
    ] {
        assert!(said.contains(needle), "{needle}: {said}");
    }
}

/// The spec's third scene: nobody can, so the orchestrator stops and says what is missing.
#[test]
fn a_shortage_is_reported_with_a_stop() {
    let server = ModelServer::answering(|seen| {
        let told = String::from_utf8_lossy(&seen.body).into_owned();
        if told.contains("## Capabilities") && !told.contains("| web_search |") {
            let why = json!({"reason": "nobody can search", "missing": ["web_search"]});
            Answer::Says(vec![Piece::Call("c1", "stop", why)])
        } else {
            Answer::Says(vec![Piece::Text("It was not told so.")])
        }
    });
    let project = project(&server);
    project.ctx(&["pool", "retire", "research"]).success();
    let (_, said) = with(project.ctx(&["orchestrate", GOAL])).ends(1);
    assert!(
        said.contains("nobody can search (missing: web_search)"),
        "{said}"
    );
    let goal = project.ctx(&["task", "show", "task-1", "--json"]).run();
    let goal: Value = serde_json::from_slice(&goal.stdout).unwrap();
    assert_eq!(goal["state"], "failed");
}

#[test]
fn what_may_be_spent_is_shared_with_the_parts() {
    let model = model();
    let project = project(&model);
    let args = ["orchestrate", GOAL, "--json", "--max-tokens", "5000"];
    with(project.ctx(&args)).run();
    let parts = project.ctx(&["task", "list", "--json"]).json();
    let most = |n: usize| parts[n]["limits"]["maxTokens"].as_u64().unwrap();
    assert_eq!((most(0), most(1)), (5_000, 2_500), "half of what is left");
    assert_eq!(most(2), 1_250);
}

// needs: nats
#[test]
fn workers_over_nats_one_killed_on_the_way() {
    let Some(nats) = NatsServer::get() else {
        return;
    };
    let (url, model) = (nats.url(), model());
    let env = [&ENV[..], &[("CONTEXTURE_HUB_URL", url.as_str())]].concat();
    let daemon = Daemon::with(asks(Project::new(), &model), &env);
    let project = &daemon.project;
    can_do(project);
    let worker = |args: &[&str]| {
        let all = [&["worker", "--json"][..], args].concat();
        Worker::start(&with(project.ctx(&all)).env("CONTEXTURE_HUB_URL", &url))
    };
    // The better one is asked first, and never gets anywhere.
    let stuck = [
        "--id",
        "stuck",
        "--capability",
        "web_search:9",
        "--command",
        "sleep",
        "100",
    ];
    let mut stuck = worker(&stuck);
    let _research = worker(&["--id", "research", "--capability", "web_search:2"]);
    let _writer = worker(&["--id", "writer", "--capability", "file_ops"]);
    for id in ["stuck", "research", "writer"] {
        until(id, crate::work::SOON, || {
            crate::work::status(project, id).filter(|status| status == "available")
        });
    }
    let ctx = with(project.ctx(&["orchestrate", GOAL, "--json"]));
    let mut child = ctx
        .command()
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut lines = Vec::new();
    let mut killed = false;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if !killed && line["task"]["executor"] == "stuck" && line["task"]["state"] == "running" {
            stuck.kill();
            killed = true;
        }
        lines.push(line);
    }
    assert!(child.wait().unwrap().success() && killed);
    let search = ends(&lines, "task-2");
    assert_eq!(
        (search["executor"].as_str(), search["attempt"].as_u64()),
        (Some("research"), Some(2))
    );
    assert_eq!(search["result"], "did: search for papers");
    assert_eq!(
        ends(&lines, "task-3")["result"],
        json!("did: write the report")
    );
}
