//! Prompts, and what comes of them.

use serde_json::json;

use crate::fleet::scene::Daemon;

#[test]
fn an_agent_is_told_who_it_is_and_what_it_says_is_in_the_log() {
    let daemon = Daemon::start();
    let agent = daemon.agent("bot", "service");
    assert_eq!(agent["state"], "running");
    let context = daemon.prompt("bot", "context");
    assert!(context.contains("You are **bot**"), "{context}");
    assert!(context.contains("canvas_update"), "{context}");
    assert_eq!(daemon.prompt("bot", "say hello"), "hello");
    let session = agent["sessionId"].as_str().unwrap();
    let entries = daemon.project.entries(session);
    let said: Vec<(&str, &str)> = entries
        .iter()
        .filter(|entry| entry["type"] == "message")
        .map(|entry| {
            let message = &entry["payload"]["message"];
            (
                message["role"].as_str().unwrap(),
                message["content"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(said[0], ("user", "context"));
    assert_eq!(said[2..], [("user", "say hello"), ("assistant", "hello")]);
    let kinds: Vec<&str> = entries
        .iter()
        .map(|entry| entry["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds[..4],
        ["session_header", "tools", "custom", "sections"]
    );
    // The log is whole: a request can be built from it.
    daemon.ctx(&["inspect", session]).success();
}

#[test]
fn a_prompt_shows_what_it_says() {
    let daemon = Daemon::start();
    daemon.agent("bot", "repo");
    let shown = daemon
        .ctx(&["agent", "prompt", "bot", "say one\ntwo"])
        .success();
    assert_eq!(shown, "one\ntwo\n");
}

#[test]
fn a_prompt_can_be_called_off_and_the_next_one_works() {
    let daemon = Daemon::start();
    daemon.agent("bot", "repo");
    let waiting = daemon.ctx(&["agent", "prompt", "bot", "wait", "--json"]);
    let waiting = waiting.command().spawn().unwrap();
    daemon.logged("agent:prompted", 1);
    daemon
        .ctx(&["agent", "prompt", "bot", "say no"])
        .failure(1, "another prompt");
    daemon.ctx(&["agent", "cancel", "bot"]).success();
    let output = waiting.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(r#""stopReason":"cancelled""#), "{text}");
    assert_eq!(daemon.prompt("bot", "say hello"), "hello");
}

#[test]
fn a_prompt_whose_caller_leaves_is_called_off() {
    let daemon = Daemon::start();
    daemon.agent("bot", "repo");
    let mut waiting = daemon
        .ctx(&["agent", "prompt", "bot", "wait", "--json"])
        .command();
    let mut waiting = waiting.spawn().unwrap();
    daemon.logged("agent:prompted", 1);
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    let answered = daemon.logged("agent:answered", 1);
    assert_eq!(answered[0]["stopReason"], "cancelled");
    assert_eq!(daemon.prompt("bot", "say hello"), "hello");
}

/// Attack 35.
#[test]
fn questions_are_answered_by_policy_or_by_a_person_and_else_with_no() {
    let daemon = Daemon::start();
    for (name, policy, answer) in [("a", "allow", "yes"), ("d", "deny", "no")] {
        daemon.create(name, "repo", &["--permissions", policy], &[]);
        daemon.ctx(&["agent", "start", name]).success();
        let said = daemon.prompt(name, "ask");
        assert!(
            said.contains(&format!(r#""optionId": "{answer}""#)),
            "{said}"
        );
    }
    daemon.agent("p", "repo");
    for (n, (option, allowed, answer)) in [("yes", true, "yes"), ("root", false, "no")]
        .into_iter()
        .enumerate()
    {
        let asking = daemon.ctx(&["agent", "prompt", "p", "ask", "--json"]);
        let asking = asking.command().spawn().unwrap();
        let asked = daemon.logged("permission:asked", n + 1);
        let request = asked[n]["requestId"].as_str().unwrap();
        let params = json!({"name": "p", "requestId": request, "optionId": option});
        let answered = daemon.call(&daemon.secret(), "agent.permit", &params);
        assert_eq!(answered["result"]["allowed"], allowed, "{answered}");
        // The answer was for this question, once.
        let again = daemon.call(&daemon.secret(), "agent.permit", &params);
        assert_eq!(again["error"]["data"]["kind"], "not_found");
        let output = asking.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.contains(&format!(r#"\"optionId\": \"{answer}\""#)),
            "{text}"
        );
    }
}

#[test]
fn a_question_that_nobody_answers_is_a_no() {
    let project = crate::common::Project::new();
    project.write(
        "contexture.json",
        json!({"serve": {"askSeconds": 1}}).to_string(),
    );
    let daemon = Daemon::over(project);
    daemon.agent("bot", "repo");
    let said = daemon.prompt("bot", "ask");
    assert!(said.contains(r#""optionId": "no""#), "{said}");
    assert_eq!(daemon.logged("permission:answered", 1)[0]["by"], "timeout");
}

/// A prompt that goes on beside the test.
fn prompting(daemon: &Daemon, text: &str) -> std::process::Child {
    let mut command = daemon
        .ctx(&["agent", "prompt", "bot", text, "--json"])
        .command();
    command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap()
}

/// Attack 35: what would run is asked about, not the name of the tool or what a model calls it.
#[test]
fn a_question_says_what_would_run_and_is_answered_from_another_terminal() {
    let daemon = Daemon::start();
    daemon.agent("bot", "service");
    let permit = |words: &[&str]| daemon.ctx(&[&["agent", "permit", "bot"], words].concat());
    assert_eq!(permit(&["--json"]).json(), json!([]));
    assert!(permit(&[]).success().contains("bot asks nothing"));
    let command = "rm -rf important\u{1b}[2K";
    for (n, (answer, option)) in [("reject", "no"), ("allow", "yes")].into_iter().enumerate() {
        let waiting = prompting(&daemon, &format!("shell {command}"));
        let asked = &daemon.logged("permission:asked", n + 1)[n];
        assert!(
            asked["title"]
                .as_str()
                .unwrap()
                .starts_with("rm -rf important"),
            "{asked}"
        );
        assert_eq!(
            asked["arguments"],
            json!({"command": command, "timeout": 7})
        );
        assert_eq!(asked["kind"], "other");
        let request = asked["requestId"].as_str().unwrap();
        let listed = permit(&["--json"]).json();
        assert_eq!(listed[0]["requestId"], request);
        assert_eq!(listed[0]["arguments"], asked["arguments"]);
        assert_eq!(listed[0]["options"].as_array().unwrap().len(), 3);
        let shown = permit(&[]).success();
        assert!(
            shown.contains(request) && shown.contains("command: rm -rf important"),
            "{shown}"
        );
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
        // An answer names its request.
        permit(&[answer]).failure(2, "<ANSWER>");
        permit(&["another", answer]).failure(1, "no such question");
        permit(&[request, "yes"]).failure(2, "allow");
        assert!(
            permit(&[request, answer])
                .success()
                .contains("rm -rf important")
        );
        permit(&[request, answer]).failure(1, "no such question");
        let output = waiting.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.contains(&format!(r#"\"optionId\": \"{option}\""#)),
            "{text}"
        );
        assert!(text.contains(r#""type":"permission_request""#), "{text}");
    }
    daemon.ctx(&["agent", "stop", "bot"]).success();
    assert_eq!(permit(&["--json"]).json(), json!([]));
}

#[test]
fn nobody_is_asked_about_the_canvas() {
    let daemon = Daemon::start();
    daemon.agent("bot", "service");
    let said = daemon.prompt("bot", "own");
    assert!(said.contains(r#""optionId": "yes""#), "{said}");
    assert!(daemon.events("permission:asked").is_empty());
}

/// Attack 35: a command that is called a canvas is still a command.
#[test]
fn a_command_in_the_name_of_the_canvas_is_not_allowed_by_itself() {
    let daemon = Daemon::start();
    daemon.create("bot", "service", &["--permissions", "deny"], &[]);
    daemon.ctx(&["agent", "start", "bot"]).success();
    let canvas = daemon.prompt("bot", "own");
    assert!(canvas.contains(r#""optionId": "yes""#), "{canvas}");
    let command = daemon.prompt("bot", "disguised rm -rf important");
    assert!(command.contains(r#""optionId": "no""#), "{command}");
}

/// Attack 35: an agent that would not ask is not made for somebody who wants to be asked.
#[test]
fn an_agent_that_asks_nobody_is_made_only_to_be_allowed_everything() {
    let daemon = Daemon::start();
    for more in [&[][..], &["--permissions", "deny"]] {
        let create = [&["agent", "create", "p", "--backend", "pi"], more].concat();
        daemon.ctx(&create).failure(3, "acts without asking");
    }
    let allowed = [
        "agent",
        "create",
        "p",
        "--backend",
        "pi",
        "--permissions",
        "allow",
    ];
    daemon.ctx(&allowed).success();
}

/// The model of our own agent is fetched where that can be seen, and not in the daemon.
#[test]
fn a_start_says_that_it_fetches_a_model() {
    let daemon = Daemon::start();
    daemon.ctx(&["agent", "create", "bot"]).success();
    let start = daemon
        .ctx(&["agent", "start", "bot"])
        .env(
            "CONTEXTURE_MODELS",
            &daemon.project.path().join("models").display().to_string(),
        )
        .env("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
        .env("PIP_RETRIES", "0");
    start.failure(1, "smollm2");
    assert_eq!(daemon.show("bot")["state"], "created");
}
