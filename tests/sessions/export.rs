use serde_json::{Value, json};

use crate::common::{Project, message};

fn transcript() -> Value {
    json!([
        message("system", "Be brief."),
        message("user", "Where is <b>it</b>?"),
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "c1", "type": "function", "function": { "name": "find", "arguments": "{\"what\":\"it\"}" } } ] },
        { "role": "tool", "tool_call_id": "c1", "content": "in the attic" },
        message("assistant", "In the **attic**."),
    ])
}

fn imported() -> Project {
    let project = Project::new();
    let file = project.write("t.json", transcript().to_string());
    project
        .ctx(&["sessions", "import", "s", file.to_str().unwrap()])
        .success();
    project
}

fn export(project: &Project, format: &str) -> String {
    project
        .ctx(&["sessions", "export", "s", "--format", format])
        .success()
}

#[test]
fn openai_gives_the_messages_back() {
    let project = imported();
    let exported: Value = serde_json::from_str(&export(&project, "openai")).unwrap();
    assert_eq!(exported, json!({ "messages": transcript() }));
    // And it can be imported again, to the same requests.
    let file = project.write("again.json", exported.to_string());
    project
        .ctx(&["sessions", "import", "t", file.to_str().unwrap()])
        .success();
    let digests = |session: &str| -> Vec<Value> {
        let rows = project.ctx(&["replay", session, "--json"]).lines();
        rows.into_iter().map(|row| row["digest"].clone()).collect()
    };
    assert_eq!(digests("s").len(), 2);
    assert_eq!(digests("s"), digests("t"));
}

#[test]
fn anthropic_gives_blocks() {
    let exported: Value = serde_json::from_str(&export(&imported(), "anthropic")).unwrap();
    assert!(exported["system"].to_string().contains("Be brief."));
    let messages = exported["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    assert_eq!(messages[1]["content"][0]["type"], "tool_use");
    assert_eq!(messages[2]["content"][0]["type"], "tool_result");
}

#[test]
fn jsonl_is_the_log() {
    let project = imported();
    let log = std::fs::read_to_string(project.log("s")).unwrap();
    assert_eq!(export(&project, "jsonl"), log);
    // It makes the same session again.
    let file = project.write("log.jsonl", log);
    project
        .ctx(&["sessions", "import", "t", file.to_str().unwrap()])
        .success();
    let digest = |session: &str| {
        let result = project.ctx(&["inspect", session, "--json"]).json();
        result["receipt"]["digest"].clone()
    };
    assert_eq!(digest("s"), digest("t"));
    let verified = project.ctx(&["replay", "t", "--verify"]).ends(0).1;
    assert!(verified.contains("2 recorded requests"), "{verified}");
}

#[test]
fn markdown_is_for_people_and_the_default() {
    let project = imported();
    let exported = project.ctx(&["sessions", "export", "s"]).success();
    assert_eq!(exported, export(&project, "markdown"));
    for needle in ["# s", "In the **attic**.", "in the attic", "find"] {
        assert!(exported.contains(needle), "{needle} is not in {exported}");
    }
    assert!(
        !exported.contains("<b>it</b>"),
        "HTML stays HTML: {exported}"
    );
}

#[test]
fn html_needs_nothing_else() {
    let page = export(&imported(), "html");
    assert!(page.starts_with("<!doctype html>"));
    assert!(page.contains("default-src 'none'"));
    assert!(page.contains("&lt;b&gt;it&lt;") && !page.contains("<b>it"));
    for needle in ["<script", "src=\"http", "<link", "@import", "url(http"] {
        assert!(!page.contains(needle), "{needle} is in the page");
    }
}

#[test]
fn what_was_hidden_from_the_model_is_there_in_full() {
    let project = Project::with_session("s");
    let exported: Value = serde_json::from_str(&export(&project, "openai")).unwrap();
    let messages = exported["messages"].as_array().unwrap();
    let entries = project.entries("s");
    for entry in entries.iter().filter(|entry| entry["type"] == "message") {
        let content = &entry["payload"]["message"]["content"];
        assert!(
            messages
                .iter()
                .any(|message| message["content"] == *content),
            "{} is missing",
            entry["id"]
        );
    }
    assert!(exported["tools"].as_array().unwrap().len() > 2);
    assert!(export(&project, "markdown").contains("summar"));
}

#[test]
fn a_file_takes_the_place_of_standard_output() {
    let project = imported();
    for format in ["html", "markdown", "openai", "anthropic", "jsonl"] {
        let args = ["sessions", "export", "s", "--format", format, "-o", "out"];
        let (printed, said) = project.ctx(&args).ends(0);
        assert_eq!(printed, "");
        let written = std::fs::read_to_string(project.path().join("out")).unwrap();
        assert_eq!(written, export(&project, format));
        assert!(
            said.contains(&format!("out: {} bytes", written.len())),
            "{said}"
        );
    }
    project
        .ctx(&["sessions", "export", "s", "-o", "no/such/folder"])
        .failure(1, "no/such/folder");
    project
        .ctx(&["sessions", "export", "s", "--format", "pdf"])
        .failure(2, "pdf");
    // A session that is not there does not cost the file that is.
    project.write("out", "precious");
    project
        .ctx(&["sessions", "export", "else", "-o", "out"])
        .failure(1, "there is no session `else`");
    let kept = std::fs::read_to_string(project.path().join("out")).unwrap();
    assert_eq!(kept, "precious");
}
