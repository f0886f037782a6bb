//! MCP servers that a host brings along.

use agent_client_protocol::v1::schema::{EnvVariable, McpServer, McpServerStdio, StopReason};
use serde_json::json;

use crate::acp::host::{agent, hosting, nothing_dangles};
use crate::acp::scene::{Scene, calls, counterparts, says};

// needs: mcp-servers
#[tokio::test(flavor = "multi_thread")]
async fn a_real_server_of_the_host_is_used_and_its_change_is_shown() {
    let Some(folder) = counterparts() else { return };
    let scene = Scene::new([]);
    let root = scene.project.path().canonicalize().unwrap();
    scene.project.write("note.txt", "before");
    let path = root.join("note.txt");
    let script = folder.join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    let scene = Scene {
        server: crate::model_server::ModelServer::start([
            calls("c1", "files__read_text_file", json!({"path": path})),
            calls(
                "c2",
                "files__write_file",
                json!({"path": path, "content": "after"}),
            ),
            says("Changed."),
        ]),
        ..scene
    };
    hosting(agent(&scene, &[]), Some("allow"), async |host| {
        host.initialize().await;
        let args = vec![script.display().to_string(), root.display().to_string()];
        let server = McpServerStdio::new("files", "node").args(args);
        let broken =
            McpServerStdio::new("broken", "/no/such/program").env(vec![EnvVariable::new("A", "b")]);
        let servers = vec![McpServer::Stdio(broken), McpServer::Stdio(server)];
        let id = host.with_servers(&root, servers).await;
        host.expect(&id, "change it", StopReason::EndTurn).await;
        let updates = host.updates(&id);
        // The one that failed is named before anything else.
        assert_eq!(
            updates[0]["sessionUpdate"], "agent_message_chunk",
            "{updates:?}"
        );
        assert_eq!(updates[0]["_meta"]["contexture"]["notice"], true);
        let first = updates[0]["content"]["text"].as_str().unwrap();
        assert!(first.contains("MCP server broken"), "{first}");
        let shown = host.of_kind(&id, "tool_call");
        assert_eq!(shown[0]["kind"], "read", "{shown:?}");
        assert_eq!(shown[0]["locations"][0]["path"], json!(path));
        let change =
            json!([{"type": "diff", "path": path, "oldText": "before", "newText": "after"}]);
        assert_eq!(shown[1]["content"], change);
        nothing_dangles(&updates);
        assert_eq!(host.asked().len(), 1, "only what acts is asked for");
    })
    .await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "after");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_does_not_fail_the_session() {
    let scene = Scene::new([says("Without it, then."), says("Yes?")]);
    hosting(agent(&scene, &[]), None, async |host| {
        host.initialize().await;
        let server = McpServerStdio::new("gone", "/no/such/program");
        let id = host
            .with_servers(scene.project.path(), vec![McpServer::Stdio(server)])
            .await;
        host.expect(&id, "hello", StopReason::EndTurn).await;
        let said = host.text(&id, "agent_message_chunk");
        assert!(said.starts_with("MCP server gone"), "{said}");
        assert!(said.ends_with("Without it, then."), "{said}");
        let before = host.updates(&id).len();
        host.expect(&id, "again", StopReason::EndTurn).await;
        let later = host.updates(&id).split_off(before);
        assert!(
            !json!(later).to_string().contains("MCP server"),
            "once is enough"
        );
    })
    .await;
}
