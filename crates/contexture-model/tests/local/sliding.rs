//! A model that looks back only so far: what rests of it can be read on, and not be cut.

use std::path::Path;

use contexture_model::local::LocalModel;

use crate::local::OPTIONS;
use crate::local::prefix::{COOK, Chat, TEACHER};
use crate::small_model::weights;

/// How far every other layer looks back.
const WINDOW: u32 = 24;
const LAYERS: u64 = 30;
const HEADS: u64 = 9;
/// Where the data of a tensor may begin.
const ALIGNED: usize = 32;

// needs: model
#[test]
fn a_conversation_goes_on_after_a_rest_and_its_branches_are_read_anew() {
    let Some(path) = weights() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sliding.gguf");
    write(&path, &file);
    let open = || LocalModel::open("sliding", &file, OPTIONS).unwrap();
    let (model, fresh) = (open(), open());

    let mut chat = Chat::new(TEACHER);
    let mut said = vec![chat.say(&model, "What is a verb?")];
    let early = || Chat(chat.0.clone());
    let (early, branch) = (early(), early());
    said.push(chat.say(&model, "Give me three examples of it."));
    let mut other = Chat::new(COOK);
    other.say(&model, "What goes into a minestrone?");
    said.push(chat.say(&model, "And a noun?"));
    let mut alone = Chat::new(TEACHER);
    let texts = [
        "What is a verb?",
        "Give me three examples of it.",
        "And a noun?",
    ];
    assert_eq!(
        texts.map(|text| alone.say(&fresh, text)),
        *said,
        "it goes on"
    );

    // It was at rest, and is left in its middle: in the cells, and then when it rests again.
    for (mut branch, text) in [(branch, "What is it not?"), (early, "Why is that?")] {
        let anew = Chat(branch.0.clone()).say(&open(), text);
        assert_eq!(anew.2, 0, "{anew:?}");
        assert_eq!(
            branch.say(&model, text),
            anew,
            "what it looked back to is gone"
        );
        other.say(&model, "And into a borscht?");
    }
}

/// The small model's weights as those of a network in which every other layer looks back only so far.
fn write(from: &Path, to: &Path) {
    let bytes = std::fs::read(from).unwrap();
    let mut old = Old {
        bytes: &bytes,
        at: 0,
    };
    let mut new = old.take(8).to_vec();
    let (tensors, keys) = (old.number(8), old.number(8));
    number(&mut new, tensors + LAYERS, 8);
    number(&mut new, keys + 3, 8);
    for _ in 0..keys {
        let name = String::from_utf8(old.text().to_vec()).unwrap();
        text(&mut new, &name.replacen("llama.", "granite_swa.", 1));
        let begin = old.at;
        let kind = old.number(4);
        old.skip(kind);
        if name == "general.architecture" {
            number(&mut new, 8, 4);
            text(&mut new, "granite_swa");
        } else {
            new.extend(&bytes[begin..old.at]);
        }
    }
    text(&mut new, "granite_swa.logit_scale");
    number(&mut new, 6, 4);
    new.extend(1f32.to_le_bytes());
    text(&mut new, "granite_swa.attention.sliding_window");
    number(&mut new, 4, 4);
    number(&mut new, WINDOW.into(), 4);
    text(&mut new, "granite_swa.attention.sliding_window_pattern");
    number(&mut new, 9, 4);
    number(&mut new, 4, 4);
    number(&mut new, LAYERS, 8);
    (0..LAYERS).for_each(|layer| number(&mut new, layer % 2, 4));

    let begin = old.at;
    for _ in 0..tensors {
        old.text();
        let dimensions = old.number(4) as usize;
        old.take(8 * dimensions + 12);
    }
    new.extend(&bytes[begin..old.at]);
    let data = &bytes[old.at.next_multiple_of(ALIGNED)..];
    // Sinks of attention, which this architecture must have, too low to take any.
    let sinks = vec![(-1e9_f32).to_le_bytes(); HEADS as usize].concat();
    let place = sinks.len().next_multiple_of(ALIGNED);
    let end = data.len().next_multiple_of(ALIGNED);
    for layer in 0..LAYERS {
        text(&mut new, &format!("blk.{layer}.attn_sinks.weight"));
        number(&mut new, 1, 4);
        number(&mut new, HEADS, 8);
        number(&mut new, 0, 4);
        number(&mut new, (end + layer as usize * place) as u64, 8);
    }
    new.resize(new.len().next_multiple_of(ALIGNED), 0);
    new.extend(data);
    for _ in 0..LAYERS {
        new.resize(new.len().next_multiple_of(ALIGNED), 0);
        new.extend(&sinks);
    }
    std::fs::write(to, new).unwrap();
}

fn number(bytes: &mut Vec<u8>, value: u64, width: usize) {
    bytes.extend(&value.to_le_bytes()[..width]);
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    number(bytes, text.len() as u64, 8);
    bytes.extend(text.as_bytes());
}

/// A file that is being read.
struct Old<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Old<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        taken
    }

    fn number(&mut self, width: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes[..width].copy_from_slice(self.take(width));
        u64::from_le_bytes(bytes)
    }

    fn text(&mut self) -> &'a [u8] {
        let length = self.number(8) as usize;
        self.take(length)
    }

    /// Passes over a value of this kind.
    fn skip(&mut self, kind: u64) {
        match kind {
            0 | 1 | 7 => drop(self.take(1)),
            2 | 3 => drop(self.take(2)),
            4..=6 => drop(self.take(4)),
            8 => drop(self.text()),
            9 => {
                let (kind, count) = (self.number(4), self.number(8));
                (0..count).for_each(|_| self.skip(kind));
            }
            _ => drop(self.take(8)),
        }
    }
}
