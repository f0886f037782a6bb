//! Server-sent events, out of bytes as they come.

/// What a stream says next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// Its kind; empty where the stream does not name it.
    pub kind: String,
    /// What it holds.
    pub data: String,
}

/// Takes bytes and gives events. Bounded: a line or an event that is too long is an error.
#[derive(Debug, Default)]
pub struct Events {
    line: Vec<u8>,
    event: Event,
    /// The last byte was a carriage return: a line feed behind it ends no other line.
    returned: bool,
    begun: bool,
}

/// The most bytes of an event. Nothing that a model says in one piece comes near it.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// An event was too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl Events {
    /// Takes the next bytes, and hands over each event that they end.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Event)) -> Result<(), TooLong> {
        for &byte in bytes {
            match byte {
                b'\n' if std::mem::take(&mut self.returned) => {}
                b'\n' | b'\r' => {
                    self.returned = byte == b'\r';
                    self.end_line(&mut take);
                }
                _ => {
                    self.returned = false;
                    self.line.push(byte);
                }
            }
            if self.line.len() + self.event.data.len() > MAX_EVENT_BYTES {
                return Err(TooLong);
            }
        }
        Ok(())
    }

    fn end_line(&mut self, take: &mut impl FnMut(Event)) {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        // A byte order mark may stand at the very beginning.
        let text = match self.begun {
            true => &text,
            false => text.strip_prefix('\u{feff}').unwrap_or(&text),
        };
        self.begun = true;
        if text.is_empty() {
            let mut event = std::mem::take(&mut self.event);
            if !event.data.is_empty() {
                event.data.pop();
                take(event);
            }
            return;
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event.kind = value.to_owned(),
            "data" => {
                self.event.data.push_str(value);
                self.event.data.push('\n');
            }
            // A comment, an id, a time to reconnect after.
            _ => {}
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut events = Events::default();
        let mut out = Vec::new();
        for piece in pieces {
            events
                .push(piece, |event| out.push((event.kind, event.data)))
                .unwrap();
        }
        out
    }

    #[test]
    fn events_are_what_the_standard_says() {
        let text = "\u{feff}: hello\ndata: one\n\nevent: x\ndata:two\r\ndata: three\r\n\r\ndata\n\nid: 1\n\ndata: cut off";
        let want = [("", "one"), ("x", "two\nthree"), ("", "")];
        let want: Vec<_> = want
            .iter()
            .map(|(k, d)| ((*k).to_owned(), (*d).to_owned()))
            .collect();
        assert_eq!(read(&[text.as_bytes()]), want);
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut events = Events::default();
        let block = vec![b'x'; 1 << 20];
        let refused = (0..64).find_map(|_| events.push(&block, |_| {}).err());
        assert_eq!(refused, Some(TooLong));
    }

    proptest! {
        /// Where the bytes are cut does not matter.
        #[test]
        fn pieces_do_not_matter(text in "[a-z: \r\n\u{e9}]{0,80}", cuts in prop::collection::vec(0usize..120, 0..6)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            cuts.insert(0, 0);
            cuts.push(bytes.len());
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(&pieces), read(&[bytes]));
        }
    }
}
