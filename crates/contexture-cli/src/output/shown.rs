//! Text as a terminal may get it.

use std::borrow::Cow;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use contexture::text::hidden::{legible, stray};
use tokio::io::AsyncWrite;

/// Text with nothing in it that commands a terminal, but for colours of our own.
pub fn text(text: &str) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return legible(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        let (before, behind) = rest.split_at(at);
        out.push_str(&legible(before));
        let colour = colour(behind);
        match colour {
            0 => out.push_str(&legible("\x1b")),
            colour => out.push_str(&behind[..colour]),
        }
        rest = &behind[colour.max(1)..];
    }
    out.push_str(&legible(rest));
    Cow::Owned(out)
}

/// How long the colour is that the text begins with; a command of any other kind has no length.
fn colour(text: &str) -> usize {
    // Off, bold, dim, italic, underlined, struck.
    const STYLES: [&str; 6] = [
        "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[3m", "\x1b[4m", "\x1b[9m",
    ];
    for plain in STYLES {
        if text.starts_with(plain) {
            return plain.len();
        }
    }
    let one_of_256 = || {
        let number = text.strip_prefix("\x1b[38;5;")?;
        let digits = number.len()
            - number
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .len();
        let ends = (1..=3).contains(&digits) && number[digits..].starts_with('m');
        ends.then(|| text.len() - number.len() + digits + 1)
    };
    one_of_256().unwrap_or(0)
}

/// JSON with the same values, and an escape for each character that would not be seen.
pub fn data(json: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut done = 0;
    for (at, run) in stray(json) {
        out.push_str(&json[done..at]);
        done = at + run.len();
        for unit in run.encode_utf16() {
            match unit {
                // It stands between values, where any blank is the same.
                0xd => out.push(' '),
                unit => out.push_str(&format!("\\u{unit:04x}")),
            }
        }
    }
    match done {
        0 => Cow::Borrowed(json),
        _ => Cow::Owned(out + &json[done..]),
    }
}

/// A text of others, whole, that ends with a line.
pub fn content(text: &str) -> Cow<'_, str> {
    match legible(text) {
        shown if shown.is_empty() || shown.ends_with('\n') => shown,
        shown => Cow::Owned(shown.into_owned() + "\n"),
    }
}

/// Standard output for a protocol of JSON lines. A person who looks at it on a terminal sees what is in it.
pub struct JsonLines {
    out: tokio::io::Stdout,
    /// The line that is not whole yet, on a terminal.
    line: Vec<u8>,
    /// What of a whole one is not written yet.
    due: Vec<u8>,
}

impl JsonLines {
    /// Takes standard output.
    #[allow(clippy::disallowed_methods, reason = "it guards the stream")]
    pub fn new() -> Self {
        Self {
            out: tokio::io::stdout(),
            line: Vec::new(),
            due: Vec::new(),
        }
    }

    fn write_due(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.due.is_empty() {
            let written = ready!(Pin::new(&mut self.out).poll_write(cx, &self.due))?;
            self.due.drain(..written);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for JsonLines {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !super::is_terminal() {
            return Pin::new(&mut self.out).poll_write(cx, bytes);
        }
        ready!(self.write_due(cx))?;
        self.line.extend_from_slice(bytes);
        if let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') {
            let whole: Vec<u8> = self.line.drain(..=end).collect();
            self.due = data(&String::from_utf8_lossy(&whole))
                .into_owned()
                .into_bytes();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.write_due(cx))?;
        Pin::new(&mut self.out).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.write_due(cx))?;
        Pin::new(&mut self.out).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_ours_stay_and_nothing_else_that_commands() {
        let ours = "\x1b[1mname\x1b[0m \x1b[38;5;167mno\x1b[0m\n\x1b[2mdim\x1b[0m \x1b[3m\x1b[4m\x1b[9mx\x1b[0m";
        assert_eq!(text(ours), ours);
        for sly in [
            "\x1b[2J",
            "\x1b[8m",
            "\x1b[38;5;1234m",
            "\x1b[38;5;m",
            "\x1b[38;5;1",
            "\x1b[38;2;1;2;3m",
            "\x1b[01m",
            "\x1b]52;c;aGk=\x07",
            "\x1b]8;;http://x\x1b\\",
            "\x1b",
            "\x1b\x1b[2J",
            "\u{9b}31m",
        ] {
            let shown = text(sly).into_owned();
            assert!(!shown.contains(|c: char| c.is_control()), "{shown:?}");
            assert!(shown.contains('⟨'), "{shown:?}");
        }
        assert_eq!(text("\x1b\x1b[1mx\x1b[0m"), "⟨ESC⟩\x1b[1mx\x1b[0m");
    }

    #[test]
    fn data_has_the_same_values() {
        let value = serde_json::json!({
            "a\u{202e}": "\u{9b}31m\u{7f}\u{200b}x\u{e0041}\u{e0042}", "b": ["👩\u{200d}👩", "می\u{200c}خواهم"],
        });
        for json in [
            value.to_string(),
            format!("{value:#}\n"),
            format!("{value}\r\n{value}\r\n"),
        ] {
            let shown = data(&json);
            let bad = |c: char| {
                c.is_control() && c != '\n' || matches!(c, '\u{202e}' | '\u{200b}' | '\u{e0041}')
            };
            assert!(!shown.contains(bad), "{shown:?}");
            let first = serde_json::Deserializer::from_str(&shown)
                .into_iter::<serde_json::Value>()
                .next();
            assert!(matches!(first, Some(Ok(same)) if same == value));
        }
        assert!(
            data("{\"a\":\"👩\u{200d}👩\"}").contains('\u{200d}'),
            "what is needed stays"
        );
    }
}
