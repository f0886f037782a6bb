//! How a command comes to its end, and all that it started with it.

use std::time::Duration;

use super::{Project, assert_has, call, eventually, own_sleep, run, runs, text};
use serde_json::json;

// needs: landlock
#[tokio::test]
async fn a_timeout_ends_the_whole_group() {
    let project = Project::new();
    for sandbox in super::sandboxes() {
        let mark = own_sleep();
        let command = format!("echo begun; sleep {mark} | sleep {mark} & sh -c 'sleep {mark}; :'");
        let arguments = json!({"command": command, "timeoutSeconds": 1});
        let outcome = call(&project.within(sandbox), &arguments).await;
        assert!(outcome.failed);
        assert_has(&outcome, "timed out after 1 s");
        assert_has(&outcome, "begun");
        assert!(!runs(&mark), "{sandbox}");
    }
}

#[tokio::test]
async fn who_does_not_listen_is_ended_too() {
    let project = Project::new();
    let mark = own_sleep();
    let command =
        format!("trap '' TERM INT HUP; sh -c 'trap \"\" TERM; while :; do sleep {mark}; done'");
    let outcome = call(
        &project.shell(),
        &json!({"command": command, "timeoutSeconds": 1}),
    )
    .await;
    assert_has(&outcome, "timed out after 1 s");
    assert!(!runs(&mark));
}

/// There is time to tidy up.
#[tokio::test]
async fn a_command_is_asked_first() {
    let project = Project::new();
    let command = "trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done";
    let outcome = call(
        &project.shell(),
        &json!({"command": command, "timeoutSeconds": 1}),
    )
    .await;
    assert_has(&outcome, "timed out after 1 s");
    assert_has(&outcome, "bye");
    assert!(outcome.failed);
}

/// As Ctrl-C does.
#[tokio::test]
async fn dropping_the_call_ends_the_command() {
    for sandbox in super::sandboxes().into_iter().map(Some).chain([None]) {
        let project = Project::new();
        let shell = sandbox.map_or_else(|| project.shell(), |sandbox| project.within(sandbox));
        let mark = own_sleep();
        let command = format!("setsid sleep {mark} & sleep {mark}; echo $TMPDIR");
        let arguments = json!({"command": command});
        {
            let calling = call(&shell, &arguments);
            tokio::pin!(calling);
            while !runs(&format!("sleep {mark}")) {
                let pause = Duration::from_millis(50);
                assert!(
                    tokio::time::timeout(pause, &mut calling).await.is_err(),
                    "it ended"
                );
            }
        }
        eventually("nothing is left", || !runs(&mark));
    }
}

/// At whatever moment: also before the shell has begun.
#[tokio::test]
async fn dropping_the_call_at_once_leaves_nothing() {
    let project = Project::new();
    let shell = project.shell();
    let mark = own_sleep();
    for micros in (0..20_000).step_by(1_500) {
        let arguments = json!({"command": format!("sleep {mark}")});
        let pause = Duration::from_micros(micros);
        assert!(
            tokio::time::timeout(pause, call(&shell, &arguments))
                .await
                .is_err()
        );
    }
    eventually("nothing is left", || !runs(&mark));
}

/// We may be killed, too. Then the watcher ends the command.
#[test]
fn our_own_end_is_the_commands_end() {
    let Ok(mark) = std::env::var("SHELL_TEST_MARK") else {
        let mark = own_sleep();
        let (_, module) = module_path!().split_once("::").unwrap();
        let this_test = format!("{module}::our_own_end_is_the_commands_end");
        // What is killed does not tidy up.
        let folder = tempfile::tempdir().unwrap();
        let mut ours = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &this_test])
            .env("SHELL_TEST_MARK", &mark)
            .env("TMPDIR", folder.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        eventually("the command runs", || runs(&format!("sleep {mark}")));
        ours.kill().unwrap();
        ours.wait().unwrap();
        return eventually("nothing is left", || !runs(&mark));
    };
    let project = Project::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(run(&project.shell(), &format!("sleep {mark}; :")));
}

#[tokio::test]
async fn signals_and_codes_are_told() {
    let project = Project::new();
    let shell = project.shell();
    let outcome = run(&shell, "exit 7").await;
    assert!(outcome.failed);
    assert_eq!(text(&outcome), "exit code: 7\n(no output)");
    let outcome = run(&shell, "kill -11 $$").await;
    assert!(outcome.failed);
    // Bubblewrap gives the code that a shell would.
    let told = text(&outcome);
    assert!(
        told.contains("ended by signal 11") || told.contains("exit code: 139"),
        "{told}"
    );
}
