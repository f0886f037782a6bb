use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

/// How many bytes are handled at once.
const CHUNK: usize = 256 << 10;

/// Why not everything was poured.
#[derive(Debug)]
pub(super) enum Spilt {
    /// It could not be read.
    Reading(io::Error),
    /// It could not be written.
    Writing(io::Error),
    /// Nobody wants it any more.
    Stopped,
}

/// Reads to the end, and writes what it reads. Gives the length and the SHA-256 in hexadecimal digits.
/// `on` is told how far it is, and says whether to go on.
pub(super) fn pour(
    from: &mut dyn Read,
    to: &mut dyn Write,
    on: &mut dyn FnMut(u64) -> bool,
) -> Result<(u64, String), Spilt> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    let mut done = 0;
    loop {
        let read = match from.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.map_err(Spilt::Reading)?,
        };
        if read == 0 {
            let sha256 = hash.finalize();
            let digits = sha256.iter().map(|byte| format!("{byte:02x}"));
            return Ok((done, digits.collect()));
        }
        hash.update(&chunk[..read]);
        to.write_all(&chunk[..read]).map_err(Spilt::Writing)?;
        done += read as u64;
        if !on(done) {
            return Err(Spilt::Stopped);
        }
    }
}

/// The SHA-256 of all there is to read.
pub(super) fn hash(from: &mut dyn Read, on: &mut dyn FnMut(u64) -> bool) -> io::Result<String> {
    match pour(from, &mut io::sink(), on) {
        Ok((_, sha256)) => Ok(sha256),
        Err(Spilt::Reading(error) | Spilt::Writing(error)) => Err(error),
        Err(Spilt::Stopped) => Err(io::Error::other("it was stopped")),
    }
}
