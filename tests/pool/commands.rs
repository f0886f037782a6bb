//! The pool of a project.

use serde_json::json;

use crate::common::Project;
use crate::pool::project;

#[test]
fn a_list_for_people() {
    let project = project();
    insta::assert_snapshot!(project.ctx(&["pool", "list"]).success(), @r"
     resource     type          status     can
     research     executor      available  web_search:8 report_generation:7
     coder        executor      available  file_ops:5 shell_exec (no tools)
     scheduler-1  tool          available  schedule_task:8
     3 resources · 3 available
    ");
    insta::assert_snapshot!(project.ctx(&["pool", "catalog"]).success(), @r"
     capability         available    total  resources
     web_search                 1        1  research
     report_generation          1        1  research
     file_ops                   1        1  coder
     schedule_task              1        1  scheduler-1
     3 resources · 3 available
    ");
}

#[test]
fn the_same_as_data() {
    let project = project();
    let list = project.ctx(&["pool", "list", "--json"]).json();
    let clock = &list["resources"][2];
    assert_eq!(clock["name"], "The clock");
    assert_eq!(
        clock["capabilities"],
        json!([{"type": "schedule_task", "level": 8}])
    );
    assert_eq!(
        (&clock["status"], &clock["totalTasks"]),
        (&json!("available"), &json!(0))
    );
    let catalog = project.ctx(&["pool", "catalog", "--json"]).json();
    assert_eq!(catalog["totalResources"], 3);
    assert_eq!(catalog["capabilityCatalog"][0]["capability"], "web_search");
    // What is listed can be read again.
    let file = project.write("pool.json", list.to_string());
    let args = ["agent-context", "--pool", file.to_str().unwrap(), "--json"];
    assert_eq!(project.ctx(&args).json()["resourcePool"], catalog);
}

#[test]
fn it_is_kept_in_the_log_and_the_doctor_knows_it() {
    let project = project();
    project.ctx(&["pool", "remove", "coder"]).success();
    let log = std::fs::read_to_string(project.state().join("pool/main.jsonl")).unwrap();
    assert_eq!(log.lines().count(), 4);
    assert!(
        log.lines()
            .last()
            .unwrap()
            .contains(r#""type":"resource:removed","resourceId":"coder""#),
        "{log}"
    );
    project.ctx(&["doctor"]).success();
    let left = project.ctx(&["pool", "list", "--json"]).json();
    assert_eq!(left["resources"].as_array().unwrap().len(), 2);
}

#[test]
fn a_file_is_added_whole_or_not_at_all() {
    let project = project();
    let two = json!([{"id": "a", "capabilities": ["x"]}, {"id": "coder"}]).to_string();
    let add = || project.ctx(&["pool", "add", "--file", "-"]);
    let error = add()
        .input(two)
        .failure_json(3, "there is a resource `coder` already");
    assert_eq!(error["code"], "ContextInvalidInput");
    assert_eq!(project.ctx(&["pool", "list"]).success().lines().count(), 5);
    let wrong = json!([{"id": "a"}, {"id": "b", "capabilities": [{"type": "x", "level": 0}]}]);
    add().input(wrong.to_string()).failure(
        3,
        "[1].capabilities[0].level: must be a level from 1 to 10, is 0",
    );
    let good = json!([{"id": "a", "capabilities": ["x"]}, {"id": "b"}]);
    assert_eq!(
        add().input(good.to_string()).success(),
        "added: a\nadded: b\n"
    );
}

#[test]
fn tools_come_and_go_and_the_catalog_with_them() {
    let project = project();
    let has = |capability: &str| {
        let catalog = project.ctx(&["pool", "catalog"]).success();
        catalog.contains(&format!(" {capability} "))
    };
    assert!(!has("canvas"));
    project
        .ctx(&["pool", "grant", "research", "canvas"])
        .success();
    assert!(has("canvas"));
    project
        .ctx(&["pool", "revoke", "research", "web_search"])
        .success();
    assert!(!has("web_search"));
    project
        .ctx(&["pool", "grant", "coder", "shell_exec"])
        .failure(3, "resource `coder` is denied the tool `shell_exec`");
}

#[test]
fn the_project_says_which_tools_a_capability_takes() {
    let project = project();
    insta::assert_snapshot!(project.ctx(&["pool", "map"]).success(), @r"
    code_generation: code_generation_tool
    file_ops: read_file, write_file
    report_generation: report_generator
    shell_exec: shell_exec
    web_search: web_search
    ");
    let map = ["pool", "map", "web_search", "fetch", "browse"];
    assert_eq!(
        project.ctx(&map).success(),
        "mapped: web_search takes browse, fetch\n"
    );
    // Who has them not can do it no more.
    let catalog = project.ctx(&["pool", "catalog"]).success();
    assert!(!catalog.contains("web_search"), "{catalog}");
    for tool in ["fetch", "browse"] {
        project.ctx(&["pool", "grant", "research", tool]).success();
    }
    let catalog = project.ctx(&["pool", "catalog"]).success();
    assert!(catalog.contains("web_search"), "{catalog}");
    let rows = project.ctx(&["pool", "map", "--json"]).json();
    assert_eq!(rows["web_search"], json!(["browse", "fetch"]));
    project
        .ctx(&["pool", "map", "web_search", "a,b"])
        .failure(3, "TOOL");
}

#[test]
fn a_resource_goes_out_of_service_and_comes_back() {
    let project = project();
    let does = |what: &str, ids: &[&str]| project.ctx(&[&["pool", what][..], ids].concat());
    assert_eq!(
        does("retire", &["research", "coder"]).success(),
        "retired: research\nretired: coder\n"
    );
    let list = project.ctx(&["pool", "list"]).success();
    assert!(list.contains("2 out of service"), "{list}");
    does("repair", &["research", "scheduler-1"]).failure(3, "`scheduler-1`");
    assert_eq!(
        project.ctx(&["pool", "list"]).success(),
        list,
        "all or none"
    );
    let repaired = does("repair", &["research", "coder", "--json"]).json();
    assert_eq!(repaired, json!({"repaired": ["research", "coder"]}));
    does("repair", &["nobody"]).failure(3, "there is no resource `nobody`");
}

#[test]
fn a_match_says_who_or_what_is_missing() {
    let project = project();
    let ask = |needs: &[&str]| project.ctx(&[&["pool", "match"][..], needs].concat());
    insta::assert_snapshot!(ask(&["web_search:5", "schedule_task"]).success(), @r"
     web_search  research (level 8)
     schedule_task  scheduler-1 (level 8)
    ");
    let (said, why) = ask(&["web_search:9", "shell_exec", "fly"]).ends(1);
    insta::assert_snapshot!(said, @r"
     missing `web_search` (level 9 or more): `research` has level 8
     missing `shell_exec`: `coder` is denied the tool `shell_exec`
     missing `fly`: nobody declares it
    ");
    assert!(why.contains("3 requirements not met"), "{why}");
}

#[test]
fn an_empty_pool_says_what_to_do() {
    let project = Project::new();
    let (out, said) = project.ctx(&["pool", "list"]).ends(0);
    assert!(out.is_empty() && said.contains("ctx pool add"), "{said}");
    assert_eq!(
        project.ctx(&["pool", "list", "--json"]).json(),
        json!({"resources": []})
    );
}

#[test]
fn wrong_words_have_their_exit_codes() {
    let project = project();
    project.ctx(&["pool", "add"]).failure(2, "required");
    project.ctx(&["pool", "remove"]).failure(2, "required");
    project
        .ctx(&["pool", "remove", "codr"])
        .failure(3, "did you mean `coder`?");
    project
        .ctx(&["pool", "add", "x", "--type", "robot"])
        .failure(3, "unknown type of resource `robot`");
    project
        .ctx(&["pool", "add", "x", "--capability", "y:11"])
        .failure(3, "from 1 to 10, is 11");
    project.ctx(&["pool", "add", "a,b"]).failure(3, "a comma");
    project
        .ctx(&["pool", "add", "a\u{202e}b"])
        .failure(3, "nobody sees");
    project
        .ctx(&["pool", "add", "x", "--file", "y"])
        .failure(2, "cannot be used with");
}
