//! Attack 25: a tool that shadows a built-in or another server's is namespaced, and a collision refused.

use std::collections::HashSet;

use contexture_tools::mcp::Notice;
use serde_json::json;

use crate::mcp::common::*;

fn name(notice: &Notice) -> &str {
    match notice {
        Notice::Refused { tool, .. } => tool,
        _ => "",
    }
}

#[tokio::test]
async fn the_later_of_two_is_refused_and_named() {
    let (servers, _root) = ready("names").await;
    let notices = servers.take_notices();
    assert_eq!(tool(&servers, "h:twice").spec().description, "The first.");
    let refused: Vec<&str> = notices.iter().map(name).collect();
    assert!(
        refused.contains(&"h:twice") && refused.contains(&"h:a b"),
        "{notices:?}"
    );
    assert!(
        refused.contains(&"h:") && refused.contains(&"h:bell\u{7}"),
        "{notices:?}"
    );
    let tools = servers.tools();
    let wires: HashSet<String> = tools.iter().map(|tool| tool.spec().wire_name()).collect();
    assert_eq!(wires.len(), tools.len());
    assert!(!wires.contains("exec_shell") && wires.contains("h__exec_shell"));
    for tool in tools {
        assert!(tool.spec().name.chars().count() < 140);
        assert!(tool.spec().description.chars().count() <= 8_001);
    }
}

#[tokio::test]
async fn servers_cannot_take_each_others_names() {
    let root = tempfile::tempdir().unwrap();
    let one = |tool: &str| json!({ "command": hostile_path(), "args": ["one", tool] });
    // Both are `a__b__c` on the wire.
    let config = json!({ "a": one("b__c"), "a__b": one("c") });
    let servers = start(&config, options(root.path()));
    assert!(servers.settled(LONG).await);
    let kept = names(&servers);
    assert_eq!(kept.len(), 1);
    let notices = servers.take_notices();
    let refused: Vec<&str> = notices.iter().map(name).collect();
    assert_eq!(refused.len(), 1);
    let mut both = [kept[0].as_str(), refused[0]];
    both.sort_unstable();
    assert_eq!(both, ["a:b__c", "a__b:c"]);
}

#[tokio::test]
async fn names_can_be_reserved() {
    let root = tempfile::tempdir().unwrap();
    let mut options = options(root.path());
    options.reserved = vec!["h__reads".to_owned()];
    let servers = start(&json!({ "h": hostile("plain") }), options);
    assert!(servers.settled(LONG).await);
    let notices = servers.take_notices();
    let refused: Vec<&str> = notices.iter().map(name).collect();
    assert_eq!(refused, ["h:reads"], "{notices:?}");
    assert_eq!(names(&servers), ["h:do", "h:lies"]);
}
