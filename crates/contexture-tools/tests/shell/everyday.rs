//! Programs that people use every day, in every sandbox. Those that are not installed are left out.

use std::path::PathBuf;

use contexture_tools::shell::{Shell, ShellOptions};

use super::{Project, assert_has, call, sandboxes, text};

/// A program, what is done with it, and what comes of that.
const USES: &[(&str, &str, &str)] = &[
    (
        "cargo",
        "cargo init -q --vcs none --name tiny c && cd c && cargo build -q --offline && cargo test -q --offline && ./target/debug/tiny",
        "Hello, world!",
    ),
    (
        "cc",
        "printf '#include <stdio.h>\\nint main(void) { puts(\"from C\"); return 0; }\\n' >m.c && cc -o m m.c && ./m",
        "from C",
    ),
    (
        "make",
        "printf 'all: out\\nout: in\\n\\tcp in out\\n' >Makefile && echo made >in && make -s && touch -d 2001-01-01 out && make -s && cat out",
        "made",
    ),
    (
        "git",
        "git init -q r && cd r && echo x >f && git add f && git -c user.name=a -c user.email=a@b commit -qm 'from git' && \
         chmod +x f && git diff --stat && git stash -q && git log --format=%s && git gc -q",
        "from git",
    ),
    (
        "node",
        "node -e 'const fs = require(\"fs\"); fs.writeFileSync(\"n.js\", \"console.log(40 + 2)\"); fs.chmodSync(\"n.js\", 0o755); \
         fs.utimesSync(\"n.js\", 1, 1)' && node n.js",
        "42",
    ),
    (
        "npm",
        "mkdir p && cd p && mkdir dep && echo '{\"name\":\"dep\",\"version\":\"1.0.0\",\"bin\":\"b.js\"}' >dep/package.json && \
         printf '#!/usr/bin/env node\\nconsole.log(\"from npm\")\\n' >dep/b.js && npm --cache $TMPDIR/npm init -y >/dev/null && \
         npm --cache $TMPDIR/npm pack ./dep >/dev/null && npm --cache $TMPDIR/npm install --offline --no-audit --no-fund ./dep-1.0.0.tgz >/dev/null && \
         ./node_modules/.bin/dep",
        "from npm",
    ),
    (
        "python3",
        "python3 -m venv --without-pip v && v/bin/python -c 'import shutil, tempfile; shutil.copytree(\"v\", \"w\", symlinks=True); \
         print(\"from\", \"python\")'",
        "from python",
    ),
    (
        "tar",
        "mkdir -p t/in && echo packed >t/in/f && chmod 640 t/in/f && tar czf t.tgz t && rm -r t && tar xzf t.tgz && \
         cat t/in/f && stat -c %a t/in/f",
        "packed\n640",
    ),
    (
        "cp",
        "echo a >a && chmod 751 a && touch -d 2001-01-01 a && cp -p a b && mv b c && ln c d && sed -i s/a/z/ c && stat -c %a c && \
         ls /etc/passwd && find . -name c && mktemp >/dev/null && df . >/dev/null && ps >/dev/null && id -u >/dev/null",
        "751",
    ),
];

// needs: landlock
#[tokio::test]
async fn programs_of_every_day_work() {
    for sandbox in sandboxes() {
        for (program, command, part) in USES {
            let project = Project::new();
            let options = ShellOptions {
                // Toolchains are in the real one.
                home: std::env::home_dir().unwrap_or_default(),
                sandbox: Some(sandbox),
                ..ShellOptions::new(PathBuf::from(&project.root))
            };
            let shell = Shell::new(options).unwrap();
            let there = call(
                &shell,
                &serde_json::json!({"command": format!("{program} --version")}),
            )
            .await;
            if there.failed {
                eprintln!("skipped: there is no {program}");
                continue;
            }
            let arguments = serde_json::json!({"command": command, "timeoutSeconds": 300});
            let outcome = call(&shell, &arguments).await;
            assert!(!outcome.failed, "{sandbox}: {program}: {}", text(&outcome));
            assert_has(&outcome, part);
            assert!(
                !text(&outcome).contains("warning: "),
                "{sandbox}: {program}: {}",
                text(&outcome)
            );
        }
    }
}
