//! The system side of an agent: who it is, how it works, what the project says, which skills it has.
//!
//! The order is fixed: `agent` (`Agent.md`), `default` (ours), `agents:PATH` (each `AGENTS.md` from
//! the root down, the nearest last), `skills`. What files say is put in as it is, never rendered.

mod files;

use std::collections::BTreeSet;
use std::fmt;

use contexture::ContextError;
use contexture::prompt::{self, Section, Templates};
use contexture::tokens::Tokenizer;
use serde_json::{Value, json};

pub use self::files::{Instruction, Instructions};

use self::files::{Kind, Used};
use crate::plain::plural;
use crate::skills::Skills;
use crate::template::Template;

/// The price of the overview of skills, unless another is set.
pub const SKILLS_TOKENS: usize = 2_000;

/// What the system side is made from.
pub struct Project<'a> {
    /// The files that instruct the agent. They speak to a model that has tools, so a folder without trust has none.
    pub instructions: &'a Instructions,
    /// The skills.
    pub skills: &'a Skills,
    /// Counts what the overview of skills costs.
    pub tokenizer: &'a dyn Tokenizer,
    /// The most tokens of the overview.
    pub skills_tokens: usize,
    /// Whether the model is small: it is told in a few words how to work, and of no skills.
    pub small: bool,
    /// The names of the tools that the agent is offered: no text names another.
    pub offered: &'a BTreeSet<String>,
    /// The templates of our own texts.
    pub templates: &'a Templates,
}

/// Something that people should know about the system side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Which file or part.
    pub place: String,
    /// What became of it.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// The sections, in their order, and what people should know of them.
pub fn sections(project: &Project<'_>) -> (Vec<Section>, Vec<Notice>) {
    let mut side = Side::default();
    let files = project.instructions.used(&mut side.notices);
    let (own, others): (Vec<Used<'_>>, Vec<Used<'_>>) =
        files.into_iter().partition(|file| file.kind == Kind::Agent);
    for file in own {
        side.add(
            "agent".to_owned(),
            "Agent.md",
            Template::Instructions,
            &file.values(),
        );
    }
    let how = if project.small {
        prompt::Template::HowToWorkSmall
    } else {
        prompt::Template::HowToWork
    };
    let text = project
        .templates
        .render(how, json!({ "tools": project.offered }));
    let origin = project.templates.place(how).unwrap_or("built-in");
    side.put("default".to_owned(), origin, text);
    for file in others {
        let name = format!("agents:{}", file.shown);
        side.add(name, file.shown, Template::Instructions, &file.values());
    }
    match project
        .skills
        .overview(project.tokenizer, project.skills_tokens, project.offered)
    {
        Ok(_) if project.small => {}
        Ok(overview) => side.sections.extend(overview),
        Err(error) => side.broken("skills", &error),
    }
    if !project.skills.refused().is_empty() {
        side.notices.push(Notice {
            place: "skills".to_owned(),
            what: format!(
                "{} refused",
                plural(project.skills.refused().len(), "skill")
            ),
            hint: "`ctx skills list` says why".to_owned(),
        });
    }
    (side.sections, side.notices)
}

#[derive(Default)]
struct Side {
    sections: Vec<Section>,
    notices: Vec<Notice>,
}

impl Side {
    fn add(&mut self, name: String, origin: &str, template: Template, values: &Value) {
        self.put(name, origin, template.render(values));
    }

    fn put(&mut self, name: String, origin: &str, text: Result<String, ContextError>) {
        match text {
            Ok(text) => self.sections.push(Section::stable(name, origin, text)),
            Err(error) => self.broken(origin, &error),
        }
    }

    fn broken(&mut self, place: &str, error: &ContextError) {
        self.notices.push(Notice {
            place: place.to_owned(),
            what: error.to_string(),
            hint: error.hint(),
        });
    }
}
