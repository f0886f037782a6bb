//! A run as it goes: text as it arrives, tools in a line each.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;

use contexture_agent::{Event, ToolStatus};

use super::{Paint, safe, thousands};

/// Shows a run. What the model says goes to standard output, the rest to standard error.
pub struct Steps {
    live: bool,
    paint: Paint,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Text of this reply that is on the screen already.
    streamed: bool,
    /// Whether the screen's last line has something on it.
    open: bool,
}

impl Steps {
    /// For standard output as it is: letters as they arrive on a terminal, whole texts otherwise.
    pub fn new() -> Self {
        Self {
            live: std::io::stdout().is_terminal(),
            paint: Paint::stdout(),
            state: Mutex::default(),
        }
    }

    /// Shows what happened.
    pub fn show(&self, event: &Event) -> std::io::Result<()> {
        let mut state = self
            .state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match event {
            Event::Text(text) if self.live => {
                state.streamed = true;
                let text = safe_lines(text);
                state.open = !text.ends_with('\n');
                print(&text)
            }
            Event::Text(_) | Event::Thinking(_) => Ok(()),
            Event::Again { why } => {
                state.streamed = false;
                self.note(&mut state, &format!("{why}; trying again"))
            }
            Event::Assistant { .. } if state.streamed => {
                state.streamed = false;
                end_line(&mut state)
            }
            Event::Assistant { text } => {
                end_line(&mut state)?;
                print(&format!("{}\n", safe_lines(text)))
            }
            Event::Tool {
                tool,
                status: ToolStatus::Started,
                arguments,
                ..
            } => {
                let arguments = arguments.as_deref().unwrap_or_default();
                self.note(&mut state, &format!("▸ {tool} {arguments}"))
            }
            Event::Tool {
                tool,
                success,
                summary,
                ..
            } => {
                let mark = if *success == Some(false) {
                    '✗'
                } else {
                    '✓'
                };
                let summary = summary.as_deref().unwrap_or_default();
                let first = summary.lines().next().unwrap_or_default();
                self.note(&mut state, &format!("{mark} {tool} {first}"))
            }
            Event::Compaction {
                strategy,
                tokens_before,
                tokens_after,
                ..
            } => {
                let (before, after) = (thousands(*tokens_before), thousands(*tokens_after));
                let text = format!("compacted ({strategy}): {before} → {after} tokens");
                self.note(&mut state, &text)
            }
            Event::Notice { text } => self.note(&mut state, text),
            Event::StepFinish { .. } => {
                state.streamed = false;
                Ok(())
            }
            Event::Done(_) => end_line(&mut state),
        }
    }

    fn note(&self, state: &mut State, text: &str) -> std::io::Result<()> {
        end_line(state)?;
        let text: String = safe(text).chars().take(self.paint.width).collect();
        eprintln!("{}", self.paint.dim(&text));
        Ok(())
    }
}

fn end_line(state: &mut State) -> std::io::Result<()> {
    match std::mem::take(&mut state.open) {
        true => print("\n"),
        false => Ok(()),
    }
}

fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Text of several lines, harmless for a terminal.
pub fn safe_lines(text: &str) -> String {
    text.split('\n').map(safe).collect::<Vec<_>>().join("\n")
}
