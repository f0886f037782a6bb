//! `skills_list` and `skills_load`.

use serde_json::{Map, Value};

use super::Stores;
use super::arguments::text;
use super::inject::{fingerprint, refused};
use crate::plain::plural;
use crate::skills::{NotFound, Skill};
use crate::{Outcome, Refusal, RunContext};

/// The most characters of a skill's name or id.
pub(super) const LONGEST_NAME: usize = 100;

pub(super) fn list(
    stores: &Stores,
    _: &RunContext,
    _: &Map<String, Value>,
) -> Result<Outcome, String> {
    let skills = stores.skills.used();
    if skills.is_empty() {
        return Ok(Outcome::done("There are no skills here."));
    }
    let lines: Vec<String> = skills.iter().map(Skill::line).collect();
    let summary = plural(skills.len(), "skill");
    Ok(Outcome::done(lines.join("\n")).saying(summary))
}

pub(super) fn load(
    stores: &Stores,
    run: &RunContext,
    arguments: &Map<String, Value>,
) -> Result<Outcome, String> {
    let wanted = text(arguments, "name", LONGEST_NAME)?.unwrap_or_default();
    let skill = stores.skills.find(wanted).map_err(|error| match error {
        NotFound::None { .. } => format!("{error}; `skills_list` names those that there are"),
        NotFound::Ambiguous { .. } => format!("{error}; name one"),
    })?;
    let content = skill.content().map_err(|error| error.to_string())?;
    let (id, origin) = (skill.id(), format!("skill:{}", skill.id()));
    let print = fingerprint("skills_load", &content);
    match run.inject_system_message_once(&print, &content, &origin) {
        Ok(()) => Ok(Outcome::done(format!(
            "The skill {id} stands before the user's message now: follow it."
        ))
        .saying(format!("loaded the skill {id}"))),
        Err(Refusal::Duplicate) => Ok(Outcome::done(format!(
            "The skill {id} is loaded already (duplicate): follow it as it stands in this conversation."
        ))),
        Err(refusal) => Ok(refused(refusal)),
    }
}
