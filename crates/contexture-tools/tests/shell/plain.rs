//! What it does on any other day.

use std::fs;

use contexture_tools::{Effect, Tool};
use serde_json::json;

use super::{Project, assert_has, call, run, text};

#[test]
fn it_is_a_tool() {
    let project = Project::new();
    let shell = project.shell();
    let spec = shell.spec();
    assert_eq!(
        (spec.name.as_str(), spec.category.as_str()),
        ("exec_shell", "shell")
    );
    assert_eq!(spec.effect, Effect::Acts);
    assert!(jsonschema::meta::is_valid(&spec.parameters));
    assert!(spec.description.contains("no network"));
}

#[tokio::test]
async fn it_runs_where_it_is_told_to() {
    let project = Project::new();
    fs::create_dir_all(project.root.join("a/b")).unwrap();
    let shell = project.shell();
    assert_has(
        &run(&shell, "pwd").await,
        &format!("\n{}", project.root.display()),
    );
    for cwd in [json!("a/b"), json!(project.root.join("a/b"))] {
        let outcome = call(&shell, &json!({"command": "pwd", "cwd": cwd})).await;
        assert_has(&outcome, "/project/a/b");
    }
}

#[tokio::test]
async fn it_does_not_run_elsewhere() {
    let project = Project::new();
    std::os::unix::fs::symlink("/etc", project.root.join("link")).unwrap();
    project.write("file", "");
    for cwd in [
        "..",
        "/",
        "/etc",
        "link",
        "../project/../home",
        "file",
        "absent",
        "",
        "a\0b",
    ] {
        let outcome = call(
            &project.shell(),
            &json!({"command": "touch ran", "cwd": cwd}),
        )
        .await;
        assert!(outcome.failed || cwd.is_empty(), "{cwd}");
        assert!(
            cwd.is_empty() || text(&outcome).starts_with("`cwd` "),
            "{}",
            text(&outcome)
        );
    }
}

#[tokio::test]
async fn arguments_that_make_no_sense_are_refused() {
    let project = Project::new();
    for (arguments, name) in [
        (json!({}), "`command`"),
        (json!({"command": 1}), "`command`"),
        (json!({"command": " \n"}), "`command`"),
        (json!({"command": "a\u{0}b"}), "`command`"),
        (json!({"command": "x".repeat(200_000)}), "`command`"),
        (
            json!({"command": "true", "timeoutSeconds": 0}),
            "`timeoutSeconds`",
        ),
        (
            json!({"command": "true", "timeoutSeconds": 601}),
            "`timeoutSeconds`",
        ),
        (
            json!({"command": "true", "timeoutSeconds": "5"}),
            "`timeoutSeconds`",
        ),
        (json!({"command": "true", "cwd": 5}), "`cwd`"),
    ] {
        let outcome = call(&project.shell(), &arguments).await;
        assert!(outcome.failed);
        assert!(text(&outcome).starts_with(name), "{}", text(&outcome));
    }
}

#[tokio::test]
async fn a_long_command_runs() {
    let project = Project::new();
    let command = format!(": {}; echo done", "x".repeat(100_000));
    assert_has(&run(&project.shell(), &command).await, "done");
    assert_has(&run(&project.shell(), "-x; echo done").await, "done");
}

#[tokio::test]
async fn there_is_no_input_and_no_terminal() {
    let project = Project::new();
    let outcome = run(&project.shell(), "cat; tty; read x || echo nothing").await;
    assert_has(&outcome, "not a tty");
    assert_has(&outcome, "nothing");
}

/// Three at a time, each with its own processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_do_not_end_each_other() {
    let project = Project::new();
    let shell = project.shell();
    let slow = json!({"command": "sleep 2; echo slow"});
    let (slow, a, b) = tokio::join!(
        call(&shell, &slow),
        run(&shell, "sleep 5000 & echo a"),
        run(&shell, "setsid sleep 5000 & echo b"),
    );
    assert_has(&slow, "slow");
    assert_has(&a, "\na");
    assert_has(&b, "\nb");
}

/// What a sandbox does to a thread stays with that thread.
#[tokio::test]
async fn we_are_not_bound_ourselves() {
    let project = Project::new();
    run(&project.shell(), "true").await;
    fs::write(project.home.join("x"), "x").unwrap();
    std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    project.write("contexture.json", "{}");
}
