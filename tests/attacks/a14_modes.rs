//! 14: what is written is its owner's alone, whatever the process was told to allow.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::common::{Project, SESSION, message};

fn modes(folder: &Path, found: &mut Vec<(String, u32)>) {
    let mode = folder.symlink_metadata().unwrap().permissions().mode() & 0o7777;
    found.push((folder.display().to_string(), mode));
    if folder.is_dir() {
        for item in std::fs::read_dir(folder).unwrap() {
            modes(&item.unwrap().path(), found);
        }
    }
}

#[test]
fn files_and_folders_are_private() {
    let folder = tempfile::tempdir().unwrap();
    let project = Project::new();
    let line = project.write("line.jsonl", format!("{}\n", message("user", "hi")));
    let run = |args: &[&str]| {
        let output = Command::new("sh")
            .args([
                "-c",
                "umask 0; exec \"$0\" \"$@\"",
                env!("CARGO_BIN_EXE_ctx"),
            ])
            .arg("--dir")
            .arg(folder.path())
            .args(args)
            .env_remove("CONTEXTURE_STORE_URL")
            .env_remove("XDG_STATE_HOME")
            .env("HOME", project.home())
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
    };
    run(&["sessions", "append", "a", line.to_str().unwrap()]);
    run(&["sessions", "import", "b", SESSION]);
    run(&["sessions", "fork", "b", "c"]);
    run(&["sessions", "pin", "c", "e05"]);
    // A repair makes a backup and a new file.
    let log = folder.path().join(".contexture/sessions/b/log.jsonl");
    let mut text = std::fs::read_to_string(&log).unwrap();
    text.push_str("rubbish\n");
    std::fs::write(&log, text).unwrap();
    run(&["doctor", "--fix"]);
    let mut found = Vec::new();
    modes(&folder.path().join(".contexture"), &mut found);
    assert!(found.iter().any(|(path, _)| path.ends_with(".bak1")));
    assert_eq!(found.len(), 5 + 2 * 3 + 1, "{found:#?}");
    for (path, mode) in found {
        let wanted = if Path::new(&path).is_dir() {
            0o700
        } else {
            0o600
        };
        assert_eq!(mode, wanted, "{path}: {mode:o}");
    }
}
