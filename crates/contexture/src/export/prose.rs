//! A message's own Markdown inside a document of ours.
//!
//! It may do as it likes but for what reaches out of its place: headings go below ours, HTML and
//! images become text, so that nothing is fetched and nothing is closed that we opened, and so do links that lead
//! anywhere but to the web, to a mailbox or to a file beside this one. What cannot
//! be followed line by line (a fence inside a list that ends early, a code span over two lines) is
//! better shown as plain text: then the answer is none.

use super::target;

/// How far below the document's own headings a message's are.
const BELOW: usize = 2;

/// The text as a part of a document, or none where it must stand in a fence.
pub(super) fn prose(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 32);
    let mut fence: Option<Fence> = None;
    let mut after_text = false;
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let bare = &line[indent..];
        if let Some(open) = fence {
            if !bare.is_empty() && indent < open.indent {
                return None;
            }
            if open.closes(bare) && indent < 4 {
                fence = None;
            }
            out.push_str(line);
            after_text = false;
        } else if let Some(opens) = Fence::opens(bare, indent) {
            if indent >= 4 {
                return None;
            }
            fence = Some(opens);
            out.push_str(line);
        } else {
            let inner = contained(bare);
            if Fence::opens(inner, 0).is_some() || line.contains('\t') && bare.starts_with('\t') {
                return None;
            }
            write_line(line, inner, after_text, &mut out)?;
            after_text = !inner.trim().is_empty();
        }
        out.push('\n');
    }
    fence.is_none().then_some(out)
}

/// A fence that is open.
#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
}

impl Fence {
    fn opens(bare: &str, indent: usize) -> Option<Self> {
        let mark = bare.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = bare.chars().take_while(|c| *c == mark).count();
        let is_span = mark == '`' && bare[length..].contains('`');
        (length >= 3 && !is_span).then_some(Self {
            mark,
            length,
            indent,
        })
    }

    fn closes(self, bare: &str) -> bool {
        let rest = bare.trim_start_matches(self.mark);
        bare.len() - rest.len() >= self.length && rest.trim().is_empty()
    }
}

/// What a line says inside the quotes and lists that it opens.
fn contained(line: &str) -> &str {
    let mut rest = line.trim_start();
    loop {
        let item = rest
            .strip_prefix(['>'])
            .or_else(|| {
                rest.strip_prefix(['-', '*', '+'])
                    .filter(|r| r.starts_with([' ', '\t']))
            })
            .or_else(|| {
                let number = rest.trim_start_matches(|c: char| c.is_ascii_digit());
                let is_number = number.len() < rest.len();
                let marked = number.strip_prefix(['.', ')']).filter(|_| is_number);
                marked.filter(|r| r.starts_with([' ', '\t']))
            });
        match item {
            Some(inner) => rest = inner.trim_start(),
            None => return rest,
        }
    }
}

fn write_line(line: &str, inner: &str, after_text: bool, out: &mut String) -> Option<()> {
    let before = &line[..line.len() - inner.len()];
    out.push_str(before);
    let level = inner.len() - inner.trim_start_matches('#').len();
    let is_heading = (1..=6).contains(&level)
        && inner[level..]
            .chars()
            .next()
            .is_none_or(|c| matches!(c, ' ' | '\t'));
    if is_heading {
        out.push_str(&"#".repeat((level + BELOW).min(6)));
        return write_spans(&inner[level..], out);
    }
    let underline = inner.trim_end();
    let underlines = |mark| !underline.is_empty() && underline.chars().all(|c| c == mark);
    if after_text && (underlines('=') || underlines('-')) {
        out.push('\\');
    }
    // A dash alone is read as an empty item, and then its text as a heading's.
    if after_text && inner.is_empty() && line.trim_end().ends_with('-') {
        return None;
    }
    write_spans(inner, out)
}

/// The text of a line, with its code spans as they are and the rest unable to become HTML or an
/// image.
fn write_spans(text: &str, out: &mut String) -> Option<()> {
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        write_text(&rest[..at], out);
        // An escaped backtick opens nothing, or ends what is escaped: not worth following.
        if rest[..at].ends_with('\\') {
            return None;
        }
        let length = rest[at..].len() - rest[at..].trim_start_matches('`').len();
        let inside = &rest[at + length..];
        let end = closing(inside, length)?;
        out.push_str(&rest[at..at + length + end + length]);
        rest = &inside[end + length..];
    }
    write_text(rest, out);
    Some(())
}

/// Where the code span ends: at a run of backticks of just that length.
fn closing(text: &str, length: usize) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find('`')?;
        let run = text[at..].len() - text[at..].trim_start_matches('`').len();
        if run == length {
            return Some(at);
        }
        from = at + run;
    }
}

fn write_text(text: &str, out: &mut String) {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let tag = |c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?');
        match (c, next) {
            ('<', Some(next)) if tag(next) => out.push_str("&lt;"),
            ('!', Some('[')) => out.push_str("&#33;"),
            // Behind an escape it is neither a target nor a definition.
            (']', Some('(')) if !target::of_link(&text[at + 2..]) => out.push_str("]\\"),
            (']', Some(':')) if !target::of_definition(&text[at + 2..]) => out.push_str("]\\"),
            (c, _) => out.push(c),
        }
    }
}
