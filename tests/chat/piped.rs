//! Without a terminal: a message a line, no prompt, no colours, nothing that moves.

use serde_json::{Value, json};

use crate::chat::terminal::says;
use crate::common::{Ctx, Project};
use crate::model_server::{Answer, ModelServer, Piece};

fn chat(project: &Project, server: &ModelServer, more: &[&str]) -> Ctx {
    let mut args = vec!["chat", "--session", "talk", "--model", "openai:gpt-4o"];
    args.extend(["--base-url", &server.url]);
    args.extend(more);
    project.ctx(&args)
}

#[test]
fn a_message_a_line() {
    let project = Project::new();
    let call = Piece::Call("c1", "skills_list", json!({}));
    let server = ModelServer::start([
        says("First answer.\r\n"),
        Answer::Says(vec![call]),
        says("\u{1b}[2JSecond\tanswer."),
    ]);
    let lines = "one\n\n  \ntwo";
    let output = chat(&project, &server, &[]).input(lines).run();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stdout, "First answer.\n⟨ESC⟩[2JSecond    answer.\n");
    assert!(stderr.contains("✓ skills_list"), "{stderr}");
    for text in [&stdout, &stderr] {
        assert!(!text.contains('\u{1b}') && !text.contains('›'), "{text:?}");
    }
    project.ctx(&["replay", "talk", "--verify"]).success();
    let list = project.ctx(&["sessions", "list"]).success();
    assert!(list.contains("one"), "a title: {list}");
    let list = project.ctx(&["sessions", "list", "--json"]).json();
    assert_eq!(list[0]["title"], "one");
}

#[test]
fn commands_work_and_a_path_is_a_message() {
    let project = Project::new();
    let server = ModelServer::start([says("A file."), says("never asked for")]);
    let lines = "/pin be brief\n/etc/hosts is what?\n/undo\n/quit\nnot read\n";
    let stdout = chat(&project, &server, &[]).input(lines).success();
    assert_eq!(stdout, "A file.\n");
    let sent = server.seen()[0].json()["messages"].clone();
    let said: Vec<&Value> = sent
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| &message["content"])
        .collect();
    assert_eq!(said.last().unwrap(), &"/etc/hosts is what?", "{sent}");
    assert!(said.contains(&&json!("be brief")), "{sent}");
    let now = project.ctx(&["inspect", "talk", "--json"]).json();
    assert!(!now.to_string().contains("/etc/hosts"), "{now}");
    assert!(now.to_string().contains("be brief"), "{now}");
}

#[test]
fn what_goes_wrong_ends_it() {
    let project = Project::new();
    let server = ModelServer::start([]);
    chat(&project, &server, &[])
        .input("/hlep\nhello\n")
        .failure(2, "did you mean /help?");
    chat(&project, &server, &[])
        .input("hello\nagain\n")
        .failure(1, "the script is over");
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn as_json_each_step_is_a_line() {
    let project = Project::new();
    let server = ModelServer::start([says("Yes.")]);
    let lines = chat(&project, &server, &["--json"])
        .input("well?\n")
        .lines();
    assert_eq!(lines[0], json!({"type": "assistant", "text": "Yes."}));
    assert_eq!(lines.last().unwrap()["type"], "done");
}

// needs: mcp-servers
#[test]
fn a_prompt_of_a_server_is_said_as_the_users_own() {
    let usual = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/counterparts");
    let folder = std::env::var_os("CONTEXTURE_COUNTERPARTS").map_or(usual, Into::into);
    if !folder.join("stamp").is_file() {
        println!("skipped: the MCP servers are not installed; ./test does that");
        return;
    }
    let script = folder.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let project = Project::new();
    let server = json!({"command": "node", "args": [script.canonicalize().unwrap(), "stdio"]});
    let config = json!({"mcpServers": {"every": server}});
    project.write("contexture.json", config.to_string());
    let model = ModelServer::start([says("An answer.")]);
    let run = |lines: &str| {
        let chat = chat(&project, &model, &[]).env("CONTEXTURE_TRUST", "1");
        chat.input(lines).ends(0)
    };
    let (listed, _) = run("/prompt\n");
    let simple = listed
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|words| {
            words
                .first()
                .is_some_and(|name| name.starts_with("every:simple"))
        });
    let name = simple.expect("a prompt without arguments")[0].to_owned();
    let (said, _) = run(&format!("/prompt {name}\n"));
    assert_eq!(said, "An answer.\n");
    let sent = model.seen()[0].json();
    let last = sent["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["role"], "user");
    assert!(
        !last["content"].as_str().unwrap().starts_with('/'),
        "{last}"
    );
}
