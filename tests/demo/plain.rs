//! What people read, and what they are told when it cannot begin.

use crate::demo::scene::Scene;

// needs: model
#[test]
fn a_pipe_gets_plain_text_that_fits() {
    let Some(scene) = Scene::new() else { return };
    let (text, said) = scene.ctx(&["demo"]).ends(0);
    assert_eq!(said, "", "nothing moves in a pipe");
    assert!(!text.contains('\x1b'), "{text}");
    let mut rest = text.as_str();
    for heading in [
        "1  Build",
        "2  Ask",
        "3  Ask again",
        "4  Break the cache",
        "what broke it: section clock was added",
        "5  Compact",
        "6  Undo",
        "✓ the same",
        "7  Verify",
        "4 of 4 requests, byte for byte",
        "ctx inspect demo-",
        "ctx diff demo-",
        "ctx chat",
    ] {
        let at = rest.find(heading);
        rest = &rest[at.unwrap_or_else(|| panic!("no `{heading}` here: {text}"))..];
    }
    let wide = text.lines().find(|line| line.chars().count() > 100);
    assert_eq!(wide, None, "a line is too long");
}

#[test]
fn without_a_model_it_says_what_to_do_and_leaves_nothing_behind() {
    let scene = Scene::without_model();
    let demo = scene
        .ctx(&["demo"])
        .env("PIP_CONFIG_FILE", "/dev/null")
        .env("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
        .env("PIP_EXTRA_INDEX_URL", "")
        .env("PIP_FIND_LINKS", "")
        .env("PIP_RETRIES", "0");
    let said = demo.failure(1, "cannot be reached");
    assert!(said.contains("`ctx model add NAME FILE.gguf`"), "{said}");
    let other = scene.ctx(&["demo", "--model", "local:other"]);
    other.failure(2, "there is no model `other` on this machine");
    let sessions = scene.ctx(&["sessions", "list", "--json"]).json();
    assert_eq!(sessions, serde_json::json!([]));
}
