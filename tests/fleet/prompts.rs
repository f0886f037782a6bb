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
