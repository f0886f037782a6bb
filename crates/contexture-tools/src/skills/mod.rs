//! Skills: folders with a `SKILL.md`, which says what a model should know for a particular task.
//!
//! The format is the public one (agentskills.io): YAML front matter with `name` and `description`,
//! then instructions. Only name and description are in every request; the rest is loaded when it is
//! needed. What cannot be used is not passed over in silence: [`Skills::refused`] says why.

mod find;
mod front;
mod overview;
mod tree;

use std::collections::HashSet;
use std::path::PathBuf;

use contexture::entry::Injection;
use contexture::{ContextError, Role};
use serde_json::{Map, Value, json};

pub use self::find::Places;
pub use self::overview::{LIST, LOAD};
pub use self::tree::{Fault, Refused, SkillFile};

use crate::template::Template;

/// Whose a skill is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// It came with the project.
    Project,
    /// The user has it everywhere.
    User,
}

/// What a model can be taught.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// Its name, which is its folder's.
    pub name: String,
    /// What it does, and when to use it.
    pub description: String,
    /// Its licence, where it says.
    pub license: Option<String>,
    /// What it needs around it, where it says.
    pub compatibility: Option<String>,
    /// What else its author says of it.
    pub metadata: Map<String, Value>,
    /// The tools that its author expects. A wish: it allows nothing.
    pub allowed_tools: Vec<String>,
    /// The instructions.
    pub body: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Whose it is.
    pub scope: Scope,
    /// All files of the folder, where it came with a project.
    pub files: Vec<SkillFile>,
}

/// All skills of a place.
#[derive(Debug, Clone, Default)]
pub struct Skills {
    used: Vec<Skill>,
    shadowed: Vec<Skill>,
    refused: Vec<Refused>,
}

/// Why no skill was found for a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// None is called so.
    #[error("there is no skill `{wanted}`")]
    None {
        /// What was asked for.
        wanted: String,
    },
    /// More than one has it in its name.
    #[error("`{wanted}` could be any of {}", .candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// Their ids.
        candidates: Vec<String>,
    },
}

impl Scope {
    /// `project` or `user`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

impl Skill {
    /// What names it and no other: `project/pdf`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.scope.as_str(), self.name)
    }

    /// What the model reads when it is loaded.
    pub fn content(&self) -> Result<String, ContextError> {
        Template::Skill.render(&json!({
            "name": self.name,
            "description": self.description,
            "folder": crate::plain::one_line(&self.folder.display().to_string()),
            "body": self.body,
        }))
    }

    /// The entry that loads it where the log ends: the same, under the same identity, as `skills_load`
    /// brings in.
    pub fn injection(&self) -> Result<Injection, ContextError> {
        let content = self.content()?;
        Ok(Injection {
            role: Role::System,
            fingerprint: Some(crate::builtin::fingerprint("skills_load", &content)),
            content,
            origin: Some(format!("skill:{}", self.id())),
            before_entry_id: None,
        })
    }
}

impl Skills {
    /// No skills at all.
    pub fn none() -> Self {
        Self::default()
    }

    /// These, and behind them others: of two with the same name the earlier is used.
    pub fn and(mut self, later: Self) -> Self {
        let real = |skill: &Skill| skill.folder.canonicalize().ok();
        let known = self.used.iter().chain(&self.shadowed);
        let known: HashSet<PathBuf> = known.filter_map(real).collect();
        for skill in later.used.into_iter().chain(later.shadowed) {
            // One may be linked from several folders.
            if real(&skill).is_some_and(|folder| known.contains(&folder)) {
                continue;
            }
            match self
                .used
                .binary_search_by(|used| used.name.cmp(&skill.name))
            {
                Ok(_) => self.shadowed.push(skill),
                Err(place) => self.used.insert(place, skill),
            }
        }
        self.refused.extend(later.refused);
        self
    }

    /// Those that are used, by name.
    pub fn used(&self) -> &[Skill] {
        &self.used
    }

    /// Those that another of the same name stands before. They can still be had by their id, where
    /// theirs is another.
    pub fn shadowed(&self) -> &[Skill] {
        &self.shadowed
    }

    /// What looks like a skill and cannot be used.
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// The skill that is meant: by id, then by name, then by a part of its name.
    pub fn find(&self, wanted: &str) -> Result<&Skill, NotFound> {
        let wanted = wanted.trim();
        let all = || self.used.iter().chain(&self.shadowed);
        if let Some(skill) = all().find(|skill| skill.id() == wanted) {
            return Ok(skill);
        }
        if let Some(skill) = self.used.iter().find(|skill| skill.name == wanted) {
            return Ok(skill);
        }
        let part = wanted.to_lowercase();
        let like: Vec<&Skill> = self
            .used
            .iter()
            .filter(|skill| !part.is_empty() && skill.name.contains(&part))
            .collect();
        let wanted = wanted.chars().take(60).collect();
        match like[..] {
            [only] => Ok(only),
            [] => Err(NotFound::None { wanted }),
            _ => Err(NotFound::Ambiguous {
                wanted,
                candidates: like.iter().take(20).map(|skill| skill.id()).collect(),
            }),
        }
    }
}
