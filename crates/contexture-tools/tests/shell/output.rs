//! What is told of what a command printed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use contexture_tools::shell::{Shell, ShellOptions};

use super::{Project, assert_has, run, text};

#[tokio::test]
async fn both_streams_are_told_apart() {
    let project = Project::new();
    let outcome = run(&project.shell(), "echo out; echo err >&2").await;
    assert_eq!(text(&outcome), "exit code: 0\nstdout:\nout\nstderr:\nerr");
    assert_eq!(
        outcome.summary,
        "$ echo out; echo err >&2\nexit code: 0\nout\nerr"
    );
    assert!(!outcome.failed);
    let outcome = run(&project.shell(), "true").await;
    assert_eq!(text(&outcome), "exit code: 0\n(no output)");
}

/// Head and tail stay, the mark says how much is missing, and the file has all of it.
#[tokio::test]
async fn long_output_is_cut_and_kept() {
    let project = Project::new();
    let options = ShellOptions {
        output_cap: 1_000,
        ..project.options()
    };
    let shell = Shell::new(options).unwrap();
    let outcome = run(&shell, "seq 1 2000").await;
    let all: String = (1..=2000).map(|n| format!("{n}\n")).collect();
    assert!(!outcome.failed);
    let told = text(&outcome)
        .strip_prefix("exit code: 0\nstdout:\n")
        .unwrap();
    let (head, rest) = told.split_once("\n[… ").unwrap();
    let (cut, rest) = rest
        .split_once(" bytes cut here; all of it is in ")
        .unwrap();
    let (file, tail) = rest.split_once(" …]\n").unwrap();
    let cut: usize = cut.parse().unwrap();
    assert!(all.starts_with(head) && all.trim_end().ends_with(tail));
    assert_eq!(head.len() + cut + tail.len() + 1, all.len());
    assert!(head.len() + tail.len() <= 1_000);

    let path = project.root.join(file);
    assert_eq!(fs::read_to_string(&path).unwrap(), all);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);

    // The model reads on where it was cut.
    let outcome = run(&shell, &format!("sed -n 1000p {file}")).await;
    assert_has(&outcome, "\n1000");
}

#[tokio::test]
async fn short_output_leaves_no_file() {
    let project = Project::new();
    run(&project.shell(), "seq 10").await;
    assert_eq!(
        fs::read_dir(project.root.join(".contexture/outputs"))
            .unwrap()
            .count(),
        0
    );
}

/// A cut never makes half a character.
#[tokio::test]
async fn a_cut_respects_characters() {
    let project = Project::new();
    for pad in 0..4 {
        let options = ShellOptions {
            output_cap: 301,
            ..project.options()
        };
        let command = format!("printf '%{pad}s'; for i in $(seq 500); do printf '€😀'; done");
        let outcome = run(&Shell::new(options).unwrap(), &command).await;
        assert_has(&outcome, "bytes cut here");
        assert!(!text(&outcome).contains('\u{fffd}'), "{}", text(&outcome));
    }
}

#[tokio::test]
async fn any_bytes_can_be_printed() {
    let project = Project::new();
    let outcome = run(
        &project.shell(),
        "head -c 3000 /dev/urandom; printf '\\377\\033[31mred\\007'",
    )
    .await;
    assert!(!outcome.failed);
    let outcome = run(&project.shell(), "printf '\\033[2Jred\\007\\342\\200\\256'").await;
    assert!(
        !outcome
            .summary
            .contains(|c: char| c.is_control() && c != '\n'),
        "{:?}",
        outcome.summary
    );
    assert!(!outcome.summary.contains('\u{202e}'));
}

#[tokio::test]
async fn a_summary_is_short() {
    let project = Project::new();
    let command = format!("seq 1 5000 # {}\ntrue", "x".repeat(5_000));
    let outcome = run(&project.shell(), &command).await;
    assert!(outcome.summary.chars().count() <= 500);
    assert!(outcome.summary.starts_with("$ seq 1 5000 # xxx"));
    assert!(
        outcome.summary.contains("…\nexit code: 0\n1\n2\n"),
        "{}",
        outcome.summary
    );
}

/// A link in the place of the outputs' folder would lead our files elsewhere.
#[tokio::test]
async fn a_link_is_no_folder_for_outputs() {
    let project = Project::new();
    fs::create_dir(project.root.join(".contexture")).unwrap();
    std::os::unix::fs::symlink(&project.home, project.root.join(".contexture/outputs")).unwrap();
    let outcome = run(&project.shell(), "seq 1 100000").await;
    assert!(outcome.failed);
    assert_has(&outcome, "is a link");
    assert_eq!(fs::read_dir(&project.home).unwrap().count(), 0);
    fs::remove_dir_all(project.root.join(".contexture")).unwrap();
    std::os::unix::fs::symlink(&project.home, project.root.join(".contexture")).unwrap();
    assert!(run(&project.shell(), "seq 1 100000").await.failed);
    assert_eq!(fs::read_dir(&project.home).unwrap().count(), 0);
}
