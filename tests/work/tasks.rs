use serde_json::{Value, json};

use crate::common::Project;
use crate::work::{ENV, SEARCH, SOON, asks, model, until, with};

#[test]
fn a_task_waits_in_the_log_for_somebody_who_hands_it_out() {
    let project = Project::new();
    project
        .ctx(&["pool", "add", "a", "--capability", "web_search"])
        .success();
    let made = project
        .ctx(&[
            "task",
            "dispatch",
            "search",
            "--requires",
            "web_search:3",
            "--bd-task",
            "finger-60.1",
            "--json",
        ])
        .json();
    assert_eq!(made["bdTaskId"], "finger-60.1");
    assert_eq!(
        (made["id"].as_str(), made["state"].as_str()),
        (Some("task-1"), Some("queued"))
    );
    let shown = project.ctx(&["task", "show", "task-1", "--json"]).json();
    assert_eq!(
        shown["requires"][0],
        json!({"capability": "web_search", "minLevel": 3, "optional": false})
    );
    project.ctx(&["task", "cancel", "task-1"]).success();
    project.ctx(&["task", "show", "task-1"]).ends(1);
    let all = project
        .ctx(&["task", "list", "--state", "cancelled", "--json"])
        .json();
    assert_eq!(all.as_array().unwrap().len(), 1);
}

#[test]
fn done_here_and_now_without_a_daemon() {
    let model = model();
    let project = asks(Project::new(), &model);
    project
        .ctx(&["pool", "map", "web_search", "skills_list"])
        .success();
    project
        .ctx(&["pool", "add", "a", "--capability", "web_search"])
        .success();
    let done = with(project.ctx(&SEARCH)).json();
    assert_eq!(
        (done["state"].as_str(), done["result"].as_str()),
        (Some("done"), Some("did: search"))
    );
    assert_eq!(
        (done["executor"].as_str(), done["attempt"].as_u64()),
        (Some("a"), Some(1))
    );
    // It has the tool that it was chosen for.
    let tools = &model.seen()[0].json()["tools"];
    assert_eq!(tools[0]["function"]["name"], "skills_list");
    // What it was told is in its session and in the board.
    let told = done["context"].as_str().unwrap();
    assert!(told.contains("- ID: task-1"), "{told}");
    let request = String::from_utf8(model.seen()[0].body.clone()).unwrap();
    assert!(
        request.contains("- ID: task-1") && request.contains("web_search"),
        "{request}"
    );
    let session = project
        .ctx(&["sessions", "show", "task-1.1", "--json"])
        .lines();
    let sections = session
        .iter()
        .find(|entry| entry["type"] == "sections")
        .unwrap();
    assert!(
        sections["payload"]["sections"]
            .to_string()
            .contains("agent-context")
    );
    project.ctx(&["replay", "task-1.1", "--verify"]).success();
    assert_eq!(
        crate::work::status(&project, "a").unwrap(),
        "available",
        "for whoever hands out next"
    );
}

#[test]
fn an_executor_without_the_tool_fails_and_says_which() {
    let model = model();
    let project = asks(Project::new(), &model);
    project
        .ctx(&["pool", "add", "a", "--capability", "web_search"])
        .success();
    let (out, _) = with(project.ctx(&SEARCH)).ends(1);
    let task: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&task["state"], &task["attempt"]),
        (&json!("failed"), &json!(1))
    );
    let why = task["why"].as_str().unwrap();
    assert!(
        why.starts_with("`a` has no tool web_search here") && why.contains("ctx pool map"),
        "{why}"
    );
    assert!(model.seen().is_empty(), "nobody was asked");
}

#[test]
fn what_it_may_spend_is_all_that_it_spends() {
    let model = model();
    let project = asks(Project::new(), &model);
    project.ctx(&["pool", "add", "a"]).success();
    let dispatch = |more: &[&str]| {
        let args = [&["task", "dispatch", "x", "--wait", "--json"], more].concat();
        with(project.ctx(&args)).ends(1).0
    };
    let none: Value = serde_json::from_str(&dispatch(&["--max-tokens", "0"])).unwrap();
    assert_eq!(none["why"], "there are no tokens left for it");
    let few: Value = serde_json::from_str(&dispatch(&["--max-tokens", "10"])).unwrap();
    assert!(
        few["why"]
            .as_str()
            .unwrap()
            .starts_with("what it may spend is spent"),
        "{few}"
    );
    let unknown: Value = serde_json::from_str(&dispatch(&["--max-cost", "1"])).unwrap();
    assert!(
        unknown["why"]
            .as_str()
            .unwrap()
            .contains("nobody knows what openai:gpt-4o costs")
    );
    assert!(model.seen().is_empty(), "nobody was asked");
}

#[test]
fn wrong_words_are_named() {
    let project = Project::new();
    let fails = |args: &[&str], code, needle: &str| {
        project.ctx(args).failure_json(code, needle);
    };
    fails(&["task", "dispatch", " "], 2, "there is no task");
    fails(
        &["task", "dispatch", "x", "--requires", "a:11"],
        3,
        "--requires a:11",
    );
    fails(
        &["task", "dispatch", "x", "--parent", "task-9"],
        1,
        "there is no task `task-9`",
    );
    fails(&["task", "show", "task-1"], 1, "there is no task `task-1`");
    fails(
        &["task", "list", "--state", "lost"],
        3,
        "`state` is unknown",
    );
    fails(
        &["worker", "--capability", "x"],
        1,
        "there is no hub to join",
    );
    fails(
        &["pool", "key", "nobody"],
        3,
        "there is no resource `nobody`",
    );
}

#[test]
fn a_shortage_is_said_and_ends_when_somebody_comes() {
    let model = model();
    let daemon = crate::work::scene::Daemon::with(asks(Project::new(), &model), &ENV);
    let project = &daemon.project;
    project
        .ctx(&["task", "dispatch", "write it", "--requires", "file_ops"])
        .success();
    let show = || project.ctx(&["task", "show", "task-1", "--json"]).json();
    let blocked = until("blocked", SOON, || {
        Some(show()).filter(|task| task["state"] == "blocked")
    });
    assert_eq!(blocked["reason"], "resource_shortage");
    assert_eq!(blocked["missing"], json!(["file_ops"]));
    assert!(
        blocked["why"]
            .as_str()
            .unwrap()
            .contains("nobody declares it")
    );
    // Through the daemon, which has the log.
    project
        .ctx(&["pool", "map", "file_ops", "skills_list"])
        .success();
    project
        .ctx(&["pool", "add", "b", "--capability", "file_ops"])
        .success();
    let done = project
        .ctx(&["task", "show", "task-1", "--wait", "--json"])
        .json();
    assert_eq!(done["result"], "did: write it");
    assert_eq!(crate::work::status(project, "b").unwrap(), "available");
}
