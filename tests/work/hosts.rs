//! Two hosts with a network between them, and a cut in it.

use std::process::Command;
use std::time::Duration;

use crate::common::Project;
use crate::nats_server::NatsServer;
use crate::work::scene::Daemon;
use crate::work::{SOON, Worker, status, until, workers};

/// Another host: a network of its own, and a cable to this one. Both go with the test.
struct Host {
    name: String,
    cable: String,
    subnet: String,
}

impl Host {
    /// Where making one is not allowed, the test is skipped, and says so.
    fn new() -> Option<Self> {
        let n = std::process::id() % 200;
        let host = Self {
            name: format!("ctx-{n}"),
            cable: format!("ctx{n}"),
            subnet: format!("10.231.{n}"),
        };
        let made = ip(&format!("netns add {}", host.name));
        if !made {
            println!("skipped: network namespaces cannot be made here");
            std::mem::forget(host);
            return None;
        }
        let Self {
            name,
            cable,
            subnet,
        } = &host;
        for step in [
            format!("link add {cable} type veth peer name {cable}p"),
            format!("link set {cable}p netns {name}"),
            format!("addr add {subnet}.1/24 dev {cable}"),
            format!("link set {cable} up"),
            format!("-n {name} addr add {subnet}.2/24 dev {cable}p"),
            format!("-n {name} link set {cable}p up"),
            format!("-n {name} link set lo up"),
        ] {
            assert!(ip(&step), "ip {step}");
        }
        Some(host)
    }

    fn cut(&self) {
        assert!(ip(&format!("link set {} down", self.cable)));
    }

    fn mend(&self) {
        assert!(ip(&format!("link set {} up", self.cable)));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.name));
    }
}

fn ip(words: &str) -> bool {
    let ran = Command::new("ip").args(words.split(' ')).output();
    ran.is_ok_and(|output| output.status.success())
}

// needs: netns
#[test]
fn whoever_is_cut_off_loses_its_task_and_its_late_result_is_refused() {
    let Some(host) = Host::new() else { return };
    let address = format!("{}.1", host.subnet);
    let Some(nats) = NatsServer::with(&["-js", "--addr", "0.0.0.0"]) else {
        return;
    };
    let (here, there) = (nats.url(), format!("nats://{address}:{}", nats.port()));
    let daemon = Daemon::with(
        workers::patient(Project::new()),
        &[("CONTEXTURE_HUB_URL", &here)],
    );
    let project = &daemon.project;
    // The better one is on the other host, and takes long.
    let far = [
        "worker",
        "--json",
        "--id",
        "far",
        "--capability",
        "work:9",
        "--command",
        "sh",
        "-c",
        "sleep 12; echo late",
    ];
    let far = project.ctx(&far).env("CONTEXTURE_HUB_URL", &there);
    let mut elsewhere = Command::new("ip");
    let inner = far.command();
    elsewhere
        .args(["netns", "exec", &host.name])
        .arg(inner.get_program())
        .args(inner.get_args());
    elsewhere.current_dir(project.path());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => elsewhere.env(name, value),
            None => elsewhere.env_remove(name),
        };
    }
    let _far = Worker::of(elsewhere);
    until("far", SOON, || {
        status(project, "far").filter(|status| status == "available")
    });
    project
        .ctx(&["task", "dispatch", "x", "--requires", "work"])
        .success();
    let show = || project.ctx(&["task", "show", "task-1", "--json"]).json();
    until("running", SOON, || {
        (show()["state"] == "running").then_some(())
    });
    let near = [
        "worker",
        "--json",
        "--id",
        "near",
        "--capability",
        "work",
        "--command",
        "cat",
    ];
    let _near = Worker::start(&project.ctx(&near).env("CONTEXTURE_HUB_URL", &here));
    host.cut();
    let done = project
        .ctx(&["task", "show", "task-1", "--wait", "--json"])
        .json();
    assert_eq!(
        (done["executor"].as_str(), done["attempt"].as_u64()),
        (Some("near"), Some(2))
    );
    assert_eq!(done["result"], "x");
    // Until it must have finished, by itself.
    std::thread::sleep(Duration::from_secs(8));
    host.mend();
    let events = project.state().join("events");
    let refused = until("a refused word", Duration::from_secs(90), || {
        let all = std::fs::read_dir(&events).ok()?.flatten();
        let mut all = all.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        all.find_map(|text| {
            let line = text.lines().find(|line| line.contains("task:refused"));
            line.map(str::to_owned)
        })
    });
    assert!(
        refused.contains("it speaks of attempt 1, and the task is at attempt 2"),
        "{refused}"
    );
    let task = show();
    assert_eq!(
        (task["result"].as_str(), task["state"].as_str()),
        (Some("x"), Some("done"))
    );
    until("back", SOON, || {
        status(project, "far").filter(|status| status == "available")
    });
}
