use std::collections::BTreeSet;
use std::path::PathBuf;

use contexture::inject::{AgentInstanceMeta, ContextProvider, Item};
use contexture::prompt::Templates;
use contexture::tokens::for_model;
use contexture_tools::skills::Skills;
use contexture_tools::system::{self, Project};

use super::Judge;

/// `rules`: each `AGENTS.md` from the project's root down to where the agent works, the nearest last. Our own agent reads
/// them itself.
pub struct Rules {
    pub root: PathBuf,
    pub judge: Judge,
}

impl ContextProvider for Rules {
    fn name(&self) -> &'static str {
        "rules"
    }

    fn system_context(&self, meta: &AgentInstanceMeta) -> Result<Vec<Item<String>>, String> {
        if super::reads_project(meta, &self.root) {
            return Ok(Vec::new());
        }
        let here = super::workspace(meta, &self.root);
        let Some(folder) = super::trusted(&self.root, &here, self.judge)? else {
            return Ok(Vec::new());
        };
        let (sections, _) = system::sections(&Project {
            instructions: &folder.seen().instructions,
            skills: &Skills::none(),
            tokenizer: for_model(None).as_ref(),
            skills_tokens: 0,
            small: true,
            offered: &BTreeSet::new(),
            templates: &Templates::default(),
        });
        let rules = sections
            .into_iter()
            .filter(|section| section.name.starts_with("agents:"));
        Ok(rules.map(|section| section.text.into()).collect())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::super::testing::meta;
    use super::*;
    use crate::trust::State;

    fn said(root: &std::path::Path, backend: &str, judge: Judge) -> Vec<String> {
        let rules = Rules {
            root: root.to_owned(),
            judge,
        };
        let mut meta = meta();
        meta.backend_type = backend.to_owned();
        meta.more.insert("workspace".to_owned(), json!("a/b"));
        let said = rules.system_context(&meta).unwrap();
        said.into_iter().map(|item| item.value).collect()
    }

    #[test]
    fn the_nearest_rules_come_last_and_only_with_trust() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("a/b")).unwrap();
        std::fs::write(root.path().join("AGENTS.md"), "Use tabs.").unwrap();
        std::fs::write(root.path().join("a/b/AGENTS.md"), "Use spaces.").unwrap();
        std::fs::write(root.path().join("Agent.md"), "You are a cook.").unwrap();
        let said_with = said(root.path(), "codex", |_| Ok(State::Trusted));
        assert_eq!(said_with.len(), 2, "{said_with:?}");
        assert!(said_with[0].contains("Use tabs.") && said_with[1].contains("Use spaces."));
        assert!(said(root.path(), "codex", |_| Ok(State::Unknown)).is_empty());
        // Our own agent reads them itself, and is told nothing twice.
        assert!(said(root.path(), "native", |_| Ok(State::Trusted)).is_empty());
    }
}
