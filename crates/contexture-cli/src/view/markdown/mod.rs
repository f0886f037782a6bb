//! Markdown on a terminal: blocks as rows of text that fit its width.

mod reply;
mod table;
mod wrap;

use contexture::text::markdown::{Block, Line, read};

pub use self::reply::Reply;
use self::wrap::{Look, row, wrap};
use super::Paint;

/// The widest text; longer lines are hard to read.
const MAX_TEXT_WIDTH: usize = 100;
/// The narrowest text, however deep it stands in lists and quotes.
const MIN_TEXT_WIDTH: usize = 12;

/// A text's rows.
pub fn rows(text: &str, paint: Paint) -> Vec<String> {
    let mut out = Vec::new();
    for (block, _) in read(text) {
        if !out.is_empty() {
            out.push(String::new());
        }
        out.extend(
            parts(&block, text_width(paint), paint)
                .into_iter()
                .flatten(),
        );
    }
    out
}

/// The columns that text may take, one of the terminal's being left for the cursor.
fn text_width(paint: Paint) -> usize {
    (paint.width - 1).min(MAX_TEXT_WIDTH)
}

/// The rows of a block in parts, each of which stays as it is whatever follows: the items of a list, the lines of code.
fn parts(block: &Block, width: usize, paint: Paint) -> Vec<Vec<String>> {
    let width = width.max(MIN_TEXT_WIDTH);
    match block {
        Block::Heading(_, line) => vec![text(line, Look::HEADING, width, paint)],
        Block::Paragraph(line) => vec![text(line, Look::default(), width, paint)],
        Block::Code(info, code) => lines(info.as_deref(), code, paint),
        Block::Quote(blocks) => vec![beside(
            &paint.dim("│ "),
            &paint.dim("│ "),
            joined(blocks, width - 2, paint),
        )],
        Block::List(first, items) => {
            let numbers = first.map(|first| first..);
            let mut numbers = numbers.into_iter().flatten();
            let items = items.iter().map(|item| {
                let mark = match numbers.next() {
                    Some(number) => format!(" {number}. "),
                    None => " • ".to_owned(),
                };
                let room = mark.chars().count();
                let rows = joined(item, width.saturating_sub(room), paint);
                beside(&paint.fg(37, &mark), &" ".repeat(room), rows)
            });
            items.collect()
        }
        Block::Table(columns, rows) => vec![table::table(columns, rows, width, paint)],
        Block::Rule => vec![vec![paint.dim(&"─".repeat(width.min(40)))]],
    }
}

fn text(line: &Line, look: Look, width: usize, paint: Paint) -> Vec<String> {
    let rows = wrap(line, look, width);
    rows.iter().map(|pieces| row(pieces, paint)).collect()
}

/// The label of code, and its lines. They are never wrapped, so that they can be copied.
fn lines(info: Option<&str>, code: &str, paint: Paint) -> Vec<Vec<String>> {
    let info = info.unwrap_or_default().replace('\n', " ");
    let label = match info.as_str() {
        "" => Vec::new(),
        info => vec![paint.dim(&format!("  {info}"))],
    };
    let code = code.lines().map(|line| match line {
        "" => vec![String::new()],
        line => {
            let line = line.replace('\t', "    ");
            vec![format!("    {}", paint.fg(180, &line))]
        }
    });
    std::iter::once(label).chain(code).collect()
}

/// Blocks below each other; a list stands right below what introduces it.
fn joined(blocks: &[Block], width: usize, paint: Paint) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for block in blocks {
        if !out.is_empty() && !matches!(block, Block::List(..)) {
            out.push(String::new());
        }
        out.extend(parts(block, width, paint).into_iter().flatten());
    }
    out
}

/// Rows behind a mark: one for the first, one for the others.
fn beside(first: &str, others: &str, rows: Vec<String>) -> Vec<String> {
    let rows = if rows.is_empty() {
        vec![String::new()]
    } else {
        rows
    };
    let rows = rows.into_iter().enumerate();
    rows.map(|(number, row)| {
        let mark = if number == 0 { first } else { others };
        format!("{mark}{row}").trim_end().to_owned()
    })
    .collect()
}

#[cfg(test)]
mod tests;
