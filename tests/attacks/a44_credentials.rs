//! 44: a command of the model reads no credentials, and what it cannot read is neither in the log nor sent.

use std::path::Path;

use serde_json::json;

use crate::attacks::agent::{Scene, calls, says};

const SECRET: &str = "0123456789abcdef-owners-secret";

fn plant(base: &Path, path: &str) {
    let path = base.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, json!({ "note": SECRET }).to_string()).unwrap();
}

/// The daemon's address and secret, the user's configuration and keys, wherever XDG variables point: here into the
/// project itself.
#[test]
fn a_command_does_not_read_the_daemons_secret() {
    let command = "cat state/contexture/projects/*/daemon.json; grep -rs . state config shown ~; cp -r state stolen; \
                   cat stolen/contexture/projects/x/daemon.json; cat open link; ls";
    let scene = Scene::new([
        calls("c", "exec_shell", json!({ "command": command })),
        says("done"),
    ]);
    let project = scene.project.path();
    plant(project, "state/contexture/projects/x/daemon.json");
    plant(project, "config/contexture/keys.json");
    plant(project, "shown/private/token");
    plant(project, ".env");
    plant(scene.home.path(), ".ssh/id_rsa");
    plant(
        scene.home.path(),
        ".local/state/contexture/projects/x/daemon.json",
    );
    plant(
        scene.home.path(),
        ".local/state/contexture/projects/x/hub.key",
    );
    std::os::unix::fs::symlink(".env", project.join("link")).unwrap();
    scene.project.write("open", "not hidden");
    // Both add to what is hidden, and a project needs no trust for it.
    scene
        .project
        .write("contexture.json", r#"{"shell": {"denyRead": [".env"]}}"#);
    let own = project.join("config/contexture/contexture.json");
    std::fs::write(own, r#"{"shell": {"denyRead": ["shown/private"]}}"#).unwrap();
    let at = |name: &str| project.join(name).display().to_string();
    let (stdout, stderr) = scene
        .run("openai:m", &["go", "--allow", "exec_shell", "--json"])
        .env("XDG_STATE_HOME", &at("state"))
        .env("XDG_CONFIG_HOME", &at("config"))
        .ends(0);
    let log = std::fs::read_to_string(scene.project.log("s")).unwrap();
    assert!(scene.sent(1).contains("not hidden"), "{}", scene.sent(1));
    for text in [&stdout, &stderr, &log, &scene.sent(1)] {
        assert!(!text.contains(SECRET), "{text}");
    }
}
