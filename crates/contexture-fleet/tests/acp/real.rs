//! Agents that others wrote: `./test` installs them from `tests/counterparts`. They speak with a model
//! that says what it is told to, and with a real MCP server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use contexture::inject::McpServerStdio;
use contexture_fleet::acp::record::Transcript;
use contexture_fleet::acp::{Answer, Connection};
use contexture_fleet::backends::{Plan, Wanted, in_prompt, plan};
use serde_json::{Value, json};

use crate::acp::common::*;
use crate::acp::transcript::shape;
use crate::model_server::{self, ModelServer, Piece, Seen};

/// Agents take long to begin on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);

/// Where they are installed, if they are.
fn counterparts() -> Option<PathBuf> {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/counterparts");
    let folder = std::env::var_os("CONTEXTURE_COUNTERPARTS").map_or(usual, PathBuf::from);
    if !folder.join("stamp").is_file() {
        eprintln!("skipped: the ACP agents are not installed; ./test does that");
        return None;
    }
    folder.canonicalize().ok()
}

/// A program of theirs, where there is one for this machine.
fn program(path: &str) -> Option<(PathBuf, PathBuf)> {
    let folder = counterparts()?;
    let program = folder.join("node_modules").join(path);
    if !program.is_file() {
        eprintln!("skipped: {path} is not installed; it is for Linux on x64");
        return None;
    }
    Some((folder, program))
}

/// A model that calls the tool once, and then says what it said. Asked to wait, it speaks for a minute.
fn model(tool: &'static str) -> ModelServer {
    ModelServer::answering(move |seen| {
        if !seen.path.ends_with("/chat/completions") {
            let list = json!({"object": "list", "data": [{"id": "scripted-1", "object": "model"}]});
            let kind = ("content-type", "application/json".to_owned());
            return model_server::Answer::Status(200, vec![kind], list.to_string());
        }
        let body = seen.json();
        let offered = has_tool(&body, tool);
        let messages = body["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        let words = last["content"].to_string();
        let said = |pieces: &[Piece]| model_server::Answer::Says(pieces.to_vec());
        if last["role"] == "tool" {
            said(&[Piece::Text("The tool said: pong.")])
        } else if offered && words.contains("wait") {
            let many = vec![Piece::Text("Waiting. "); 300];
            model_server::Answer::Drips(many, Duration::from_millis(100))
        } else if offered {
            let call = Piece::Call("call_1", tool, json!({"message": "pong"}));
            said(&[Piece::Text("Calling."), call])
        } else {
            // A title, or whatever else they ask beside the turn.
            said(&[Piece::Text("A title")])
        }
    })
}

fn has_tool(body: &Value, tool: &str) -> bool {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.into_iter().any(|one| one["function"]["name"] == tool)
}

/// A real MCP server.
fn everything(folder: &Path) -> McpServerStdio {
    let script = folder.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    McpServerStdio {
        name: "every".to_owned(),
        command: "node".to_owned(),
        args: vec![script.display().to_string(), "stdio".to_owned()],
        env: Vec::new(),
    }
}

/// Starts an agent by the name of its backend, in an empty home.
async fn begun(
    scene: &Scene,
    backend: &str,
    command: &[String],
    folder: &Path,
    env: &[(&str, &str)],
) -> (Connection, String, Plan) {
    let home = scene.folder.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let workspace = scene.workspace();
    let context = ["Your name is Quillon.".to_owned()];
    let servers = [everything(folder)];
    let mut wanted = Wanted {
        command,
        system_context: &context,
        mcp_servers: &servers,
        supervisor: Some(supervisor()),
        ..Wanted::new(backend, &workspace)
    };
    let env = env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    wanted.env.extend(env);
    let in_home = |name: &str| home.join(name).display().to_string();
    wanted
        .env
        .insert("HOME".to_owned(), home.display().to_string());
    for name in [
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
        "XDG_STATE_HOME",
    ] {
        wanted.env.insert(name.to_owned(), in_home(name));
    }
    let mut plan = plan(wanted).unwrap();
    plan.launch.patience = PATIENCE;
    let connection = plan.connect(scene.host.clone()).await.unwrap();
    let id = connection.new_session(plan.begin.clone()).await.unwrap();
    (connection, id, plan)
}

/// What both agents are put through: a turn with a call of the MCP server's tool, a turn that is called
/// off, one more behind it, and the end.
async fn goes_through_it(
    scene: &Scene,
    server: &ModelServer,
    tool: &'static str,
    connection: Connection,
    id: String,
    plan: Plan,
) {
    let pid = started_in(scene);
    assert!(!plan.tells_at_beginning());
    let mut blocks = vec![in_prompt(&["Your name is Quillon."])];
    blocks.extend(text_blocks("Say pong through the tool."));
    let mut transcript = Transcript::new();
    let mut log = transcript.prompt(&blocks[blocks.len() - 1..]);
    let ended = within_patience(connection.prompt(&id, blocks))
        .await
        .unwrap();
    assert_eq!(ended.stop_reason, "end_turn");
    let updates = std::mem::take(&mut *scene.host.updates.lock().unwrap());
    for (session, update) in &updates {
        assert_eq!(*session, id);
        log.extend(transcript.push(update));
    }
    log.extend(transcript.finish("end_turn"));
    assert_eq!(
        shape(&log),
        [
            "user: Say pong through the tool.".to_owned(),
            format!("assistant: Calling. → {tool}#call_1 {{\"message\":\"pong\"}}"),
            "tool: Echo: pong ← #call_1".to_owned(),
            "assistant: The tool said: pong.".to_owned(),
        ]
    );
    // The context reached the model, in front of what the user said.
    let told = server.seen().into_iter().filter(|seen| is_turn(seen, tool));
    let told: Vec<String> = told
        .map(|seen| String::from_utf8(seen.body).unwrap())
        .collect();
    assert!(
        !told.is_empty()
            && told
                .iter()
                .all(|body| body.contains("Your name is Quillon."))
    );

    let prompt = connection.prompt(&id, text_blocks("Now wait."));
    let call_off = async {
        until("it waits", || scene.host.said().contains("Wait")).await;
        connection.cancel(&id);
    };
    let (ended, ()) = within_patience(async { tokio::join!(prompt, call_off) }).await;
    assert_eq!(ended.unwrap().stop_reason, "cancelled");
    let said = scene.host.said().len();
    assert!(
        said < 300 * "Waiting. ".len() / 2,
        "it went on: {said} bytes"
    );

    scene.host.updates.lock().unwrap().clear();
    let again = connection.prompt(&id, text_blocks("Say pong through the tool again."));
    assert_eq!(
        within_patience(again).await.unwrap().stop_reason,
        "end_turn"
    );
    assert!(
        scene.host.said().ends_with("The tool said: pong."),
        "{}",
        scene.host.said()
    );

    within(connection.stop()).await;
    assert!(!runs(pid), "its supervisor is still there");
}

fn is_turn(seen: &Seen, tool: &str) -> bool {
    seen.path.ends_with("/chat/completions") && has_tool(&seen.json(), tool)
}

async fn within_patience<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what)
        .await
        .expect("it hangs")
}

// needs: acp-agents
#[tokio::test]
async fn goose() {
    let Some((folder, goose)) = program("@aaif/goose-binary-linux-x64/bin/goose") else {
        return;
    };
    let tool = "every__echo";
    let server = model(tool);
    // It asks before each call, whatever its own settings are.
    let scene = Scene::new("").answering(Answer::Selected("allow_once".to_owned()));
    let env = [
        ("GOOSE_PROVIDER", "openai"),
        ("GOOSE_MODEL", "scripted-1"),
        ("GOOSE_DISABLE_KEYRING", "1"),
        ("OPENAI_HOST", server.url.trim_end_matches("/v1")),
        ("OPENAI_API_KEY", "not-a-key"),
    ];
    let command = [goose.display().to_string(), "acp".to_owned()];
    let (connection, id, plan) = begun(&scene, "goose", &command, &folder, &env).await;
    assert!(connection.agent().load_session);
    // It stops, and says `end_turn`.
    goes_through_it(&scene, &server, tool, connection, id, plan).await;
}

// needs: acp-agents
#[tokio::test]
async fn opencode() {
    let Some((folder, opencode)) = program("opencode-linux-x64/bin/opencode") else {
        return;
    };
    let tool = "every_echo";
    let server = model(tool);
    let scene = Scene::new("");
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": server.url, "apiKey": "not-a-key"},
        "models": {"scripted-1": {"name": "Scripted"}},
    });
    let config = json!({
        "provider": {"scripted": provider},
        "model": "scripted/scripted-1",
        "small_model": "scripted/scripted-1",
        "autoupdate": false,
        "share": "disabled",
    });
    scene.write("opencode.json", config.to_string());
    let env = [
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
    ];
    let command = [opencode.display().to_string(), "acp".to_owned()];
    let (connection, id, plan) = begun(&scene, "opencode", &command, &folder, &env).await;
    assert_eq!(connection.agent().name.as_deref(), Some("OpenCode"));
    goes_through_it(&scene, &server, tool, connection, id, plan).await;
}

// needs: acp-agents
#[tokio::test]
async fn an_agent_of_the_official_sdk() {
    let Some(folder) = counterparts() else { return };
    let scene = Scene::new("").answering(Answer::Selected("ok".to_owned()));
    std::fs::write(scene.folder.path().join("outside.txt"), "hidden").unwrap();
    // It has to lie where the SDK is found.
    let script = folder.join("acp_agent.mjs");
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/counterparts/acp_agent.mjs");
    std::fs::copy(ours, &script).unwrap();
    let command = ["node".to_owned(), script.display().to_string()];
    let (connection, id, _) = begun(&scene, "sdk", &command, &folder, &[]).await;
    assert_eq!(connection.agent().name.as_deref(), Some("sdk"));
    let ended = within(connection.prompt(&id, text_blocks("go")))
        .await
        .unwrap();
    assert_eq!(ended.stop_reason, "end_turn");
    let told = &scene.host.told()[0];
    assert_eq!(told["servers"], json!(["every"]));
    assert_eq!(
        told["can"]["fs"],
        json!({"readTextFile": true, "writeTextFile": true})
    );
    assert_eq!(
        told["outcome"],
        json!({"outcome": "selected", "optionId": "ok"})
    );
    assert_eq!(told["read"]["content"], "two\n");
    assert_eq!(told["exit"]["exitCode"], 0);
    assert_eq!(
        (&told["output"]["output"], &told["output"]["truncated"]),
        (&json!("three\n"), &json!(true))
    );
    assert!(
        told["outside"]
            .as_str()
            .unwrap()
            .contains("outside of the workspace"),
        "{told}"
    );
    let note = std::fs::read_to_string(scene.workspace().join("note.txt")).unwrap();
    assert_eq!(note, "one\ntwo\nthree\n");

    let prompt = connection.prompt(&id, text_blocks("wait"));
    let call_off = async {
        until("it waits", || scene.host.said().ends_with("waiting")).await;
        connection.cancel(&id);
    };
    let (ended, ()) = within(async { tokio::join!(prompt, call_off) }).await;
    assert_eq!(ended.unwrap().stop_reason, "cancelled");
    within(connection.stop()).await;
}
