//! Asks the person at the terminal whether a tool may act.

use std::io::{BufRead, IsTerminal, Write};

use contexture_tools::approval::{Answer, Approver, Asking, Question};
use serde_json::Value;

use crate::view::safe;

/// The person at the terminal.
pub struct Terminal;

/// The longest text of an argument that is shown; nobody should approve what they have not seen, so
/// what is longer says so.
const LONGEST: usize = 4_000;

impl Terminal {
    /// Where there is somebody to ask and to hear from.
    pub fn here() -> Option<Self> {
        let both = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        both.then_some(Self)
    }
}

impl Approver for Terminal {
    fn ask<'a>(&'a self, question: &'a Question<'a>) -> Asking<'a> {
        let text = text(question);
        Box::pin(async move {
            let asked = tokio::task::spawn_blocking(move || answer(&text));
            asked.await.unwrap_or(Answer::No)
        })
    }
}

fn answer(text: &str) -> Answer {
    let mut out = std::io::stderr().lock();
    let _ = write!(out, "{text}");
    let _ = out.flush();
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line).is_err() {
        return Answer::No;
    }
    match line.trim() {
        "y" | "yes" | "once" => Answer::Once,
        "a" | "always" => Answer::Always,
        "never" => Answer::Never,
        // An answer that we do not know is a no.
        _ => Answer::No,
    }
}

/// The question, with every argument as it would be used.
fn text(question: &Question<'_>) -> String {
    let mut text = String::new();
    if question.changed {
        text.push_str(&format!(
            "{} has changed its description since you allowed it:\n  {}\n",
            safe(&question.tool.name),
            safe(&question.tool.description)
        ));
    }
    text.push_str(&format!("Allow {}?\n", safe(&question.tool.name)));
    for (name, value) in question.arguments {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let shown: String = value.chars().take(LONGEST).collect();
        for (n, line) in shown.lines().enumerate() {
            match n {
                0 => text.push_str(&format!("  {}: {}\n", safe(name), safe(line))),
                _ => text.push_str(&format!("    {}\n", safe(line))),
            }
        }
        let left = value.chars().count().saturating_sub(LONGEST);
        if left > 0 {
            text.push_str(&format!("    … and {left} characters more\n"));
        }
    }
    text.push_str("[y] once  [a] always in this session, for exactly this  [never]  [Enter] no: ");
    text
}
