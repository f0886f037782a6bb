use std::borrow::Cow;

/// Text in which nothing is invisible or changes how the rest is read: control characters show
/// their names, and characters that turn the direction of a line or have no width, their codes.
///
/// Joiners stay: scripts and emoji need them.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    // A line that ends in the way of another system is no surprise to anyone.
    let text = text.replace("\r\n", "\n");
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if is_hidden(c) && c.is_ascii() => {
                let name = NAMES.get(c as usize).unwrap_or(&"DEL");
                out.push_str(&format!("⟨{name}⟩"));
            }
            c if is_hidden(c) => out.push_str(&format!("⟨U+{:04X}⟩", u32::from(c))),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// What ASCII calls its control characters. Unicode has a picture of each, but few fonts do.
const NAMES: [&str; 32] = [
    "NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "TAB", "LF", "VT", "FF", "CR",
    "SO", "SI", "DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC",
    "FS", "GS", "RS", "US",
];

fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}
