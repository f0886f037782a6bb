//! 13: a link that somebody put into the data folder is not followed.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::common::{Project, SESSION, message};

/// What stands where a link is put, and where the link leads.
struct Trap {
    project: Project,
    outside: TempDir,
}

impl Trap {
    /// A project with a session `x`, whose `part` is moved out of the project and linked.
    fn moved(part: &str) -> Self {
        let project = Project::new();
        project.say("x", &["one", "two"]);
        let outside = tempfile::tempdir().unwrap();
        let trap = Self { project, outside };
        let (here, there) = (trap.inside(part), trap.outside.path().join("target"));
        if here.exists() {
            std::fs::rename(&here, &there).unwrap();
        } else {
            std::fs::write(&there, "precious").unwrap();
        }
        symlink(&there, &here).unwrap();
        trap
    }

    /// A link to something that is not there: following it would make it.
    fn dangling(part: &str) -> Self {
        let project = Project::new();
        project.say("x", &["one", "two"]);
        let outside = tempfile::tempdir().unwrap();
        let trap = Self { project, outside };
        let here = trap.inside(part);
        if here.is_dir() {
            std::fs::remove_dir_all(&here).unwrap();
        } else if here.exists() {
            std::fs::remove_file(&here).unwrap();
        }
        symlink(trap.outside.path().join("target"), &here).unwrap();
        trap
    }

    fn inside(&self, part: &str) -> PathBuf {
        self.project.path().join(".contexture").join(part)
    }
}

/// All files under a folder, with what they hold.
pub fn everything(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for item in std::fs::read_dir(folder).unwrap() {
        let path = item.unwrap().path();
        if path.is_dir() {
            all.push((path.clone(), Vec::new()));
            all.extend(everything(&path));
        } else {
            all.push((path.clone(), std::fs::read(&path).unwrap()));
        }
    }
    all.sort();
    all
}

/// Something for the doctor to repair.
fn damage(log: &Path) -> String {
    let sound = std::fs::read_to_string(log).unwrap();
    let damaged = format!("rubbish\n{sound}");
    std::fs::write(log, &damaged).unwrap();
    damaged
}

const APPEND: &[&str] = &["sessions", "append", "x"];
const IMPORT: &[&str] = &["sessions", "import", "x", SESSION];
const FORK_FROM: &[&str] = &["sessions", "fork", "x", "y"];
const FORK_TO: &[&str] = &["sessions", "fork", "z", "x"];
const FIX: &[&str] = &["doctor", "--fix"];
const RM: &[&str] = &["sessions", "rm", "x"];

/// Ends with this code and leaves what is outside as it was.
#[track_caller]
fn refused(trap: &Trap, command: &[&str], code: i32) {
    let before = everything(trap.outside.path());
    let ctx = trap
        .project
        .ctx(command)
        .input(message("user", "three").to_string());
    let (printed, said) = ctx.ends(code);
    assert_eq!(
        everything(trap.outside.path()),
        before,
        "{command:?} went outside"
    );
    if code == 5 {
        assert!(printed.is_empty(), "{command:?}: {printed}");
        assert!(said.contains("is a link"), "{command:?}: {said}");
        assert!(
            said.contains("links are not followed"),
            "{command:?}: {said}"
        );
    }
}

#[test]
fn a_link_in_the_place_of_a_session_is_not_followed() {
    for trap in [Trap::moved("sessions/x"), Trap::dangling("sessions/x")] {
        trap.project.say("z", &["one"]);
        for command in [APPEND, IMPORT, FORK_FROM, FORK_TO, RM] {
            refused(&trap, command, 5);
        }
        // It is no session, and the doctor says what it is.
        let listed = trap.project.ctx(&["sessions", "list"]).success();
        assert!(listed.contains("1 session"), "{listed}");
        refused(&trap, FIX, 1);
        let (found, _) = trap.project.ctx(FIX).ends(1);
        assert!(
            found.contains("session `x`") && found.contains("is a link"),
            "{found}"
        );
    }
}

#[test]
fn a_link_in_the_place_of_a_log_is_not_followed() {
    let part = "sessions/x/log.jsonl";
    for trap in [Trap::moved(part), Trap::dangling(part)] {
        trap.project.say("z", &["one"]);
        for command in [APPEND, IMPORT, FORK_FROM, FORK_TO, RM] {
            refused(&trap, command, 5);
        }
        refused(&trap, FIX, 1);
        let (found, _) = trap.project.ctx(FIX).ends(1);
        assert!(
            found.contains("session `x`") && found.contains("is a link"),
            "{found}"
        );
    }
}

#[test]
fn a_link_in_the_place_of_all_sessions_is_not_followed() {
    for trap in [Trap::moved("sessions"), Trap::dangling("sessions")] {
        let list: &[&str] = &["sessions", "list"];
        for command in [APPEND, IMPORT, FORK_FROM, FIX, RM, list] {
            refused(&trap, command, 5);
        }
    }
}

#[test]
fn a_link_in_the_place_of_the_lock_is_not_followed() {
    let part = "sessions/x/log.lock";
    for trap in [Trap::moved(part), Trap::dangling(part)] {
        refused(&trap, APPEND, 5);
        refused(&trap, RM, 5);
        // Damage, so that there is something to repair.
        let log = trap.project.log("x");
        let text = damage(&log);
        refused(&trap, FIX, 5);
        assert_eq!(std::fs::read_to_string(&log).unwrap(), text);
        // Who only reads needs no lock.
        refused(&trap, FORK_FROM, 0);
        std::fs::remove_file(&log).unwrap();
        refused(&trap, IMPORT, 5);
        assert!(!log.exists());
    }
}

/// What is written beside a log before it takes its place: a link there is taken away, and leads
/// nowhere.
#[test]
fn a_link_in_the_place_of_the_new_log_is_not_followed() {
    let part = "sessions/x/log.jsonl.new";
    for trap in [Trap::moved(part), Trap::dangling(part)] {
        let log = trap.project.log("x");
        let sound = trap.project.entries("x");
        damage(&log);
        refused(&trap, FIX, 0);
        assert_eq!(trap.project.entries("x"), sound);
        assert!(log.symlink_metadata().unwrap().is_file());
        std::fs::remove_file(&log).unwrap();
        symlink(trap.outside.path().join("target"), trap.inside(part)).unwrap();
        refused(&trap, IMPORT, 0);
        assert!(log.symlink_metadata().unwrap().is_file());
        assert!(trap.inside(part).symlink_metadata().is_err());
    }
}

/// Names for backups are foreseeable: a link under one of them is passed over.
#[test]
fn a_link_in_the_place_of_a_backup_is_not_followed() {
    let part = "sessions/x/log.jsonl.bak1";
    for trap in [Trap::moved(part), Trap::dangling(part)] {
        let log = trap.project.log("x");
        let sound = trap.project.entries("x");
        damage(&log);
        refused(&trap, FIX, 0);
        assert_eq!(trap.project.entries("x"), sound);
        assert!(trap.inside("sessions/x/log.jsonl.bak2").is_file());
    }
}

/// Not only links: whatever is no file of ours is not opened for long.
#[test]
fn what_is_no_file_is_refused() {
    let project = Project::new();
    project.say("x", &["one"]);
    let log = project.log("x");
    std::fs::remove_file(&log).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&log).status();
    assert!(made.unwrap().success());
    for command in [
        APPEND,
        IMPORT,
        RM,
        &["sessions", "show", "x"],
        &["inspect", "x"],
    ] {
        project
            .ctx(command)
            .input(message("user", "hi").to_string())
            .failure(5, "is no regular file");
    }
    std::fs::remove_file(&log).unwrap();
    std::fs::create_dir(&log).unwrap();
    for command in [APPEND, IMPORT, RM] {
        let output = project
            .ctx(command)
            .input(message("user", "hi").to_string())
            .run();
        assert!(matches!(output.status.code(), Some(1 | 5)), "{output:?}");
    }
    assert!(log.is_dir());
}
