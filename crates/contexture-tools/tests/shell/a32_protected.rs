use std::fs;
use std::os::unix::fs::PermissionsExt;

use contexture_tools::shell::sandbox::{Sandbox, available};
use contexture_tools::shell::{Shell, ShellError, ShellOptions};

use super::{Project, assert_has, run, sandboxes, text};

/// A project with a repository and our own files.
fn project() -> Project {
    let project = Project::new();
    let git = std::process::Command::new("git")
        .args(["init", "-q"])
        .current_dir(&project.root)
        .status();
    assert!(git.unwrap().success());
    project.write("contexture.json", "{}");
    project.write(".contexture/sessions/s.jsonl", "{\"id\":1}\n");
    project.write(".git/hooks/pre-push", "#!/bin/sh\n");
    project.write("src/main.rs", "fn main() {}\n");
    project
}

/// What must not change, and what a model might do about it.
const ATTACKS: &[&str] = &[
    "echo 'touch owned' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "echo 'touch owned' >>.git/hooks/pre-push",
    "chmod 777 .git/hooks/pre-push",
    "git config core.hooksPath /tmp/x; echo '[core]' >>.git/config",
    "git config core.pager 'touch owned'",
    "cp .git/config c; echo '[x]' >>c; mv -f c .git/config",
    "rm -rf .git/hooks; mkdir -p .git/hooks; echo x >.git/hooks/pre-commit",
    "mv .git/hooks .git/h; mkdir .git/hooks; echo x >.git/hooks/post-checkout",
    "ln .git/config link; echo '[x]' >>link",
    "ln -s .git/hooks h; echo x >h/pre-commit",
    "echo elsewhere >.git/commondir",
    "echo '{\"mcpServers\":{}}' >contexture.json",
    "rm contexture.json",
    "mv contexture.json gone; echo '{}x' >contexture.json",
    "perl -e 'truncate q(contexture.json), 0; truncate q(.git/config), 0'",
    "rm -rf .contexture; echo x >.git/hooks/pre-commit",
    "rm -rf .contexture/outputs; ln -s /tmp .contexture/outputs; echo x >>.git/config",
    "echo x >.git/hooks/pre-commit; chmod 0 .git/hooks .contexture/outputs",
    "echo x >.git/hooks/pre-commit; echo x >>.git/config; chmod 555 .git/hooks .git",
    "mkdir evil; echo x >evil/pre-commit; mv .git/hooks h; ln -s ../evil .git/hooks",
    "mv .git g && ln -s g .git; echo x >>g/config; echo x >g/hooks/pre-commit",
    "umount .git/config; umount -l .git/hooks; mount -o remount,rw .git/config; echo x >>.git/config",
    "unshare -rm sh -c 'umount .git/config; echo x >>.git/config'",
    "echo x >>/proc/$PPID/root$PWD/.git/config; echo x >>/proc/$PPID/cwd/.git/config",
];

/// All that is protected, as it is now.
fn state(project: &Project) -> Vec<(String, u32, String)> {
    let mut all = Vec::new();
    let mut folders = vec![project.root.join(".git/hooks")];
    let mut files = vec![
        project.root.join(".git/config"),
        project.root.join(".git/commondir"),
        project.root.join("contexture.json"),
    ];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            files.push(entry.path());
        }
    }
    files.sort();
    for path in files {
        let mode = fs::symlink_metadata(&path).map_or(0, |about| about.permissions().mode());
        let text = fs::read_to_string(&path).unwrap_or_default();
        all.push((path.display().to_string(), mode, text));
    }
    all
}

// needs: landlock
#[tokio::test]
async fn protected_files_stay_as_they_are() {
    for sandbox in sandboxes() {
        for attack in ATTACKS {
            let project = project();
            let before = state(&project);
            let outcome = run(&project.within(sandbox), attack).await;
            let told = text(&outcome);
            assert_eq!(state(&project), before, "{sandbox}: {attack}\n{told}");
            assert!(!project.root.join("owned").exists());
        }
    }
}

/// The whole repository put elsewhere and another in its place.
// needs: landlock
#[tokio::test]
async fn a_repository_cannot_be_replaced_unseen() {
    for sandbox in sandboxes() {
        let project = project();
        let before = state(&project);
        let attack =
            "mv .git g && cp -r g .git && echo '[x]' >>.git/config; echo x >.git/hooks/pre-commit";
        let outcome = run(&project.within(sandbox), attack).await;
        assert_eq!(state(&project), before, "{sandbox}: {}", text(&outcome));
    }
}

/// Refused, not only put back: the log is safe while the command runs.
// needs: mount
#[tokio::test]
async fn mounts_refuse_at_once() {
    if !available().has(Sandbox::Mounts) {
        return eprintln!("skipped: this user cannot mount, or there is no Landlock");
    }
    refuses_at_once(Sandbox::Mounts).await;
}

// needs: bubblewrap
#[tokio::test]
async fn bubblewrap_refuses_at_once() {
    if !available().has(Sandbox::Bubblewrap) {
        return eprintln!("skipped: bubblewrap is not installed, or does not work");
    }
    refuses_at_once(Sandbox::Bubblewrap).await;
}

async fn refuses_at_once(sandbox: Sandbox) {
    for attack in [
        "echo x >>.contexture/sessions/s.jsonl",
        "echo x >.contexture/new",
        "rm -rf .contexture/sessions",
        "mv .contexture c",
        "echo x >.git/hooks/pre-commit",
        "echo x >>.git/config",
        "mv .git g",
        "rm -f contexture.json",
    ] {
        let project = project();
        let outcome = run(&project.within(sandbox), attack).await;
        assert!(outcome.failed, "{attack}: {}", text(&outcome));
        assert!(
            !text(&outcome).contains("warning"),
            "{attack}: {}",
            text(&outcome)
        );
        assert_eq!(project.read(".contexture/sessions/s.jsonl"), "{\"id\":1}\n");
    }
}

/// Where they can only be put back, that is said, and what the command wrote is not lost.
// needs: landlock
#[tokio::test]
async fn what_was_put_back_is_said() {
    if !available().has(Sandbox::Landlock) {
        return eprintln!("skipped: there is no Landlock");
    }
    let project = project();
    let outcome = run(
        &project.within(Sandbox::Landlock),
        "echo theirs >contexture.json",
    )
    .await;
    assert_has(&outcome, "contexture.json is protected; it was put back");
    let kept = text(&outcome).split("made of it is ").nth(1).unwrap();
    assert_eq!(project.read(kept.lines().next().unwrap()), "theirs\n");
    assert_eq!(project.read("contexture.json"), "{}");
}

// needs: landlock
#[tokio::test]
async fn a_configuration_that_was_not_there_does_not_appear() {
    for sandbox in sandboxes() {
        let project = Project::new();
        let outcome = run(
            &project.within(sandbox),
            "echo '{}' >contexture.json; mkdir x",
        )
        .await;
        assert_has(&outcome, "contexture.json is protected");
        assert!(!project.root.join("contexture.json").exists(), "{sandbox}");
        assert!(project.root.join("x").exists(), "{sandbox}");
    }
}

/// Neither the home's dotfiles nor anything else outside of the project.
// needs: landlock
#[tokio::test]
async fn nothing_outside_is_written() {
    for sandbox in sandboxes() {
        let project = project();
        fs::write(project.home.join(".bashrc"), "mine").unwrap();
        fs::create_dir(project.home.join(".cargo")).unwrap();
        let beside = project.home.parent().unwrap().display().to_string();
        let command = format!(
            "cd {beside}; for at in home/.bashrc home/.profile home/.cargo/config.toml new /etc/x /usr/x /tmp/x /var/tmp/x; \
             do if echo x >>$at; then echo wrote $at; fi; done 2>/dev/null; \
             ln -s {beside}/home/.bashrc {beside}/project/link; echo x >>{beside}/project/link; rm -f {beside}/home/.bashrc; true"
        );
        let outcome = run(&project.within(sandbox), &command).await;
        assert!(
            !text(&outcome).contains("wrote"),
            "{sandbox}: {}",
            text(&outcome)
        );
        assert_eq!(
            fs::read_to_string(project.home.join(".bashrc")).unwrap(),
            "mine"
        );
        assert!(!project.home.parent().unwrap().join("new").exists());
    }
}

// needs: landlock
#[tokio::test]
async fn the_homes_secrets_are_not_read() {
    for sandbox in sandboxes() {
        let project = project();
        for (path, text) in [
            (".ssh/id", "secret"),
            (".aws/credentials", "secret"),
            (".config/contexture/config.json", "secret"),
            (".netrc", "secret"),
            (".cargo/credentials.toml", "secret"),
            (".cargo/config.toml", "tools"),
            (".gitconfig", "[user]\n  name = Somebody\n"),
        ] {
            fs::create_dir_all(project.home.join(path).parent().unwrap()).unwrap();
            fs::write(project.home.join(path), text).unwrap();
        }
        let command = "cat ~/.ssh/id ~/.aws/credentials ~/.config/contexture/config.json ~/.netrc \
                       ~/.cargo/credentials.toml ~/.cargo/config.toml; \
                       cp ~/.ssh/id .; ln ~/.ssh/id here; cat id here; git config --get user.name; grep -r secret ~ ..";
        let outcome = run(&project.within(sandbox), command).await;
        assert!(
            !text(&outcome).contains("\nsecret"),
            "{sandbox}: {}",
            text(&outcome)
        );
        assert_has(&outcome, "tools");
        assert_has(&outcome, "Somebody");
    }
}

/// All of this would be for nothing if one could not work.
// needs: landlock
#[tokio::test]
async fn a_project_can_be_worked_on() {
    for sandbox in sandboxes() {
        let project = project();
        let command = "set -e; echo new >new.txt; mkdir -p a/b; mv new.txt a/b; sed -i s/main/other/ src/main.rs; \
            git add -A; git -c user.name=a -c user.email=a@b commit -qm one; git checkout -qb branch; \
            git log --format=%s; ls .contexture/sessions; cat contexture.json; mktemp >/dev/null; \
            seq 3 | sort -r | head -1; rm -r a; git status --short";
        let outcome = run(&project.within(sandbox), command).await;
        assert!(!outcome.failed, "{sandbox}: {}", text(&outcome));
        assert_has(&outcome, "\none\ns.jsonl\n{}3\n D a/b/new.txt");
        assert!(
            !text(&outcome).contains("warning"),
            "{sandbox}: {}",
            text(&outcome)
        );
        assert_eq!(project.read("src/main.rs"), "fn other() {}\n");
    }
}

// needs: landlock
#[tokio::test]
async fn other_folders_can_be_allowed() {
    for sandbox in sandboxes() {
        let project = project();
        let beside = project.home.join("beside");
        fs::create_dir(&beside).unwrap();
        fs::write(project.home.join("notes"), "read me").unwrap();
        let options = ShellOptions {
            writable: vec![beside.clone()],
            readable: vec![project.home.join("notes")],
            sandbox: Some(sandbox),
            ..project.options()
        };
        let outcome = run(
            &Shell::new(options).unwrap(),
            "echo x >~/beside/x && cat ~/notes",
        )
        .await;
        assert_has(&outcome, "read me");
        assert!(beside.join("x").exists(), "{sandbox}");
    }
}

#[test]
fn the_home_is_no_project() {
    let project = Project::new();
    for root in [project.home.as_path(), project.home.parent().unwrap()] {
        let options = ShellOptions {
            root: root.to_owned(),
            ..project.options()
        };
        let refused = Shell::new(options).err().unwrap();
        assert!(matches!(refused, ShellError::BadRoot { .. }));
        assert!(refused.hint().contains("folder of a project"));
    }
}
