//! Every built-in prompt of every kind of agent names only tools that the agent is offered.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::agent::scene::says;
use crate::common::Project;
use crate::fleet::scene::Daemon;
use crate::inject::own_agent::instruct;
use crate::model_server::{Answer, ModelServer};
use crate::work::{ENV, asks, model, with};

/// The names of the tools that a request offers, with and without their server's.
fn offered(body: &Value) -> BTreeSet<String> {
    let tools = body["tools"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let names = tools
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap());
    let both = names.flat_map(|name| [name, name.rsplit("__").next().unwrap()]);
    both.map(str::to_owned).collect()
}

/// All words for the model that are ours: the system side, and what tools say of themselves.
fn words(body: &Value) -> String {
    let messages = body["messages"].as_array().unwrap().iter();
    let ours = messages.filter(|message| {
        message["role"] != "user" && message["role"] != "assistant" && message["role"] != "tool"
    });
    format!(
        "{}\n{}",
        ours.map(|message| message["content"].to_string())
            .collect::<String>(),
        body["tools"]
    )
}

/// Returns true if a text names this tool. One whose name is an ordinary word counts where it is marked as a name.
fn names(text: &str, tool: &str) -> bool {
    if !tool.contains('_') {
        return [format!("`{tool}`"), format!("call {tool}")]
            .iter()
            .any(|named| text.contains(named));
    }
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let whole =
        |at: usize| !text[..at].ends_with(part) && !text[at + tool.len()..].starts_with(part);
    text.match_indices(tool).any(|(at, _)| whole(at))
}

fn bodies(server: &ModelServer) -> Vec<Value> {
    server.seen().iter().map(|seen| seen.json()).collect()
}

#[test]
fn prompts_name_only_tools_that_are_offered() {
    let mut kinds: Vec<(String, Value)> = Vec::new();
    // A person's agent, with all tools and with few.
    let hello = || ModelServer::answering(|_| -> Answer { says("Hello.") });
    let denied =
        json!({"deniedTools": ["chat_send", "context_recall", "skills_load", "chat_load_history"]});
    let no_list = json!({"deniedTools": ["skills_list", "agent_load_context"]});
    for (kind, policy) in [
        ("run", json!({})),
        ("run with few tools", denied),
        ("run without lists", no_list),
        ("run without tools", json!({"allowedTools": []})),
    ] {
        let server = hello();
        let project = Project::new();
        let config = json!({"model": "openai:gpt-4o", "baseUrl": server.url, "toolPolicy": policy});
        project.write("contexture.json", config.to_string());
        instruct(&project);
        with(project.ctx(&["run", "hi"])).success();
        kinds.push((kind.to_owned(), bodies(&server).remove(0)));
    }
    // An orchestrator, and its executors with what their capabilities grant.
    let server = model();
    let project = asks(Project::new(), &server);
    instruct(&project);
    for (name, capability) in [("research", "web_search:8"), ("writer", "file_ops:5")] {
        // There is no shell where the home is in the project.
        let (what, _) = capability.split_once(':').unwrap();
        let map = ["pool", "map", what, "skills_list"];
        project.ctx(&map).success();
        project
            .ctx(&["pool", "add", name, "--capability", capability])
            .success();
    }
    with(project.ctx(&["orchestrate", "research DeepSeek"])).run();
    let all = bodies(&server);
    assert!(
        all.iter()
            .any(|body| offered(body).contains("dispatch_task"))
    );
    assert!(
        all.iter()
            .any(|body| !offered(body).contains("dispatch_task")),
        "an executor"
    );
    kinds.extend(
        all.into_iter()
            .map(|body| ("a pool's agent".to_owned(), body)),
    );
    // A fleet's agents.
    let server = hello();
    let project = asks(Project::new(), &server);
    instruct(&project);
    let daemon = Daemon::with(project, &ENV);
    for archetype in ["repo", "service", "employee"] {
        let create = [
            "agent",
            "create",
            archetype,
            "--backend",
            "native",
            "--archetype",
            archetype,
        ];
        daemon.ctx(&create).success();
        daemon.ctx(&["agent", "start", archetype]).success();
        daemon.ctx(&["agent", "prompt", archetype, "hi"]).success();
        kinds.push((
            format!("a native {archetype}"),
            bodies(&server).pop().unwrap(),
        ));
    }
    let known: BTreeSet<String> = kinds.iter().flat_map(|(_, body)| offered(body)).collect();
    for tool in [
        "chat_send",
        "context_recall",
        "skills_load",
        "exec_shell",
        "dispatch_task",
        "canvas_update",
    ] {
        assert!(known.contains(tool), "{tool} is offered to nobody");
    }
    let mut named = 0;
    for (kind, body) in &kinds {
        let (text, offered) = (words(body), offered(body));
        for tool in &known {
            // What a tool says of itself.
            let own = offered.contains(tool);
            assert!(
                own || !names(&text, tool),
                "{kind} is told of `{tool}`, and has {offered:?}: {text}"
            );
            named +=
                usize::from(own && names(&text.replace(&format!("\"name\":\"{tool}\""), ""), tool));
        }
    }
    // Those who have them are told of them: the test looks at what it is meant to.
    assert!(named > 8, "{named}");
}
