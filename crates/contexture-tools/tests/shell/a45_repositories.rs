use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use contexture_tools::shell::{Shell, ShellOptions, is_protected};

use super::{Project, assert_has, run, sandboxes, text};

/// What a command may do so that the user's own git runs something later: the program `@`.
const ATTACKS: &[&str] = &[
    "git init -q sub; git -C sub config core.fsmonitor @; git add sub",
    "git init -q sub; cd sub; git commit -q --allow-empty -m x; git config core.fsmonitor @; cd ..; git add sub",
    "git init -q a/b/c/d/e; git -C a/b/c/d/e config core.fsmonitor @",
    "git init -q sub; printf '#!/bin/sh\\n@\\n' >sub/.git/hooks/post-checkout; chmod +x sub/.git/hooks/*",
    "git init -q sub; rm -r sub/.git/hooks; mkdir h; cp $(which true) h/x; printf '#!/bin/sh\\n@\\n' >h/post-checkout; \
     chmod +x h/*; ln -s ../../h sub/.git/hooks",
    "git init -q sub; mkdir sub/h; printf '#!/bin/sh\\n@\\n' >sub/h/post-checkout; chmod +x sub/h/*; \
     git -C sub config core.hooksPath h",
    "git init -q sub; git -C sub config filter.x.clean @; echo '* filter=x' >sub/.gitattributes; echo y >sub/f",
    "git init -q sub; git -C sub config filter.x.process @; echo '* filter=x' >sub/.git/info/attributes; echo y >sub/f",
    "git init -q sub; cd sub; echo y >f; git add f; git commit -qm x; echo z >f; git config diff.x.textconv @; \
     echo '* diff=x' >.gitattributes",
    "git init -q sub; cd sub; echo y >f; git add f; git commit -qm x; echo z >f; git config diff.external @",
    "git init -q sub; git config -f evil core.fsmonitor @; git -C sub config include.path ../../evil",
    "git init -q sub; git config -f evil core.fsmonitor @; git -C sub config includeIf.gitdir:/.path ../../evil",
    "git init -q sub; git config -f evil core.fsmonitor @; rm sub/.git/config; ln -s ../../evil sub/.git/config",
    "git init -q --bare b; git -C b config core.fsmonitor @; git -C b config core.bare false; git -C b config core.worktree .",
    "git init -q --separate-git-dir=store sub; git -C sub config core.fsmonitor @",
    "mkdir -p .git/modules; git init -q --separate-git-dir=.git/modules/sub sub; git -C sub config core.fsmonitor @; git add sub",
    "git init -q e; git -C e config core.fsmonitor @; git worktree add -q w 2>&1; echo \"$PWD/e/.git\" >.git/worktrees/w/commondir",
    "git init -q sub; cd sub; git config extensions.worktreeConfig true; git config --worktree core.fsmonitor @",
    "cp -r shipped sub; mv sub/dotgit sub/.git",
    "mkdir sub; mv shipped/dotgit sub/.git",
    "mkdir sub; ln -s ../shipped/dotgit sub/.git; true",
    "mkdir sub; echo 'gitdir: ../shipped/dotgit' >sub/.git",
    "git worktree add -q w 2>&1; echo ../../../shipped/dotgit >.git/worktrees/w/commondir",
    "git init -q sub; printf '[core]fsmonitor = @\\n' >>sub/.git/config",
    "git init -q sub; git -C sub config core.fsmonitor @; chmod 500 sub/.git; chmod 400 sub/.git/config",
    "git init -q sub; git -C sub config core.fsmonitor @; rm -rf .contexture/outputs",
    "(git init -q sub; git -C sub config core.fsmonitor @; sleep 60) >/dev/null 2>&1 & sleep 0.5",
];

/// A repository, with another one that it ships under another name.
fn project() -> Project {
    let project = Project::new();
    git(&project, &project.root, &["init", "-q"]);
    git(
        &project,
        &project.root,
        &["commit", "-q", "--allow-empty", "-m", "first"],
    );
    git(&project, &project.root, &["init", "-q", "shipped"]);
    project.write("program", "#!/bin/sh\ntouch \"$(dirname \"$0\")/owned\"\n");
    let program = project.root.join("program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let shipped = project.root.join("shipped");
    git(
        &project,
        &shipped,
        &["config", "core.fsmonitor", program.to_str().unwrap()],
    );
    fs::rename(shipped.join(".git"), shipped.join("dotgit")).unwrap();
    project
}

/// The user's own git. How it ends does not matter here.
fn git(project: &Project, folder: &Path, args: &[&str]) {
    let user = [
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
    ];
    let mut command = Command::new("git");
    command
        .args(args)
        .current_dir(folder)
        .env("HOME", &project.home);
    command.envs(user.map(|name| (name, "user@example.org")));
    command.output().unwrap();
}

/// All folders but git's own.
fn folders(folder: &Path, into: &mut Vec<PathBuf>) {
    into.push(folder.to_owned());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let own = [".git", ".contexture"]
            .iter()
            .any(|name| entry.file_name() == *name);
        if !own && entry.file_type().unwrap().is_dir() {
            folders(&entry.path(), into);
        }
    }
}

/// Works in every folder as a user would. Whether anything was run that a command planted.
fn is_owned(project: &Project) -> bool {
    let mut all = Vec::new();
    folders(&project.root, &mut all);
    let is_repository = |folder: &&PathBuf| {
        let mut names = [".git", "HEAD", "commondir"].iter();
        names.any(|name| fs::symlink_metadata(folder.join(name)).is_ok())
    };
    for folder in all.iter().rev().filter(is_repository) {
        for args in [
            &["status"][..],
            &["diff"],
            &["add", "-A"],
            &["commit", "-qm", "x", "--allow-empty"],
            &["checkout", "-qb", "other"],
        ] {
            git(project, folder, args);
        }
    }
    project.root.join("owned").exists()
}

fn command(project: &Project, attack: &str) -> String {
    let program = project.root.join("program");
    let who = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b";
    format!("{who}; {}", attack.replace('@', program.to_str().unwrap()))
}

/// Each attack is one: without the shell around it, it works.
#[test]
fn each_would_work() {
    for attack in ATTACKS {
        let project = project();
        fs::create_dir_all(project.root.join(".contexture/outputs")).unwrap();
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &command(&project, attack)])
            .current_dir(&project.root);
        shell.env("HOME", &project.home).output().unwrap();
        assert!(is_owned(&project), "{attack}");
    }
}

// needs: landlock
#[tokio::test]
async fn what_a_command_plants_is_not_run() {
    for sandbox in sandboxes() {
        for attack in ATTACKS {
            let project = project();
            let outcome = run(&project.within(sandbox), &command(&project, attack)).await;
            let said = text(&outcome);
            assert!(
                !project.root.join("owned").exists(),
                "{sandbox}: {attack}: {said}"
            );
            assert!(!is_owned(&project), "{sandbox}: {attack}: {said}");
            assert!(
                said.contains("warning: ") || outcome.failed,
                "{sandbox}: {attack}: {said}"
            );
        }
    }
}

/// What one command begins, the next may finish.
// needs: landlock
#[tokio::test]
async fn several_commands_together_plant_nothing() {
    for sandbox in sandboxes() {
        for attack in ATTACKS
            .iter()
            .step_by(3)
            .filter(|attack| attack.contains("; "))
        {
            let project = project();
            let shell = project.within(sandbox);
            let mut said = String::new();
            let (first, rest) = attack.split_once("; ").unwrap();
            for step in [first, rest] {
                let step = command(&project, step);
                said += text(&run(&shell, &step).await);
            }
            assert!(!is_owned(&project), "{sandbox}: {attack}: {said}");
        }
    }
}

/// The user's own repositories below: as they were.
// needs: landlock
#[tokio::test]
async fn those_that_were_there_stay_as_they_are() {
    for sandbox in sandboxes() {
        for attack in [
            "git -C sub config core.fsmonitor @",
            "printf '#!/bin/sh\\n@\\n' >sub/.git/hooks/post-checkout; chmod +x sub/.git/hooks/*",
            "cp sub/.git/config c; git config -f c core.fsmonitor @; mv -f c sub/.git/config",
            "mv sub/.git x; cp -r x sub/.git; git config -f sub/.git/config core.fsmonitor @",
            "mv sub s; git config -f s/.git/config core.fsmonitor @; mv s sub",
            "rm -f tree/.git; git init -q tree; git -C tree config core.fsmonitor @",
            "git config -f .git/worktrees/tree/config.worktree core.fsmonitor @; git -C tree config core.fsmonitor @",
            "echo ../../../shipped/dotgit >.git/worktrees/tree/commondir",
        ] {
            let project = project();
            git(&project, &project.root, &["init", "-q", "sub"]);
            let sub = project.root.join("sub");
            git(&project, &sub, &["config", "alias.mine", "!echo mine"]);
            git(&project, &project.root, &["worktree", "add", "-q", "tree"]);
            let before = [project.read("sub/.git/config"), project.read("tree/.git")];
            let outcome = run(&project.within(sandbox), &command(&project, attack)).await;
            let said = text(&outcome);
            if project.root.join("sub/.git").exists() {
                let after = [project.read("sub/.git/config"), project.read("tree/.git")];
                assert_eq!(after, before, "{sandbox}: {attack}: {said}");
            }
            assert!(!is_owned(&project), "{sandbox}: {attack}: {said}");
        }
    }
}

// needs: landlock
#[tokio::test]
async fn repositories_can_be_worked_in() {
    for sandbox in sandboxes() {
        let project = project();
        let shell = project.within(sandbox);
        for (step, part) in [
            (
                "git init -q sub && cd sub && echo x >f && git add -A && git commit -qm one && git log --format=%s",
                "one",
            ),
            (
                "cd sub && git config user.name Me && git remote add origin https://example.org/x && git checkout -qb side",
                "",
            ),
            (
                "cd sub && echo y >>f && git commit -qam two && git log --format=%s && git config user.name",
                "two\none\nMe",
            ),
            (
                "git clone -q sub copy && cd copy && git branch -a && git config remote.origin.url",
                "remotes/origin/side",
            ),
            (
                "cd copy && git pull -q && git status -s && git worktree add -q ../w && rm -rf ../w && git worktree prune",
                "",
            ),
            ("rm -rf sub copy && git status --short && ls", "shipped"),
        ] {
            let outcome = run(&shell, &command(&project, step)).await;
            let said = text(&outcome);
            assert!(
                !outcome.failed && !said.contains("warning"),
                "{sandbox}: {step}: {said}"
            );
            assert_has(&outcome, part);
        }
    }
}

/// What was taken out is kept for the user, and the rest of the configuration still counts.
// needs: landlock
#[tokio::test]
async fn what_was_taken_out_is_said_and_kept() {
    for sandbox in sandboxes() {
        let project = project();
        let step = "git init -q sub; cd sub; git config user.name Me; git config core.fsmonitor evil; git config alias.x '!y'; \
                    echo hook >.git/hooks/pre-commit";
        let outcome = run(&project.within(sandbox), &command(&project, step)).await;
        assert_has(
            &outcome,
            "sub/.git/config is only kept as far as it makes git run nothing",
        );
        assert_has(&outcome, "taken out: core.fsmonitor, alias.x. ");
        let config = project.read("sub/.git/config");
        assert!(
            config.contains("name = Me") && !config.contains("evil"),
            "{config}"
        );
        let mut kept = text(&outcome).split("is .contexture/outputs/").skip(1);
        let whole = kept.next().unwrap().split_whitespace().next().unwrap();
        assert!(
            project
                .read(&format!(".contexture/outputs/{whole}"))
                .contains("evil")
        );
        assert_has(&outcome, "sub/.git/hooks/pre-commit would be run by git");
        let hook = kept.next().unwrap().split_whitespace().next().unwrap();
        assert_eq!(
            project.read(&format!(".contexture/outputs/{hook}")),
            "hook\n"
        );
    }
}

/// A link that takes the place of a folder afterwards leads us nowhere.
// needs: landlock
#[tokio::test]
async fn nothing_outside_is_touched() {
    for sandbox in sandboxes() {
        let project = project();
        let theirs = project.home.join("theirs");
        git(&project, &project.home, &["init", "-q", "theirs"]);
        git(&project, &theirs, &["config", "alias.x", "!y"]);
        let before = fs::read_to_string(theirs.join(".git/config")).unwrap();
        let step = format!(
            "ln -s {} link; mkdir sub; ln -s {}/.git sub/.git",
            theirs.display(),
            theirs.display()
        );
        run(&project.within(sandbox), &step).await;
        assert_eq!(
            fs::read_to_string(theirs.join(".git/config")).unwrap(),
            before,
            "{sandbox}"
        );
    }
}

/// Looking costs little when there is much to look at.
// needs: landlock
#[tokio::test]
async fn a_large_project_is_looked_through_once() {
    let project = Project::new();
    for number in 0..40 {
        for inside in 0..25 {
            project.write(&format!("{number}/{inside}/deep/file"), "");
        }
    }
    let Some(sandbox) = sandboxes().into_iter().next() else {
        return;
    };
    let shell = project.within(sandbox);
    run(&shell, "true").await;
    let begun = std::time::Instant::now();
    let step = "git init -q 39/24/deep/sub; git -C 39/24/deep/sub config core.fsmonitor evil";
    assert_has(&run(&shell, step).await, "39/24/deep/sub/.git/config");
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}

/// Where files are written without a sandbox, at an agent's wish.
#[test]
fn agents_do_not_write_what_git_runs() {
    let project = project();
    git(&project, &project.root, &["init", "-q", "--bare", "bare"]);
    for path in [
        "sub/.git/hooks/pre-commit",
        "sub/.git/config",
        "a/b/.git/modules/x/config",
        ".git/worktrees/w/commondir",
        "sub/.git",
        "bare/config",
        "bare/hooks/x",
        ".git/hooks/x",
        "contexture.json",
    ] {
        assert!(
            is_protected(&project.root, &project.root.join(path)),
            "{path}"
        );
    }
    for path in [
        "src/config",
        "hooks/x",
        ".gitignore",
        "sub/.gitattributes",
        "branches/x",
    ] {
        assert!(
            !is_protected(&project.root, &project.root.join(path)),
            "{path}"
        );
    }
}

/// In other folders that may be written, too.
// needs: landlock
#[tokio::test]
async fn other_writable_folders_are_looked_through() {
    for sandbox in sandboxes() {
        let project = project();
        let beside = project.home.join("beside");
        fs::create_dir(&beside).unwrap();
        let options = ShellOptions {
            writable: vec![beside.clone()],
            sandbox: Some(sandbox),
            ..project.options()
        };
        let step = "git init -q ~/beside/sub; git -C ~/beside/sub config core.fsmonitor evil";
        run(&Shell::new(options).unwrap(), step).await;
        let config = fs::read_to_string(beside.join("sub/.git/config")).unwrap();
        assert!(!config.contains("evil"), "{sandbox}: {config}");
    }
}
