use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use contexture_tools::shell::sandbox::Sandbox;
use contexture_tools::shell::{CREDENTIALS, Shell, ShellOptions};

use super::{Project, assert_has, run, sandboxes, text};

const SECRET: &str = "hunter2-of-the-tests";

/// Puts the secret into a file below a folder.
fn plant(base: &Path, path: &str) {
    let path = base.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{SECRET}\n")).unwrap();
}

fn shell(project: &Project, sandbox: Sandbox, change: impl FnOnce(&mut ShellOptions)) -> Shell {
    let mut options = ShellOptions {
        sandbox: Some(sandbox),
        ..project.options()
    };
    change(&mut options);
    Shell::new(options).unwrap()
}

/// Every path of the table that is in the home, or usually there.
fn in_the_home() -> Vec<String> {
    let usual = [
        ("~/", ""),
        ("$XDG_CONFIG_HOME/", ".config/"),
        ("$XDG_DATA_HOME/", ".local/share/"),
        ("$XDG_STATE_HOME/", ".local/state/"),
    ];
    let paths = CREDENTIALS.iter().flat_map(|sort| sort.paths);
    let inside = paths.filter_map(|path| {
        let found = usual
            .iter()
            .find_map(|(base, usual)| Some((path.strip_prefix(base)?, usual)));
        found.map(|(rest, usual)| format!("{usual}{}", rest.replace('*', "x")))
    });
    inside.collect()
}

/// Also where the whole home may be read.
// needs: landlock
#[tokio::test]
async fn every_sort_is_hidden_in_a_home_that_is_readable() {
    for sandbox in sandboxes() {
        let project = Project::new();
        let paths = in_the_home();
        assert!(paths.len() > 100, "{}", paths.len());
        for (number, path) in paths.iter().enumerate() {
            // As a file, or as a folder with something in it.
            let path = if number % 2 == 0 {
                path.clone()
            } else {
                format!("{path}/deep/in")
            };
            plant(&project.home, &path);
        }
        fs::write(project.home.join("notes"), "not hidden\n").unwrap();
        let home = project.home.clone();
        let shell = shell(&project, sandbox, |options| options.readable = vec![home]);
        let outcome = run(
            &shell,
            "cat ~/notes; grep -rs . ~; cp -r ~/.ssh ~/.npmrc . ; cat .ssh .npmrc",
        )
        .await;
        assert_has(&outcome, "not hidden");
        assert!(
            !text(&outcome).contains(SECRET),
            "{sandbox}: {}",
            text(&outcome)
        );
    }
}

/// Whatever a command tries, what the user denies in the project is hidden, and as it was.
// needs: landlock
#[tokio::test]
async fn what_lies_in_the_project_is_hidden_too() {
    for sandbox in sandboxes() {
        for attempt in [
            "cat .env keys/a",
            "ln .env e; ln -s .env f; cat e f",
            "mv keys k; cat k/a; mv .env e; cat e; cat sub/deep/token",
            "mv sub other; cat other/deep/token; mv other/deep x; cat x/token",
            "cp -r keys .env sub here; grep -rs . .",
            "tar cf - . | strings",
            "cat /proc/self/root/$PWD/.env; cd keys; cat a",
            "mount --bind keys sub; umount .env; umount keys; cat .env keys/a",
            "ln -s ../.. sub/up; cat sub/up/.env sub/up/*/.env",
            "git init -q; git add -A; git stash; git show",
            "rm -rf keys .env sub; mkdir keys; echo x >keys/a; chmod 777 .env",
        ] {
            let project = Project::new();
            let paths = [".env", "keys/a", "sub/deep/token"];
            paths.iter().for_each(|path| plant(&project.root, path));
            project.write("sub/open", "open\n");
            let denied = [".env", "keys", "sub/deep/token", "absent"];
            let shell = shell(&project, sandbox, |options| {
                options.deny_read = denied.iter().map(Into::into).collect();
            });
            let outcome = run(&shell, &format!("cat sub/open; {attempt}")).await;
            assert_has(&outcome, "\nopen\n");
            let said = text(&outcome);
            assert!(!said.contains(SECRET), "{sandbox}: {attempt}: {said}");
            // Folders around it may be moved.
            if sandbox.seals() {
                assert_eq!(planted(&project.root), paths.len(), "{sandbox}: {attempt}");
            }
        }
    }
}

/// How many files have the secret in them.
fn planted(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let count = |entry: fs::DirEntry| match entry.file_type().unwrap() {
        kind if kind.is_dir() => planted(&entry.path()),
        kind if kind.is_file() => {
            usize::from(fs::read_to_string(entry.path()).is_ok_and(|text| text.contains(SECRET)))
        }
        _ => 0,
    };
    entries.map(count).sum()
}

/// Without mounts, a folder with something to hide in it takes nothing new; that is said.
// needs: landlock
#[tokio::test]
async fn the_rest_of_the_project_stays_of_use() {
    for sandbox in sandboxes() {
        let project = Project::new();
        plant(&project.root, ".env");
        project.write("src/old", "old\n");
        let shell = shell(&project, sandbox, |options| {
            options.deny_read = vec![".env".into()];
        });
        let outcome = run(
            &shell,
            "cat src/old; echo x >>src/old; echo y >src/new; ls; echo z >new",
        )
        .await;
        assert_has(&outcome, "old\n");
        assert_eq!(project.read("src/old"), "old\nx\n");
        assert_eq!(project.read("src/new"), "y\n");
        assert_eq!(
            project.root.join("new").exists(),
            sandbox.seals(),
            "{sandbox}"
        );
        assert_eq!(
            text(&outcome).contains("nothing new can be made right in"),
            !sandbox.seals()
        );
    }
}

/// A credential may be a link into the project, or into a folder that is readable.
// needs: landlock
#[tokio::test]
async fn links_lead_nowhere() {
    for sandbox in sandboxes() {
        let project = Project::new();
        plant(&project.root, "dotfiles/ssh/id");
        plant(&project.root, "dotfiles/npmrc");
        plant(&project.root, "dotfiles/aws/credentials");
        plant(&project.home, ".netrc");
        fs::create_dir(project.home.join(".ssh")).unwrap();
        for (from, to) in [(".ssh/id", "ssh/id"), (".npmrc", "npmrc"), (".aws", "aws")] {
            symlink(
                project.root.join("dotfiles").join(to),
                project.home.join(from),
            )
            .unwrap();
        }
        symlink(project.home.join(".netrc"), project.root.join("link")).unwrap();
        symlink("/proc/self/root", project.root.join("all")).unwrap();
        let command = "grep -rs . dotfiles; cat link all/$HOME/.netrc dotfiles/ssh/id; cd dotfiles && cat aws/*";
        let outcome = run(&project.within(sandbox), command).await;
        assert!(
            !text(&outcome).contains(SECRET),
            "{sandbox}: {}",
            text(&outcome)
        );
    }
}

/// A project may be the folder in which credentials lie.
// needs: landlock
#[tokio::test]
async fn a_project_around_them_does_not_open_them() {
    for sandbox in sandboxes() {
        let project = Project::new();
        let config = project.home.join(".config");
        plant(&config, "contexture/contexture.json");
        plant(&config, "gh/hosts.yml");
        fs::create_dir(config.join("nvim")).unwrap();
        fs::write(config.join("nvim/init"), "open\n").unwrap();
        let shell = shell(&project, sandbox, |options| {
            options.root = config.clone();
            options.outputs = config.join(".contexture/outputs");
        });
        let outcome = run(&shell, "grep -rs . . ; echo more >>nvim/init").await;
        assert_has(&outcome, "nvim/init:open");
        assert!(
            !text(&outcome).contains(SECRET),
            "{sandbox}: {}",
            text(&outcome)
        );
        assert_eq!(
            fs::read_to_string(config.join("nvim/init")).unwrap(),
            "open\nmore\n"
        );
    }
}

/// One thing may be opened inside of what is hidden.
// needs: landlock
#[tokio::test]
async fn what_is_readable_by_name_stays_so() {
    for sandbox in sandboxes() {
        let project = Project::new();
        plant(&project.home, ".ssh/id");
        fs::write(project.home.join(".ssh/known_hosts"), "open\n").unwrap();
        let hosts = project.home.join(".ssh/known_hosts");
        let shell = shell(&project, sandbox, |options| options.readable = vec![hosts]);
        let outcome = run(&shell, "cat ~/.ssh/known_hosts; cat ~/.ssh/id; ls ~/.ssh").await;
        assert_has(&outcome, "open");
        assert!(
            !text(&outcome).contains(SECRET),
            "{sandbox}: {}",
            text(&outcome)
        );
    }
}

/// Environments and memory of processes that are not the command's own.
// needs: landlock
#[tokio::test]
async fn other_processes_keep_theirs() {
    let mut other = Command::new("sleep")
        .arg("300")
        .env("OTHERS_KEY", SECRET)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = other.id();
    for sandbox in sandboxes() {
        let project = Project::new();
        let command = format!(
            "sleep 301 & cat /proc/$!/environ >/dev/null && echo own; cat /proc/[0-9]*/environ; cat /proc/{pid}/environ; \
             for at in maps mem auxv cwd/x root/etc/passwd fd/0 stack; do head -c1 /proc/{pid}/$at && echo got $at; done; \
             cat /proc/*/task/*/environ; cat /proc/1/environ && echo got 1; true"
        );
        let outcome = run(&project.within(sandbox), &command).await;
        assert_has(&outcome, "own");
        let said = text(&outcome);
        assert!(
            !said.contains(SECRET) && !said.contains("CARGO_"),
            "{sandbox}: {said}"
        );
        assert!(
            sandbox == Sandbox::Bubblewrap || !said.contains("got "),
            "{sandbox}: {said}"
        );
        // Where `/proc` can be mounted, their command lines are hidden too.
        let line = format!("cat /proc/{pid}/cmdline | tr '\\0' ' '; true");
        let line = run(&project.within(sandbox), &line).await;
        let hidden = !text(&line).contains("sleep 300");
        assert_eq!(hidden, sandbox.seals(), "{sandbox}: {}", text(&line));
    }
    other.kill().unwrap();
    other.wait().unwrap();
}

/// As root, too. Where we are not, the system keeps them.
// needs: landlock
#[tokio::test]
async fn the_systems_secrets_are_not_read() {
    for sandbox in sandboxes() {
        let project = Project::new();
        let command = "for at in /etc/shadow /etc/gshadow /etc/shadow- /var/spool/cron /etc/ssl/private; do \
                       head -qc1 $at $at/* && echo read $at; ls -A $at | grep -q / && echo listed $at; done 2>/dev/null; \
                       head -c1 /etc/passwd >/dev/null && echo open";
        let outcome = run(&project.within(sandbox), command).await;
        assert_has(&outcome, "open");
        assert!(
            !text(&outcome).contains("read /"),
            "{sandbox}: {}",
            text(&outcome)
        );
    }
}

#[test]
fn the_documentation_names_every_sort() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/shell.md");
    let page = fs::read_to_string(page).unwrap();
    for sort in CREDENTIALS {
        assert!(
            page.contains(sort.about),
            "{} is not in docs/shell.md",
            sort.about
        );
    }
}
