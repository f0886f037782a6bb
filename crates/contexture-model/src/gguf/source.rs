use std::io::{BufReader, ErrorKind, Read, Seek};

use super::error::{Fault, GgufError, Place, grouped};

/// The most bytes that a header may have. Those of real models have 20 MB at most, and the engine
/// keeps up to four times as much of it in memory.
pub(super) const MOST_BYTES: u64 = 128 << 20;
/// The most memory that is used for what is kept of it.
const MOST_KEPT: u64 = 64 << 20;

/// A header's bytes in their order. Nothing is read or reserved that the file cannot hold, and every
/// error says where it happened.
pub(super) struct Source<'a, R> {
    reader: BufReader<&'a mut R>,
    /// What is being read.
    pub place: Place,
    at: u64,
    len: u64,
    room: u64,
}

impl<'a, R: Read + Seek> Source<'a, R> {
    pub fn new(reader: &'a mut R, len: u64) -> Result<Self, GgufError> {
        let mut source = Self {
            reader: BufReader::with_capacity(1 << 16, reader),
            place: Place::File,
            at: 0,
            len,
            room: MOST_KEPT,
        };
        let begun = source.reader.rewind();
        begun.map_err(|error| source.unreadable(&error))?;
        Ok(source)
    }

    /// How many bytes were read or skipped.
    pub fn at(&self) -> u64 {
        self.at
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether so many more bytes can be there at all. To be asked before anything is reserved.
    pub fn claim(&self, bytes: u64) -> Result<(), GgufError> {
        if bytes > MOST_BYTES.saturating_sub(self.at) {
            let what = format!(
                "it claims {} more bytes, and a header has {} at most",
                grouped(bytes),
                grouped(MOST_BYTES)
            );
            return Err(self.error(Fault::TooLarge(what)));
        }
        match bytes.checked_sub(self.len.saturating_sub(self.at)) {
            None | Some(0) => Ok(()),
            Some(missing) => Err(self.error(Fault::Truncated { missing })),
        }
    }

    /// Whether so much more memory may be used for what is read now.
    pub fn has_room(&self, bytes: u64) -> Result<(), GgufError> {
        if bytes > self.room {
            let what = format!(
                "the header would take more than {} bytes of memory",
                grouped(MOST_KEPT)
            );
            return Err(self.error(Fault::TooLarge(what)));
        }
        Ok(())
    }

    /// Takes memory for something that is kept.
    pub fn keep(&mut self, bytes: u64) -> Result<(), GgufError> {
        self.has_room(bytes)?;
        self.room -= bytes;
        Ok(())
    }

    pub fn u32(&mut self) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A number of one to eight bytes, as its bits.
    pub fn bits(&mut self, bytes: u64) -> Result<u64, GgufError> {
        let mut bits = [0; 8];
        self.exact(&mut bits[..bytes.min(8) as usize])?;
        Ok(u64::from_le_bytes(bits))
    }

    /// The bytes of a string of at most so many, in the place of what `into` holds.
    pub fn string(&mut self, most: u64, into: &mut Vec<u8>) -> Result<(), GgufError> {
        let len = self.u64()?;
        self.claim(len)?;
        if len > most {
            let (len, most) = (grouped(len), grouped(most));
            let what = format!("a string has {len} bytes, and {most} are possible");
            return Err(self.broken(what));
        }
        self.has_room(len)?;
        into.clear();
        into.resize(len as usize, 0);
        self.fill(into)
    }

    /// A string of at most so many bytes that must be text.
    pub fn text(&mut self, most: u64) -> Result<String, GgufError> {
        let mut bytes = Vec::new();
        self.string(most, &mut bytes)?;
        String::from_utf8(bytes).map_err(|_| self.broken("a string is not valid UTF-8"))
    }

    /// A name: text that can stand on a line.
    pub fn name(&mut self, most: u64) -> Result<String, GgufError> {
        let mut bytes = Vec::new();
        self.string(most, &mut bytes)?;
        match String::from_utf8(bytes) {
            Ok(name) if name.is_empty() => Err(self.broken("its name is empty")),
            Ok(name) if name.chars().any(char::is_control) => {
                Err(self.broken("its name has a control character"))
            }
            Ok(name) => Ok(name),
            Err(_) => Err(self.broken("its name is not valid UTF-8")),
        }
    }

    pub fn skip(&mut self, bytes: u64) -> Result<(), GgufError> {
        self.claim(bytes)?;
        let skipped = self.reader.seek_relative(bytes as i64);
        skipped.map_err(|error| self.unreadable(&error))?;
        self.at += bytes;
        Ok(())
    }

    pub fn broken(&self, what: impl Into<String>) -> GgufError {
        self.error(Fault::Broken(what.into()))
    }

    pub fn error(&self, fault: Fault) -> GgufError {
        GgufError {
            byte: Some(self.at),
            ..GgufError::new(self.place.clone(), fault)
        }
    }

    /// As many bytes as there is room for.
    pub fn exact(&mut self, bytes: &mut [u8]) -> Result<(), GgufError> {
        self.claim(bytes.len() as u64)?;
        self.fill(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        let mut bytes = [0; N];
        self.exact(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), GgufError> {
        let filled = self.reader.read_exact(bytes);
        filled.map_err(|error| self.unreadable(&error))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn unreadable(&self, error: &std::io::Error) -> GgufError {
        let what = match error.kind() {
            ErrorKind::UnexpectedEof => "it became shorter while it was read".to_owned(),
            _ => error.to_string(),
        };
        self.error(Fault::Unreadable(what))
    }
}
