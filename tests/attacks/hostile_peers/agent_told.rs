//! What is told of an agent to people: on a terminal, in files, events and pages.

use serde_json::json;

use super::agent::{KEY, Scene, answered, everywhere, refused, said};
use super::leaks::{self, Secret};
use super::text::{HOSTILE, harm};
use super::watch::{on_a_terminal, script_missing};

// needs: script
#[test]
fn what_an_agent_says_commands_no_terminal() {
    if script_missing() {
        return;
    }
    let mut found = Vec::new();
    let scene = Scene::new();
    scene.begin(json!({"prompts": {
        "all": {"lines": everywhere(HOSTILE), "stderr": [HOSTILE], "answer": answered(HOSTILE)},
        "fail": {"answer": refused(HOSTILE)},
    }}));
    for text in ["all", "fail"] {
        found.extend(harm(
            text,
            &on_a_terminal(&scene.daemon.ctx(&["agent", "prompt", "bot", text])),
        ));
    }
    let token = std::fs::read_to_string(scene.token_file()).unwrap();
    scene.daemon.call(
        &token,
        "internal.canvasUpdate",
        &json!({"html": HOSTILE, "title": HOSTILE}),
    );
    let session = scene.daemon.show("bot")["sessionId"]
        .as_str()
        .unwrap_or("none")
        .to_owned();
    for command in [
        &["agent", "show", "bot"][..],
        &["agent", "list"],
        &["canvas", "list"],
        &["canvas", "show", "bot"],
        &["sessions", "list"],
        &["sessions", "show", &session],
        &["inspect", &session],
    ] {
        found.extend(harm(
            &format!("{command:?}"),
            &on_a_terminal(&scene.daemon.ctx(command)),
        ));
    }
    super::none(found);
}

/// 6, 8, 44 and 53: what an agent knows, or has found out, is told to nobody.
#[test]
fn no_secret_that_an_agent_repeats_is_in_a_file_an_event_or_a_page() {
    let scene = Scene::new();
    let owner = scene.daemon.secret();
    let mut lines = Vec::new();
    for text in ["$TOKEN", "$UPPER", "Bearer $TOKEN", &owner, KEY] {
        lines.extend(everywhere(text));
    }
    for kind in ["agent_message_chunk", "agent_thought_chunk"] {
        for (head, tail) in [("$HEAD", "$TAIL"), owner.split_at(20), KEY.split_at(9)] {
            lines.extend([
                said(kind, &format!("it is {head}")),
                said(kind, tail),
                said(kind, " and no more"),
            ]);
        }
    }
    scene.begin(json!({"prompts": {
        "all": {"lines": lines, "stderr": ["$TOKEN", "$UPPER", &owner, KEY], "answer": answered("$TOKEN"), "pause": 1},
        "upper": {"answer": answered("$UPPER")},
        "owner": {"answer": answered(&owner)},
        "fail": {"answer": refused("$TOKEN")},
        "fail upper": {"answer": refused("$UPPER")},
        "fail owner": {"answer": refused(&owner)},
    }}));
    let token = std::fs::read_to_string(scene.token_file()).expect("the agent found its token");
    let secrets = [
        Secret {
            name: "session's token",
            text: token.clone(),
        },
        Secret {
            name: "owner's secret",
            text: owner.clone(),
        },
        Secret {
            name: "key",
            text: KEY.to_owned(),
        },
    ];
    let events = scene.events();
    let mut found = Vec::new();
    let look = |place: &str, text: &str, found: &mut Vec<String>| {
        leaks::in_text(place, text, &secrets, found);
    };
    for text in ["all", "upper", "owner", "fail", "fail upper", "fail owner"] {
        look(
            &format!("agent prompt {text:?}"),
            &scene.prompt(text),
            &mut found,
        );
    }
    for text in [&token, &token.to_uppercase(), &owner, &KEY.to_owned()] {
        let page = json!({"html": format!("<p title={text}>{text}</p>"), "title": text});
        scene.daemon.call(&token, "internal.canvasUpdate", &page);
        scene.daemon.call(
            &token,
            "internal.callTool",
            &json!({"name": text, "arguments": {text.as_str(): text}}),
        );
        let bearer = format!("Authorization: Bearer {owner}\r\n");
        for path in ["/", "/canvas/bot", "/openapi.json", "/healthz"] {
            look(path, &scene.daemon.get(path, &bearer).body, &mut found);
        }
        look(
            "canvas show",
            &scene.daemon.ctx(&["canvas", "show", "bot"]).success(),
            &mut found,
        );
    }
    let session = scene.daemon.show("bot")["sessionId"]
        .as_str()
        .unwrap_or("none")
        .to_owned();
    for command in [
        &["agent", "show", "bot", "--json"][..],
        &["agent", "list", "--json"],
        &["canvas", "list", "--json"],
        &["sessions", "show", &session, "--json"],
        &["inspect", &session, "--json"],
        &["sessions", "export", &session, "--format", "html"],
    ] {
        let output = scene.daemon.ctx(command).run();
        look(
            &format!("{command:?}"),
            &String::from_utf8_lossy(&output.stdout),
            &mut found,
        );
    }
    let Scene {
        mut daemon,
        plans: _plans,
    } = scene;
    daemon.terminate();
    look("the events", &events.join().unwrap(), &mut found);
    let state = daemon.project.path().join(".home/.local/state/contexture");
    leaks::in_files(daemon.project.path(), Some(&state), &secrets, &mut found);
    super::none(found);
}
