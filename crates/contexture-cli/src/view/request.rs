use std::fmt::Write as _;

use contexture::Message;
use contexture::build::{ExcludedReceipt, ItemReceipt, Receipt, Rule};

use super::{Paint, plural, safe, thousands};

/// What the picture shows.
pub struct Shown<'a> {
    pub title: &'a str,
    pub receipt: &'a Receipt,
    pub messages: &'a [&'a Message],
    pub bytes: usize,
}

/// A share of the budget: its name, its colour, and its letter where there are no colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Source(&'static str, u8, char);

const FRAME: Source = Source("frame", 245, 'f');
const TOOLS: Source = Source("tools", 133, 'T');
const SYSTEM: Source = Source("system", 69, 'S');
const NOTE: Source = Source("notes", 110, 'n');
const SUMMARY: Source = Source("summary", 179, 's');
const USER: Source = Source("user", 71, 'u');
const ASSISTANT: Source = Source("assistant", 37, 'a');
const RESULT: Source = Source("tool results", 173, 'r');
const RESERVED: Source = Source("reserved", 96, 'o');
const FREE: Source = Source("free", 238, '·');
const ORDER: [Source; 7] = [TOOLS, SYSTEM, SUMMARY, NOTE, USER, ASSISTANT, RESULT];

/// The parts of the budget, in order: those of the request, the reserve, the free rest.
fn parts(receipt: &Receipt) -> Vec<(Source, usize)> {
    let budget = &receipt.budget;
    let rest = [
        (FRAME, budget.frame),
        (RESERVED, budget.reserved),
        (FREE, budget.free),
    ];
    shares(receipt).into_iter().chain(rest).collect()
}

/// The picture of a request: the budget by source, each item, and what was left out.
pub fn request(shown: &Shown<'_>, paint: Paint) -> String {
    let mut out = String::new();
    header(shown, paint, &mut out);
    bar(shown, paint, &mut out);
    out.push('\n');
    rows(shown, paint, &mut out);
    left_out(&shown.receipt.excluded, paint, &mut out);
    out
}

fn header(shown: &Shown<'_>, paint: Paint, out: &mut String) {
    let tokenizer = &shown.receipt.tokenizer;
    let counted = if tokenizer.exact {
        "exact"
    } else {
        "upper bound"
    };
    let right = format!("{} · {counted}", safe(&tokenizer.name));
    let left = safe(shown.title);
    let gap = paint
        .width
        .saturating_sub(left.chars().count() + right.chars().count() + 2);
    let _ = writeln!(
        out,
        " {}{}{}",
        paint.bold(&left),
        " ".repeat(gap.max(1)),
        paint.dim(&right)
    );
}

fn bar(shown: &Shown<'_>, paint: Paint, out: &mut String) {
    let budget = &shown.receipt.budget;
    let width = paint.width - 2;
    let shares = parts(shown.receipt);
    let total: usize = shares.iter().map(|(_, tokens)| tokens).sum();
    let mut filled = 0;
    let mut seen = 0;
    let mut line = String::new();
    for (source, tokens) in &shares {
        seen += tokens;
        // Rounded at the borders, so that the cells always add up; but what is there is seen.
        let border = (seen * width).div_ceil(total.max(1)).min(width);
        let cells = border
            .saturating_sub(filled)
            .max(usize::from(*tokens > 0 && filled < width));
        filled += cells;
        let cell = if paint.colour {
            if *source == FREE { '░' } else { '█' }
        } else {
            source.2
        };
        line.push_str(&paint.fg(source.1, &cell.to_string().repeat(cells)));
    }
    let _ = writeln!(out, "\n {line}");
    legend(&shares, paint, out);
    let most = budget.max_input_tokens;
    // A request that was sent under another budget may be over this one.
    let share = match budget.used.checked_sub(most) {
        None | Some(0) => format!("{} %", budget.used * 100 / most.max(1)),
        Some(over) => format!("{} too many", thousands(over)),
    };
    let _ = writeln!(
        out,
        " {} of {} tokens ({share}) · {} bytes · {}",
        paint.bold(&thousands(budget.used)),
        thousands(most),
        thousands(shown.bytes),
        plural(shown.messages.len(), "message"),
    );
    let cache = &shown.receipt.cache;
    if cache.shared_prefix_tokens > 0 || cache.first_change.is_some() {
        let change = match &cache.first_change {
            Some(origin) => format!(", then {} changed", safe(origin)),
            None => String::new(),
        };
        let _ = writeln!(
            out,
            " {} tokens shared with the request before{change}",
            thousands(cache.shared_prefix_tokens)
        );
    }
    let _ = writeln!(out, " {}", paint.dim(&shown.receipt.digest));
}

fn legend(shares: &[(Source, usize)], paint: Paint, out: &mut String) {
    let mut column = 1;
    out.push(' ');
    for (source, tokens) in shares.iter().filter(|(_, tokens)| *tokens > 0) {
        let mark = if paint.colour { '■' } else { source.2 };
        let text = format!("{} {}", source.0, thousands(*tokens));
        let len = text.chars().count() + 5;
        if column + len > paint.width {
            out.push_str("\n ");
            column = 1;
        }
        let _ = write!(out, "{} {text}   ", paint.fg(source.1, &mark.to_string()));
        column += len;
    }
    out.push('\n');
}

fn shares(receipt: &Receipt) -> Vec<(Source, usize)> {
    let tools: usize = receipt.tools.iter().map(|tool| tool.tokens).sum();
    ORDER
        .into_iter()
        .map(|source| {
            let items = receipt
                .items
                .iter()
                .filter(|item| source_of(item) == source);
            let tokens = items.map(|item| item.tokens).sum::<usize>();
            (source, if source == TOOLS { tools } else { tokens })
        })
        .filter(|(_, tokens)| *tokens > 0)
        .collect()
}

fn source_of(item: &ItemReceipt) -> Source {
    match (item.rule, item.role) {
        (Rule::Summary, _) => SUMMARY,
        (_, "system" | "developer")
            if item.stability == contexture::prompt::Stability::Volatile =>
        {
            NOTE
        }
        (_, "system" | "developer") => SYSTEM,
        (_, "user") => USER,
        (_, "assistant") => ASSISTANT,
        _ => RESULT,
    }
}

fn rows(shown: &Shown<'_>, paint: Paint, out: &mut String) {
    let receipt = shown.receipt;
    let most = receipt
        .items
        .iter()
        .map(|item| item.tokens)
        .max()
        .unwrap_or(1)
        .max(1);
    for tool in &receipt.tools {
        let name = safe(tool.origin.trim_start_matches("tool:"));
        row(
            paint,
            out,
            &Row {
                number: "",
                source: TOOLS,
                role: "tool spec",
                rule: Rule::Kept,
                tokens: tool.tokens,
                most,
                what: &name,
            },
        );
    }
    for item in &receipt.items {
        let what = match item.origin.strip_prefix("section:") {
            Some(name) => format!("[{}]", safe(name)),
            None => shown
                .messages
                .get(item.index)
                .map(|m| describe(m))
                .unwrap_or_default(),
        };
        let number = item.index.to_string();
        row(
            paint,
            out,
            &Row {
                number: &number,
                source: source_of(item),
                role: item.role,
                rule: item.rule,
                tokens: item.tokens,
                most,
                what: &what,
            },
        );
    }
}

struct Row<'a> {
    number: &'a str,
    source: Source,
    role: &'a str,
    rule: Rule,
    tokens: usize,
    most: usize,
    what: &'a str,
}

fn row(paint: Paint, out: &mut String, row: &Row<'_>) {
    const GAUGE: usize = 8;
    const LEFT: usize = 7 + 10 + 11 + 8 + 1 + GAUGE + 2;
    let eighths = (row.tokens * GAUGE * 8).div_ceil(row.most);
    let gauge = gauge(eighths.min(GAUGE * 8), GAUGE);
    let room = paint.width.saturating_sub(LEFT);
    let what = console::truncate_str(row.what, room, "…");
    let _ = writeln!(
        out,
        " {:>4}  {}{}{:>8} {}  {}",
        paint.dim(&format!("{:>4}", row.number)),
        paint.fg(row.source.1, &format!("{:<10}", row.role)),
        rule(row.rule, paint),
        thousands(row.tokens),
        paint.fg(row.source.1, &gauge),
        what.trim_end(),
    );
}

/// A bar of `eighths` eighths of a cell.
fn gauge(eighths: usize, cells: usize) -> String {
    const PARTS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
    (0..cells)
        .map(|cell| PARTS[eighths.saturating_sub(cell * 8).min(8)])
        .collect()
}

fn rule(rule: Rule, paint: Paint) -> String {
    let text = format!("{:<11}", rule.as_str());
    match rule {
        Rule::Kept => paint.dim(&text),
        Rule::Pinned | Rule::Summary => paint.fg(179, &text),
        Rule::Masked | Rule::Truncated | Rule::Summarised => paint.fg(173, &text),
        _ => paint.fg(167, &text),
    }
}

/// A message in one line.
pub fn describe(message: &Message) -> String {
    let calls = message
        .tool_calls
        .iter()
        .map(|call| format!("{}({})", call.name, call.arguments));
    let text = message.text();
    let said = text.chars().take(400).collect::<String>();
    let all = [said]
        .into_iter()
        .filter(|said| !said.is_empty())
        .chain(calls)
        .collect::<Vec<_>>();
    safe(&all.join("  "))
}

/// What is not in the request, runs of the same rule in one line.
fn left_out(excluded: &[ExcludedReceipt], paint: Paint, out: &mut String) {
    if excluded.is_empty() {
        return;
    }
    let tokens: usize = excluded.iter().map(|item| item.tokens).sum();
    let _ = writeln!(
        out,
        "\n {} {}",
        paint.bold("left out"),
        paint.dim(&format!(
            "· {} of {} tokens",
            plural(excluded.len(), "item"),
            thousands(tokens)
        ))
    );
    let mut rest = excluded;
    while let Some(first) = rest.first() {
        let run = rest
            .iter()
            .enumerate()
            .take_while(|(i, item)| item.rule == first.rule && item.position == first.position + i)
            .count()
            .max(1);
        let (these, after) = rest.split_at(run);
        rest = after;
        let tokens: usize = these.iter().map(|item| item.tokens).sum();
        let last = first.position + run - 1;
        let which = match run {
            1 => format!("entry {}", first.position),
            _ => format!("entries {}–{last}", first.position),
        };
        let what = match run {
            1 => format!("{} · {}", first.role, safe(&first.origin)),
            _ => plural(run, "item"),
        };
        let _ = writeln!(
            out,
            "       {which:<20}{}{:>8}  {}",
            rule(first.rule, paint),
            thousands(tokens),
            paint.dim(&what)
        );
    }
}
