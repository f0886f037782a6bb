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
    if config.trust()? == State::Trusted {
        return Ok((Skills::discover(&places.and_project(&config.root)), 0));
    }
    let of_project = Skills::discover(&Places::default().and_project(&config.root));
    Ok((Skills::discover(&places), of_project.used().len()))
}
