//! 47: nothing that `ctx` starts gets the files that were open when `ctx` itself was started.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::attacks::agent::{Scene, calls, says};
use crate::common::{Ctx, Project};

const SECRET: &str = "left-open-by-somebody";

/// Says in a file which descriptors it has and what is in the one that was left open, and reads its input to the end.
const PROBE: &str = r#"{ for n in 3 4 5 6 7 8 9; do [ -e /proc/self/fd/$n ] && readlink /proc/self/fd/$n; done
cat <&7; echo written >&9; echo probed; } >"$1" 2>&1
cat >/dev/null"#;

struct Open {
    folder: tempfile::TempDir,
}

impl Open {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), SECRET).unwrap();
        std::fs::write(folder.path().join("probe"), PROBE).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The command, with the secret open to be read as 7, and another file to be written as 9.
    fn holding(&self, ctx: &Ctx) -> Command {
        let inner = ctx.command();
        let mut command = Command::new("sh");
        let script = r#"exec 7<"$1" 9>>"$2"; shift 2; exec "$@" </dev/null"#;
        command.args(["-c", script, "sh", &self.path("secret"), &self.path("left")]);
        command.arg(inner.get_program()).args(inner.get_args());
        command.current_dir(inner.get_current_dir().unwrap());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, ctx: &Ctx) -> String {
        let output = self.holding(ctx).output().unwrap();
        let both = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&both).into_owned()
    }

    /// What a probe found: neither the secret nor what it lies in.
    #[track_caller]
    fn assert_shut(&self, name: &str, said: &str) {
        let until = Instant::now() + Duration::from_secs(20);
        let found = loop {
            let found = std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
            if found.contains("probed") {
                break found;
            }
            assert!(Instant::now() < until, "{name} was never started: {said}");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(!found.contains(SECRET), "{name}: {found}");
        let named = |file: &str| found.contains(&self.path(file));
        assert!(!named("secret") && !named("left"), "{name}: {found}");
        assert_eq!(
            std::fs::read(self.path("left")).unwrap(),
            b"",
            "{name}: {found}"
        );
    }
}

/// The probe finds what is there to be found.
#[test]
fn a_program_that_inherits_is_found_out() {
    let open = Open::new();
    let out = open.path("plain");
    let script = r#"exec 7<"$1"; sh "$2" "$3" </dev/null"#;
    let mut command = Command::new("sh");
    command.args([
        "-c",
        script,
        "sh",
        &open.path("secret"),
        &open.path("probe"),
        &out,
    ]);
    assert!(command.status().unwrap().success());
    assert!(std::fs::read_to_string(out).unwrap().contains(SECRET));
}

#[test]
fn shell_commands_and_mcp_servers_get_none() {
    let open = Open::new();
    let command = "cat <&7; echo written >&9; readlink /proc/self/fd/*; echo probed";
    let scene = Scene::new([
        calls("c", "exec_shell", json!({ "command": command })),
        says("done"),
    ]);
    let server = json!({"command": "sh", "args": [open.path("probe"), open.path("server")]});
    let config = json!({"mcpServers": {"probe": server}});
    scene.project.write("contexture.json", config.to_string());
    let run = scene.run("openai:m", &["go", "--allow", "exec_shell", "--json"]);
    let said = open.run(&run.env("CONTEXTURE_TRUST", "1"));
    open.assert_shut("server", &said);
    let sent = scene.sent(1);
    assert!(sent.contains("probed") && !sent.contains(SECRET), "{sent}");
    assert!(!sent.contains(&open.path("")), "{sent}");
}

#[test]
fn providers_get_none() {
    let open = Open::new();
    let project = Project::new();
    let probe = json!(["sh", open.path("probe"), open.path("provider")]);
    let config = json!({"providers": [{"name": "probe", "command": probe}]});
    project.write("contexture.json", config.to_string());
    let args = [
        "inject",
        "--name",
        "ada",
        "--archetype",
        "employee",
        "--session",
        "s1",
    ];
    let said = open.run(&project.ctx(&args).env("CONTEXTURE_TRUST", "1"));
    open.assert_shut("provider", &said);
}

#[test]
fn agents_hooks_and_workers_get_none() {
    let open = Open::new();
    let project = Project::new();
    let hook =
        json!({"event": "agent:state", "command": ["sh", open.path("probe"), open.path("hook")]});
    project.write("contexture.json", json!({"hooks": [hook]}).to_string());
    let serve = project.ctx(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    let mut daemon = Running(start(open.holding(&serve.env("CONTEXTURE_TRUST", "1"))));
    let create = ["agent", "create", "a", "--backend", "x", "--command", "sh"];
    let (probe, agent) = (open.path("probe"), open.path("agent"));
    let mut args = create.to_vec();
    args.extend([probe.as_str(), &agent]);
    project.ctx(&args).env("CONTEXTURE_TRUST", "1").success();
    let mut begin = project.ctx(&["agent", "start", "a"]).command();
    let mut begin = Running(begin.spawn().unwrap());
    open.assert_shut("agent", "");
    open.assert_shut("hook", "");
    begin.end();
    let (probe, worker) = (open.path("probe"), open.path("worker"));
    let join = [
        "worker",
        "--id",
        "w",
        "--capability",
        "x",
        "--command",
        "sh",
        &probe,
        &worker,
    ];
    let mut join = Running(open.holding(&project.ctx(&join)).spawn().unwrap());
    project
        .ctx(&["task", "dispatch", "hello", "--requires", "x", "--wait"])
        .success();
    open.assert_shut("worker", "");
    join.end();
    daemon.end();
}

/// A file that a shell names by its number can still be read by `ctx` itself.
#[test]
fn ctx_itself_reads_what_it_was_given() {
    let open = Open::new();
    let project = Project::new();
    std::fs::write(
        open.path("secret"),
        "{\"role\":\"user\",\"content\":\"hello\"}\n",
    )
    .unwrap();
    assert!(Path::new("/dev/fd").exists());
    let said = open.run(&project.ctx(&["tokens", "/dev/fd/7"]));
    assert!(!said.contains("error"), "{said}");
}

struct Running(Child);

impl Running {
    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts a daemon, and waits for what it says first.
fn start(mut command: Command) -> Child {
    use std::io::{BufRead, BufReader};
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("url"), "{line}");
    child
}
