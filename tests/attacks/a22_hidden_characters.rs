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

/// 55: the less usual ones, each where nothing needs it.
const LESS_USUAL: [char; 22] = [
    '\u{200e}',
    '\u{200f}',
    '\u{61c}',
    '\u{180e}',
    '\u{2061}',
    '\u{2064}',
    '\u{206a}',
    '\u{206f}',
    '\u{fe00}',
    '\u{fe0f}',
    '\u{e0100}',
    '\u{e01ef}',
    '\u{115f}',
    '\u{1160}',
    '\u{3164}',
    '\u{ffa0}',
    '\u{fff9}',
    '\u{fffb}',
    '\u{34f}',
    '\u{17b4}',
    '\u{2028}',
    '\u{1d173}',
];
/// What people write with some of them.
const NEEDED: &str = "می\u{200c}خواهم ❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3} 葛\u{e0100}";

#[test]
fn less_usual_characters_are_shown_and_those_that_writing_needs_stay() {
    for model in ["openai:m", "openai-responses:m", "anthropic:m"] {
        let command = json!({"command": "cat note.txt"});
        let scene = Scene::new([calls("c", "exec_shell", command), says("I read it.")]);
        let stray: String = LESS_USUAL.iter().map(|c| format!("a{c} ")).collect();
        scene
            .project
            .write("note.txt", format!("{stray}\n{NEEDED}"));
        scene
            .run(model, &["read the note", "--allow", "exec_shell"])
            .success();
        let sent = scene.sent(1);
        assert!(sent.contains(NEEDED), "{model}: {sent}");
        let rest = sent.replace(NEEDED, "");
        for c in LESS_USUAL {
            let code = format!("⟨U+{:04X}⟩", u32::from(c));
            assert!(!rest.contains(c) && rest.contains(&code), "{model}: {code}");
        }
        let receipt = scene.ctx(&["inspect", "s", "--json"]).json()["receipt"].clone();
        let items = receipt["items"].as_array().unwrap().iter();
        let hidden: u64 = items.filter_map(|item| item["hidden"].as_u64()).sum();
        assert_eq!(hidden, LESS_USUAL.len() as u64, "{model}");
        scene.verify();
    }
}
