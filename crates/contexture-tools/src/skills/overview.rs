//! What a model always knows of the skills: a line each.

use std::collections::BTreeSet;

use contexture::ContextError;
use contexture::prompt::Section;
use contexture::tokens::Tokenizer;
use serde_json::json;

use super::{Skill, Skills};
use crate::template::Template;

/// The tool that loads a skill.
pub const LOAD: &str = "skills_load";
/// The tool that lists them all.
pub const LIST: &str = "skills_list";

impl Skills {
    /// The section `skills`, of at most `most` tokens; none where there are no skills, or the agent is not offered the
    /// tool that loads them. Those that do not fit are counted in the text.
    pub fn overview(
        &self,
        tokenizer: &dyn Tokenizer,
        most: usize,
        offered: &BTreeSet<String>,
    ) -> Result<Option<Section>, ContextError> {
        if self.used.is_empty() || !offered.contains(LOAD) {
            return Ok(None);
        }
        let lines: Vec<String> = self.used.iter().map(Skill::line).collect();
        let mut shown = fitting(&lines, tokenizer, most);
        let text = loop {
            let left = lines.len() - shown;
            let lists = offered.contains(LIST);
            let values = json!({ "lines": lines[..shown], "left": left, "lists": lists });
            let text = Template::Skills.render(&values)?;
            if shown == 0 || tokenizer.count(&text) <= most {
                break text;
            }
            shown -= 1;
        };
        Ok(Some(Section::stable("skills", "skills", text)))
    }
}

impl Skill {
    /// `name: what it is for`.
    pub fn line(&self) -> String {
        format!("{}: {}", self.name, self.description)
    }
}

/// How many lines could fit if nothing stood around them.
fn fitting(lines: &[String], tokenizer: &dyn Tokenizer, most: usize) -> usize {
    let mut used = 0;
    lines
        .iter()
        .take_while(|line| {
            used += tokenizer.count(line);
            used <= most
        })
        .count()
}
