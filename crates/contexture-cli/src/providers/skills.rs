use std::path::PathBuf;

use contexture::inject::{AgentInstanceMeta, ContextProvider, Item};
use contexture_tools::skills::{Places, Skills};

use super::Judge;
use crate::user;
use crate::view::plural;

/// `skills`: what can be read up for a task, a line each. Our own agent has an overview and a tool of its own.
pub struct SkillList {
    pub root: PathBuf,
    pub enabled: bool,
    pub judge: Judge,
}

/// The most bytes of the list.
const MOST: usize = 8 << 10;

impl ContextProvider for SkillList {
    fn name(&self) -> &'static str {
        "skills"
    }

    fn system_context(&self, meta: &AgentInstanceMeta) -> Result<Vec<Item<String>>, String> {
        if !self.enabled || super::reads_project(meta, &self.root) {
            return Ok(Vec::new());
        }
        let places = Places::of_user(user::configs().as_deref(), user::home().as_deref());
        let own = Skills::discover(&places);
        let folder = super::trusted(&self.root, &self.root, self.judge)?;
        let skills = match &folder {
            Some(folder) => folder.seen().skills.clone().and(own),
            None => own,
        };
        Ok(list(&skills).map(Item::from).into_iter().collect())
    }
}

/// Agents of any make can read files, so each skill says where it is.
fn list(skills: &Skills) -> Option<String> {
    let all = skills.used();
    if all.is_empty() {
        return None;
    }
    let mut text =
        "## Skills\n\nBefore you begin a task that one of these is for, read its file.\n"
            .to_owned();
    for (n, skill) in all.iter().enumerate() {
        let file = skill.folder.join("SKILL.md");
        let line =
            format!("\n- {} ({})", skill.line(), file.display()).replace(['\r', '\u{2028}'], " ");
        if text.len() + line.len() > MOST {
            text.push_str(&format!("\n- and {} more", plural(all.len() - n, "skill")));
            break;
        }
        text.push_str(&line);
    }
    Some(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_skill_is_a_line_with_its_place() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(".agents/skills/greeting");
        std::fs::create_dir_all(&folder).unwrap();
        let skill = "---\nname: greeting\ndescription: How this team greets.\n---\n\nSay AHOY.\n";
        std::fs::write(folder.join("SKILL.md"), skill).unwrap();
        let skills = Skills::discover(&Places::default().and_project(root.path()));
        let text = list(&skills).unwrap();
        assert!(
            text.contains("- greeting: How this team greets. ("),
            "{text}"
        );
        assert!(
            text.contains("greeting/SKILL.md") && !text.contains("AHOY"),
            "{text}"
        );
        assert!(list(&Skills::none()).is_none());
    }
}
