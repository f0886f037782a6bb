//! The place of a session's token: in a file of its owner's, and nowhere else; and who finds it there.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::Project;
use crate::fleet::scene::{Daemon, processes};
use crate::fleet::secrets::files;

/// Looks for tokens in the command lines and environments of all processes that work for a project, and in all its
/// files and those of its home.
#[track_caller]
pub fn are_nowhere(daemon: &Daemon, tokens: &[String]) {
    assert!(!tokens.is_empty() && tokens.iter().all(|token| token.len() == 64));
    let clean = |what: &str, bytes: &[u8]| {
        for token in tokens {
            let found = bytes
                .windows(32)
                .any(|part| part == &token.as_bytes()[..32]);
            assert!(!found, "a token is in {what}");
        }
    };
    let folder = daemon.project.path().display().to_string();
    let pids = processes(&folder);
    assert!(!pids.is_empty());
    for pid in pids {
        for file in ["cmdline", "environ"] {
            let path = format!("/proc/{pid}/{file}");
            clean(&path, &std::fs::read(&path).unwrap_or_default());
        }
    }
    for (path, text) in files(daemon.project.path()) {
        if !path.starts_with(daemon.tokens()) {
            clean(&path.display().to_string(), text.as_bytes());
        }
    }
}

fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

/// Attacks 1 and 6: an agent that keeps what it is given, and shows it in a command line, keeps and shows no token.
#[test]
fn a_token_is_in_no_command_line_no_environment_and_no_file_but_its_own() {
    let mut daemon = Daemon::start();
    std::fs::create_dir_all(daemon.project.path().join(".home")).unwrap();
    daemon.create("bot", "service", &[], &["--remember"]);
    daemon.ctx(&["agent", "start", "bot"]).success();
    // Its MCP server runs too.
    assert!(daemon.prompt("bot", "tools").contains("canvas_update"));
    let tokens = daemon.kept_tokens();
    assert_eq!(tokens.len(), 1);
    let kept = std::fs::read_to_string(daemon.project.path().join(".home/agent-sessions"));
    assert!(kept.unwrap().contains("CONTEXTURE_SESSION_TOKEN_FILE"));
    are_nowhere(&daemon, &tokens);
    let answer = daemon.call(&tokens[0], "internal.validateToken", &json!({}));
    assert_eq!(answer["result"]["agentName"], "bot", "{answer}");
    daemon.ctx(&["agent", "stop", "bot"]).success();
    assert_eq!(count(&daemon.tokens()), 0, "the session has ended");
    // A daemon that is killed leaves files of tokens that count no more; the next one removes them.
    daemon.agent("other", "repo");
    daemon.kill();
    assert!(count(&daemon.tokens()) > 0);
    daemon.project.ctx(&["agent", "rm", "other"]).success();
    daemon.again();
    assert_eq!(count(&daemon.tokens()), 0);
}

/// An agent whose adapter ignores MCP servers reaches the tools by a command, its own or one that we run for it.
#[test]
fn commands_of_an_agent_find_its_session() {
    let daemon = Daemon::start();
    daemon.agent("bot", "service");
    for word in ["here", "there"] {
        let list = daemon.prompt("bot", &format!("{word} ctx tool list --json"));
        let tools: Value = serde_json::from_str(&list).expect(&list);
        assert_eq!(tools[0]["name"], "canvas_update", "{word}");
        let call = format!("{word} ctx tool call canvas_update --arg html={word}");
        assert!(daemon.prompt("bot", &call).contains("updatedAt"));
        assert_eq!(daemon.ctx(&["canvas", "show", "bot"]).success(), word);
        let none = daemon.prompt("bot", &format!("{word} env | grep -c SESSION_TOKEN="));
        assert_eq!(none.trim(), "0");
    }
    // A token that was exchanged is found by the next command.
    let exchange = daemon.call(&daemon.kept_tokens()[0], "internal.rotateToken", &json!({}));
    let fresh = exchange["result"]["token"].as_str();
    let fresh = fresh.unwrap_or_else(|| panic!("{exchange}")).to_owned();
    assert_eq!(daemon.kept_tokens(), [fresh]);
    assert!(
        daemon
            .prompt("bot", "here ctx tool list")
            .contains("canvas_update")
    );
}

/// Somebody else starts a direct agent, with all that it takes to reach its tools.
#[test]
fn a_direct_agent_gets_a_token_that_counts_and_the_server_of_its_tools() {
    let daemon = Daemon::start();
    daemon.create("far", "service", &["--direct"], &[]);
    let prepared = daemon.call(
        &daemon.secret(),
        "session.prepare",
        &json!({"agent": "far"}),
    );
    let by_command = daemon
        .ctx(&["inject", "--name", "far", "--show-token", "--json"])
        .json();
    for prepared in [&prepared["result"], &by_command] {
        let token = prepared["token"].as_str().unwrap();
        let answer = daemon.call(token, "internal.validateToken", &json!({}));
        assert_eq!(answer["result"]["valid"], true, "{answer}");
        assert_eq!(answer["result"]["sessionId"], prepared["sessionId"]);
        let servers = prepared["mcpServers"].as_array().unwrap();
        let server = servers
            .iter()
            .find(|one| one["name"] == "contexture")
            .unwrap();
        assert!(!server.to_string().contains(token));
        let file = prepared["tokenFile"].as_str().unwrap();
        assert!(server.to_string().contains(file));
        let tools = daemon
            .ctx(&["tool", "list", "--json"])
            .env("CONTEXTURE_SESSION_TOKEN_FILE", file)
            .json();
        assert_eq!(tools[0]["name"], "canvas_update");
    }
    // A look at what a session would begin with begins none.
    let before = count(&daemon.tokens());
    daemon.ctx(&["inject", "--name", "far", "--json"]).json();
    assert_eq!(count(&daemon.tokens()), before);
    daemon.call(&daemon.secret(), "session.close", &json!({"agent": "far"}));
    assert_eq!(count(&daemon.tokens()), 0);
    let file = by_command["tokenFile"].as_str().unwrap();
    let gone = daemon
        .ctx(&["tool", "list"])
        .env("CONTEXTURE_SESSION_TOKEN_FILE", file);
    gone.failure(5, "session not found");
}

/// Attack 44: a file that others can read, or a link, is no token's.
#[test]
fn a_token_file_that_is_not_private_is_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let project = Project::new();
    let file = project.path().join("token");
    let list = |file: &Path| {
        let ctx = project.ctx(&["tool", "list", "--url", "http://127.0.0.1:9"]);
        ctx.env("CONTEXTURE_SESSION_TOKEN_FILE", &file.display().to_string())
    };
    std::fs::write(&file, "0".repeat(64)).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    list(&file).failure(5, "is not private");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    symlink(&file, project.path().join("link")).unwrap();
    list(&project.path().join("link")).failure(5, "is not private");
    list(&file).failure(1, "127.0.0.1:9");
    list(Path::new("/")).failure(5, "session not found");
}
