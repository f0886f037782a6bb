//! Large tool sets behind `tool_search`.

use contexture_tools::deferred::{Deferral, ToolSearch};
use contexture_tools::{Effect, Tool, ToolSpec};
use serde_json::{Map, Value, json};

use crate::mcp::common::text;

fn spec(name: &str, description: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({ "type": "object" }),
        category: if name.contains(':') { "mcp" } else { "builtin" }.to_owned(),
        effect: Effect::Reads,
    }
}

fn specs() -> Vec<ToolSpec> {
    vec![
        spec("exec_shell", "Runs a command."),
        spec("git:git_commit", "Records changes to the repository"),
        spec(
            "git:git_diff",
            "Shows differences between branches or commits",
        ),
        spec("fs:readFile", "Reads the whole content of a file"),
        spec("fs:write_file", "Creates a new file or overwrites one"),
        spec("time:convert_time", "Convert time between timezones"),
    ]
}

#[test]
fn all_or_none_of_the_servers_tools_and_never_a_built_in() {
    let count = |spec: &ToolSpec| if spec.name == "tool_search" { 30 } else { 100 };
    let specs = specs();
    let roomy = Deferral::default().plan(&specs, count, 5_000);
    assert_eq!(roomy.active.len(), 6);
    assert_eq!(roomy.active[1], "git:git_commit", "in the order given");
    assert!(roomy.deferred.is_empty() && roomy.saved_tokens == 0);
    let tight = Deferral::default().plan(&specs, count, 4_900);
    assert_eq!(tight.active, ["exec_shell"]);
    assert_eq!(tight.deferred.len(), 5);
    assert_eq!(tight.saved_tokens, 470);
    assert_eq!(
        Deferral { share: 50 }
            .plan(&specs, count, 1_000)
            .deferred
            .len(),
        0
    );
}

async fn search(tool: &ToolSearch, arguments: Value) -> String {
    let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap();
    text(&tool.call(&arguments).await)
}

#[tokio::test]
async fn words_find_tools_and_make_them_active() {
    let tool = ToolSearch::new(specs().into_iter().filter(|spec| spec.category == "mcp"));
    let told = search(&tool, json!({ "query": "read a file" })).await;
    assert!(told.contains("fs__readFile: Reads the whole"), "{told}");
    let active = tool.take_activated();
    assert_eq!(active[0], "fs:readFile", "the best first: {active:?}");
    assert!(tool.take_activated().is_empty());

    search(&tool, json!({ "query": "timezones" })).await;
    assert_eq!(tool.take_activated(), ["time:convert_time"]);
    search(&tool, json!({ "query": "commit", "server": "git" })).await;
    assert_eq!(tool.take_activated()[0], "git:git_commit");
    search(&tool, json!({ "query": "file", "server": "git" })).await;
    assert!(tool.take_activated().is_empty());

    let none = search(&tool, json!({ "query": "zzzz" })).await;
    assert!(none.contains("No tool"), "{none}");
    assert!(tool.take_activated().is_empty());
    assert!(tool.call(&Map::new()).await.failed);
}

#[tokio::test]
async fn at_most_five() {
    let many = (0..50).map(|n| spec(&format!("s:tool_{n}"), "Does a thing"));
    let tool = ToolSearch::new(many);
    search(&tool, json!({ "query": "thing tool" })).await;
    assert_eq!(tool.take_activated().len(), 5);
}
