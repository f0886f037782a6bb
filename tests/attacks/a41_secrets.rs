//! 41: keys never reach the disk, the next request or the screen.

use std::path::Path;

use serde_json::json;

use crate::attacks::agent::{Scene, calls, says};
use crate::model_server::{Answer, Piece};

const KEY: &str = "hunter2-hunter2-hunter2";

fn everything_on_disk(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => everything_on_disk(&entry.path(), text),
            false => text.push_str(&String::from_utf8_lossy(
                &std::fs::read(entry.path()).unwrap(),
            )),
        }
    }
}

#[test]
fn keys_that_a_command_prints_are_masked_everywhere() {
    // Much output, so that the whole of it goes to a file of its own.
    let command = "cat keys.txt; seq 1 20000; cat keys.txt >&2; env";
    let scene = Scene::new([
        calls("c", "exec_shell", json!({ "command": command })),
        says("done"),
    ]);
    let keys = format!(
        "MY={KEY}\nsk-live-abcdefghijklmnopqrst\nAuthorization: Bearer eyJhbGciOi.abc-1234567\n"
    );
    scene.project.write("keys.txt", &keys);
    let (stdout, stderr) = scene
        .run("openai:m", &["go", "--allow", "exec_shell", "--json"])
        .env("SOME_SERVICE_TOKEN", KEY)
        .ends(0);
    let mut disk = String::new();
    everything_on_disk(&scene.project.path().join(".contexture"), &mut disk);
    assert!(disk.contains("19999"), "the whole output is in a file");
    for (name, text) in [
        ("disk", &disk),
        ("request", &scene.sent(1)),
        ("stdout", &stdout),
        ("stderr", &stderr),
    ] {
        for secret in [
            KEY,
            "abcdefghijklmnopqrst",
            "eyJhbGciOi.abc",
            "sk-of-the-tests",
        ] {
            assert!(!text.contains(secret), "{secret} is in {name}");
        }
    }
    assert!(disk.contains("[masked]"));
}

/// A model that knows a key says it in two pieces, in capitals, in a thought and in a call.
#[test]
fn keys_that_a_model_says_are_masked_in_whatever_pieces_they_come() {
    let upper: &'static str = KEY.to_uppercase().leak();
    let reply = Answer::Says(vec![
        Piece::Thinking("It was hunter2-hun"),
        Piece::Thinking("ter2-hunter2."),
        Piece::Text("Your key is hunt"),
        Piece::Text("er2-hunter2-hun"),
        Piece::Text("ter2, or "),
        Piece::Text(&upper[..12]),
        Piece::Text(&upper[12..]),
        Piece::Text(". Say Bearer YOUR_ACCESS_TOKEN, and h"),
        Piece::Call(
            "c",
            "exec_shell",
            json!({"command": format!("echo {KEY} | wc -c")}),
        ),
    ]);
    let scene = Scene::new([reply, says("done")]);
    let (stdout, stderr) = scene
        .run("openai:m", &["go", "--allow", "exec_shell"])
        .env("SOME_SERVICE_TOKEN", KEY)
        .ends(0);
    let mut disk = String::new();
    everything_on_disk(&scene.project.path().join(".contexture"), &mut disk);
    for (name, text) in [
        ("disk", &disk),
        ("request", &scene.sent(1)),
        ("stdout", &stdout),
        ("stderr", &stderr),
    ] {
        assert!(!text.to_lowercase().contains("hunter2-h"), "{name}: {text}");
    }
    for text in [&stdout, &disk] {
        assert!(
            text.contains("Your key is [masked], or [masked]."),
            "{text}"
        );
        // An example is no key, and the tool got what was meant.
        assert!(text.contains("YOUR_ACCESS_TOKEN, and h"), "{text}");
    }
    assert!(
        scene.sent(1).contains(&format!("{}", KEY.len() + 1)),
        "{}",
        scene.sent(1)
    );
}
