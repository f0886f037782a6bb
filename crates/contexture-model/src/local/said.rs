//! The text of an answer as it grows: bytes that are whole letters, text that is no stop word, and what may still become
//! a call.

use super::calls;

/// The text of an answer as it grows. What may be the beginning of a stop word or of a call is held
/// back until it is clear.
#[derive(Debug)]
pub(super) struct Said {
    /// Bytes of a letter that is not whole.
    bytes: Vec<u8>,
    text: String,
    shown: usize,
    stops: Vec<String>,
    /// The mark that begins a call, where calls may come and have one.
    mark: Option<String>,
}

/// What a new piece came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// Nothing special.
    Nothing,
    /// A stop word: the answer ends before it.
    Stop,
    /// The beginning of a call, which stands at the end of the text.
    Call,
}

impl Said {
    pub fn new(stops: Vec<String>, mark: Option<String>) -> Self {
        Self {
            bytes: Vec::new(),
            text: String::new(),
            shown: 0,
            stops,
            mark,
        }
    }

    /// Takes the bytes of a token.
    pub fn push(&mut self, bytes: &[u8]) -> Met {
        let before = self.text.len();
        self.append(bytes);
        self.meet(before)
    }

    /// Takes the bytes of a token in which nothing is looked for, as inside a call.
    pub fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        loop {
            match std::str::from_utf8(&self.bytes) {
                Ok(whole) => {
                    self.text.push_str(whole);
                    self.bytes.clear();
                }
                Err(error) => {
                    let whole = error.valid_up_to();
                    self.text
                        .push_str(&String::from_utf8_lossy(&self.bytes[..whole]));
                    match error.error_len() {
                        // Never a letter: shown as such, and gone on behind it.
                        Some(bad) => {
                            self.text.push(char::REPLACEMENT_CHARACTER);
                            self.bytes.drain(..whole + bad);
                            continue;
                        }
                        None => drop(self.bytes.drain(..whole)),
                    }
                }
            }
            break;
        }
    }

    fn meet(&mut self, before: usize) -> Met {
        let longest = self.words().map(str::len).max().unwrap_or_default();
        let from = floor(&self.text, before.saturating_sub(longest));
        let found = |word: &str| self.text[from..].find(word).map(|at| from + at);
        let stop = self.stops.iter().filter_map(|stop| found(stop)).min();
        // A mark that stood there before was met before.
        let end_of = |mark: &String| found(mark).map(|at| at + mark.len());
        let call = self.mark.as_ref().and_then(end_of);
        let call = call.filter(|end| *end > before);
        match (stop, call) {
            (Some(stop), call) if call.is_none_or(|end| stop < end) => {
                self.text.truncate(stop);
                Met::Stop
            }
            (_, Some(end)) => {
                self.text.truncate(end);
                Met::Call
            }
            _ => Met::Nothing,
        }
    }

    /// What may be shown and was not yet.
    pub fn fresh(&mut self) -> Option<&str> {
        let held = self.words().map(|word| overlap(&self.text, word)).max();
        let end = self.text.len() - held.unwrap_or_default();
        self.show(end)
    }

    /// The rest: nothing more comes.
    pub fn rest(&mut self) -> Option<&str> {
        if !self.bytes.is_empty() {
            self.bytes.clear();
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        self.show(self.text.len())
    }

    /// Returns true if this may come to a call, which is known at its end.
    pub fn may_be_a_call(&self) -> bool {
        let marked = |mark: &str| self.text.contains(mark) || overlap(&self.text, mark) > 0;
        calls::may_be_whole(&self.text) || self.mark.as_deref().is_some_and(marked)
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn show(&mut self, end: usize) -> Option<&str> {
        let from = self.shown;
        self.shown = end.max(from);
        (end > from).then(|| &self.text[from..end])
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.stops.iter().chain(&self.mark).map(String::as_str)
    }
}

/// How much of the text's end is the beginning of a word.
fn overlap(text: &str, word: &str) -> usize {
    (1..word.len())
        .rev()
        .filter(|&len| word.is_char_boundary(len))
        .find(|&len| text.ends_with(&word[..len]))
        .unwrap_or_default()
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MARK: &str = "<tool_call>";

    /// What is shown, piece by piece, and how it ended.
    fn shown(pieces: &[&[u8]], stops: &[&str], mark: Option<&str>) -> (String, Met) {
        let stops = stops.iter().map(|s| (*s).to_owned()).collect();
        let mut said = Said::new(stops, mark.map(str::to_owned));
        let mut out = String::new();
        for piece in pieces {
            let met = said.push(piece);
            if met != Met::Nothing {
                return (out, met);
            }
            out.extend(said.fresh());
        }
        out.extend(said.rest());
        (out, Met::Nothing)
    }

    #[test]
    fn what_may_become_a_stop_word_is_held_back() {
        let pieces: [&[u8]; 4] = [b"one E", b"N", b"D", b" two"];
        assert_eq!(
            shown(&pieces, &["END"], None),
            ("one ".to_owned(), Met::Stop)
        );
        let pieces: [&[u8]; 3] = [b"one E", b"N", b"T"];
        assert_eq!(
            shown(&pieces, &["END"], None),
            ("one ENT".to_owned(), Met::Nothing)
        );
    }

    #[test]
    fn a_call_is_met_wherever_its_letters_are_cut() {
        for cut in 1..MARK.len() {
            let (a, b) = MARK.as_bytes().split_at(cut);
            let behind = [b, b"{\"na"].concat();
            let pieces: [&[u8]; 3] = [b"Well. ", a, &behind];
            let (text, met) = shown(&pieces, &[], Some(MARK));
            assert_eq!((text.as_str(), met), ("Well. ", Met::Call), "cut at {cut}");
        }
    }

    #[test]
    fn text_of_a_model_with_its_own_form_is_held_back_where_it_may_be_a_call() {
        let held = |text: &str| {
            let mut said = Said::new(Vec::new(), Some(MARK.to_owned()));
            said.push(text.as_bytes());
            said.may_be_a_call()
        };
        for text in [
            "",
            " ",
            "{\"na",
            " [TOOL_C",
            "Well.\n<tool",
            "Well. <tool_call>{",
            "`",
            "```js",
            "```json\n",
            "```\n {",
        ] {
            assert!(held(text), "{text:?}");
        }
        for text in ["Well", "a < b", "a {b}", "```rust\nfn", "```json\nWell"] {
            assert!(!held(text), "{text:?}");
        }
    }

    proptest! {
        /// However a text is cut into pieces, also inside a letter, it arrives whole.
        #[test]
        fn no_letter_is_lost(text in "\\PC{0,40}", cuts in proptest::collection::vec(1..5_usize, 0..60)) {
            let mut pieces: Vec<&[u8]> = Vec::new();
            let mut rest = text.as_bytes();
            for cut in cuts {
                let (piece, behind) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = behind;
            }
            pieces.push(rest);
            prop_assert_eq!(shown(&pieces, &["\u{1}\u{2}"], Some(MARK)).0, text);
        }

        #[test]
        fn any_bytes_are_taken(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..6), 0..12)) {
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let whole = pieces.concat();
            let (text, _) = shown(&pieces, &[], None);
            if let Ok(valid) = std::str::from_utf8(&whole) {
                prop_assert_eq!(text, valid);
            }
        }
    }
}
