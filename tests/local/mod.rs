//! `ctx` with the model of this machine, the real one, small as it is.

mod counts;
mod files;
mod qwen;
mod talk;

use crate::common::{Ctx, Project};
use crate::small_model::weights;
use serde_json::Value;

/// A project on a machine that has the model under the name that is looked for by default.
pub struct Machine {
    pub project: Project,
    models: tempfile::TempDir,
}

impl Machine {
    pub fn new() -> Option<Self> {
        let machine = Self::without()?;
        let file = weights()?;
        machine
            .ctx(&["model", "add", "smollm2", file.to_str().unwrap()])
            .success();
        Some(machine)
    }

    /// One that has no model yet.
    pub fn without() -> Option<Self> {
        weights()?;
        let project = Project::new();
        // Tests run beside one another.
        project.write("contexture.json", r#"{"local": {"threads": 1}}"#);
        Some(Self {
            project,
            models: tempfile::tempdir().unwrap(),
        })
    }

    pub fn ctx(&self, args: &[&str]) -> Ctx {
        self.project
            .ctx(args)
            .env("CONTEXTURE_MODELS", self.models.path().to_str().unwrap())
    }

    /// `ctx run --json` in this session: the last event.
    #[track_caller]
    pub fn run(&self, session: &str, args: &[&str]) -> Value {
        let all = [&["run", "--json", "--session", session], args].concat();
        let output = self.ctx(&all).run();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let last = stdout.lines().last().unwrap_or_else(|| {
            panic!("{}", String::from_utf8_lossy(&output.stderr));
        });
        serde_json::from_str(last).unwrap()
    }
}
