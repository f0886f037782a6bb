use std::fmt::Write as _;

use contexture::replay::Step;

use super::{Paint, plural, thousands};

/// The requests of a replay, as a table, a curve and a sum.
pub struct Table {
    paint: Paint,
    loads: Vec<(usize, bool)>,
    input: usize,
    shared: usize,
    compactions: usize,
    dropped: usize,
}

impl Table {
    pub fn new(paint: Paint) -> Self {
        Self {
            paint,
            loads: Vec::new(),
            input: 0,
            shared: 0,
            compactions: 0,
            dropped: 0,
        }
    }

    /// The line of a request; with its head before the first.
    pub fn row(&mut self, step: &Step) -> String {
        let mut out = String::new();
        if self.loads.is_empty() {
            let head = " request   messages     tokens     cached            dropped";
            let _ = writeln!(out, "{}", self.paint.dim(head));
        }
        self.loads.push((step.input_tokens, step.compacted));
        self.input += step.input_tokens;
        self.shared += step.shared_prefix_tokens;
        self.compactions += usize::from(step.compacted);
        let drops = !step.compacted && step.dropped_messages_count > self.dropped;
        self.dropped = step.dropped_messages_count;
        let _ = writeln!(
            out,
            " {:>7} {:>10} {:>10} {:>10} {:>6} {:>10}{}{}",
            step.request,
            thousands(step.message_count),
            thousands(step.input_tokens),
            thousands(step.shared_prefix_tokens),
            percent(step.shared_prefix_tokens, step.input_tokens),
            thousands(step.dropped_messages_count),
            if step.compacted {
                self.paint.fg(173, "  compacted")
            } else if drops {
                self.paint.fg(173, "  dropped")
            } else {
                String::new()
            },
            match &step.recorded_digest {
                Some(_) => self.paint.fg(167, "  differs from its record"),
                None => String::new(),
            },
        );
        out
    }

    /// The curve and the sum.
    pub fn end(&self, budget: usize) -> String {
        let mut out = String::new();
        if self.loads.is_empty() {
            return " no request: none of the messages is an assistant's reply to a user or a tool\n".to_owned();
        }
        self.curve(budget, &mut out);
        let _ = writeln!(
            out,
            " {} · {} input tokens · {} cached · {} · {} left out at the end",
            self.paint.bold(&plural(self.loads.len(), "request")),
            thousands(self.input),
            self.paint.bold(&percent(self.shared, self.input)),
            plural(self.compactions, "compaction"),
            plural(self.dropped, "message"),
        );
        out
    }

    /// How full the window was, request by request: the highest of each column.
    fn curve(&self, budget: usize, out: &mut String) {
        const ROWS: usize = 6;
        const PARTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let width = (self.paint.width - 12).min(self.loads.len());
        let columns: Vec<(usize, bool)> = (0..width)
            .map(|c| {
                let from = c * self.loads.len() / width;
                let to = ((c + 1) * self.loads.len() / width).max(from + 1);
                let part = &self.loads[from..to];
                let most = part.iter().map(|(tokens, _)| *tokens).max().unwrap_or(0);
                (most, part.iter().any(|(_, compacted)| *compacted))
            })
            .collect();
        out.push('\n');
        for row in (0..ROWS).rev() {
            let label = match row {
                r if r == ROWS - 1 => thousands(budget),
                0 => "0".to_owned(),
                _ => String::new(),
            };
            let _ = write!(out, " {} ", self.paint.dim(&format!("{label:>9}")));
            for (tokens, compacted) in &columns {
                let eighths = tokens * ROWS * 8 / budget.max(1);
                let part = PARTS[eighths.saturating_sub(row * 8).min(8)];
                let colour = if *compacted { 173 } else { 37 };
                out.push_str(&self.paint.fg(colour, &part.to_string()));
            }
            out.push('\n');
        }
        out.push('\n');
    }
}

fn percent(part: usize, whole: usize) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}
