//! Two configurations, the user's and the project's, and what counts of each.

use serde_json::{Value, json};

use crate::common::ctx;

#[test]
fn the_users_own_configuration_stands_under_the_projects() {
    let (project, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let own = user.path().join("contexture/contexture.json");
    std::fs::create_dir(own.parent().unwrap()).unwrap();
    let theirs = project.path().join("contexture.json");
    let config = user.path().to_str().unwrap();
    let run = || {
        ctx(&["build", "--json"])
            .dir(project.path())
            .env("XDG_CONFIG_HOME", config)
    };
    let build = || run().input(r#"[{"role":"user","content":"hi"}]"#);
    std::fs::write(
        &own,
        r#"{"context":{"maxInputTokens":5000,"reservedOutput":100}}"#,
    )
    .unwrap();
    for (theirs_says, counts) in [(6_000, 5_000), (4_000, 4_000)] {
        let text = json!({"context": {"maxInputTokens": theirs_says}}).to_string();
        std::fs::write(&theirs, text).unwrap();
        let budget = build().json()["receipt"]["budget"].clone();
        assert_eq!(budget["maxInputTokens"], counts);
        assert_eq!(budget["reserved"], 100);
    }
    for (text, why) in [
        (
            r#"{"shell":{"sandbox":"maybe"}}"#,
            "shell.sandbox: `maybe` is unknown",
        ),
        (
            r#"{"shell":{"writable":["a",1]}}"#,
            "shell.writable: must be of type array of strings",
        ),
        (
            r#"{"toolPolicy":{"allowTools":[]}}"#,
            "toolPolicy.allowTools",
        ),
        (r#"{"skill":{"enabled":true}}"#, "did you mean `skills`?"),
        (r#"{"baseURL":"x"}"#, "did you mean `baseUrl`?"),
        (
            r#"{"context":{"maxInputTokens":0}}"#,
            "context.maxInputTokens: must be a whole number from 1 to 1000000000, not 0",
        ),
    ] {
        std::fs::write(&own, text).unwrap();
        let said = build().failure(3, why);
        assert!(said.contains(own.to_str().unwrap()), "{said}");
    }
    std::fs::write(&own, "x".repeat((1 << 20) + 1)).unwrap();
    build().failure(1, "longer than 1024 KiB");
}

#[test]
fn mcp_servers_of_the_user_and_of_the_project() {
    let home = tempfile::tempdir().unwrap();
    let project = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("contexture")).unwrap();
    let user = home.path().join("contexture/contexture.json");
    let ours = project.path().join("contexture.json");
    let write = |path, servers: Value| {
        std::fs::write(path, json!({ "mcpServers": servers }).to_string()).unwrap();
    };
    let list = |trust: &str| {
        ctx(&["mcp", "list", "--json"])
            .dir(project.path())
            .env("XDG_CONFIG_HOME", home.path().to_str().unwrap())
            .env("CONTEXTURE_TRUST", trust)
    };
    write(
        &user,
        json!({ "both": { "command": "no-such-user" }, "user": { "command": "no-such-1", "env": { "K": "sekrit" } } }),
    );
    write(
        &ours,
        json!({ "both": { "command": "no-such-2", "args": ["--key", "sekrit"] }, "off": { "url": "http://h/?k=sekrit", "disabled": true } }),
    );
    let rows = |text: &str| -> Vec<String> {
        let rows: Vec<Value> = serde_json::from_str(text).unwrap();
        let row = |row: &Value| {
            format!(
                "{}={}",
                row["name"].as_str().unwrap(),
                row["state"].as_str().unwrap()
            )
        };
        rows.iter().map(row).collect()
    };
    let trusted = list("1").success();
    assert_eq!(
        rows(&trusted),
        ["both=failed", "user=failed", "off=disabled"]
    );
    assert!(trusted.contains("no-such-2") && !trusted.contains("no-such-user"));
    assert!(!trusted.contains("sekrit"), "{trusted}");
    let not = list("0").success();
    assert_eq!(
        rows(&not),
        [
            "both=failed",
            "user=failed",
            "both=untrusted",
            "off=untrusted"
        ]
    );
    assert!(!not.contains("sekrit"), "{not}");

    write(&ours, json!({ "a": { "comand": "x" } }));
    list("1").failure(3, "did you mean `command`?");
    let schema = ctx(&["config", "schema"]).json();
    let server = &schema["properties"]["mcpServers"]["additionalProperties"]["properties"];
    assert_eq!(server["args"]["type"], "array");
}
