use contexture_model::weights::Progress;
use indicatif::{DecimalBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Paint, safe};
use crate::output::note;

/// How far something is, on standard error: a bar on a terminal, a line each ten percent elsewhere.
pub struct Bar {
    name: String,
    form: Form,
    /// What is under way; a new step begins a new bar.
    step: &'static str,
}

enum Form {
    Quiet,
    /// The last ten percent that were told.
    Lines(u64),
    Drawn(ProgressBar),
}

const WIDE: &str = "{msg} {bar:28} {decimal_bytes:>9} of {decimal_total_bytes}  {decimal_bytes_per_sec:>11}  {eta} left";
const NARROW: &str =
    "{msg} {decimal_bytes} of {decimal_total_bytes}  {decimal_bytes_per_sec}  {eta} left";
const OPEN: &str = "{msg} {decimal_bytes}  {decimal_bytes_per_sec}";

impl Bar {
    /// For a model of this name.
    pub fn new(name: &str, quiet: bool) -> Self {
        // A terminal that wants no colours wants no bar, either.
        let form = match (quiet, Paint::stderr().colour) {
            (true, _) => Form::Quiet,
            (_, false) => Form::Lines(0),
            (_, true) => {
                let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
                Form::Drawn(bar)
            }
        };
        Self {
            name: safe(name),
            form,
            step: "",
        }
    }

    /// Shows how far it is.
    pub fn show(&mut self, progress: &Progress) {
        let (step, done, total) = match progress {
            Progress::Waiting => {
                return self.say("another process is at work on it: waiting for that");
            }
            Progress::Asking { place } => return self.say(&format!("asking {}", safe(place))),
            Progress::Again { why } => return self.say(&format!("{}: trying again", safe(why))),
            Progress::Fetching { done, total } => ("fetching", *done, *total),
            Progress::Copying { done, total } => ("copying", *done, Some(*total)),
            Progress::Unpacking { done, total } => ("unpacking", *done, Some(*total)),
            Progress::Checking { done, total } => ("checking", *done, Some(*total)),
            _ => return,
        };
        let begins = step != self.step;
        self.step = step;
        match &mut self.form {
            Form::Quiet => {}
            Form::Lines(_) if matches!(step, "checking" | "unpacking") => {
                // Soon over.
                if let (true, Some(total)) = (begins, total) {
                    note!("ctx: {}: {step}: {}", self.name, DecimalBytes(total));
                }
            }
            Form::Lines(told) => {
                let tenths = match total {
                    Some(total @ 1..) => done.saturating_mul(10) / total,
                    _ => 0,
                };
                // What was there before is told once, as where it begins.
                if begins || tenths > *told {
                    *told = tenths;
                    let of = total.map_or_else(String::new, |total| {
                        format!(" of {} ({}%)", DecimalBytes(total), tenths * 10)
                    });
                    note!("ctx: {}: {step}: {}{of}", self.name, DecimalBytes(done));
                }
            }
            Form::Drawn(bar) => {
                if begins {
                    bar.reset();
                    bar.set_style(style(total));
                    bar.set_message(format!("{}: {step:<9}", self.name));
                }
                if let Some(total) = total {
                    bar.set_length(total);
                }
                bar.set_position(done);
                if begins {
                    // What was there before did not come at this speed.
                    bar.reset_eta();
                }
            }
        }
    }

    /// Leaves the screen as it was.
    pub fn end(&self) {
        if let Form::Drawn(bar) = &self.form {
            bar.finish_and_clear();
        }
    }

    fn say(&mut self, words: &str) {
        let line = format!("{}: {words}", self.name);
        match &self.form {
            Form::Quiet => {}
            Form::Lines(_) => note!("ctx: {line}"),
            Form::Drawn(bar) => {
                if let Ok(style) = ProgressStyle::with_template("{msg}") {
                    bar.set_style(style);
                }
                bar.set_message(line);
                bar.tick();
            }
        }
        // Whatever comes next begins a bar of its own.
        self.step = "";
    }
}

fn style(total: Option<u64>) -> ProgressStyle {
    let template = match total {
        None => OPEN,
        Some(_) if Paint::stderr().width < 90 => NARROW,
        Some(_) => WIDE,
    };
    let style = ProgressStyle::with_template(template);
    style
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("█▉▊▋▌▍▎▏ ")
}
