//! Files for an agent: in its workspace, and nowhere else.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::acp::common::*;

/// What the agent is answered, in order.
async fn ask(scene: &Scene, asks: Value) -> Vec<Value> {
    scene.once(asks).await.unwrap();
    scene.host.told()
}

#[tokio::test]
async fn lines_are_read_and_files_written() {
    let scene = Scene::new("asks");
    scene.write("a.txt", "one\ntwo\nthree\nfour\n");
    let at = |path: &str| scene.workspace().join(path);
    let told = ask(
        &scene,
        json!([
            ["fs/read_text_file", {"path": at("a.txt")}],
            ["fs/read_text_file", {"path": at("a.txt"), "line": 2, "limit": 2}],
            ["fs/read_text_file", {"path": at("a.txt"), "line": 9}],
            ["fs/read_text_file", {"path": "a.txt", "line": null, "limit": 1}],
            ["fs/write_text_file", {"path": at("a.txt"), "content": "new"}],
            ["fs/write_text_file", {"path": at("deep/down/b.txt"), "content": "beta\n"}],
            ["fs/read_text_file", {"path": at("deep/down/b.txt")}],
            ["fs/read_text_file", {"path": at("none.txt")}],
            ["fs/read_text_file", {"path": at("deep")}],
            ["fs/read_text_file", {"path": at("a.txt"), "line": "2"}],
            ["fs/read_text_file", {}],
        ]),
    )
    .await;
    assert_eq!(told[0]["content"], "one\ntwo\nthree\nfour\n");
    assert_eq!(told[1]["content"], "two\nthree\n");
    assert_eq!(told[2]["content"], "");
    assert_eq!(told[3]["content"], "one\n");
    assert_eq!((&told[4], &told[5]), (&json!({}), &json!({})));
    assert_eq!(told[6]["content"], "beta\n");
    assert_eq!(told[7]["code"], -32002);
    for error in &told[8..] {
        assert!(error["code"].is_i64(), "{error}");
    }
    assert_eq!(std::fs::read_to_string(at("a.txt")).unwrap(), "new");
}

/// Attack 9 and 13: neither dots nor links lead out.
#[tokio::test]
async fn nothing_outside_is_read_or_written() {
    let scene = Scene::new("asks");
    let outside = scene.folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), "hidden").unwrap();
    scene.write("in.txt", "inside");
    let root = scene.workspace();
    symlink(&outside, root.join("link")).unwrap();
    symlink(outside.join("secret"), root.join("secret")).unwrap();
    symlink(outside.join("new"), root.join("dangling")).unwrap();
    symlink(root.join("in.txt"), root.join("fine")).unwrap();
    let paths = [
        json!("../outside/secret"),
        json!("link/../../outside/secret"),
        json!(outside.join("secret")),
        json!("/etc/passwd"),
        json!("link/secret"),
        json!("secret"),
        json!("none/../../outside/secret"),
        json!("/proc/self/environ"),
        json!("in.txt\u{0}"),
        json!(""),
    ];
    let mut asks = Vec::new();
    for path in &paths {
        asks.push(json!(["fs/read_text_file", {"path": path}]));
        asks.push(json!(["fs/write_text_file", {"path": path, "content": "mine"}]));
    }
    for path in [
        "dangling",
        "link/new",
        "../outside/new",
        "none/../../outside/new",
    ] {
        asks.push(json!(["fs/write_text_file", {"path": path, "content": "mine"}]));
    }
    asks.push(json!(["fs/read_text_file", {"path": "fine"}]));
    let told = ask(&scene, json!(asks)).await;
    let (last, refused) = told.split_last().unwrap();
    for (ask, error) in asks.iter().zip(refused) {
        assert!(error["code"].is_i64(), "{ask}: {error}");
    }
    assert_eq!(last["content"], "inside");
    assert_eq!(
        std::fs::read_to_string(outside.join("secret")).unwrap(),
        "hidden"
    );
    assert!(!outside.join("new").exists());
    assert_eq!(
        std::fs::read_to_string(root.join("in.txt")).unwrap(),
        "inside"
    );
}

/// Attack 32: what runs later, and what is ours.
#[tokio::test]
async fn hooks_and_our_own_files_are_not_written() {
    let scene = Scene::new("asks");
    scene
        .write(".git/HEAD", "ref: refs/heads/main")
        .write(".git/config", "[core]");
    let paths = [
        ".git/hooks/post-checkout",
        ".git/config",
        ".contexture/x",
        "contexture.json",
    ];
    let asks: Vec<Value> = paths
        .iter()
        .map(|path| json!(["fs/write_text_file", {"path": path, "content": "mine"}]))
        .collect();
    for (path, error) in paths.iter().zip(ask(&scene, json!(asks)).await) {
        assert!(error["code"].is_i64(), "{path}: {error}");
    }
    assert_eq!(
        std::fs::read_to_string(scene.workspace().join(".git/config")).unwrap(),
        "[core]"
    );
    assert!(!scene.workspace().join(".git/hooks").exists());
}

/// Attack 36: large, not text, not a file at all.
#[tokio::test]
async fn what_is_too_large_or_no_text_is_refused() {
    let scene = Scene::new("asks");
    scene.write("large.txt", "0123456\n".repeat(200_000));
    scene.write("binary", [0xff, 0xfe, 0x00]);
    let pipe = scene.workspace().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let told = ask(
        &scene,
        json!([
            ["fs/read_text_file", {"path": "large.txt"}],
            ["fs/read_text_file", {"path": "large.txt", "line": 199_999}],
            ["fs/read_text_file", {"path": "binary"}],
            ["fs/read_text_file", {"path": "pipe"}],
            ["fs/write_text_file", {"path": "pipe", "content": "x"}],
            ["fs/write_text_file", {"path": "big.txt", "content": "x".repeat((1 << 20) + 1)}],
        ]),
    )
    .await;
    assert!(
        told[0]["message"]
            .as_str()
            .unwrap()
            .contains("ask for fewer lines"),
        "{}",
        told[0]
    );
    assert_eq!(told[1]["content"], "0123456\n0123456\n");
    for error in &told[2..] {
        assert!(error["code"].is_i64(), "{error}");
    }
    assert!(!scene.workspace().join("big.txt").exists());
}
