//! The result of a call as it is shown to people: texts, and the places of terminals; and the output of those.

use contexture::message::Part;
use serde_json::Value;

use super::call::MAX_RESULT_BYTES;
use super::part::{PART, cut, part};

/// The most bytes of what a command printed; of more, the end.
pub(crate) const MAX_OUTPUT_BYTES: usize = MAX_RESULT_BYTES - 64;
/// The longest id of a terminal.
const MAX_ID_BYTES: usize = 200;
/// The most terminals of a call; of more, the last.
const MAX_TERMINALS: usize = 4;
/// Keys in the `_meta` of an update that hold a command's output, as `{"terminal_id", "data"}`, in pieces. They are no
/// part of the protocol, but what agents have agreed on that run commands themselves.
pub(crate) const TERMINAL_OUTPUT: [&str; 2] = ["terminal_output", "terminal_output_delta"];

/// A piece of what came of a call.
#[derive(Debug)]
pub(super) enum Piece {
    Text(String),
    /// The place of what a terminal printed.
    Terminal(String),
}

/// The end of what a command printed.
#[derive(Debug)]
pub(super) struct Terminal {
    id: String,
    kept: String,
    /// The number of bytes before the end that are not kept.
    cut: usize,
}

/// The output of a call's terminals.
#[derive(Debug, Default)]
pub(super) struct Terminals(Vec<Terminal>);

impl Terminals {
    /// Takes what an update tells in its `_meta`.
    pub fn take(&mut self, meta: &Value) {
        for key in TERMINAL_OUTPUT {
            let (id, data) = (&meta[key]["terminal_id"], &meta[key]["data"]);
            if let (Some(id), Some(data)) = (id.as_str(), data.as_str())
                && id.len() <= MAX_ID_BYTES
            {
                self.of(id).push(data);
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Terminal> {
        self.0.iter()
    }

    pub fn held(&self) -> usize {
        self.iter().map(|one| PART + one.kept.len()).sum()
    }

    fn of(&mut self, id: &str) -> &mut Terminal {
        let known = self.0.iter().position(|known| known.id == id);
        let at = known.unwrap_or_else(|| {
            if self.0.len() == MAX_TERMINALS {
                self.0.remove(0);
            }
            self.0.push(Terminal::new(id));
            self.0.len() - 1
        });
        &mut self.0[at]
    }
}

impl Piece {
    pub fn held(&self) -> usize {
        match self {
            Self::Text(text) | Self::Terminal(text) => PART + text.len(),
        }
    }
}

impl Terminal {
    fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            kept: String::new(),
            cut: 0,
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    fn push(&mut self, data: &str) {
        self.kept.push_str(data);
        // Twice as much is kept before the beginning goes, so that it is not moved for every piece.
        if self.kept.len() > 2 * MAX_OUTPUT_BYTES {
            let at = self
                .kept
                .ceil_char_boundary(self.kept.len() - MAX_OUTPUT_BYTES);
            self.kept.drain(..at);
            self.cut += at;
        }
    }

    pub fn text(&self) -> String {
        let from = self.kept.len().saturating_sub(MAX_OUTPUT_BYTES);
        let from = self.kept.ceil_char_boundary(from);
        let text = self.kept[from..].trim_end_matches('\n');
        match self.cut + from {
            0 => text.to_owned(),
            cut => format!("[{cut} bytes were cut]\n{text}"),
        }
    }
}

/// The result of a call, as it is shown to people.
pub(super) fn shown(content: &Value) -> Vec<Piece> {
    let mut room = MAX_RESULT_BYTES;
    let mut pieces = Vec::new();
    for piece in content.as_array().into_iter().flatten().filter_map(piece) {
        // Whatever is beyond is not written.
        if room == 0 {
            break;
        }
        room = room.saturating_sub(piece.held());
        pieces.push(piece);
    }
    pieces
}

fn piece(content: &Value) -> Option<Piece> {
    let text = match content["type"].as_str()? {
        "content" => match part(&content["content"], false)? {
            Part::Text { text, .. } => text,
            _ => "[an image]".to_owned(),
        },
        "diff" => {
            let path = content["path"].as_str().unwrap_or_default();
            let new = content["newText"].as_str().unwrap_or_default();
            match content["oldText"].as_str() {
                Some(old) => format!("{path}, before:\n{old}\n{path}, now:\n{new}"),
                None => format!("{path}, new:\n{new}"),
            }
        }
        "terminal" => {
            let id = content["terminalId"].as_str()?;
            return (id.len() <= MAX_ID_BYTES).then(|| Piece::Terminal(id.to_owned()));
        }
        _ => return None,
    };
    Some(Piece::Text(cut(&text, MAX_RESULT_BYTES)))
}
