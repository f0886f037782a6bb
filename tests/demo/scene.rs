//! A project, and a shelf that has the small model.

use crate::common::{Ctx, Project};
use crate::small_model::weights;

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
