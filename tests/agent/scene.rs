//! A project, a user and a model that says what it is told to.
#![allow(dead_code, reason = "each test binary uses its own share")]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{Ctx, Project};
use crate::model_server::{Answer, ModelServer, Piece};

pub struct Scene {
    pub project: Project,
    pub home: tempfile::TempDir,
    pub server: ModelServer,
}

impl Scene {
    pub fn new(script: impl IntoIterator<Item = Answer>) -> Self {
        Self::with(ModelServer::start(script))
    }

    pub fn with(server: ModelServer) -> Self {
        let home = tempfile::tempdir().unwrap();
        Self {
            project: Project::of_user(home.path()),
            home,
            server,
        }
    }

    /// A command of this user in this project.
    pub fn ctx(&self, args: &[&str]) -> Ctx {
        self.project
            .ctx(args)
            .env("OPENAI_API_KEY", "sk-of-the-tests-1234567890")
            .env("ANTHROPIC_API_KEY", "sk-ant-of-the-tests-1234567890")
    }

    /// `ctx run` in the session `s`, against the scripted model.
    pub fn run(&self, model: &str, args: &[&str]) -> Ctx {
        let mut all = vec!["run", "--model", model, "--base-url", &self.server.url];
        all.extend(["--session", "s"]);
        all.extend(args);
        self.ctx(&all)
    }

    /// The body of request `n`, as text.
    pub fn sent(&self, n: usize) -> String {
        String::from_utf8(self.server.seen()[n].body.clone()).unwrap()
    }

    pub fn verify(&self) {
        self.ctx(&["replay", "s", "--verify"]).success();
    }
}

pub fn says(text: &'static str) -> Answer {
    Answer::Says(vec![Piece::Text(text)])
}

pub fn calls(id: &'static str, tool: &'static str, arguments: Value) -> Answer {
    Answer::Says(vec![Piece::Call(id, tool, arguments)])
}

/// Where real MCP servers are installed, if they are.
pub fn counterparts() -> Option<PathBuf> {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/counterparts");
    let folder = std::env::var_os("CONTEXTURE_COUNTERPARTS").map_or(usual, PathBuf::from);
    if !folder.join("stamp").is_file() {
        println!("skipped: the MCP servers are not installed; ./test does that");
        return None;
    }
    folder.canonicalize().ok()
}

/// A configuration with the real filesystem server, for this folder.
pub fn filesystem(counterparts: &Path, folder: &Path) -> String {
    let script =
        counterparts.join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    json!({"mcpServers": {"fs": {"command": "node", "args": [script, folder]}}}).to_string()
}
