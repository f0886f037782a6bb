use std::fmt::Write as _;

use contexture::diff::{Diff, DiffItem};

use contexture::{EntryId, Payload, View};

use super::{Paint, describe, plural, safe, thousands, width};

/// What changed between two requests, for people.
pub fn diff(diff: &Diff, view: &View, names: &(String, String), paint: Paint) -> String {
    let mut out = String::new();
    let side = |name: &str, tokens: usize, messages: usize| {
        format!(
            " {} {} tokens, {}",
            paint.bold(&format!("{:<24}", safe(name))),
            thousands(tokens),
            plural(messages, "message")
        )
    };
    let _ = writeln!(
        out,
        "{}",
        side(&names.0, diff.a.input_tokens, diff.a.message_count)
    );
    let _ = writeln!(
        out,
        "{}\n",
        side(&names.1, diff.b.input_tokens, diff.b.message_count)
    );
    bar(diff, paint, &mut out);
    match &diff.prefix.broken_by {
        Some(broken) => {
            let _ = writeln!(
                out,
                " {} at item {} ({}) by {}{}\n   {}\n",
                paint.fg(167, "the prefix broke"),
                broken.index,
                named(&broken.origin),
                paint.bold(&safe(&broken.component)),
                broken
                    .cause
                    .as_ref()
                    .map(|id| format!(" {}", safe(id.as_str())))
                    .unwrap_or_default(),
                safe(&broken.why),
            );
        }
        None => {
            let _ = writeln!(
                out,
                " {}\n",
                paint.fg(71, "the prefix held: only the end grew")
            );
        }
    }
    for name in &diff.tools.added {
        let _ = writeln!(out, " {} tool {}", paint.fg(71, "+"), safe(name));
    }
    for name in &diff.tools.removed {
        let _ = writeln!(out, " {} tool {}", paint.fg(167, "−"), safe(name));
    }
    for name in &diff.tools.changed {
        let _ = writeln!(out, " {} tool {}", paint.fg(179, "~"), safe(name));
    }
    listed(&diff.removed, &paint.fg(167, "−"), view, paint, &mut out);
    for change in &diff.changed {
        let _ = writeln!(
            out,
            " {} {:<10}{:<11}→ {:<11}{:>8} → {:<8} {}",
            paint.fg(179, "~"),
            change.role,
            change.before.rule.as_str(),
            change.after.rule.as_str(),
            thousands(change.before.tokens),
            thousands(change.after.tokens),
            named(&change.origin),
        );
    }
    listed(&diff.added, &paint.fg(71, "+"), view, paint, &mut out);
    out
}

/// One line an item; of a long run its beginning and its end.
fn listed(items: &[DiffItem], mark: &str, view: &View, paint: Paint, out: &mut String) {
    const FIRST: usize = 8;
    const LAST: usize = 3;
    let hidden = match items.len() {
        n if n > FIRST + LAST + 1 => FIRST..n - LAST,
        _ => 0..0,
    };
    for (at, item) in items.iter().enumerate() {
        if at == hidden.start && !hidden.is_empty() {
            let tokens: usize = items[hidden.clone()]
                .iter()
                .map(|item| item.form.tokens)
                .sum();
            let more = format!(
                "… {} more, {} tokens; --json has them all",
                hidden.len(),
                thousands(tokens)
            );
            let _ = writeln!(out, " {mark} {}", paint.dim(&more));
        }
        if !hidden.contains(&at) {
            let _ = writeln!(out, " {mark} {}", line(item, view, paint));
        }
    }
}

/// The later request: what the cache had, what it had to read again, what is new.
fn bar(diff: &Diff, paint: Paint, out: &mut String) {
    let parts = [
        (diff.prefix.shared_tokens, 71, 's', "shared"),
        (diff.rebilled_tokens, 167, 'r', "billed again"),
        (diff.new_tokens, 37, 'n', "new"),
    ];
    let total: usize = parts.iter().map(|(tokens, ..)| tokens).sum();
    let width = paint.width - 2;
    let (mut seen, mut filled) = (0, 0);
    out.push(' ');
    for (tokens, colour, letter, _) in parts {
        seen += tokens;
        let border = (seen * width).checked_div(total).unwrap_or(0);
        let cell = if paint.colour { '█' } else { letter };
        out.push_str(&paint.fg(colour, &cell.to_string().repeat(border - filled)));
        filled = border;
    }
    out.push_str("\n ");
    for (tokens, colour, letter, name) in parts {
        let mark = if paint.colour { '■' } else { letter };
        let _ = write!(
            out,
            "{} {name} {}   ",
            paint.fg(colour, &mark.to_string()),
            thousands(tokens)
        );
    }
    out.push_str("\n\n");
}

fn line(item: &DiffItem, view: &View, paint: Paint) -> String {
    let head = format!(
        "{:<10}{:<11}{:>8}  {}  ",
        item.role,
        item.form.rule.as_str(),
        thousands(item.form.tokens),
        paint.dim(&format!("{:<16}", named(&item.origin))),
    );
    let room = paint.width.saturating_sub(width(&head) + 4);
    format!(
        "{head}{}",
        console::truncate_str(&what(&item.origin, view), room, "…").trim_end()
    )
}

/// An entry by its id alone: what else it could be says so itself.
fn named(origin: &str) -> String {
    safe(origin.strip_prefix("entry:").unwrap_or(origin))
}

/// What the message says that an item is.
fn what(origin: &str, view: &View) -> String {
    let id = origin.strip_prefix("entry:").map(EntryId::from);
    let position = id.and_then(|id| view.position(&id));
    match position.map(|position| &view.log()[position].payload) {
        Some(Payload::Message { message }) => describe(message),
        Some(Payload::CompactionSummary(compaction)) => safe(&compaction.summary),
        _ => String::new(),
    }
}
