use super::{Project, assert_has, run, text};

/// Nothing of ours is there: neither keys nor what changes how programs run.
#[tokio::test]
async fn nothing_is_inherited() {
    let ours: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
    assert!(
        ours.iter().any(|name| name.starts_with("CARGO")),
        "a test has variables"
    );
    let project = Project::new();
    let outcome = run(&project.shell(), "env").await;
    let names: Vec<_> = text(&outcome)
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    let known = [
        "PATH", "HOME", "TMPDIR", "LANG", "TERM", "SHELL", "USER", "LOGNAME", "TZ", "PWD",
        "OLDPWD", "SHLVL", "_",
    ];
    for name in &names {
        assert!(known.contains(name), "{name}");
    }
    assert_has(&outcome, "TERM=dumb");
    assert_has(&outcome, &format!("HOME={}", project.home.display()));
}

/// Our own environment is not in reach through `/proc` either.
// needs: landlock
#[tokio::test]
async fn ours_cannot_be_read_from_outside() {
    for sandbox in super::sandboxes() {
        let project = Project::new();
        let ours = std::process::id();
        let command = format!("cat /proc/{ours}/environ; cat /proc/$PPID/environ");
        let outcome = run(&project.within(sandbox), &command).await;
        assert!(
            !text(&outcome).contains("CARGO"),
            "{sandbox}: {}",
            text(&outcome)
        );
    }
}

/// What the model sets is the command's own affair, and is gone with it. Git uses no pager.
#[tokio::test]
async fn what_a_command_sets_is_gone_with_it() {
    let project = Project::new();
    let shell = project.shell();
    run(
        &shell,
        "export PAGER='touch paged' GIT_PAGER='touch paged' LD_PRELOAD=/x.so",
    )
    .await;
    let command = "git init -q . && git -c user.name=a -c user.email=a@b commit -qm x --allow-empty && git log && env";
    let outcome = run(&shell, command).await;
    assert!(!outcome.failed, "{}", text(&outcome));
    assert!(!text(&outcome).contains("LD_PRELOAD"));
    assert!(!text(&outcome).contains("PAGER"));
    assert!(!project.root.join("paged").exists());
}

/// The folder for temporary files is private and goes away.
#[tokio::test]
async fn the_temporary_folder_is_private() {
    let project = Project::new();
    let outcome = run(
        &project.shell(),
        "stat -c %a $TMPDIR; echo x >$TMPDIR/x; echo at $TMPDIR",
    )
    .await;
    assert_has(&outcome, "\n700\n");
    let at = text(&outcome).split("at ").nth(1).unwrap().trim();
    assert!(!std::path::Path::new(at).exists(), "{at}");
}
