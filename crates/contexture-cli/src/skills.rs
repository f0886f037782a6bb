//! The skills of this place.

use contexture_tools::skills::{Places, Skills};

use crate::config::Config;
use crate::error::CliError;
use crate::trust::State;
use crate::user;

/// The skills that count here, and how many of the project's do not because its folder is not
/// trusted.
pub fn discover(config: &Config) -> Result<(Skills, usize), CliError> {
    if !config.agent.skills {
        return Ok((Skills::none(), 0));
    }
    let places = Places::of_user(user::configs().as_deref(), user::home().as_deref());
    if Places::in_project(&config.root)
        .iter()
        .all(|folder| !folder.exists())
    {
        return Ok((Skills::discover(&places), 0));
    }
    let of_project = &config.folder.seen().skills;
    let own = Skills::discover(&places);
    match config.trust()? {
        // As they were judged.
        State::Trusted => Ok((of_project.clone().and(own), 0)),
        State::Unknown | State::Changed => Ok((own, of_project.used().len())),
    }
}
