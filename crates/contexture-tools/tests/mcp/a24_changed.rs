//! Attack 24: a tool description that changed since it was approved is named, and is another tool.

use contexture_tools::mcp::Notice;
use serde_json::json;

use crate::mcp::common::*;

#[tokio::test]
async fn a_description_that_changes_is_named() {
    let (servers, _root) = ready("change").await;
    let before = tool(&servers, "h:add").spec().digest();
    let same = tool(&servers, "h:same").spec().digest();
    assert!(servers.take_notices().is_empty());
    assert!(!call(&servers, "h:add", json!({})).await.failed);
    until("the new list", || {
        tool(&servers, "h:add").spec().description.contains("evil")
    })
    .await;
    let changed = Notice::Changed {
        tool: "h:add".to_owned(),
    };
    assert_eq!(servers.take_notices(), [changed]);
    assert_ne!(tool(&servers, "h:add").spec().digest(), before);
    assert_eq!(tool(&servers, "h:same").spec().digest(), same);
}

#[tokio::test]
async fn dying_and_coming_back_changed_is_named_as_well() {
    let root = tempfile::tempdir().unwrap();
    // The second time, another server answers under the same name.
    let script = format!(
        "if [ -e {0}/again ]; then exec {1} one do; fi; touch {0}/again; exec {1} die",
        root.path().display(),
        hostile_path().display()
    );
    let config = json!({ "h": { "command": "sh", "args": ["-c", script] } });
    let servers = start(&config, options(root.path()));
    assert!(servers.settled(LONG).await);
    assert!(call(&servers, "h:do", json!({})).await.failed);
    until("it comes back as another", || names(&servers) == ["h:do"]).await;
    let changed = Notice::Changed {
        tool: "h:do".to_owned(),
    };
    assert_eq!(servers.take_notices(), [changed]);
}
