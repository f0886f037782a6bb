//! Mode, persona, run directive, tool policy and system prompt of a run and of a chat, from flags and from the
//! configuration.

use serde_json::{Value, json};

use crate::agent::scene::{Scene, says};

fn persona() -> Value {
    json!({"id": "a", "name": "Ada", "role": "analyst", "principles": "be exact"})
}

/// The example of spec 004's run directive.
fn step() -> Value {
    json!({
        "packageName": "p", "workflowName": "w",
        "currentStep": {"id": "s1", "name": "First", "instruction": "Do {{it}}."},
        "state": {"stepsCompleted": ["s0"]},
        "graph": {"outgoingEdges": [{"label": "next", "targetNodeId": "s2", "isDefault": true}]},
    })
}

/// The system messages of request `n`.
fn system(scene: &Scene, n: usize) -> Vec<String> {
    let body: Value = serde_json::from_str(&scene.sent(n)).unwrap();
    let messages = body["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] == "system")
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

const PERSONA: &str =
    "## Agent Persona\n**Name:** Ada\n**Role:** analyst\n\n**Principles:**\n- be exact";

#[test]
fn by_flags() {
    let scene = Scene::new([says("ok"), says("ok")]);
    let persona = scene.project.write("persona.json", persona().to_string());
    let step = scene.project.write("step.json", step().to_string());
    let (persona, step) = (persona.to_str().unwrap(), step.to_str().unwrap());
    scene
        .run(
            "openai:m",
            &["go", "--persona", persona, "--run-context", step],
        )
        .success();
    let said = system(&scene, 0);
    let parts: Vec<&str> = said[0].split("\n\n---\n\n").collect();
    let at = |begin: &str| {
        parts
            .iter()
            .position(|part| part.starts_with(begin))
            .unwrap()
    };
    assert!(at("# Mode: RUN") < at("## Rules") && at("## Rules") < at("## Agent Persona"));
    assert_eq!(parts[at("## Agent Persona")], PERSONA);
    // What changes with each step stands behind what stays.
    assert!(!said[0].contains("Run Directive"));
    let directive = said
        .iter()
        .find(|text| text.starts_with("## Run Directive"))
        .unwrap();
    assert!(
        directive.contains("Do {{it}}.") && directive.contains("s2 (default)"),
        "{directive}"
    );
    // In a conversation there is no step.
    scene
        .run("openai:m", &["go", "--mode", "chat", "--run-context", step])
        .success();
    let said = system(&scene, 1);
    assert!(said[0].contains("# Mode: CHAT"), "{}", said[0]);
    assert!(!said.last().unwrap().contains("Run Directive"), "{said:?}");
    scene.verify();
    let wrong = scene
        .project
        .write("wrong.json", r#"{"id": "a", "nam": "Ada"}"#);
    scene
        .run("openai:m", &["go", "--persona", wrong.to_str().unwrap()])
        .failure(3, "wrong.json: nam");
}

#[test]
fn by_the_configuration_of_a_folder_that_is_trusted() {
    let scene = Scene::new([says("ok"), says("ok"), says("ok")]);
    let settings = json!({
        "prompt": {"system": "Be kind."},
        "agent": {"mode": "run", "persona": persona(), "runContext": step()},
        "toolPolicy": {"deniedTools": ["exec_shell"], "customRules": ["Never touch main."]},
    });
    scene.project.write("contexture.json", settings.to_string());
    scene.run("openai:m", &["go"]).success();
    let untrusted = system(&scene, 0).join("\n");
    assert!(untrusted.contains("# Mode: RUN"), "{untrusted}");
    for part in ["Be kind.", "Ada", "Run Directive", "Never touch main."] {
        assert!(!untrusted.contains(part), "{part}");
    }
    scene
        .run("openai:m", &["go"])
        .env("CONTEXTURE_TRUST", "1")
        .success();
    let said = system(&scene, 1);
    let rules = "## Tool Policy\n\n### Custom Rules\n- Never touch main.";
    for part in ["Be kind.", "# Mode: RUN", rules, PERSONA] {
        assert!(said[0].contains(part), "{part}: {}", said[0]);
    }
    assert!(said.iter().any(|text| text.starts_with("## Run Directive")));
    // A chat is told the same.
    let args = [
        "chat",
        "--model",
        "openai:m",
        "--base-url",
        &scene.server.url,
    ];
    scene
        .ctx(&args)
        .env("CONTEXTURE_TRUST", "1")
        .input("go\n")
        .success();
    let chat = system(&scene, 2);
    for part in ["Be kind.", "# Mode: RUN", rules, PERSONA] {
        assert!(chat[0].contains(part), "{part}: {}", chat[0]);
    }
    // A request that brings no system prompt has the configured one; one that does has its own.
    let build = |input: Value| {
        let build = scene.ctx(&["build", "--json"]).env("CONTEXTURE_TRUST", "1");
        let built = build.input(input.to_string()).json();
        built["modelMessages"][0]["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let hello = json!([{"role": "user", "content": "hello"}]);
    assert_eq!(build(json!({"inputMessages": hello})), "Be kind.");
    let own = json!({"inputMessages": hello, "systemPrompt": "Be brief."});
    assert_eq!(build(own), "Be brief.");
    for (settings, place) in [
        (
            json!({"agent": {"persona": {"id": "a"}}}),
            "agent.persona.name: is missing",
        ),
        (
            json!({"agent": {"runContext": {}}}),
            "agent.runContext.packageName: is missing",
        ),
        (
            json!({"agent": {"mode": "dream"}}),
            "agent.mode: `dream` is unknown",
        ),
    ] {
        scene.project.write("contexture.json", settings.to_string());
        scene.run("openai:m", &["go"]).failure(3, place);
    }
}
