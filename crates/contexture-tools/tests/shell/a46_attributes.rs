use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use contexture_tools::shell::sandbox::{Sandbox, available};
use contexture_tools::shell::{Shell, ShellOptions};

use super::{Project, assert_has, run, sandboxes, text};

/// Ways to change what a file is, beside what is in it.
const ATTACKS: &[&str] = &[
    "chmod 644 @",
    "chmod 000 @",
    "chmod -R 777 $(dirname @)",
    "chown 12345:12345 @",
    "chgrp 12345 @",
    "touch -d '2001-01-01' @",
    "touch -h -d '2001-01-01' @",
    "setfattr -n user.x -v y @",
    "python3 -c 'import os; os.setxattr(\"@\", \"user.x\", b\"y\")'",
    "python3 -c 'import os; os.chmod(\"@\", 0o644)'",
    "python3 -c 'import os; os.utime(\"@\", (1, 1))'",
    "python3 -c 'import os; f = os.open(\"@\", os.O_PATH); os.chmod(f\"/proc/self/fd/{f}\", 0o644)'",
    "python3 -c 'import os; f = os.open(\"@\", os.O_RDONLY); os.fchmod(f, 0o644)'",
    "python3 -c 'import os; f = os.open(\"@\", os.O_RDONLY); os.fchown(f, 12345, 12345); os.setxattr(f, \"user.x\", b\"y\")'",
    "python3 -c 'import os; f = os.open(\"@\", os.O_RDONLY); os.utime(f, (1, 1))'",
    "python3 -c 'import os; d = os.open(os.path.dirname(\"@\"), os.O_PATH); os.chmod(os.path.basename(\"@\"), 0o644, dir_fd=d)'",
    "ln -s @ link; chmod 644 link; ln @ hard; chmod 644 hard",
    "chmod 644 /proc/$PPID/root@; chmod 644 /proc/self/root@; chmod 644 /proc/1/root@",
    "unshare -rm chmod 644 @",
];

/// The mode, the owner, the time, and whether there is an extended attribute.
fn state(path: &Path) -> (u32, u32, u32, i64, bool) {
    let about = fs::metadata(path).unwrap();
    let marked = rustix::fs::getxattr(path, "user.x", &mut [0u8; 8][..]).is_ok();
    (
        about.mode(),
        about.uid(),
        about.gid(),
        about.mtime(),
        marked,
    )
}

/// Files outside of the project: a key, one that tools need, and one that everybody sees.
fn outside(project: &Project) -> Vec<PathBuf> {
    let beside = project.home.parent().unwrap();
    let paths =
        [".ssh/id_rsa", ".cargo/config.toml", ".profile"].map(|path| project.home.join(path));
    let mut paths = paths.to_vec();
    paths.push(beside.join("other/file"));
    for path in &paths {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "mine").unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    }
    paths
}

/// By mounts, nothing of it changes.
// needs: landlock
#[tokio::test]
async fn outside_of_the_project_they_stay_as_they_are() {
    for sandbox in sandboxes().into_iter().filter(|sandbox| sandbox.seals()) {
        for attack in ATTACKS {
            let project = Project::new();
            let all = outside(&project);
            let before: Vec<_> = all.iter().map(|path| state(path)).collect();
            let commands = all
                .iter()
                .map(|path| attack.replace('@', path.to_str().unwrap()));
            let commands = commands
                .map(|command| format!("({command})"))
                .collect::<Vec<_>>();
            let outcome = run(&project.within(sandbox), &commands.join("\n")).await;
            let after: Vec<_> = all.iter().map(|path| state(path)).collect();
            assert_eq!(after, before, "{sandbox}: {attack}: {}", text(&outcome));
        }
    }
}

/// Those of the system's devices, which bubblewrap lends.
// needs: landlock
#[tokio::test]
async fn devices_stay_as_they_are() {
    for sandbox in sandboxes().into_iter().filter(|sandbox| sandbox.seals()) {
        let project = Project::new();
        let before = fs::metadata("/dev/full").unwrap().mode();
        let outcome = run(
            &project.within(sandbox),
            "chmod 600 /dev/full; echo x >/dev/null && echo open",
        )
        .await;
        let after = fs::metadata("/dev/full").unwrap().mode();
        // Nobody else should suffer from a test that fails.
        if after != before {
            fs::set_permissions("/dev/full", Permissions::from_mode(before)).unwrap();
        }
        assert_eq!(after, before, "{sandbox}: {}", text(&outcome));
        assert_has(&outcome, "open");
    }
}

/// With Landlock alone: owners and extended attributes stay, permissions of keys come back, and that is said.
// needs: landlock
#[tokio::test]
async fn landlock_alone_puts_back_what_matters_most() {
    if !available().has(Sandbox::Landlock) {
        return eprintln!("skipped: there is no Landlock");
    }
    for attack in ATTACKS {
        let project = Project::new();
        let all = outside(&project);
        let before: Vec<_> = all.iter().map(|path| state(path)).collect();
        let commands = all
            .iter()
            .map(|path| attack.replace('@', path.to_str().unwrap()));
        let outcome = run(
            &project.within(Sandbox::Landlock),
            &commands.collect::<Vec<_>>().join("\n"),
        )
        .await;
        for (path, before) in all.iter().zip(&before) {
            let after = state(path);
            let said = text(&outcome);
            assert_eq!(
                (after.1, after.2, after.4),
                (before.1, before.2, before.4),
                "{attack}: {said}"
            );
        }
        for number in [0, 2] {
            assert_eq!(
                state(&all[number]).0,
                before[number].0,
                "{attack}: {}",
                text(&outcome)
            );
        }
    }
    let project = Project::new();
    let all = outside(&project);
    let shell = project.within(Sandbox::Landlock);
    let outcome = run(&shell, "chmod 644 ~/.ssh/id_rsa").await;
    assert_has(
        &outcome,
        &format!(
            "{} were changed to 644; they were put back to 600",
            all[0].display()
        ),
    );
    assert_has(
        &outcome,
        "permissions and times of files outside of the project can be changed",
    );
    // Once is enough.
    assert!(!text(&run(&shell, "true").await).contains("note:"));
}

/// In the project all of it works as ever.
// needs: landlock
#[tokio::test]
async fn in_the_project_they_can_be_changed() {
    for sandbox in sandboxes() {
        let project = Project::new();
        project.write("run", "#!/bin/sh\necho ran\n");
        let command = "set -e; chmod +x run; ./run; touch -d 2001-01-01 old; cp -p run copy; ./copy; cp -a old old2; \
            mkdir d; chmod 700 d; tar cf t.tar run old d; mkdir out; tar xf t.tar -C out; ./out/run; \
            stat -c '%a %y %n' old2 out/old out/d | cut -c1-14; install -m 750 run bin; chown $(id -u):$(id -g) run; \
            python3 -c 'import shutil; shutil.copy2(\"run\", \"py\")'; ./py";
        let outcome = run(&project.within(sandbox), command).await;
        assert!(!outcome.failed, "{sandbox}: {}", text(&outcome));
        assert_eq!(
            text(&outcome).matches("ran\n").count() + usize::from(text(&outcome).ends_with("ran")),
            4
        );
        assert_eq!(
            text(&outcome).matches("644 2001-01-01").count(),
            2,
            "{}",
            text(&outcome)
        );
        assert_has(&outcome, "\n700 ");
    }
}

/// Where other folders may be written, their attributes are the command's affair too.
// needs: landlock
#[tokio::test]
async fn what_may_be_written_may_be_changed() {
    for sandbox in sandboxes() {
        let project = Project::new();
        let beside = project.home.join("beside");
        fs::create_dir(&beside).unwrap();
        fs::write(beside.join("x"), "").unwrap();
        let options = ShellOptions {
            writable: vec![beside.clone()],
            sandbox: Some(sandbox),
            ..project.options()
        };
        let outcome = run(&Shell::new(options).unwrap(), "chmod 751 ~/beside/x").await;
        assert!(!outcome.failed, "{sandbox}: {}", text(&outcome));
        assert_eq!(
            fs::metadata(beside.join("x")).unwrap().mode() & 0o777,
            0o751
        );
    }
}
