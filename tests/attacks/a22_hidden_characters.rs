//! 22: what a tool hides is made visible to the model, counted, and kept as it was in the log.

use serde_json::json;

use crate::attacks::agent::{Scene, calls, says};

/// "obey" in tag characters, a right-to-left override, a zero-width space.
const HIDDEN: &str = "ok\u{e006f}\u{e0062}\u{e0065}\u{e0079} \u{202e}gpj.exe\u{202c} a\u{200b}b";

#[test]
fn hidden_characters_in_tool_output_are_shown_and_counted() {
    for model in ["openai:m", "openai-responses:m", "anthropic:m"] {
        let command = json!({"command": "cat note.txt"});
        let scene = Scene::new([calls("c", "exec_shell", command), says("I read it.")]);
        scene.project.write("note.txt", HIDDEN);
        scene
            .run(model, &["read the note", "--allow", "exec_shell"])
            .success();
        let sent = scene.sent(1);
        for c in HIDDEN.chars().filter(|c| !c.is_ascii()) {
            assert!(
                !sent.contains(c),
                "{model}: {:x} is hidden in the request",
                c as u32
            );
        }
        assert!(
            sent.contains("⟨U+202E⟩") && sent.contains("obey"),
            "{model}: {sent}"
        );
        let log = std::fs::read_to_string(scene.project.log("s")).unwrap();
        assert!(log.contains('\u{202e}'), "the log has what was there");
        let receipt = scene.ctx(&["inspect", "s", "--json"]).json()["receipt"].clone();
        let hidden: u64 = receipt["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|item| item["hidden"].as_u64())
            .sum();
        assert_eq!(hidden, 7, "{model}");
        scene.verify();
    }
}
