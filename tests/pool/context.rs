//! What an agent is told.

use serde_json::json;

use crate::common::Project;
use crate::pool::project;

#[test]
fn the_projects_pool_and_a_task() {
    let project = project();
    let task = json!({"taskId": "task-1", "taskDescription": "Find papers", "requiredCapabilities": ["web_search"],
        "orchestratorNote": "Use research."});
    let task = project.write("task.json", task.to_string());
    let base = project.write("base.md", "You hand out work.\n");
    let args = [
        "agent-context",
        "--task",
        task.to_str().unwrap(),
        "--base",
        base.to_str().unwrap(),
    ];
    insta::assert_snapshot!(project.ctx(&args).success(), @r"
    You hand out work.

    ## Resource Pool
    - Resources: 3
    - Available: 3
    - Busy: 0
    - Error: 0

    ## Capabilities

    | Capability | Available | Total | Available resources |
    |---|---|---|---|
    | web_search | 1 | 1 | research |
    | report_generation | 1 | 1 | research |
    | file_ops | 1 | 1 | coder |
    | schedule_task | 1 | 1 | scheduler-1 |

    ## Current Task
    - ID: task-1
    - Description: Find papers
    - Required capabilities: web_search

    ## Orchestrator's Instructions
    Use research.
    ");
    let told = project.ctx(&[&args[..3], &["--json"]].concat()).json();
    assert_eq!(told["task"]["requiredCapabilities"], json!(["web_search"]));
    assert_eq!(
        told["capabilityToResources"]["web_search"],
        json!(["research"])
    );
    assert!(told["timestamp"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn a_pool_from_a_file_in_chinese() {
    let project = Project::new();
    let pool = json!([{"id": "a", "capabilities": ["web_search"], "status": "busy"}]);
    let said = project
        .ctx(&["agent-context", "--pool", "-", "--locale", "zh"])
        .input(pool.to_string())
        .success();
    insta::assert_snapshot!(said, @r"
    ## 当前资源池状态
    - 总资源数：1
    - 可用：0
    - 忙碌：1
    - 错误：0

    ## 可用能力目录

    | 能力 | 可用资源数 | 总资源数 | 可用资源 ID |
    |------|-----------|---------|------------|
    | web_search | 0 | 1 | 无 |
    ");
}

#[test]
fn what_is_wrong_is_named_with_its_file() {
    let project = Project::new();
    let ask = |args: &[&str]| project.ctx(&[&["agent-context"][..], args].concat());
    let pool = project.write("pool.json", r#"[{"id":"a"},{"id":"a"}]"#);
    ask(&["--pool", pool.to_str().unwrap()])
        .failure(3, "pool.json: resources[1].id: `a` stands twice");
    let keys = project.write("keys.json", r#"[{"id":"a","id":"b"}]"#);
    ask(&["--pool", keys.to_str().unwrap()]).failure(3, "stands twice");
    let task = project.write("task.json", r#"{"taskDescription":"x"}"#);
    ask(&["--task", task.to_str().unwrap()]).failure(3, "task.json: taskId: is missing");
    ask(&["--pool", "gone.json"]).failure(1, "gone.json");
    ask(&["--locale", "fr"]).failure(2, "fr");
    let base = project.write("base.md", b"\xff\xfe");
    ask(&["--base", base.to_str().unwrap()]).failure(3, "not UTF-8");
}
