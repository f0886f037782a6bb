use std::time::Duration;

use super::{Project, assert_has, call, eventually, own_sleep, run, runs, text};
use contexture_tools::shell::sandbox::{Sandbox, available};
use serde_json::json;

/// Bounded by the number of processes, long before the timeout.
#[tokio::test]
async fn a_fork_bomb_is_ended() {
    let project = Project::new();
    let mark = own_sleep();
    // It grows by one at a time: no limit of the kernel binds root, and a bomb that doubles would take
    // every process id from the tests beside it before it is counted.
    let bomb = format!("while :; do sleep {mark} & done");
    let arguments = json!({"command": bomb, "timeoutSeconds": 60});
    let outcome =
        tokio::time::timeout(Duration::from_secs(50), call(&project.shell(), &arguments)).await;
    let outcome = outcome.expect("ended before its timeout");
    assert!(outcome.failed);
    assert_has(&outcome, "processes, and was ended");
    eventually("no process of the bomb is left", || !runs(&mark));
}

/// Each child in a session of its own: the group alone would not find them.
#[tokio::test]
async fn a_fork_bomb_of_sessions_is_ended() {
    let project = Project::new();
    let mark = own_sleep();
    let bomb =
        format!("i=0; while [ $i -lt 3000 ]; do setsid sleep {mark} & i=$((i+1)); done; wait");
    let arguments = json!({"command": bomb, "timeoutSeconds": 60});
    let outcome =
        tokio::time::timeout(Duration::from_secs(50), call(&project.shell(), &arguments)).await;
    assert_has(
        &outcome.expect("ended before its timeout"),
        "processes, and was ended",
    );
    eventually("no process of the bomb is left", || !runs(&mark));
}

#[tokio::test]
async fn endless_output_is_cut_and_ended() {
    let project = Project::new();
    for command in ["yes", "yes >&2", "cat /dev/zero"] {
        let outcome = run(&project.shell(), command).await;
        assert!(outcome.failed, "{command}");
        assert_has(&outcome, "printed more than 16777216 bytes, and was ended");
        assert_has(
            &outcome,
            "bytes cut here; all of it is in .contexture/outputs/",
        );
        assert!(text(&outcome).len() < 20_000, "{command}");
    }
}

/// A daemon: its own session, no parent, no pipes, another environment, another name.
#[tokio::test]
async fn a_daemon_is_ended() {
    let project = Project::new();
    for how in [
        "sleep MARK &",
        "nohup sleep MARK >/dev/null 2>&1 &",
        "setsid sleep MARK &",
        "(setsid sh -c 'sleep MARK & sleep MARK' >/dev/null 2>&1 </dev/null &)",
        "env -i setsid -f sleep MARK",
        "setsid -f sh -c 'trap \"\" TERM HUP; while :; do sleep MARK; done'",
        "cp /bin/sleep own; setsid -f ./own MARK >/dev/null 2>&1 </dev/null",
    ] {
        let mark = own_sleep();
        let outcome = run(&project.shell(), &how.replace("MARK", &mark)).await;
        assert!(!outcome.failed, "{how}: {}", text(&outcome));
        if project.shell().sandbox() != Some(Sandbox::Bubblewrap) {
            assert_has(&outcome, "still running");
        }
        assert!(!runs(&mark), "{how}");
    }
}

/// In a sandbox the mark by which they are found cannot be taken off.
// needs: landlock
#[tokio::test]
async fn the_mark_cannot_be_taken_off() {
    for sandbox in super::sandboxes() {
        let project = Project::new();
        let mark = own_sleep();
        let escape = format!(
            "import os, resource, sys\n\
             try: resource.setrlimit(15, (1000000, 1000000)); print('taken off', flush=True)\n\
             except (OSError, ValueError) as e: print('kept', e, flush=True)\n\
             os.setsid()\nos.execv('/bin/sleep', ['sleep', '{mark}'])"
        );
        let command = format!("python3 -c \"{escape}\" & sleep 1");
        let outcome = run(&project.within(sandbox), &command).await;
        assert_has(&outcome, "kept");
        assert!(!runs(&mark), "{sandbox}: {}", text(&outcome));
    }
}

/// Processes of others are not in reach.
// needs: landlock
#[tokio::test]
async fn others_are_not_signalled() {
    if available().landlock_abi < Some(6) && available().bubblewrap.is_none() {
        return eprintln!("skipped: Landlock cannot refuse signals before version 6");
    }
    for sandbox in super::sandboxes() {
        let project = Project::new();
        let mut other = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let outcome = run(&project.within(sandbox), &format!("kill -9 {}", other.id())).await;
        assert!(outcome.failed, "{sandbox}");
        assert!(other.try_wait().unwrap().is_none(), "{sandbox}");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
