use std::fmt;
use std::path::{Path, PathBuf};

/// Why a file is not taken as a model: where, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{fault}", whereabouts(.path.as_deref(), .place, *.byte))]
#[non_exhaustive]
pub struct GgufError {
    /// The file, where it has a name.
    pub path: Option<PathBuf>,
    /// The part of the header.
    pub place: Place,
    /// How far the file was read, where that says something.
    pub byte: Option<u64>,
    /// What is wrong.
    pub fault: Fault,
}

/// A part of a GGUF file's header.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// The file as a whole.
    File,
    /// A key whose name could not be read, by its number from 1.
    NthKey(u64),
    /// A key.
    Key(String),
    /// A tensor whose name could not be read, by its number from 1.
    NthTensor(u64),
    /// A tensor.
    Tensor(String),
}

/// What is wrong with a file. Whoever reads it decides by the kind, never by the words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The system does not let us read it.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// A folder, a pipe, a device.
    #[error("it is not a regular file")]
    NotAFile,
    /// Something else than GGUF.
    #[error("it is not a GGUF file: it begins with \"{0}\"")]
    NotGguf(String),
    /// A version of the format that nobody here reads.
    #[error("it is written in version {0} of GGUF, and versions 2 and 3 can be read")]
    Version(u32),
    /// Written on or for a machine with the other byte order.
    #[error("it is written for big-endian machines, and only little-endian files can be read")]
    BigEndian,
    /// The file is shorter than its header says.
    #[error("the file ends {} bytes early: was it downloaded completely?", grouped(*.missing))]
    Truncated {
        /// How many bytes are missing, at least.
        missing: u64,
    },
    /// More than any model needs, and so more than is read.
    #[error("{0}")]
    TooLarge(String),
    /// What is written there makes no sense, or would bring the engine down.
    #[error("{0}")]
    Broken(String),
    /// One of several files that make up a model.
    #[error("it is one of {0} files that make up the model")]
    Split(u32),
    /// A model that does not write text.
    #[error(
        "it is {what} (\"{architecture}\"), and only models that write text, token by token, can be used"
    )]
    NotForText {
        /// Its architecture.
        architecture: String,
        /// What it is instead.
        what: &'static str,
    },
    /// A model that the engine does not know.
    #[error("its architecture \"{0}\" is not known to this version")]
    UnknownArchitecture(String),
}

impl GgufError {
    pub(super) fn new(place: Place, fault: Fault) -> Self {
        let (path, byte) = (None, None);
        Self {
            path,
            place,
            byte,
            fault,
        }
    }

    /// Something about a key makes no sense.
    pub(super) fn key(key: &str, what: impl Into<String>) -> Self {
        Self::new(Place::Key(key.to_owned()), Fault::Broken(what.into()))
    }

    /// Something about a tensor makes no sense.
    pub(super) fn tensor(name: &str, what: impl Into<String>) -> Self {
        Self::new(Place::Tensor(name.to_owned()), Fault::Broken(what.into()))
    }

    pub(super) fn of_path(self, path: &Path) -> Self {
        Self {
            path: Some(path.to_owned()),
            ..self
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self.fault {
            Fault::Unreadable(_) => "check the path and the file's permissions",
            Fault::NotAFile => "give the path of the .gguf file itself",
            Fault::NotGguf(_) => {
                "give a .gguf file; if it should be one, download it again, as a web page or a Git LFS \
                 pointer may lie in its place"
            }
            Fault::Version(_) | Fault::BigEndian => {
                "take a file that a current llama.cpp wrote (GGUF 3, little-endian)"
            }
            Fault::Truncated { .. } => "download it again",
            Fault::TooLarge(_) | Fault::Broken(_) => {
                "download it again from a source that you trust, or take another conversion of the model"
            }
            Fault::Split(_) => "join them with `llama-gguf-split --merge`, or take a single file",
            Fault::NotForText { .. } => "choose a model that writes text",
            Fault::UnknownArchitecture(_) => {
                "a newer version may know it; until then choose another model"
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("the file"),
            Self::NthKey(n) => write!(f, "key {}", grouped(*n)),
            Self::Key(name) => write!(f, "key \"{}\"", shown(name)),
            Self::NthTensor(n) => write!(f, "tensor {}", grouped(*n)),
            Self::Tensor(name) => write!(f, "tensor \"{}\"", shown(name)),
        }
    }
}

fn whereabouts(path: Option<&Path>, place: &Place, byte: Option<u64>) -> String {
    let mut text = match path {
        Some(path) => format!("{}: ", path.display()),
        None => String::new(),
    };
    if *place != Place::File {
        text += &match byte {
            Some(byte) => format!("{place} (byte {}): ", grouped(byte)),
            None => format!("{place}: "),
        };
    }
    text
}

/// A name from the file as it may stand in a message: short, and without control characters.
pub(super) fn shown(name: &str) -> String {
    const MOST: usize = 80;
    let mut text: String = name
        .chars()
        .take(MOST)
        .flat_map(char::escape_debug)
        .collect();
    if name.chars().nth(MOST).is_some() {
        text.push('…');
    }
    text
}

/// A number with commas between thousands.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
