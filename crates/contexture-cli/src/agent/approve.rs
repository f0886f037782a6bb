//! Asks the person at the terminal whether a tool may act.

use std::sync::Arc;

use contexture_tools::approval::{Answer, Approver, Asking, Question};
use serde_json::Value;

use crate::view::{Asked, Paint, Screen, safe};

/// The person at the terminal.
pub struct Terminal {
    screen: Arc<Screen>,
}

/// The longest text of an argument that is shown; nobody should approve what they have not seen, so
/// what is longer says so.
const LONGEST: usize = 4_000;

impl Terminal {
    /// Where there is somebody to ask and to hear from.
    pub fn here(screen: &Arc<Screen>) -> Option<Self> {
        let screen = Arc::clone(screen);
        screen.keys().is_some().then_some(Self { screen })
    }
}

impl Approver for Terminal {
    fn ask<'a>(&'a self, question: &'a Question<'a>) -> Asking<'a> {
        Box::pin(async move {
            self.screen.pause(&text(question, self.screen.paint));
            let waiting = Waiting {
                screen: Arc::clone(&self.screen),
                asked: Arc::default(),
            };
            let (screen, asked) = (Arc::clone(&self.screen), Arc::clone(&waiting.asked));
            let line = move || screen.keys().and_then(|keys| keys.line(&asked));
            match tokio::task::spawn_blocking(line).await {
                Ok(Some(line)) => answer(&line),
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

fn answer(line: &str) -> Answer {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" | "once" => Answer::Once,
        "a" | "always" => Answer::Always,
        "never" => Answer::Never,
        // An answer that we do not know is a no.
        _ => Answer::No,
    }
}

/// The question, with every argument as it would be used.
fn text(question: &Question<'_>, paint: Paint) -> String {
    let mut text = String::new();
    let name = safe(&question.tool.name);
    if question.changed {
        let now = safe(&question.tool.description);
        let changed = format!("{name} has changed its description since you allowed it:");
        text.push_str(&format!("  {}\n  {now}\n", paint.fg(167, &changed)));
    }
    let mark = paint.fg(179, "?");
    text.push_str(&format!("  {mark} Allow {}?\n", paint.bold(&name)));
    for (name, value) in question.arguments {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let name = paint.dim(&format!("{}:", safe(name)));
        let shown: String = value.chars().take(LONGEST).collect();
        let mut lines = shown.split('\n').map(safe);
        let first = lines.next().unwrap_or_default();
        text.push_str(&format!("    {name} {first}\n"));
        for line in lines {
            text.push_str(&format!("      {line}\n"));
        }
        let left = value.chars().count().saturating_sub(LONGEST);
        if left > 0 {
            text.push_str(&format!("      … and {left} characters more\n"));
        }
    }
    let key = |key: &str| paint.bold(key);
    text.push_str(&format!(
        "    {} once · {} always, for exactly this · {} · {} no › ",
        key("y"),
        key("a"),
        key("never"),
        key("Enter")
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_words_allow() {
        assert_eq!(answer("y"), Answer::Once);
        assert_eq!(answer(" YES "), Answer::Once);
        assert_eq!(answer("always"), Answer::Always);
        assert_eq!(answer("never"), Answer::Never);
        for other in ["", "n", "no", "yy", "ye", "ok", "sure", "y n", "allow"] {
            assert_eq!(answer(other), Answer::No, "{other:?}");
        }
    }
}
