//! Asks the person at the terminal whether a tool may act.

use std::sync::Arc;

use contexture_tools::approval::{self, Answer, Approver};
use serde_json::Value;

use crate::view::{Asked, Choice, Question, Screen};

/// The person at the terminal.
pub struct Terminal {
    screen: Arc<Screen>,
}

impl Terminal {
    /// Where there is somebody to ask and to hear from.
    pub fn here(screen: &Arc<Screen>) -> Option<Self> {
        let screen = Arc::clone(screen);
        screen.keys().is_some().then_some(Self { screen })
    }

    /// Asks, and gives the number of the choice; none for a no.
    pub async fn choose(&self, question: &Question<'_>) -> Option<usize> {
        self.screen.pause(&question.text(self.screen.paint()));
        let waiting = Waiting {
            screen: Arc::clone(&self.screen),
            asked: Arc::default(),
        };
        let (screen, asked) = (Arc::clone(&self.screen), Arc::clone(&waiting.asked));
        let line = move || screen.keys().and_then(|keys| keys.line(&asked));
        let line = tokio::task::spawn_blocking(line).await.ok().flatten()?;
        question.chosen(&line)
    }
}

impl Approver for Terminal {
    fn ask<'a>(&'a self, asked: &'a approval::Question<'a>) -> approval::Asking<'a> {
        Box::pin(async move {
            let arguments = Value::Object(asked.arguments.clone());
            let choices = [
                Choice::new(&["y", "yes", "once"], "once"),
                Choice::new(&["a", "always"], "always in this session, for exactly this"),
                Choice::new(&["never"], ""),
            ];
            let question = Question {
                who: None,
                title: &asked.tool.name,
                kind: None,
                arguments: Some(&arguments),
                changed: asked.changed.then_some(&*asked.tool.description),
                choices: &choices,
            };
            match self.choose(&question).await {
                Some(0) => Answer::Once,
                Some(1) => Answer::Always,
                Some(2) => Answer::Never,
                _ => Answer::No,
            }
        })
    }
}

/// Whoever waits for the answer. When they go, by an answer or by Ctrl-C, the keyboard is free again
/// before anything else happens.
struct Waiting {
    screen: Arc<Screen>,
    asked: Arc<Asked>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.asked.leave();
        self.screen.resume();
    }
}
