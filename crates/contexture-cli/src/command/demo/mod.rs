//! `ctx demo`: what Contexture is for, in about a minute, on this machine.
//!
//! Nothing of it is staged. The session is an ordinary one in the project's store; requests are built, sent
//! and logged as `ctx run` does it, and each number is what a receipt, the model or the clock says.

mod ask;
mod facts;
mod show;
mod stage;

use std::path::Path;
use std::sync::Arc;

use self::facts::Fact;
use self::show::Show;
use self::stage::Stage;
use super::runtime;
use crate::args::Demo;
use crate::error::CliError;
use crate::view::Screen;

/// What the model is asked. It is a small one: these it can answer.
const FIRST: &str = "What are the two servers called?";
const SECOND: &str = "When is the second try?";

/// `ctx demo`.
pub fn demo(options: &Demo, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    runtime()?.block_on(async {
        let screen = Arc::new(Screen::new());
        let stage = Stage::open(&options.model, dir, &screen).await?;
        let show = Show::new(screen, json);
        play(stage, &show).await
    })
}

async fn play(mut stage: Stage, show: &Show) -> Result<(), CliError> {
    show.opening(stage.model())?;

    show.heading("build")?;
    show.tell(&Fact::Build(stage.build(FIRST)?))?;

    show.heading("ask")?;
    show.tell(&Fact::Ask(stage.ask(FIRST, show).await?))?;

    show.heading("askAgain")?;
    let again = stage.ask(SECOND, show).await?;
    let before = again.first_word();
    show.tell(&Fact::AskAgain(again))?;

    // The same question behind the same history, with the same time: only its place differs.
    let time = stage::time();
    show.heading("break")?;
    let broken = stage.ask_with_time_in_prompt(&time, FIRST, show).await?;
    show.tell(&Fact::Break(broken.compared_with(before)))?;
    show.heading("hold")?;
    let held = stage.ask_with_time_at_end(&time, FIRST, show).await?;
    show.tell(&Fact::Hold(held))?;

    show.heading("compact")?;
    let (compacted, digests) = stage.compact()?;
    show.tell(&Fact::Compact(compacted))?;

    show.heading("undo")?;
    show.tell(&Fact::Undo(stage.undo(digests)?))?;

    show.heading("verify")?;
    let verified = stage.verify()?;
    let all = verified.all();
    show.tell(&Fact::Verify(verified))?;
    show.tell(&Fact::Done(stage.done()))?;
    match all {
        true => Ok(()),
        false => Err(CliError::Unhealthy {
            what: "a request could not be made again as it was".to_owned(),
            hint: format!("`ctx replay {} --verify` says which", stage.key()),
        }),
    }
}
