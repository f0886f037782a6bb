//! Styled text in rows of a width.

use contexture::text::markdown::{Span, Style};

use crate::view::{Paint, width};

/// The look of a piece of text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    pub style: Style,
    pub link: bool,
    pub heading: bool,
}

impl Look {
    pub const HEADING: Self = Self {
        heading: true,
        style: Style {
            strong: true,
            emphasis: false,
            struck: false,
            code: false,
            aside: false,
        },
        link: false,
    };
}

/// A piece of a row in one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    pub look: Look,
}

/// A row being filled.
struct Rows {
    done: Vec<Vec<Piece>>,
    row: Vec<Piece>,
    used: usize,
    room: usize,
}

/// Breaks a line between words where that is possible, and at its own breaks.
pub fn wrap(line: &[Span], base: Look, room: usize) -> Vec<Vec<Piece>> {
    let mut rows = Rows {
        done: Vec::new(),
        row: Vec::new(),
        used: 0,
        room: room.max(1),
    };
    let (mut gap, mut word): (Vec<Piece>, Vec<Piece>) = (Vec::new(), Vec::new());
    for span in line {
        let look = Look {
            style: Style {
                strong: base.style.strong || span.style.strong,
                ..span.style
            },
            link: span.link.is_some(),
            heading: base.heading,
        };
        for c in span.text.chars() {
            match c {
                '\n' => {
                    rows.word(&mut gap, &mut word);
                    gap.clear();
                    rows.end();
                }
                ' ' | '\t' => {
                    if !word.is_empty() {
                        rows.word(&mut gap, &mut word);
                    }
                    push(&mut gap, ' ', look);
                }
                c => push(&mut word, c, look),
            }
        }
    }
    rows.word(&mut gap, &mut word);
    rows.end();
    rows.done
}

impl Rows {
    /// Puts a word on the row, or on the next one; the gap before it is for a row that it shares.
    fn word(&mut self, gap: &mut Vec<Piece>, word: &mut Vec<Piece>) {
        let (gap, word) = (std::mem::take(gap), std::mem::take(word));
        if word.is_empty() {
            return;
        }
        let (before, needs) = (columns(&gap), columns(&word));
        if self.used > 0 && self.used + before + needs > self.room {
            self.end();
        } else if self.used > 0 {
            self.used += before;
            self.row.extend(gap);
        }
        if needs <= self.room {
            self.used += needs;
            self.row.extend(word);
            return;
        }
        // Longer than any row.
        for piece in word {
            for c in piece.text.chars() {
                let needs = width(c.encode_utf8(&mut [0; 4]));
                if self.used > 0 && self.used + needs > self.room {
                    self.end();
                }
                self.used += needs;
                push(&mut self.row, c, piece.look);
            }
        }
    }

    fn end(&mut self) {
        self.used = 0;
        self.done.push(std::mem::take(&mut self.row));
    }
}

fn push(pieces: &mut Vec<Piece>, c: char, look: Look) {
    match pieces.last_mut() {
        Some(last) if last.look == look => last.text.push(c),
        _ => pieces.push(Piece {
            text: c.to_string(),
            look,
        }),
    }
}

/// The columns that pieces take.
pub fn columns(pieces: &[Piece]) -> usize {
    match pieces {
        [one] => width(&one.text),
        all => width(
            &all.iter()
                .map(|piece| piece.text.as_str())
                .collect::<String>(),
        ),
    }
}

/// Pieces as a terminal gets them.
pub fn row(pieces: &[Piece], paint: Paint) -> String {
    let mut out = String::new();
    let mut rest = pieces;
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|piece| piece.look == first.look);
        let (these, after) = rest.split_at(same.count());
        let text: String = these.iter().map(|piece| piece.text.as_str()).collect();
        rest = after;
        let codes = codes(first.look);
        if codes.is_empty() || !paint.colour {
            out.push_str(&text);
        } else {
            out.push_str(&format!("{codes}{text}\x1b[0m"));
        }
    }
    out
}

/// The escape codes that switch a look on.
fn codes(look: Look) -> String {
    let style = look.style;
    let all = [
        (style.strong, "\x1b[1m"),
        (style.aside, "\x1b[2m"),
        (style.emphasis, "\x1b[3m"),
        (look.link, "\x1b[4m"),
        (style.struck, "\x1b[9m"),
        (look.heading, "\x1b[38;5;37m"),
        (style.code, "\x1b[38;5;180m"),
    ];
    all.into_iter()
        .filter_map(|(holds, code)| holds.then_some(code))
        .collect()
}
