use serde_json::{Value, json};

use crate::agent::scene::{Scene, calls, counterparts, filesystem, says};
use crate::model_server::{Answer, ModelServer, Piece};

const SKILL: &str =
    "---\nname: greeting\ndescription: How this team greets.\n---\n\nGreet with the word AHOY.\n";
const MODELS: [&str; 3] = ["openai:m", "openai-responses:m", "anthropic:m"];

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

// needs: mcp-servers
#[test]
fn a_task_with_a_skill_a_real_mcp_server_and_a_shell_is_in_the_log_and_verifies() {
    let Some(folder) = counterparts() else { return };
    for model in MODELS {
        let scene = Scene::new([]);
        let root = scene.project.path().canonicalize().unwrap();
        scene
            .project
            .write("contexture.json", filesystem(&folder, &root));
        scene.project.write("AGENTS.md", "Speak like a sailor.");
        std::fs::create_dir_all(root.join(".agents/skills/greeting")).unwrap();
        scene
            .project
            .write(".agents/skills/greeting/SKILL.md", SKILL);
        let server = ModelServer::start([
            calls("c1", "skills_load", json!({"name": "greeting"})),
            Answer::Says(vec![
                Piece::Text("Writing it down."),
                Piece::Call(
                    "c2",
                    "fs__write_file",
                    json!({"path": root.join("hello.txt"), "content": "AHOY"}),
                ),
            ]),
            calls(
                "c3",
                "exec_shell",
                json!({"command": "cat hello.txt && echo done > shell.txt"}),
            ),
            says("I greeted."),
        ]);
        let scene = Scene { server, ..scene };
        let lines = scene
            .run(
                model,
                &[
                    "Greet the world.",
                    "--json",
                    "--allow",
                    "fs:*",
                    "--allow",
                    "exec_shell",
                ],
            )
            .env("CONTEXTURE_TRUST", "1")
            .lines();
        let done = lines.last().unwrap();
        assert_eq!(done["type"], "done", "{model}");
        assert_eq!(done["ended"], "answered");
        assert_eq!(done["success"], true, "{model}: {done}");
        assert_eq!(
            std::fs::read_to_string(root.join("hello.txt")).unwrap(),
            "AHOY"
        );
        assert_eq!(
            std::fs::read_to_string(root.join("shell.txt")).unwrap(),
            "done\n"
        );
        let tools: Vec<&str> = done["toolCalls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|call| call["tool"].as_str().unwrap())
            .collect();
        assert_eq!(tools, ["skills_load", "fs:write_file", "exec_shell"]);
        let said: Vec<&str> = of_type(&lines, "assistant")
            .iter()
            .map(|l| l["text"].as_str().unwrap())
            .collect();
        assert_eq!(said, ["Writing it down.", "I greeted."]);
        assert_eq!(of_type(&lines, "step_finish").len(), 4);
        // The skill stands before the user's words, which are as they were.
        let body = scene.sent(1);
        assert!(
            body.find("word AHOY").unwrap() < body.find("Greet the world.").unwrap(),
            "{model}"
        );
        assert!(scene.sent(0).contains("Speak like a sailor."));
        assert!(
            scene.sent(0).contains("fs__write_file") && !scene.sent(0).contains("fs:write_file")
        );
        scene.verify();
        let shown = scene.ctx(&["inspect", "s", "--json"]).json();
        let origins: Vec<&str> = shown["receipt"]["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["origin"].as_str().unwrap())
            .collect();
        assert!(
            origins.iter().any(|origin| origin.starts_with("section:")),
            "{origins:?}"
        );
    }
}

#[test]
fn an_untrusted_project_starts_nothing_and_says_so() {
    let scene = Scene::new([says("ok")]);
    let mark = scene.project.path().join("started");
    let server = json!({"mcpServers": {"x": {"command": "touch", "args": [mark]}}});
    scene.project.write("contexture.json", server.to_string());
    scene.project.write("AGENTS.md", "Obey me.");
    let (_, stderr) = scene.run("openai:m", &["hello"]).ends(0);
    assert!(stderr.contains("ctx trust"), "{stderr}");
    assert!(!mark.exists());
    assert!(!scene.sent(0).contains("Obey me."));
}

#[test]
fn with_nobody_to_ask_what_acts_is_refused_and_the_model_is_told() {
    let scene = Scene::new([
        calls("c", "exec_shell", json!({"command": "touch made"})),
        says("I may not."),
    ]);
    let lines = scene.run("openai:m", &["make it", "--json"]).lines();
    assert!(!scene.project.path().join("made").exists());
    let done = lines.last().unwrap();
    assert_eq!(done["hadToolFailure"], true);
    assert!(
        done["failures"][0]["error"]
            .as_str()
            .unwrap()
            .contains("--allow exec_shell")
    );
    assert!(scene.sent(1).contains("nobody is there"));
    scene.verify();
}

#[test]
fn commands_that_the_configuration_allows_need_no_question_and_chained_ones_do() {
    let script = || {
        [
            calls("c", "exec_shell", json!({"command": "echo one"})),
            calls(
                "d",
                "exec_shell",
                json!({"command": "echo one; touch made"}),
            ),
            calls("e", "exec_shell", json!({"command": "echo $(touch made)"})),
            says("ok"),
        ]
    };
    let scene = Scene::new(script());
    scene
        .project
        .write("contexture.json", r#"{"shell":{"allow":["echo"]}}"#);
    let lines = scene
        .run("openai:m", &["go", "--json"])
        .env("CONTEXTURE_TRUST", "1")
        .lines();
    let done = lines.last().unwrap();
    let worked: Vec<bool> = done["toolCalls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["success"].as_bool().unwrap())
        .collect();
    assert_eq!(worked, [true, false, false], "{done}");
    assert!(!scene.project.path().join("made").exists());
}

#[test]
fn a_second_run_goes_on_and_shares_its_beginning_with_the_first() {
    let scene = Scene::new([says("Hello, I am a model."), says("You said: hello.")]);
    scene.run("openai:m", &["hello"]).success();
    scene.run("openai:m", &["what did I say?"]).success();
    let (first, second) = (scene.sent(0), scene.sent(1));
    let shared = first
        .bytes()
        .zip(second.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    assert!(second.contains("Hello, I am a model."));
    let growth = second.len() - first.len();
    assert!(
        shared > first.len() * 9 / 10,
        "{shared} of {} shared, {growth} more",
        first.len()
    );
    scene.verify();
    let sessions = scene.ctx(&["sessions", "list", "--json"]).success();
    assert!(sessions.contains("\"s\""), "{sessions}");
}

// needs: mcp-servers
#[test]
fn many_tools_are_deferred_and_found_when_they_are_looked_for() {
    let Some(folder) = counterparts() else { return };
    let scene = Scene::new([
        calls("a", "tool_search", json!({"query": "read text file"})),
        says("Found."),
    ]);
    let root = scene.project.path().canonicalize().unwrap();
    scene
        .project
        .write("contexture.json", filesystem(&folder, &root));
    let lines = scene
        .run("openai:m", &["look", "--json", "--budget", "16k"])
        .env("CONTEXTURE_TRUST", "1")
        .lines();
    assert_eq!(lines.last().unwrap()["success"], true);
    assert!(!scene.sent(0).contains("fs__read_text_file"));
    assert!(scene.sent(0).contains("tool_search"));
    let second: Value = serde_json::from_str(&scene.sent(1)).unwrap();
    let offered = second["tools"].to_string();
    assert!(offered.contains("fs__read_text_file"), "{offered}");
    scene.verify();
    let at_first = scene.ctx(&["inspect", "s", "--at", "0", "--json"]).json();
    assert!(
        at_first["receipt"]["deferredTools"]["tokens"]
            .as_u64()
            .unwrap()
            > 100
    );
}
