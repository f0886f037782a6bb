//! 43: links in the place of our folders and files. They are not followed, and nothing beyond them changes.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use crate::agent::scene::{Scene, calls, says};
use crate::attacks::a13_links::everything;
use crate::common::{Project, message};
use crate::fleet::scene::Daemon;

/// A folder elsewhere with something precious wherever we would write or remove.
fn outside() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "ephemeral",
        "ephemeral/bot",
        "workspaces/bot",
        "outputs",
        "agents",
        "sessions/s",
    ] {
        let inside = folder.path().join(name);
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::write(inside.join("precious"), "mine").unwrap();
    }
    folder
}

/// `path` becomes a link.
fn link(target: &Path, path: PathBuf) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = std::fs::remove_dir_all(&path);
    symlink(target, path).unwrap();
}

#[test]
fn a_linked_data_folder_is_left_alone_by_every_command() {
    let project = Project::new();
    let outside = outside();
    let before = everything(outside.path());
    link(outside.path(), project.path().join(".contexture"));
    let file = project.write("line.jsonl", format!("{}\n", message("user", "x")));
    let file = file.to_str().unwrap();
    for args in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["sessions", "list"],
        &["sessions", "append", "s", file],
        &["sessions", "import", "s", file],
        &["sessions", "rm", "s"],
        &["doctor", "--fix"],
        &[
            "run",
            "x",
            "--model",
            "openai:m",
            "--base-url",
            "http://127.0.0.1:1",
        ],
        &[
            "agent",
            "create",
            "bot",
            "--backend",
            "x",
            "--command",
            "true",
        ],
        &["agent", "list"],
        &["pool", "add", "e", "--capability", "x"],
        &["task", "dispatch", "x", "--requires", "x"],
        &["task", "list"],
    ] {
        let command = project.ctx(args).env("OPENAI_API_KEY", "sk-of-the-tests-1");
        let (_, said) = command.ends(5);
        assert!(said.contains("is a link"), "{args:?}: {said}");
        assert_eq!(everything(outside.path()), before, "{args:?}");
    }
}

#[test]
fn a_linked_ephemeral_folder_is_removed_and_what_it_leads_to_stays() {
    let project = Project::new();
    let outside = outside();
    let before = everything(outside.path());
    let ephemeral = project.path().join(".contexture/ephemeral");
    link(&outside.path().join("ephemeral"), ephemeral.clone());
    let mut daemon = Daemon::over(project);
    daemon.create("bot", "service", &["--ephemeral"], &[]);
    // Put there again, while the daemon runs: no folder is made beyond it, and none is emptied.
    link(&outside.path().join("ephemeral"), ephemeral.clone());
    daemon.ctx(&["agent", "start", "bot"]).failure(1, "bot");
    daemon.terminate();
    assert_eq!(everything(outside.path()), before);
    std::fs::remove_file(&ephemeral).unwrap();
    std::fs::create_dir(&ephemeral).unwrap();
    link(&outside.path().join("ephemeral/bot"), ephemeral.join("bot"));
    daemon.again();
    daemon.ctx(&["agent", "start", "bot"]).success();
    daemon.ctx(&["agent", "stop", "bot"]).success();
    assert_eq!(everything(outside.path()), before);
}

#[test]
fn an_agent_does_not_get_a_workspace_beyond_a_link() {
    for part in ["workspaces", "workspaces/bot"] {
        let project = Project::new();
        let outside = outside();
        let before = everything(outside.path());
        let place = project.path().join(".contexture").join(part);
        link(&outside.path().join(part), place);
        let daemon = Daemon::over(project);
        daemon.create("bot", "service", &[], &[]);
        daemon.ctx(&["agent", "start", "bot"]).failure(1, "bot");
        assert_eq!(everything(outside.path()), before, "{part}");
    }
}

#[test]
fn outputs_do_not_go_beyond_a_link() {
    for part in ["", "outputs"] {
        let command = json!({"command": "seq 1 20000"});
        let scene = Scene::new([calls("c", "exec_shell", command), says("done")]);
        let outside = outside();
        let before = everything(outside.path());
        if part.is_empty() {
            link(outside.path(), scene.project.path().join(".contexture"));
            scene
                .run("openai:m", &["go", "--allow", "exec_shell"])
                .failure(5, "is a link");
        } else {
            let outputs = scene.project.path().join(".contexture/outputs");
            link(&outside.path().join("outputs"), outputs);
            scene
                .run("openai:m", &["go", "--allow", "exec_shell"])
                .run();
        }
        assert_eq!(everything(outside.path()), before, "{part}");
    }
}

#[test]
fn a_key_that_is_a_link_or_that_others_can_read_is_refused() {
    let project = Project::new();
    let add = ["pool", "add", "e", "--capability", "x", "--worker"];
    project.ctx(&add).success();
    project.ctx(&["pool", "key", "e"]).success();
    let key = project.state().join("hub.key");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o640)).unwrap();
    let said = project
        .ctx(&["pool", "key", "e"])
        .failure(5, "others can read or change it");
    assert!(said.contains("chmod 600"), "{said}");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    project.ctx(&["pool", "key", "e"]).success();
    let elsewhere = project.path().join("elsewhere");
    std::fs::rename(&key, &elsewhere).unwrap();
    symlink(&elsewhere, &key).unwrap();
    project
        .ctx(&["pool", "key", "e"])
        .failure(5, "it is a link");
}

#[test]
fn credentials_that_others_can_read_are_not_used() {
    let project = Project::new();
    let file = project.write("nats.creds", "secret");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let config = project.home().join(".config/contexture");
    std::fs::create_dir_all(&config).unwrap();
    let hub = json!({"hub": {"url": "nats://127.0.0.1:1", "credentials": file}});
    std::fs::write(config.join("contexture.json"), hub.to_string()).unwrap();
    let serve = project.ctx(&["serve", "--listen", "127.0.0.1:0"]);
    let said = serve.failure(5, "others can read or change it");
    assert!(said.contains("chmod 600"), "{said}");
}

#[test]
fn a_link_on_the_way_to_the_state_is_refused() {
    let project = Project::new();
    project.say("s", &["one"]);
    let state = project.state();
    for folder in [
        project.user_state(),
        project.user_state().join("projects"),
        state,
    ] {
        let outside = tempfile::tempdir().unwrap();
        let aside = outside.path().join("aside");
        std::fs::rename(&folder, &aside).unwrap();
        symlink(&aside, &folder).unwrap();
        let before = everything(outside.path());
        for args in [
            &["agent", "list"][..],
            &["pool", "add", "e", "--capability", "x"],
        ] {
            project.ctx(args).failure(5, "is not private");
        }
        let append = project.ctx(&["sessions", "append", "s"]);
        append
            .input(message("user", "two").to_string())
            .failure(5, "is not private");
        assert_eq!(everything(outside.path()), before);
        std::fs::remove_file(&folder).unwrap();
        std::fs::rename(&aside, &folder).unwrap();
    }
    project.say("s", &["two"]);
}
