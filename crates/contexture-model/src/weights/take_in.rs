use std::fs::File;
use std::io;
use std::path::Path;

use super::pour::{Spilt, hash, pour};
use super::record::new_file;
use super::{Progress, WeightsError};
use crate::gguf::Header;

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
    check(given, from)?;
    let mut file = File::open(from).map_err(theirs)?;
    let total = file.metadata().map_err(theirs)?.len();
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

/// Whether the file can be a model's. `given` is what the user calls it.
fn check(given: &Path, file: &Path) -> Result<(), WeightsError> {
    match Header::of_file(file) {
        Ok(_) => Ok(()),
        Err(mut error) => {
            error.path = Some(given.to_owned());
            Err(WeightsError::NoModel(error))
        }
    }
}
