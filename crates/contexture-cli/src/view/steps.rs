//! A run as it goes: text as it arrives, tools in a line each, and in the end what it cost.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use contexture_agent::{Event, ToolStatus};

use super::meter::{self, Cost};
use super::tool_line::ToolLine;
use super::{Screen, clip, safe, thousands, width};

/// Shows a run. What the model says goes to standard output, the rest to standard error.
pub struct Steps {
    shared: Arc<Shared>,
    ticker: Option<JoinHandle<()>>,
}

struct Shared {
    screen: Arc<Screen>,
    budget: usize,
    state: Mutex<State>,
    over: AtomicBool,
}

struct State {
    began: Instant,
    /// Text of this reply that is on the screen already.
    streamed: bool,
    moving: Moving,
    frame: usize,
    cost: Cost,
}

/// What moves at the bottom.
enum Moving {
    Nothing,
    /// For the model's first word.
    Waiting(Instant),
    Thinking(Instant, Thought),
    Tools(Vec<ToolLine>),
}

/// The beginning of a thought, and its end.
#[derive(Default)]
struct Thought {
    first: String,
    last: VecDeque<char>,
}

/// How often what moves is drawn.
const FRAME: Duration = Duration::from_millis(90);
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How much of a thought is kept to be shown.
const THOUGHT: usize = 200;

impl Steps {
    /// A run that begins now, with requests of at most so many tokens.
    pub fn begin(screen: &Arc<Screen>, budget: usize) -> Self {
        let shared = Arc::new(Shared {
            screen: Arc::clone(screen),
            budget,
            state: Mutex::new(State {
                began: Instant::now(),
                streamed: false,
                moving: Moving::Waiting(Instant::now()),
                frame: 0,
                cost: Cost::default(),
            }),
            over: AtomicBool::new(false),
        });
        screen.begin();
        let ticker = screen.moves.then(|| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                while !shared.over.load(Ordering::Relaxed) {
                    shared.tick();
                    std::thread::sleep(FRAME);
                }
            })
        });
        Self { shared, ticker }
    }

    /// Shows what happened.
    pub fn show(&self, event: &Event) -> io::Result<()> {
        let mut state = self.shared.state();
        self.shared.show(&mut state, event)
    }
}

impl Drop for Steps {
    /// It is over, however it ended.
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        if let Some(ticker) = self.ticker.take() {
            let _ = ticker.join();
        }
        self.shared.screen.end();
    }
}

impl Shared {
    fn show(&self, state: &mut State, event: &Event) -> io::Result<()> {
        let screen = &self.screen;
        match event {
            Event::Text(text) if screen.streams => {
                if text.trim().is_empty() && !state.streamed {
                    return Ok(());
                }
                self.settle(state)?;
                state.streamed = true;
                screen.say(text)
            }
            Event::Text(_) => Ok(()),
            Event::Thinking(text) => {
                if !matches!(state.moving, Moving::Thinking(..)) {
                    self.settle(state)?;
                    state.moving = Moving::Thinking(Instant::now(), Thought::default());
                }
                if let Moving::Thinking(_, thought) = &mut state.moving {
                    thought.add(text);
                }
                Ok(())
            }
            Event::Again { why } => {
                self.settle(state)?;
                state.streamed = false;
                state.moving = Moving::Waiting(Instant::now());
                self.note(&format!("↻ {why}; trying again"))
            }
            Event::Assistant { .. } if state.streamed => {
                state.streamed = false;
                screen.said()
            }
            Event::Assistant { text } => {
                self.settle(state)?;
                screen.say(text)?;
                screen.said()
            }
            Event::Tool { status, .. } => {
                state.streamed = false;
                match status {
                    ToolStatus::Started => self.tool_starts(state, event),
                    ToolStatus::Finished => self.tool_ends(state, event),
                }
            }
            Event::Compaction {
                strategy,
                tokens_before,
                tokens_after,
                refused,
            } => {
                let (before, after) = (thousands(*tokens_before), thousands(*tokens_after));
                let why = match refused.first() {
                    Some(why) => format!("; {why}"),
                    None => String::new(),
                };
                self.note(&format!(
                    "⇣ compacted ({strategy}): {before} → {after} tokens{why}"
                ))
            }
            Event::Notice { text } => self.note(&format!("· {text}")),
            // Said in a line, as a tool.
            Event::Call { .. } | Event::Result(_) => Ok(()),
            Event::StepFinish { input_tokens, .. } => {
                state.streamed = false;
                state.cost.input_tokens = *input_tokens;
                if matches!(state.moving, Moving::Nothing) {
                    state.moving = Moving::Waiting(Instant::now());
                }
                Ok(())
            }
            Event::Done(result) => {
                self.settle(state)?;
                screen.said()?;
                if result.steps == 0 {
                    return Ok(());
                }
                state.cost.spent = result.usage;
                state.cost.took = state.began.elapsed();
                let line = meter::line(&state.cost, self.budget, screen.paint());
                screen.note(&[line])
            }
        }
    }

    fn tool_starts(&self, state: &mut State, event: &Event) -> io::Result<()> {
        let Some(line) = ToolLine::of(event, self.screen.waited()) else {
            return Ok(());
        };
        if !self.screen.moves {
            return self.screen.note(&[line.started(self.screen.paint())]);
        }
        if !matches!(state.moving, Moving::Tools(_)) {
            self.settle(state)?;
            self.screen.part()?;
            state.moving = Moving::Tools(Vec::new());
        }
        if let Moving::Tools(lines) = &mut state.moving {
            lines.push(line);
        }
        self.draw(state)
    }

    fn tool_ends(&self, state: &mut State, event: &Event) -> io::Result<()> {
        let Event::Tool { id, .. } = event else {
            return Ok(());
        };
        let waited = self.screen.waited();
        let known = match &mut state.moving {
            Moving::Tools(lines) => lines.iter_mut().find(|line| line.id == *id),
            _ => None,
        };
        match known {
            Some(line) => line.ends(event, waited),
            None => {
                let Some(mut line) = ToolLine::of(event, waited) else {
                    return Ok(());
                };
                line.ends(event, waited);
                return self.screen.note(&line.ended(self.screen.paint()));
            }
        }
        match &state.moving {
            Moving::Tools(lines) if lines.iter().all(|line| line.end.is_some()) => {
                self.settle(state)?;
                state.moving = Moving::Waiting(Instant::now());
                Ok(())
            }
            _ => self.draw(state),
        }
    }

    /// Makes what moves stay, as far as it is worth it.
    fn settle(&self, state: &mut State) -> io::Result<()> {
        let paint = self.screen.paint();
        let lines = match std::mem::replace(&mut state.moving, Moving::Nothing) {
            Moving::Nothing | Moving::Waiting(_) => Vec::new(),
            Moving::Thinking(..) if !self.screen.moves => Vec::new(),
            Moving::Thinking(since, thought) => {
                let took = meter::seconds(since.elapsed());
                let first = safe(&thought.first);
                let line = paint.dim(&format!("  ∴ {took} · {first}"));
                vec![clip(&line, paint.width.saturating_sub(1))]
            }
            Moving::Tools(lines) => lines.iter().flat_map(|line| line.ended(paint)).collect(),
        };
        match lines.is_empty() {
            true => self.screen.draw(&[]),
            false => self.screen.note(&lines),
        }
    }

    fn note(&self, text: &str) -> io::Result<()> {
        let paint = self.screen.paint();
        let text = clip(&safe(text), paint.width.saturating_sub(3));
        self.screen.note(&[format!("  {}", paint.dim(&text))])
    }

    fn tick(&self) {
        let mut state = self.state();
        state.frame += 1;
        let _ = self.draw(&state);
    }

    fn draw(&self, state: &State) -> io::Result<()> {
        let paint = self.screen.paint();
        let spinner = SPINNER[state.frame % SPINNER.len()];
        let rows = match &state.moving {
            Moving::Nothing => {
                self.screen.refresh();
                return Ok(());
            }
            Moving::Waiting(since) => {
                let took = meter::seconds(since.elapsed());
                vec![format!("  {} {}", paint.fg(37, spinner), paint.dim(&took))]
            }
            Moving::Thinking(_, thought) => {
                let last: String = thought.last.iter().collect();
                let room = paint.width.saturating_sub(6);
                let skip = width(&last).saturating_sub(room);
                let last: String = last.chars().skip(skip).collect();
                vec![format!("  {} {}", paint.fg(37, spinner), paint.dim(&last))]
            }
            Moving::Tools(lines) => lines
                .iter()
                .flat_map(|line| match line.end {
                    Some(_) => line.ended(paint),
                    None => vec![line.running(spinner, paint, self.screen.waited())],
                })
                .collect(),
        };
        self.screen.draw(&rows)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Thought {
    fn add(&mut self, text: &str) {
        for c in safe(&text.replace(['\n', '\r'], " ")).chars() {
            if self.first.len() < THOUGHT && !(self.first.is_empty() && c == ' ') {
                self.first.push(c);
            }
            self.last.push_back(c);
            if self.last.len() > THOUGHT {
                self.last.pop_front();
            }
        }
    }
}
