//! What an agent is told.

use contexture::pool::{
    AgentContext, Change, ContextOptions, Locale, NewResource, Pool, SECTION, dynamic_system_prompt,
};
use contexture::prompt::Stability;
use serde_json::{Value, json};

use crate::pool::{AT, allocated, does, example, name, pool};

/// The example of spec 003, as it stands there.
const SPEC: &str = "\
## 当前资源池状态
- 总资源数：5
- 可用：3
- 忙碌：2
- 错误：0

## 可用能力目录

| 能力 | 可用资源数 | 总资源数 | 可用资源 ID |
|------|-----------|---------|------------|
| web_search | 1 | 2 | executor-research |
| file_ops | 2 | 3 | executor-general, executor-coding |
| code_generation | 1 | 1 | executor-coding |
| report_generation | 1 | 2 | executor-research |

## 当前任务
- ID: task-1
- 描述：搜索 DeepSeek 论文
- 所需能力：web_search

## 编排者指令
请使用 executor-research 执行此任务，已分配资源：executor-research";

fn task() -> ContextOptions {
    ContextOptions::from_value(json!({
        "taskId": "task-1",
        "taskDescription": "搜索 DeepSeek 论文",
        "requiredCapabilities": ["web_search"],
        "bdTaskId": "finger-60.1",
        "orchestratorNote": "请使用 executor-research 执行此任务，已分配资源：executor-research",
    }))
    .unwrap()
}

fn told(pool: &Pool, options: ContextOptions) -> AgentContext<'_> {
    pool.agent_context(options, AT).unwrap()
}

/// A pool that was registered in the order of the spec's rows.
fn registered() -> Pool {
    pool(json!([
        {"id": "executor-web", "status": "busy", "currentTaskId": "task-0", "capabilities": ["web_search"]},
        {"id": "executor-general", "capabilities": [{"type": "file_ops", "level": 3}]},
        {"id": "executor-coding", "capabilities": [{"type": "file_ops", "level": 9}, "code_generation"]},
        {"id": "executor-research", "capabilities": ["web_search", "report_generation"]},
        {"id": "executor-files", "status": "deployed", "currentTaskId": "task-9",
            "capabilities": ["file_ops", "report_generation"]},
    ]))
}

#[test]
fn the_specs_example_line_for_line() {
    let pool = registered();
    assert_eq!(told(&pool, task()).render(Locale::Zh).unwrap(), SPEC);
}

#[test]
fn rows_and_ids_follow_the_registration() {
    let mut pool = Pool::default();
    let added = |id: &str, capabilities: &[&str]| {
        let value = json!({"id": id, "capabilities": capabilities});
        let resource = NewResource::from_value(value).unwrap();
        Change::Added { resource }
    };
    for (id, can) in [("z", &["write", "search"][..]), ("a", &["search", "read"])] {
        does(&mut pool, added(id, can)).unwrap();
    }
    let rows = |pool: &Pool| {
        let context = told(pool, ContextOptions::default());
        let value = serde_json::to_value(&context).unwrap();
        value["capabilityToResources"].to_string()
    };
    assert_eq!(
        rows(&pool),
        r#"{"write":["z"],"search":["z","a"],"read":["a"]}"#
    );
    // Read again it is the same; who comes again comes last.
    let again = Pool::from_value(serde_json::to_value(&pool).unwrap()).unwrap();
    assert_eq!(rows(&again), rows(&pool));
    does(&mut pool, Change::Removed { id: name("z") }).unwrap();
    does(&mut pool, added("z", &["write", "search"])).unwrap();
    assert_eq!(
        rows(&pool),
        r#"{"search":["a","z"],"read":["a"],"write":["z"]}"#
    );
}

#[test]
fn the_executor_of_a_task_is_in_its_own_table() {
    let mut pool = example();
    does(&mut pool, allocated("executor-research", "task-1")).unwrap();
    let zh = told(&pool, task()).render(Locale::Zh).unwrap();
    assert!(
        zh.contains("| web_search | 0 | 2 | executor-research（已分配） |"),
        "{zh}"
    );
    let other = ContextOptions {
        task_id: Some("task-2".into()),
        ..ContextOptions::default()
    };
    let en = told(&pool, other).render(Locale::En).unwrap();
    assert!(en.contains("| web_search | 0 | 2 | none |"), "{en}");
    insta::assert_snapshot!(told(&pool, task()).render(Locale::En).unwrap(), @r"
    ## Resource Pool
    - Resources: 5
    - Available: 2
    - Busy: 3
    - Error: 0

    ## Capabilities

    | Capability | Available | Total | Available resources |
    |---|---|---|---|
    | web_search | 0 | 2 | executor-research (assigned) |
    | report_generation | 0 | 2 | executor-research (assigned) |
    | file_ops | 2 | 3 | executor-general, executor-coding |
    | code_generation | 1 | 1 | executor-coding |

    ## Current Task
    - ID: task-1
    - Description: 搜索 DeepSeek 论文
    - Required capabilities: web_search

    ## Orchestrator's Instructions
    请使用 executor-research 执行此任务，已分配资源：executor-research
    ");
}

#[test]
fn an_empty_pool_has_nothing_to_offer() {
    let pool = Pool::default();
    let zh = told(&pool, ContextOptions::default())
        .render(Locale::Zh)
        .unwrap();
    insta::assert_snapshot!(zh, @r"
    ## 当前资源池状态
    - 总资源数：0
    - 可用：0
    - 忙碌：0
    - 错误：0

    ## 可用能力目录

    无
    ");
}

#[test]
fn the_base_prompt_stands_before_the_context_and_alone_without() {
    let pool = example();
    let context = told(&pool, task());
    let both = dynamic_system_prompt("You are one.", Some(&context), Locale::Zh).unwrap();
    let rendered = context.render(Locale::Zh).unwrap();
    assert_eq!(both, format!("You are one.\n\n{rendered}"));
    let alone = dynamic_system_prompt("You are one.", None, Locale::Zh).unwrap();
    assert_eq!(alone, "You are one.");
}

#[test]
fn the_context_as_data_is_the_specs() {
    let mut pool = example();
    does(&mut pool, allocated("executor-coding", "task-1")).unwrap();
    let value = serde_json::to_value(told(&pool, task())).unwrap();
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "timestamp",
            "resourcePool",
            "availableCapabilities",
            "capabilityToResources",
            "task",
            "orchestratorNote"
        ]
    );
    // No free resource: an empty list there, absent here.
    assert_eq!(value["capabilityToResources"]["code_generation"], json!([]));
    assert_eq!(
        value["availableCapabilities"],
        json!(["web_search", "report_generation", "file_ops"])
    );
    assert_eq!(value["task"]["bdTaskId"], "finger-60.1");
    assert_eq!(
        value["task"]["assignedResources"],
        json!(["executor-coding"])
    );
    let summary = &value["resourcePool"];
    let numbers = ["totalResources", "available", "busy", "error", "released"]
        .map(|key| summary[key].as_u64().unwrap());
    assert_eq!(numbers, [5, 2, 3, 0, 0]);
    assert_eq!(
        summary["capabilityCatalog"][3],
        json!({"capability": "code_generation", "resourceCount": 1, "availableCount": 0, "resources": [
            {"id": "executor-coding", "name": "executor-coding", "level": 9, "status": "deployed"}]})
    );
}

#[test]
fn time_and_tracker_are_not_told_so_the_bytes_stay() {
    let pool = example();
    let one = told(&pool, task()).section(Locale::En).unwrap();
    let later = ContextOptions {
        bd_task_id: Some("other".into()),
        ..task()
    };
    let two = pool
        .agent_context(later, "2027-01-01T00:00:00.000Z")
        .unwrap();
    assert_eq!(one, two.section(Locale::En).unwrap());
    assert_eq!(
        (one.name.as_str(), one.stability),
        (SECTION, Stability::Volatile)
    );
}

#[test]
fn what_is_out_of_service_is_counted_and_offers_nothing() {
    let pool = pool(json!([
        {"id": "a", "status": "released", "capabilities": ["x"]},
        {"id": "b", "status": "error", "capabilities": ["x"]},
    ]));
    let text = told(&pool, ContextOptions::default())
        .render(Locale::En)
        .unwrap();
    assert!(text.contains("- Error: 1\n- Out of service: 1\n"), "{text}");
    assert!(text.ends_with("## Capabilities\n\nnone"), "{text}");
}

#[test]
fn thousands_become_a_few_and_a_number() {
    let many: Vec<Value> = (0..300)
        .map(|n| json!({"id": format!("r{n:03}"), "capabilities": [{"type": "x", "level": 1 + n % 10}, format!("only-{n:03}")]}))
        .collect();
    let pool = pool(json!(many));
    let options = ContextOptions {
        task_id: Some("t".into()),
        required_capabilities: vec![name("only-299")],
        ..ContextOptions::default()
    };
    let text = told(&pool, options).render(Locale::En).unwrap();
    let row = text.lines().find(|line| line.starts_with("| x |")).unwrap();
    assert!(
        row.starts_with("| x | 300 | 300 | r009, r019, r029,"),
        "{row}"
    );
    assert!(row.ends_with("r159 and 284 more |"), "{row}");
    assert!(text.contains("| only-299 |") && !text.contains("| only-298 |"));
    assert!(
        text.contains("\n200 more capabilities are not listed.\n"),
        "{text}"
    );
}

#[test]
fn what_is_said_of_a_task_needs_the_task() {
    let pool = example();
    let options = ContextOptions::from_value(json!({"taskDescription": "x"})).unwrap();
    let error = pool.agent_context(options, AT).unwrap_err();
    insta::assert_snapshot!(error, @"taskId: is missing");
}
