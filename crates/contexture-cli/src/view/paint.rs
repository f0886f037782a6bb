use crate::output;

/// Colours, or none: on a terminal that wants them.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    pub colour: bool,
    pub width: usize,
}

impl Paint {
    /// For standard output as it is.
    pub fn stdout() -> Self {
        Self::on(output::is_terminal())
    }

    /// For standard error as it is.
    pub fn stderr() -> Self {
        Self::on(output::notes_are_seen())
    }

    fn on(terminal: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            colour: terminal && !set("NO_COLOR") && !dumb,
            width: if terminal { columns() } else { 100 },
        }
    }

    /// With the width as it is now: a terminal may have been resized.
    pub fn now(self) -> Self {
        let width = if output::is_terminal() {
            columns()
        } else {
            self.width
        };
        Self { width, ..self }
    }

    /// The rows of the terminal.
    pub fn height() -> usize {
        usize::from(console::Term::stdout().size().0)
    }

    /// In one of the 256 colours.
    pub fn fg(self, colour: u8, text: &str) -> String {
        if self.colour {
            format!("\x1b[38;5;{colour}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub fn dim(self, text: &str) -> String {
        if self.colour {
            format!("\x1b[2m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub fn bold(self, text: &str) -> String {
        if self.colour {
            format!("\x1b[1m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// The columns of the terminal, within what can be laid out.
fn columns() -> usize {
    usize::from(console::Term::stdout().size().1).clamp(20, 160)
}

/// The columns that a text takes; colours take none.
pub fn width(text: &str) -> usize {
    let mut escaped = false;
    let seen = text.chars().filter(|&c| {
        let colour = escaped || c == '\x1b';
        escaped = colour && c != 'm';
        !colour
    });
    console::measure_text_width(&seen.collect::<String>())
}

/// As much of a text as has room; a mark says where it was cut, and no colour runs on behind it.
pub fn clip(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let (mut out, mut used, mut escaped, mut coloured) = (String::new(), 1, false, false);
    for c in text.chars() {
        let colour = escaped || c == '\x1b';
        escaped = colour && c != 'm';
        coloured |= colour;
        if !colour {
            used += console::measure_text_width(c.encode_utf8(&mut [0; 4]));
            if used > room {
                break;
            }
        }
        out.push(c);
    }
    out.push_str(if coloured { "…\x1b[0m" } else { "…" });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_take_no_room_and_end_where_the_text_is_cut() {
        let paint = Paint {
            colour: true,
            width: 80,
        };
        let text = format!("{} and {}", paint.bold("häuser"), paint.fg(71, "日本語"));
        assert_eq!(width(&text), 17);
        assert_eq!(clip(&text, 17), text);
        for room in 1..17 {
            let cut = clip(&text, room);
            assert!(width(&cut) <= room, "{cut:?}");
            assert!(cut.ends_with("…\x1b[0m"), "{cut:?}");
        }
        assert_eq!(clip("plain", 3), "pl…");
    }
}
