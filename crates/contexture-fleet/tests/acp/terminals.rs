//! Commands for an agent: bounded, and never left behind.

use serde_json::{Value, json};

use crate::acp::common::*;

/// What the agent is told of each command: how it ended, its output, and that it is gone.
async fn run(scene: &Scene, commands: Value) -> Vec<Value> {
    scene.once(commands).await.unwrap();
    scene.host.told()
}

#[tokio::test]
async fn a_command_runs_in_the_workspace_and_is_read() {
    let scene = Scene::new("terminals");
    scene.write("sub/a.txt", "alpha");
    let told = run(
        &scene,
        json!([
            {"command": "cat", "args": ["sub/a.txt"]},
            {"command": "echo out; echo err >&2; pwd; exit 3"},
            {"command": "cat a.txt", "cwd": scene.workspace().join("sub")},
            {"command": "echo $A $PAGER $LD_PRELOAD.", "env": [
                {"name": "A", "value": "b"}, {"name": "PAGER", "value": "evil"}, {"name": "LD_PRELOAD", "value": "evil.so"},
            ]},
        ]),
    )
    .await;
    assert_eq!(told[0], json!({"exitCode": 0, "signal": null}));
    assert_eq!(told[1]["output"], "alpha");
    assert_eq!(told[1]["truncated"], false);
    assert_eq!(told[1]["exitStatus"], told[0]);
    assert_eq!(told[2]["code"], -32002, "it was released");
    assert_eq!(told[3]["exitCode"], 3);
    let wanted = format!("out\nerr\n{}\n", scene.workspace().display());
    assert_eq!(told[4]["output"], wanted);
    assert_eq!(told[7]["output"], "alpha");
    assert_eq!(told[10]["output"], "b cat .\n");
}

#[tokio::test]
async fn output_is_cut_from_its_beginning() {
    let scene = Scene::new("terminals");
    let told = run(
        &scene,
        json!([
            {"command": "printf 'ääää%s' end", "outputByteLimit": 6},
            {"command": "yes x | head -c 3000000"},
        ]),
    )
    .await;
    assert_eq!(told[1]["output"], "äend", "{}", told[1]);
    assert_eq!(told[1]["truncated"], true);
    assert_eq!(told[4]["output"].as_str().unwrap().len(), 1 << 20);
    assert_eq!(told[4]["truncated"], true);
}

#[tokio::test]
async fn a_command_that_never_ends_is_killed_when_it_is_asked_for() {
    let scene = Scene::new("terminals");
    let told = run(
        &scene,
        json!([{"command": "sleep 1000 & sleep 1000", "kill": true}]),
    )
    .await;
    assert!(
        told[0]["signal"].is_string() || told[0]["exitCode"] == 1,
        "{}",
        told[0]
    );
}

/// Attack 34: endless output, a daemon that detaches; and neither outlives the agent.
#[tokio::test]
async fn what_a_command_started_ends_with_the_agent() {
    let scene = Scene::new("terminals");
    let commands = json!([
        {"command": "setsid sleep 1000 & echo $! > one; sleep 1000", "wait": false},
        {"command": "yes > /dev/null & echo $! > two; wait", "wait": false},
        {"command": "yes & echo $! > three; wait", "wait": false},
    ]);
    let (connection, id) = scene.started().await;
    within(connection.prompt(&id, text_blocks(commands)))
        .await
        .unwrap();
    let read = |name: &str| {
        let text = std::fs::read_to_string(scene.workspace().join(name)).ok()?;
        text.trim().parse::<i32>().ok()
    };
    let names = ["one", "two", "three"];
    until("they run", || names.iter().all(|name| read(name).is_some())).await;
    let pids = names.map(|name| read(name).unwrap());
    within(connection.stop()).await;
    for pid in pids {
        until("it ended", || !runs(pid)).await;
    }
}

#[tokio::test]
async fn commands_outside_and_commands_that_are_none_are_refused() {
    let scene = Scene::new("terminals");
    let mut commands = vec![
        json!({"command": "pwd", "cwd": "/"}),
        json!({"command": "pwd", "cwd": ".."}),
        json!({"command": "pwd", "cwd": "none"}),
        json!({"command": "  "}),
        json!({"command": "no-such-program"}),
        json!({"command": "x".repeat(200_000)}),
    ];
    let refused = commands.len();
    let sleeping = json!({"command": "sleep 1000", "wait": false});
    commands.extend(std::iter::repeat_n(sleeping, 33));
    let told = run(&scene, json!(commands)).await;
    // One too many of those that run.
    assert_eq!(told.len(), refused + 1, "{told:?}");
    assert!(told.iter().all(|error| error["code"].is_i64()), "{told:?}");
}
