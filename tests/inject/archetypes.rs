use serde_json::Value;

use crate::common::Project;

fn prepared(archetype: &str) -> Value {
    let args = ["inject", "--name", "ada", "--archetype", archetype];
    let rest = ["--backend", "claude-code", "--session", "s1", "--json"];
    Project::new().ctx(&[&args[..], &rest].concat()).json()
}

/// One line an item, then the texts.
fn shape(prepared: &Value) -> String {
    let mut out = String::new();
    for item in prepared["receipt"]["items"].as_array().unwrap() {
        let text = |key: &str| item[key].as_str().unwrap();
        out.push_str(&format!("{} {}\n", text("rule"), text("id")));
    }
    let names = |list: &str| -> Vec<&str> {
        let all = prepared[list].as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap()).collect()
    };
    out.push_str(&format!(
        "tools {:?}, servers {:?}\n",
        names("tools"),
        names("mcpServers")
    ));
    for text in prepared["systemContextAdditions"].as_array().unwrap() {
        out.push_str(&format!("---\n{}\n", text.as_str().unwrap()));
    }
    out
}

#[test]
fn a_repo_agent() {
    insta::assert_snapshot!(shape(&prepared("repo")), @r#"
    kept core-identity/system/0
    out-of-scope canvas/tool/canvas_update
    out-of-scope canvas/tool/canvas_clear
    tools [], servers []
    ---
    ## Agent Identity
    You are **ada**, an agent that Contexture runs.

    - Archetype: repo. You work in a repository, on request, and stop when the request is done.
    - Backend: claude-code
    - Workspace: persistent. Your folder is kept when you stop.

    What you say and do is logged. Some actions need a person's permission; when one is refused, say so and go on without it.
    "#);
}

#[test]
fn a_service() {
    insta::assert_snapshot!(shape(&prepared("service")), @r#"
    kept core-identity/system/0
    kept canvas/tool/canvas_update
    kept canvas/tool/canvas_clear
    kept canvas/system/0
    kept contexture/system/tool-instructions
    tools ["canvas_update", "canvas_clear"], servers []
    ---
    ## Agent Identity
    You are **ada**, an agent that Contexture runs.

    - Archetype: service. You run for a long time and serve people and other agents.
    - Backend: claude-code
    - Workspace: persistent. Your folder is kept when you stop.

    What you say and do is logged. Some actions need a person's permission; when one is refused, say so and go on without it.
    ---
    ## Canvas
    You have a canvas: one page of HTML that people see beside you while you work. Use it for what is better looked at than read: a table, a chart drawn in SVG or CSS, progress. It shows the last page that you gave it. Scripts do not run there and nothing is fetched, so put styles and pictures into the page itself.
    ---
    ## Contexture Tools
    These tools belong to your host. Where your client offers them as tools of the MCP server `contexture`, call them there. Else run the command that stands below a tool; it finds your session by the file that the variable CONTEXTURE_SESSION_TOKEN_FILE names, which is set for you. Never print that file.
    - canvas_update(html: string, title?: string): Shows a page of HTML on your canvas, in the place of the one before.
      `ctx tool call canvas_update --arg html=…`
    - canvas_clear(): Takes the page off your canvas.
      `ctx tool call canvas_clear`
    "#);
}

#[test]
fn an_employee() {
    insta::assert_snapshot!(shape(&prepared("employee")), @r#"
    kept core-identity/system/0
    kept canvas/tool/canvas_update
    kept canvas/tool/canvas_clear
    kept canvas/system/0
    kept contexture/system/tool-instructions
    tools ["canvas_update", "canvas_clear"], servers []
    ---
    ## Agent Identity
    You are **ada**, an agent that Contexture runs.

    - Archetype: employee. You pursue goals of your own within what you were given, and report what you did.
    - Backend: claude-code
    - Workspace: persistent. Your folder is kept when you stop.

    What you say and do is logged. Some actions need a person's permission; when one is refused, say so and go on without it.
    ---
    ## Canvas
    You have a canvas: one page of HTML that people see beside you while you work. Use it for what is better looked at than read: a table, a chart drawn in SVG or CSS, progress. It shows the last page that you gave it. Scripts do not run there and nothing is fetched, so put styles and pictures into the page itself.
    ---
    ## Contexture Tools
    These tools belong to your host. Where your client offers them as tools of the MCP server `contexture`, call them there. Else run the command that stands below a tool; it finds your session by the file that the variable CONTEXTURE_SESSION_TOKEN_FILE names, which is set for you. Never print that file.
    - canvas_update(html: string, title?: string): Shows a page of HTML on your canvas, in the place of the one before.
      `ctx tool call canvas_update --arg html=…`
    - canvas_clear(): Takes the page off your canvas.
      `ctx tool call canvas_clear`
    "#);
}

/// Attack 6: a token is shown when somebody asks for it, and not before.
#[test]
fn a_token_is_masked_unless_it_is_asked_for() {
    let project = Project::new();
    let masked = project
        .ctx(&["inject", "--archetype", "service", "--json"])
        .json();
    let token = masked["token"].as_str().unwrap();
    assert_eq!(token.chars().count(), 9, "{token}");
    assert!(token.ends_with('…'));
    let args = ["inject", "--archetype", "service", "--json", "--show-token"];
    let shown = project.ctx(&args).json();
    let token = shown["token"].as_str().unwrap();
    assert!(token.len() == 64 && token.chars().all(|c| c.is_ascii_hexdigit()));
    // What the model reads names the variable, never the token.
    let texts = shown["systemContextAdditions"].to_string();
    assert!(texts.contains("CONTEXTURE_SESSION_TOKEN") && !texts.contains(token));
}

#[test]
fn a_meta_is_read_and_options_stand_over_it() {
    let project = Project::new();
    let meta = r#"{"name":"bob","archetype":"service","backendType":"goose","workspacePolicy":"ephemeral","team":"x"}"#;
    let read = |more: &[&str]| {
        let args = ["inject", "--meta", "-", "--json"];
        project.ctx(&[&args[..], more].concat()).input(meta).json()
    };
    let said = read(&[])["systemContextAdditions"][0].to_string();
    assert!(
        said.contains("bob") && said.contains("goose") && said.contains("ephemeral"),
        "{said}"
    );
    let over = read(&["--name", "eve", "--archetype", "repo"]);
    assert!(
        over["systemContextAdditions"][0]
            .to_string()
            .contains("eve")
    );
    assert!(over["tools"].as_array().unwrap().is_empty());
}

/// Attack 9: names that could be paths are refused, and so is what is no meta.
#[test]
fn what_is_no_agent_is_refused() {
    let project = Project::new();
    for name in ["../../x", "/etc", "", "con", "..\\x"] {
        project.ctx(&["inject", "--name", name]).failure(3, "");
    }
    let wrong = project
        .ctx(&["inject", "--meta", "-"])
        .input(r#"{"name":"a","archetype":"king","backendType":"x"}"#);
    wrong.failure(3, "king");
    project
        .ctx(&["inject", "--meta", "-"])
        .input("{")
        .failure(3, "");
    project
        .ctx(&["inject", "--meta", "no/such.json"])
        .failure(1, "no/such.json");
}

#[test]
fn people_read_who_says_what_for_how_much() {
    let project = Project::new();
    project.write(
        "contexture.json",
        r#"{"providers":[{"name":"notes","file":"gone.md"}]}"#,
    );
    let args = ["inject", "--name", "ada", "--archetype", "repo"];
    let shown = project.ctx(&args).env("CONTEXTURE_TRUST", "1").success();
    for part in [
        "ada",
        "core-identity/system/0",
        "left out",
        "canvas/tool/canvas_update",
        "not for this archetype",
        "gone.md: there is no such file",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}
