use std::path::PathBuf;

use contexture::inject::{AgentInstanceMeta, ContextProvider, Item};
use contexture::tokens::for_model;
use contexture_tools::skills::Skills;
use contexture_tools::system::{self, Project};

/// `rules`: each `AGENTS.md` from the project's root down to where the agent works, the nearest last.
pub struct Rules {
    pub root: PathBuf,
    pub trusted: bool,
}

impl ContextProvider for Rules {
    fn name(&self) -> &'static str {
        "rules"
    }

    fn system_context(&self, meta: &AgentInstanceMeta) -> Result<Vec<Item<String>>, String> {
        let (sections, _) = system::sections(&Project {
            root: &self.root,
            cwd: &super::workspace(meta, &self.root),
            trusted: self.trusted,
            skills: &Skills::none(),
            tokenizer: for_model(None).as_ref(),
            skills_tokens: 0,
            small: true,
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

    fn said(root: &std::path::Path, trusted: bool) -> Vec<String> {
        let rules = Rules {
            root: root.to_owned(),
            trusted,
        };
        let mut meta = meta();
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
        let said_with = said(root.path(), true);
        assert_eq!(said_with.len(), 2, "{said_with:?}");
        assert!(said_with[0].contains("Use tabs.") && said_with[1].contains("Use spaces."));
        assert!(said(root.path(), false).is_empty());
    }
}
