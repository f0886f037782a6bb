//! From the start of an agent to the beginning of a session.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::{InitializeRequest, NewSessionRequest};
use contexture::inject::{EnvVariable, McpServerStdio};
use contexture_fleet::acp::{AcpError, Begin, Connection, Host, Policy};
use contexture_fleet::backends::{Wanted, plan};
use serde_json::{Map, json};

use crate::acp::common::*;

async fn refusal(scene: Scene) -> AcpError {
    match scene.launch().await {
        Ok(_) => panic!("it started"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn an_agent_says_what_it_is_and_is_told_what_we_can() {
    let scene = Scene::new("good").with(|launch| {
        launch.policy = Policy {
            fs_read: true,
            fs_write: false,
            terminal: false,
        };
    });
    let connection = scene.launch().await.unwrap();
    let facts = connection.agent();
    assert_eq!(facts.name.as_deref(), Some("scripted"));
    assert_eq!(facts.version.as_deref(), Some("1.2"));
    assert!(facts.image && !facts.audio && !facts.load_session && !facts.system_prompt);
    let told = scene.noted("initialize.json");
    assert_eq!(told["protocolVersion"], 1);
    assert_eq!(
        told["clientCapabilities"],
        json!({"fs": {"readTextFile": true, "writeTextFile": false}, "terminal": false})
    );
    // The official crate reads the same.
    let read: InitializeRequest = serde_json::from_value(told).unwrap();
    assert!(read.client_capabilities.fs.read_text_file);
    assert_eq!(read.client_info.unwrap().name, "contexture");
    within(connection.stop()).await;
    assert_eq!(connection.ended().await, "it was stopped");
}

#[tokio::test]
async fn a_session_begins_with_servers_and_context() {
    let scene = Scene::new("good");
    let connection = scene.launch().await.unwrap();
    let begin = Begin {
        mcp_servers: vec![McpServerStdio {
            name: "a".to_owned(),
            command: "/bin/a".to_owned(),
            args: vec!["-x".to_owned()],
            env: vec![EnvVariable {
                name: "K".to_owned(),
                value: "v".to_owned(),
            }],
        }],
        meta: Some(Map::from_iter([(
            "systemPrompt".to_owned(),
            json!({"append": "Be kind."}),
        )])),
        // Nobody said that it is taken.
        system_prompt: Some("Be kind.".to_owned()),
    };
    assert_eq!(connection.new_session(begin).await.unwrap(), "s-1");
    assert_eq!(
        scene.noted("new.json"),
        json!({
            "cwd": scene.workspace(),
            "mcpServers": [{"name": "a", "command": "/bin/a", "args": ["-x"], "env": [{"name": "K", "value": "v"}]}],
            "_meta": {"systemPrompt": {"append": "Be kind."}},
        })
    );
    let read: NewSessionRequest = serde_json::from_value(scene.noted("new.json")).unwrap();
    assert_eq!((read.mcp_servers.len(), read.cwd), (1, scene.workspace()));
}

#[tokio::test]
async fn where_an_agent_takes_a_system_prompt_it_gets_it() {
    let scene = Scene::new("takes_system");
    let connection = scene.launch().await.unwrap();
    let begin = Begin {
        system_prompt: Some("Be kind.".to_owned()),
        ..Begin::default()
    };
    connection.new_session(begin).await.unwrap();
    let content = json!([{"type": "text", "text": "Be kind."}]);
    assert_eq!(
        scene.noted("new.json")["systemPrompt"],
        json!({"mode": "append", "content": content})
    );
}

#[tokio::test]
async fn an_agent_that_is_not_there() {
    let scene = Scene::new("good").with(|launch| {
        launch.program = "no-such-agent-acp".to_owned();
        launch.install = Some("npm install -g it".to_owned());
    });
    let error = refusal(scene).await;
    assert_eq!(
        error.to_string(),
        "the agent `no-such-agent-acp` is not installed"
    );
    assert_eq!(error.hint(), "install it: npm install -g it");

    let scene = Scene::new("good").with(|launch| launch.workspace = "/no/such/folder".into());
    let error = refusal(scene).await.to_string();
    assert!(error.contains("its workspace /no/such/folder"), "{error}");
}

#[tokio::test]
async fn an_agent_that_hangs_at_its_beginning() {
    let scene = Scene::new("hangs").with(|launch| launch.patience = Duration::from_millis(700));
    let error = refusal(scene).await;
    assert_eq!(
        error.to_string(),
        "the agent `python3` did not answer `initialize` within 0.7 s"
    );

    let scene = Scene::new("hangs_new").with(|launch| launch.patience = Duration::from_secs(5));
    let connection = scene.launch().await.unwrap();
    let error = within(connection.new_session(Begin::default()))
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            AcpError::TimedOut {
                method: "session/new",
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn an_agent_that_ends_at_its_beginning_is_quoted() {
    let error = refusal(Scene::new("fails")).await.to_string();
    assert!(error.contains("exit status: 2"), "{error}");
    assert!(error.contains("it said: no configuration file"), "{error}");
}

#[tokio::test]
async fn another_version_of_the_protocol() {
    let error = refusal(Scene::new("version_2")).await.to_string();
    assert_eq!(
        error,
        "the agent `python3` speaks version 2 of the protocol, and we speak 1"
    );
    let error = refusal(Scene::new("version_text")).await;
    assert!(matches!(error, AcpError::Version { .. }), "{error}");
}

#[tokio::test]
async fn an_agent_that_asks_for_a_sign_in() {
    let scene = Scene::new("auth").with(|launch| launch.sign_in = vec!["other".to_owned()]);
    let connection = scene.launch().await.unwrap();
    let error = within(connection.new_session(Begin::default()))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the agent `python3` asks for a sign-in (Log in with a browser, Use a key)"
    );
    assert!(
        error.hint().contains("key in the environment"),
        "{}",
        error.hint()
    );
}

#[tokio::test]
async fn a_sign_in_that_needs_nobody() {
    let ways = ["none", "browser", "key"].map(str::to_owned).to_vec();
    let scene = Scene::new("auth_key").with(|launch| launch.sign_in = ways);
    let connection = scene.launch().await.unwrap();
    let id = within(connection.new_session(Begin::default())).await;
    assert_eq!(id.unwrap(), "s-1");
}

#[tokio::test]
async fn a_session_without_an_id_is_none() {
    let scene = Scene::new("no_id");
    let connection = scene.launch().await.unwrap();
    let error = within(connection.new_session(Begin::default()))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the agent `python3` answered `session/new` without the id of a session"
    );
}

#[tokio::test]
async fn an_older_version_is_started_in_its_own_way() {
    let scene = Scene::new("older");
    let workspace = scene.workspace();
    let wanted = Wanted {
        command: &[vec!["python3".to_owned()], scene.launch.args.clone()].concat(),
        ..Wanted::new("gemini", &workspace)
    };
    let mut plan = plan(wanted).unwrap();
    let mut older = plan.launch.clone();
    older.args.push("--older".to_owned());
    plan.older = Some(older);
    let host: Arc<dyn Host> = scene.host.clone();
    let connection: Connection = within(plan.connect(host)).await.unwrap();
    assert_eq!(connection.agent().name.as_deref(), Some("scripted"));
    assert_eq!(plan.launch.args.last().unwrap(), "--older");
}

/// Attack 6: what is in our environment is not in the agent's.
#[tokio::test]
async fn an_agent_inherits_little() {
    let scene = Scene::new("env").with(|launch| {
        launch.env.insert("GIVEN".to_owned(), "x".to_owned());
    });
    scene.once("").await.unwrap();
    let env: Map<String, serde_json::Value> = serde_json::from_str(&scene.host.said()).unwrap();
    assert_eq!(env["GIVEN"], "x");
    // Cargo sets it for the tests.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!env.contains_key("CARGO_MANIFEST_DIR"), "{env:?}");
}
