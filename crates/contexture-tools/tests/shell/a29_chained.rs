use contexture_tools::shell::{allowed_by_prefix, parts};

#[track_caller]
fn check(command: &str, expected: &[&str]) {
    assert_eq!(parts(command).unwrap(), expected, "{command}");
}

#[test]
fn every_part_is_seen() {
    check("ls -l", &["ls -l"]);
    check("ls; rm x", &["ls", "rm x"]);
    check("a && b || c | d & e\nf", &["a", "b", "c", "d", "e", "f"]);
    check("(a; b) && { c; d; }", &["a", "b", "c", "d"]);
    check("! a", &["a"]);
    check("ls # ; rm x\nb", &["ls", "b"]);
}

#[test]
fn substitutions_are_parts_too() {
    check("ls $(rm x)", &["rm x", "ls $(…)"]);
    check(
        "ls \"a $(rm \"$(b)\") c\"",
        &["b", "rm \"$(…)\"", "ls \"a $(…) c\""],
    );
    check("ls `rm \\`b\\``", &["b", "rm `…`", "ls `…`"]);
    check("diff <(a) >(b)", &["a", "b", "diff <(…) >(…)"]);
    check("ls ${x:-$(rm y)}", &["rm y", "ls ${x:-$(…)}"]);
}

#[test]
fn quotes_are_respected() {
    check(
        "echo 'a; b' \"c && d\" e\\;f",
        &["echo 'a; b' \"c && d\" e\\;f"],
    );
    check("echo '$(rm x)' \\$\\(y\\)", &["echo '$(rm x)' \\$\\(y\\)"]);
    check("ls 2>&1 >/dev/null", &["ls 2>&1 >/dev/null"]);
    check("echo a\\\nb", &["echo ab"]);
}

#[test]
fn what_only_looks_like_a_quote_hides_nothing() {
    check("ls \\ #; rm x", &["ls \\ #", "rm x"]);
    check("ls \\>& rm x", &["ls \\>", "rm x"]);
    check("ls a#; rm x", &["ls a#", "rm x"]);
    check("ls \\'; rm x; ls \\'", &["ls \\'", "rm x", "ls \\'"]);
    check(
        "ls \"'\"; rm x; ls \"'\"",
        &["ls \"'\"", "rm x", "ls \"'\""],
    );
}

#[test]
fn what_is_unclear_is_said_to_be() {
    for command in [
        "echo 'a",
        "echo \"a",
        "echo $(a",
        "echo `a",
        "(a",
        "a)",
        "if a; then b; fi",
        "for x in a; do b; done",
        "case x in a) b;; esac",
        "f() { a; }",
        "cat <<E\n$(a)\nE",
        "echo $((1 + $(a)))",
        "ls $'\\''; rm x; ls '",
        "ls \"${x:-'}\"; rm x; ls '}\"",
        "a \\",
    ] {
        assert!(parts(command).is_err(), "{command}: {:?}", parts(command));
        assert!(
            !allowed_by_prefix(command, &["echo", "ls", "a", "b", "cat"]),
            "{command}"
        );
    }
    let deep = "$(".repeat(50_000);
    assert!(parts(&deep).is_err());
}

#[test]
fn a_prefix_allows_only_itself() {
    let prefixes = ["git status", "ls", "head"];
    for allowed in [
        "git status",
        "git  status -s",
        "ls | head -3",
        "ls; git status",
        "ls -l && ls 2>&1",
        "ls 2>/dev/null",
        "ls $(ls)",
        "ls > /dev/null",
    ] {
        assert!(allowed_by_prefix(allowed, &prefixes), "{allowed}");
    }
    for refused in [
        "",
        "git",
        "git statusx",
        "git push",
        "lsx",
        "ls; rm x",
        "ls && rm x",
        "ls\nrm x",
        "ls & rm x",
        "ls | rm x",
        "ls $(rm x)",
        "ls `rm x`",
        "ls \"$(rm x)\"",
        "ls <(rm x)",
        "LD_PRELOAD=x ls",
        "ls > x",
        "ls >> x",
        "ls >| x",
        "ls &> x",
        "ls 2>&1 > x",
        "ls <> x",
        "ls >& x",
        "ls > /dev/nullx",
        "$(echo ls)",
        "\\rm x",
        "{ ls; rm x; }",
        "(rm x)",
        "ls\u{a0}-l; git\u{a0}status",
    ] {
        assert!(!allowed_by_prefix(refused, &prefixes), "{refused}");
    }
    assert!(!allowed_by_prefix("ls", &[] as &[&str]));
    assert!(!allowed_by_prefix("ls", &[""]));
}

/// What a real shell runs is among the parts: each program here only says its name.
#[tokio::test]
async fn a_real_shell_runs_nothing_else() {
    let project = super::Project::new();
    for command in [
        "p1; p2 && p3 || p4",
        "p1 | p2 & p3",
        "p1 $(p2 `p3`) \"$(p4)\"",
        "(p1; { p2; p3; })",
        "p1 '$(p2)' # p3\np4",
        "p1 \\ #; p2",
        "p1 \\>& p2",
        "p1 \"'\"; p2 \"'\"",
        "! p1 2>&1; p2",
    ] {
        let define = "for p in p1 p2 p3 p4; do eval \"$p() { echo $p >>\\$TMPDIR/ran; }\"; done";
        let script = format!("{define}\n{command}\nwait; sort -u $TMPDIR/ran");
        let outcome = super::run(&project.shell(), &script).await;
        let found = parts(command).unwrap();
        let ran = super::text(&outcome)
            .lines()
            .filter(|line| matches!(line.len(), 2));
        let ran: Vec<_> = ran.collect();
        assert!(!ran.is_empty(), "{command}: {}", super::text(&outcome));
        for program in ran {
            assert!(
                found.iter().any(|part| part.starts_with(program)),
                "{command}: {program}"
            );
        }
    }
}
