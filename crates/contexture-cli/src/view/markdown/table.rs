//! A table that fits the terminal, or its rows one by one where it has too many columns for that.

use contexture::text::markdown::{Align, Line, Span, Style};

use super::wrap::{Look, Piece, columns, row, wrap};
use crate::view::Paint;

/// The narrowest column, if it needs that much.
const MIN_COLUMN: usize = 6;
/// Between columns.
const RULE: &str = " │ ";

/// The rows of a table, its head first.
pub fn table(aligns: &[Align], rows: &[Vec<Line>], room: usize, paint: Paint) -> Vec<String> {
    let between = 3 * aligns.len().saturating_sub(1);
    if between + aligns.len() * MIN_COLUMN > room {
        return records(rows, room, paint);
    }
    let widths = widths(aligns.len(), rows, room - between);
    let mut out = Vec::new();
    for (number, cells) in rows.iter().enumerate() {
        let look = if number == 0 {
            Look::HEADING
        } else {
            Look::default()
        };
        let cells: Vec<Vec<Vec<Piece>>> = widths
            .iter()
            .enumerate()
            .map(|(n, width)| match cells.get(n) {
                Some(cell) => wrap(cell, look, *width),
                None => Vec::new(),
            })
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let padded = cells.iter().zip(aligns).zip(&widths);
            let padded = padded.map(|((cell, align), width)| {
                let pieces = cell.get(line).map_or(&[][..], Vec::as_slice);
                pad(pieces, *align, *width, paint)
            });
            let text = padded.collect::<Vec<_>>().join(&paint.dim(RULE));
            out.push(text.trim_end().to_owned());
        }
        if number == 0 {
            let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            out.push(paint.dim(&rules.join("─┼─")));
        }
    }
    out
}

/// The widths of the columns: what they need, and less for the widest where there is not so much room.
fn widths(columns_of: usize, rows: &[Vec<Line>], room: usize) -> Vec<usize> {
    let mut widths = vec![1; columns_of];
    for cells in rows {
        for (width, cell) in widths.iter_mut().zip(cells) {
            let lines = wrap(cell, Look::default(), room);
            let needs = lines.iter().map(|line| columns(line)).max().unwrap_or(0);
            *width = (*width).max(needs.min(room));
        }
    }
    while widths.iter().sum::<usize>() > room {
        let widest = widths.iter_mut().max();
        match widest {
            Some(widest) if *widest > 1 => *widest -= 1,
            _ => break,
        }
    }
    widths
}

fn pad(pieces: &[Piece], align: Align, width: usize, paint: Paint) -> String {
    let left = width.saturating_sub(columns(pieces));
    let (before, behind) = match align {
        Align::Left => (0, left),
        Align::Center => (left / 2, left - left / 2),
        Align::Right => (left, 0),
    };
    let text = row(pieces, paint);
    format!("{}{text}{}", " ".repeat(before), " ".repeat(behind))
}

/// Each row as lines of `column: value`.
fn records(rows: &[Vec<Line>], room: usize, paint: Paint) -> Vec<String> {
    let Some((head, rows)) = rows.split_first() else {
        return Vec::new();
    };
    let mut out = Vec::new();
    if rows.is_empty() {
        let names = head.iter().flat_map(|name| wrap(name, Look::HEADING, room));
        return names.map(|line| row(&line, paint)).collect();
    }
    for cells in rows {
        if !out.is_empty() {
            out.push(String::new());
        }
        for (name, cell) in head.iter().zip(cells) {
            let mut line: Line = name.clone();
            line.iter_mut().for_each(|span| span.style.strong = true);
            line.push(Span {
                text: ": ".to_owned(),
                style: Style::default(),
                link: None,
            });
            line.extend(cell.iter().cloned());
            let lines = wrap(&line, Look::default(), room);
            out.extend(lines.iter().map(|line| row(line, paint)));
        }
    }
    out
}
