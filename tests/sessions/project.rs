use serde_json::{Value, json};

use crate::common::{Project, ctx, message};

#[test]
fn the_project_is_found_upwards() {
    let project = Project::new();
    let deep = project.path().join("a/b");
    std::fs::create_dir_all(&deep).unwrap();
    ctx(&["sessions", "append", "s"])
        .input(message("user", "from below").to_string())
        .dir(&deep)
        .success();
    assert!(project.log("s").exists());
    assert!(!deep.join(".contexture").exists());
}

/// Where there is none above, it begins here; one that anybody may have put there is none.
#[test]
fn a_folder_that_everyone_may_write_to_makes_no_project_of_what_is_below() {
    use std::os::unix::fs::PermissionsExt;
    let everyones = tempfile::tempdir().unwrap();
    let mode = std::fs::Permissions::from_mode(0o1777);
    std::fs::set_permissions(everyones.path(), mode).unwrap();
    let append = |dir: &std::path::Path| {
        ctx(&["sessions", "append", "s"])
            .input(message("user", "hi").to_string())
            .dir(dir)
            .success();
        assert!(dir.join(".contexture/sessions/s/log.jsonl").exists());
    };
    append(everyones.path());
    let own = everyones.path().join("own");
    std::fs::create_dir(&own).unwrap();
    append(&own);
}

#[test]
fn dir_says_which_project() {
    let project = Project::with_session("s");
    let elsewhere = tempfile::tempdir().unwrap();
    let dir = project.path().to_str().unwrap();
    let commands: [&[&str]; 7] = [
        &["sessions", "list"],
        &["sessions", "show", "s"],
        &["sessions", "export", "s"],
        &["inspect", "s"],
        &["diff", "s", "0", "1"],
        &["replay", "s", "--verify"],
        &["doctor"],
    ];
    for command in commands {
        let here = project.ctx(command).success();
        let args = [command, &["--dir", dir]].concat();
        let there = ctx(&args).dir(elsewhere.path()).home(project.home());
        let there = there.success();
        assert_eq!(here, there, "{command:?}");
        let args = [command, &["--dir", "no/such/folder"]].concat();
        let stderr = ctx(&args)
            .dir(elsewhere.path())
            .failure(2, "--dir no/such/folder: there is no such folder");
        assert!(stderr.contains("give the project's root"), "{stderr}");
    }
    let left = std::fs::read_dir(elsewhere.path()).unwrap().count();
    assert_eq!(left, 0, "looking makes no folder");
}

#[test]
fn a_session_comes_before_a_file_of_its_name() {
    let project = Project::new();
    project.say("s", &["one", "two"]);
    let of_session: Vec<Value> = project.ctx(&["replay", "s", "--json"]).lines();
    assert_eq!(of_session.len(), 1);
    let file = json!([
        message("user", "a"),
        message("assistant", "b"),
        message("user", "c"),
        message("assistant", "d"),
    ]);
    project.write("s", file.to_string());
    project.write("t", file.to_string());
    assert_eq!(project.ctx(&["replay", "s", "--json"]).lines(), of_session);
    // By its path, or where there is no such session, it is the file.
    for name in ["./s", "t"] {
        assert_eq!(project.ctx(&["replay", name, "--json"]).lines().len(), 2);
    }
    let error = project
        .ctx(&["replay", "u"])
        .failure_json(2, "there is no session `u`, and no such file");
    assert!(!error["hint"].as_str().unwrap().is_empty());
    project.say("invoices", &["hi"]);
    project
        .ctx(&["replay", "invoises"])
        .failure(2, "did you mean `invoices`?");
}

/// What a key becomes on disk is its own business; what it is called stays.
#[test]
fn names_of_all_kinds_come_back_as_they_were() {
    let project = Project::new();
    let names = [
        "Main",
        "main",
        "telegram:chat:-1001",
        "feat/login",
        "会话",
        "100%",
        "a b",
    ];
    for name in names {
        project.say(name, &[name]);
        let shown = project.ctx(&["inspect", name, "--json"]).json();
        assert_eq!(shown["modelMessages"], json!([message("user", name)]));
    }
    let listed = project.ctx(&["sessions", "list", "--json"]).json();
    let mut found: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["session"].as_str().unwrap())
        .collect();
    found.sort_unstable();
    let mut wanted = names;
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    project.ctx(&["doctor"]).success();
}
