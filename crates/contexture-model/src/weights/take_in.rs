use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use super::pour::{Spilt, hash, pour};
use super::record::new_file;
use super::{Progress, WeightsError};

/// Makes `new` a second name of a file, or else a copy of it, on the disk. Gives its SHA-256. `given` is
/// the file as the user named it, `real` where it really is: a second name of a link would be a link.
pub(super) fn take_in(
    given: &Path,
    real: &Path,
    new: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<String, WeightsError> {
    let theirs = |error| WeightsError::io(given, error);
    let ours = |error| WeightsError::io(new, error);
    match std::fs::remove_file(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(ours(error)),
        _ => {}
    }
    let linked = std::fs::hard_link(real, new).is_ok();
    let from = if linked { new } else { real };
    let about = from.symlink_metadata().map_err(theirs)?;
    regular(given, &about)?;
    check(given, from)?;
    let mut file = File::open(from).map_err(theirs)?;
    let total = about.len();
    if linked {
        let mut on = |done| {
            progress(Progress::Checking { done, total });
            true
        };
        let sha256 = hash(&mut file, &mut on).map_err(theirs)?;
        file.sync_all().map_err(theirs)?;
        return Ok(sha256);
    }
    let mut on = |done| {
        progress(Progress::Copying { done, total });
        true
    };
    let mut copy = new_file(new).map_err(ours)?;
    let poured = pour(&mut file, &mut copy, &mut on);
    let (_, sha256) = poured.map_err(|spilt| match spilt {
        Spilt::Reading(error) => theirs(error),
        Spilt::Writing(error) => ours(error),
        Spilt::Stopped => ours(io::ErrorKind::Interrupted.into()),
    })?;
    copy.sync_all().map_err(ours)?;
    Ok(sha256)
}

/// A pipe or a device could keep us waiting for ever.
pub(super) fn regular(place: &Path, about: &Metadata) -> Result<(), WeightsError> {
    match about.is_file() {
        true => Ok(()),
        false => Err(WeightsError::NoModel {
            place: place.to_owned(),
            what: "is no regular file".to_owned(),
        }),
    }
}

/// Whether the file can be a model's.
fn check(place: &Path, file: &Path) -> Result<(), WeightsError> {
    let mut magic = Vec::new();
    File::open(file)
        .and_then(|file| file.take(4).read_to_end(&mut magic))
        .map_err(|error| WeightsError::io(place, error))?;
    match magic == *b"GGUF" {
        true => Ok(()),
        false => Err(WeightsError::NoModel {
            place: place.to_owned(),
            what: "is no GGUF file".to_owned(),
        }),
    }
}
