//! goose, which has us run its commands: it is told what its log says, what its commands print is recorded, it keeps no
//! token, and a turn without a model has failed.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{Project, ROOT};
use crate::fleet::scene::Daemon;
use crate::fleet::token;
use crate::model_server::{Answer, ModelServer, Piece, Seen};

fn program() -> Option<PathBuf> {
    let usual = Path::new(ROOT).join("target/counterparts");
    let folder = std::env::var_os("CONTEXTURE_COUNTERPARTS").map_or(usual, PathBuf::from);
    let program = folder.join("node_modules/@aaif/goose-binary-linux-x64/bin/goose");
    if folder.join("stamp").is_file() && program.is_file() {
        return program.canonicalize().ok();
    }
    eprintln!("skipped: goose is not installed; ./test does that, on Linux for x64");
    None
}

/// Returns true for a turn's request, and false for one for a title or the like.
fn is_turn(seen: &Seen) -> bool {
    let body = String::from_utf8_lossy(&seen.body);
    seen.path.ends_with("/chat/completions") && body.contains(r#""name":"shell""#)
}

/// A model that runs a command when it is told to, and hangs up when it is told that.
fn model() -> ModelServer {
    ModelServer::answering(|seen| {
        if !seen.path.ends_with("/chat/completions") {
            let list = json!({"object": "list", "data": [{"id": "scripted-1", "object": "model"}]});
            let kind = ("content-type", "application/json".to_owned());
            return Answer::Status(200, vec![kind], list.to_string());
        }
        let body = seen.json();
        let last = body["messages"].as_array().unwrap().last().unwrap();
        let text = last["content"].to_string();
        let command = json!({"command": "printf 'from-%s' goose"});
        let piece = match last["role"].as_str() {
            Some("tool") => Piece::Text("It is done."),
            _ if !is_turn(seen) => Piece::Text("A title"),
            _ if text.contains("Run it.") => Piece::Call("call_1", "shell", command),
            _ if text.contains("Break off.") => return Answer::HangsUp,
            _ => Piece::Text("I know."),
        };
        Answer::Says(vec![piece])
    })
}

// needs: acp-agents
#[test]
fn goose_is_told_what_its_log_says() {
    let Some(goose) = program() else { return };
    let server = model();
    let project = Project::new();
    let home = project.path().join(".home");
    std::fs::create_dir_all(&home).unwrap();
    let env = [
        ("HOME", home.to_str().unwrap()),
        ("OPENAI_API_KEY", "not-a-key"),
        ("OPENAI_HOST", server.url.trim_end_matches("/v1")),
        ("GOOSE_PROVIDER", "openai"),
        ("GOOSE_MODEL", "scripted-1"),
        ("GOOSE_DISABLE_KEYRING", "1"),
        ("GOOSE_MODE", "auto"),
    ];
    let daemon = Daemon::with(project, &env);
    let create =
        "agent create bot --archetype service --backend goose --permissions allow --command";
    let create: Vec<&str> = create.split(' ').collect();
    daemon
        .ctx(&[&create[..], &[goose.to_str().unwrap(), "acp"]].concat())
        .success();
    daemon.ctx(&["agent", "start", "bot"]).success();
    daemon.ctx(&["agent", "stop", "bot"]).success();
    daemon.ctx(&["agent", "start", "bot"]).success();
    assert_eq!(daemon.prompt("bot", "Run it."), "It is done.");
    let tokens = daemon.kept_tokens();
    token::are_nowhere(&daemon, &tokens);
    daemon.ctx(&["agent", "stop", "bot"]).success();
    daemon.ctx(&["agent", "start", "bot"]).success();
    assert_eq!(daemon.prompt("bot", "What are you?"), "I know.");
    let turns: Vec<Seen> = server.seen().into_iter().filter(is_turn).collect();
    assert_eq!(turns.len(), 3);
    for turn in &turns {
        let body = String::from_utf8_lossy(&turn.body);
        assert_eq!(body.matches("You are **bot**").count(), 1, "{body}");
    }
    let session = daemon.show("bot")["sessionId"].as_str().unwrap().to_owned();
    let entries = daemon.project.entries(&session);
    let kinds: Vec<&str> = entries
        .iter()
        .filter_map(|entry| entry["type"].as_str())
        .collect();
    let at = kinds.iter().position(|kind| *kind == "sections").unwrap();
    assert_eq!(
        kinds[at + 1],
        "message",
        "told with the first prompt: {kinds:?}"
    );
    let results: Vec<&Value> = entries
        .iter()
        .map(|entry| &entry["payload"]["message"])
        .filter(|message| message["role"] == "tool")
        .collect();
    assert_eq!(results.len(), 1, "{results:?}");
    assert_eq!(results[0]["content"], "from-goose");
    let broken = daemon.ctx(&["agent", "prompt", "bot", "Break off."]).run();
    let said = String::from_utf8_lossy(&broken.stderr).into_owned();
    assert_eq!(broken.status.code(), Some(1), "{said}");
    assert!(said.contains("the turn failed: Network error"), "{said}");
}
