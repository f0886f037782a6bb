//! Servers that others wrote: `./test` installs them from `tests/counterparts`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use contexture::Content;
use contexture_tools::Effect;
use contexture_tools::mcp::State;
use serde_json::{Map, Value, json};

use crate::mcp::common::*;

/// Where they are installed, if they are.
fn counterparts() -> Option<PathBuf> {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/counterparts");
    let folder = std::env::var_os("CONTEXTURE_COUNTERPARTS").map_or(usual, PathBuf::from);
    if !folder.join("stamp").is_file() {
        eprintln!("skipped: the MCP servers are not installed; ./test does that");
        return None;
    }
    folder.canonicalize().ok()
}

fn node(folder: &Path, server: &str, args: &[&str]) -> Value {
    let script = folder
        .join("node_modules/@modelcontextprotocol")
        .join(server)
        .join("dist/index.js");
    let mut all = vec![script.to_str().unwrap()];
    all.extend(args);
    json!({ "command": "node", "args": all })
}

async fn settled(servers: &contexture_tools::mcp::Servers, name: &str) {
    assert!(servers.settled(LONG).await);
    let state = state(servers, name);
    assert!(
        matches!(state, State::Ready { tools } if tools > 0),
        "{state:?}"
    );
}

// needs: mcp-servers
#[tokio::test]
async fn everything_over_stdio() {
    let Some(folder) = counterparts() else { return };
    let root = tempfile::tempdir().unwrap();
    let config = json!({ "every": node(&folder, "server-everything", &["stdio"]) });
    let servers = start(&config, options(root.path()));
    everything(&servers).await;
    servers.stop().await;
}

// needs: mcp-servers
#[tokio::test]
async fn everything_over_http() {
    let Some(folder) = counterparts() else { return };
    let root = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let script = folder.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let mut program = Command::new("node");
    program
        .arg(script)
        .arg("streamableHttp")
        .env("PORT", free.to_string());
    let mut process = program
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("it listens", || {
        std::net::TcpStream::connect(("127.0.0.1", free)).is_ok()
    })
    .await;

    let config = json!({ "every": { "url": format!("http://127.0.0.1:{free}/mcp"),
        "headers": { "Authorization": "Bearer ${CARGO_PKG_NAME}" }, "timeoutSeconds": 20 } });
    let servers = start(&config, options(root.path()));
    everything(&servers).await;

    // It dies: the call fails, and the tools are back when it is.
    process.kill().unwrap();
    process.wait().unwrap();
    let outcome = call(&servers, "every:echo", json!({ "message": "x" })).await;
    assert!(outcome.failed, "{outcome:?}");
    until("it is missed", || {
        !matches!(state(&servers, "every"), State::Ready { .. })
    })
    .await;
    let mut process = program.spawn().unwrap();
    until("it is back", || {
        matches!(state(&servers, "every"), State::Ready { .. })
    })
    .await;
    let outcome = call(&servers, "every:echo", json!({ "message": "again" })).await;
    assert!(text(&outcome).contains("again"), "{outcome:?}");
    process.kill().unwrap();
    process.wait().unwrap();
}

async fn everything(servers: &contexture_tools::mcp::Servers) {
    settled(servers, "every").await;
    let outcome = call(servers, "every:echo", json!({ "message": "hello" })).await;
    assert!(
        !outcome.failed && text(&outcome).contains("hello"),
        "{outcome:?}"
    );
    let wrong = call(servers, "every:echo", json!({ "message": 5 })).await;
    assert!(
        wrong.failed && text(&wrong).contains("/message"),
        "{wrong:?}"
    );

    let picture = call(servers, "every:get-tiny-image", json!({})).await;
    assert!(
        matches!(&picture.content, Content::Parts(parts) if parts.len() == 2),
        "{picture:?}"
    );

    let listed = call(servers, "mcp_resources", json!({ "server": "every" })).await;
    let listed = text(&listed);
    let uri = listed
        .lines()
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .unwrap_or_default();
    let read = call(
        servers,
        "mcp_read_resource",
        json!({ "server": "every", "uri": uri }),
    )
    .await;
    assert!(
        !read.failed && text(&read).contains(uri),
        "{listed} {read:?}"
    );
    let near = call(
        servers,
        "mcp_read_resource",
        json!({ "server": "evry", "uri": uri }),
    )
    .await;
    assert!(near.failed && text(&near).contains("`every`"), "{near:?}");

    let prompts = servers.prompts().await;
    let simple = prompts
        .iter()
        .find(|prompt| prompt.arguments.is_empty())
        .unwrap();
    let messages = servers.prompt(&simple.name, &Map::new()).await.unwrap();
    assert!(!messages.is_empty());
    assert!(
        servers
            .prompt("every:no-such-prompt", &Map::new())
            .await
            .is_err()
    );
}

// needs: mcp-servers
#[tokio::test]
async fn filesystem() {
    let Some(folder) = counterparts() else { return };
    let root = tempfile::tempdir().unwrap();
    let project = root.path().canonicalize().unwrap();
    std::fs::write(project.join("a.txt"), "alpha").unwrap();
    let config = json!({ "fs": node(&folder, "server-filesystem", &[project.to_str().unwrap()]) });
    let servers = start(&config, options(&project));
    settled(&servers, "fs").await;
    let read = call(
        &servers,
        "fs:read_text_file",
        json!({ "path": project.join("a.txt") }),
    )
    .await;
    assert_eq!(text(&read), "alpha", "{read:?}");
    assert_eq!(
        tool(&servers, "fs:read_text_file").spec().effect,
        Effect::Reads
    );
    assert_eq!(tool(&servers, "fs:write_file").spec().effect, Effect::Acts);
    let written = json!({ "path": project.join("b.txt"), "content": "beta" });
    assert!(!call(&servers, "fs:write_file", written).await.failed);
    assert_eq!(
        std::fs::read_to_string(project.join("b.txt")).unwrap(),
        "beta"
    );
    let outside = call(
        &servers,
        "fs:read_text_file",
        json!({ "path": "/etc/passwd" }),
    )
    .await;
    assert!(outside.failed, "{outside:?}");
}

// needs: mcp-servers
#[tokio::test]
async fn git_and_time() {
    let Some(folder) = counterparts() else { return };
    let root = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| {
        let done = Command::new("git")
            .current_dir(root.path())
            .args(args)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    std::fs::write(root.path().join("new.txt"), "x").unwrap();
    let command = |name: &str| json!({ "command": folder.join("venv/bin").join(name) });
    let config = json!({ "git": command("mcp-server-git"), "time": command("mcp-server-time") });
    let servers = start(&config, options(root.path()));
    settled(&servers, "git").await;
    settled(&servers, "time").await;
    let status = call(
        &servers,
        "git:git_status",
        json!({ "repo_path": root.path() }),
    )
    .await;
    assert!(text(&status).contains("new.txt"), "{status:?}");
    let now = call(
        &servers,
        "time:get_current_time",
        json!({ "timezone": "Europe/Berlin" }),
    )
    .await;
    assert!(
        !now.failed && text(&now).contains("Europe/Berlin"),
        "{now:?}"
    );
    let wrong = call(
        &servers,
        "time:get_current_time",
        json!({ "timezone": "Mars/Base" }),
    )
    .await;
    assert!(wrong.failed, "{wrong:?}");
    tokio::time::timeout(Duration::from_secs(30), servers.stop())
        .await
        .unwrap();
}
