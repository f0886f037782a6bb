//! 36: sizes and shapes. A bounded error that names the line, flat memory, nothing half written.

use std::io::Write;
use std::process::Stdio;

use crate::common::{Project, ids, message, peak_kib};

const MOST_KIB: u64 = 300 << 10;

/// Feeds it `blocks` until it has enough; gives its code, its words, and its peak in KiB.
fn feed(
    project: &Project,
    args: &[&str],
    blocks: impl Iterator<Item = Vec<u8>>,
) -> (i32, String, String, u64) {
    let mut child = project
        .ctx(args)
        .command()
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut most = 0;
    for block in blocks {
        if stdin.write_all(&block).is_err() {
            break;
        }
        most = most.max(peak_kib(child.id()).unwrap_or(0));
    }
    drop(stdin);
    // It lives until it has said what it has to say, so its peak can still be seen.
    let watched = child.id();
    let watcher = std::thread::spawn(move || {
        let mut most = 0;
        while let Some(now) = peak_kib(watched) {
            most = most.max(now);
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        most
    });
    let output = child.wait_with_output().unwrap();
    most = most.max(watcher.join().unwrap());
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
        most,
    )
}

#[test]
fn a_line_of_a_gigabyte_is_refused_in_little_memory() {
    for args in [
        &["sessions", "append", "s"][..],
        &["sessions", "import", "s"],
    ] {
        let project = Project::new();
        let first = format!("{}\n", message("user", "before")).into_bytes();
        let begins = b"{\"role\":\"user\",\"content\":\"".to_vec();
        let block = vec![b'a'; 1 << 20];
        let blocks = [first, begins]
            .into_iter()
            .chain(std::iter::repeat_n(block, 1 << 10));
        let (code, told, said, most) = feed(&project, args, blocks);
        assert_eq!(code, 3, "{said}");
        let words = match args[1] {
            "append" => "line 2: longer than 64 MiB",
            _ => "line 2: the input is longer than 48 MiB",
        };
        assert!(said.contains(words), "{said}");
        assert!(most < MOST_KIB, "{args:?} took {} MiB", most >> 10);
        println!(
            "36: {} took {} MiB for a line of 1 GiB",
            args[1],
            most >> 10
        );
        match args[1] {
            "append" => assert_eq!(ids(&project.entries("s")[1..]), [told.trim()]),
            _ => assert!(!project.log("s").exists()),
        }
    }
}

/// Each is long, but none too long: they must not pile up before they are written.
#[test]
fn many_long_lines_do_not_pile_up() {
    let project = Project::new();
    project.write("contexture.json", r#"{"store":{"durability":"os"}}"#);
    let line = format!("{}\n", message("user", &"a".repeat(16 << 20))).into_bytes();
    let blocks = std::iter::repeat_n(line, 40);
    let (code, told, said, most) = feed(&project, &["sessions", "append", "s"], blocks);
    assert_eq!(code, 0, "{said}");
    assert_eq!(told.lines().count(), 40);
    assert!(most < MOST_KIB, "it took {} MiB", most >> 10);
    println!("36: append took {} MiB for 40 lines of 16 MiB", most >> 10);
}

fn shapes() -> Vec<(&'static str, Vec<u8>)> {
    let deep = |open: &str| {
        let begins = b"{\"role\":\"user\",\"content\":".to_vec();
        [begins, open.repeat(100_000).into_bytes()].concat()
    };
    vec![
        ("NUL", b"\0\0\0\0".to_vec()),
        (
            "NUL inside",
            b"{\"role\":\"user\",\"content\":\"a\0b\"}".to_vec(),
        ),
        ("deep arrays", deep("[")),
        ("deep objects", deep("{\"a\":")),
        (
            "duplicate keys",
            b"{\"role\":\"user\",\"content\":\"a\",\"content\":\"b\"}".to_vec(),
        ),
        (
            "duplicate ids",
            b"{\"id\":\"a\",\"id\":\"b\",\"type\":\"custom\",\"payload\":{}}".to_vec(),
        ),
        (
            "duplicates deep inside",
            b"{\"id\":\"a\",\"type\":\"custom\",\"payload\":{\"x\":{\"y\":1,\"y\":2}}}".to_vec(),
        ),
        (
            "a lone surrogate",
            b"{\"role\":\"user\",\"content\":\"\\ud800\"}".to_vec(),
        ),
        (
            "a lone surrogate in a key",
            b"{\"id\":\"a\",\"type\":\"custom\",\"payload\":{\"\\udfff\":1}}".to_vec(),
        ),
        (
            "no UTF-8",
            b"{\"role\":\"user\",\"content\":\"\xff\xfe\"}".to_vec(),
        ),
        (
            "a surrogate in bytes",
            b"{\"role\":\"user\",\"content\":\"\xed\xa0\x80\"}".to_vec(),
        ),
        (
            "an endless number",
            b"{\"role\":\"user\",\"content\":\"a\",\"n\":1e400}".to_vec(),
        ),
        (
            "two values",
            b"{\"role\":\"user\",\"content\":\"a\"} {}".to_vec(),
        ),
        (
            "an array",
            b"[{\"role\":\"user\",\"content\":\"a\"}]".to_vec(),
        ),
        ("no object", b"\"user\"".to_vec()),
    ]
}

#[test]
fn a_shape_that_is_wrong_is_named_with_its_line() {
    let good = |text: &str| format!("{}\n", message("user", text)).into_bytes();
    for (name, bad) in shapes() {
        let project = Project::new();
        let input = [good("one"), good("two"), bad, b"\n".to_vec(), good("four")].concat();
        let (told, said) = project
            .ctx(&["sessions", "append", "s"])
            .input(input.clone())
            .ends(3);
        assert!(said.contains("line 3"), "{name}: {said}");
        assert!(said.len() < 1_000, "{name}: {said}");
        let told: Vec<&str> = told.lines().collect();
        assert_eq!(told.len(), 2, "{name}");
        assert_eq!(ids(&project.entries("s")[1..]), told, "{name}");
        let stderr = project
            .ctx(&["sessions", "import", "t"])
            .input(input)
            .failure(3, "line 3");
        assert!(stderr.len() < 1_000, "{name}: {stderr}");
        assert!(!project.log("t").parent().unwrap().exists(), "{name}");
        // What is there is sound, and goes on.
        project.ctx(&["doctor"]).success();
        assert_eq!(project.say("s", &["five"]).len(), 1);
    }
}
