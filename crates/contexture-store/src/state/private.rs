//! Files that only the user may read, such as keys.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::{FOLDER, MOVE_AWAY, StateError, check_private};

/// Nothing that is kept so is longer.
const MAX_BYTES: u64 = 64 << 10;

/// Reads a small file that only its owner may read; none where there is none. Neither the folder nor the file may be
/// a link.
pub fn read_private(folder: &Path, name: &str) -> Result<Option<String>, StateError> {
    let path = folder.join(name);
    let refused = |why, remedy| StateError::not_private(&path, why, remedy);
    let at = |error: io::Error| StateError::io(&path, error);
    let Some(inside) = open_folder(folder)? else {
        return Ok(None);
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(&inside, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(refused("it is a link", MOVE_AWAY)),
        other => File::from(other.map_err(|error| at(error.into()))?),
    };
    let about = file.metadata().map_err(at)?;
    if !about.is_file() {
        return Err(refused("it is no regular file", MOVE_AWAY));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused("it belongs to another user", "remove it"));
    }
    if about.mode() & 0o077 != 0 {
        return Err(refused("others can read or change it", "chmod 600"));
    }
    let mut text = String::new();
    let read = file.take(MAX_BYTES).read_to_string(&mut text);
    read.map_err(at)?;
    Ok(Some(text))
}

/// Makes a file that only its owner may read, whole or not at all. Whether it was made: one that is there stays.
pub fn create_private(folder: &Path, name: &str, text: &str) -> Result<bool, StateError> {
    let path = folder.join(name);
    let at = |error: io::Error| StateError::io(&path, error);
    let missing = || at(io::ErrorKind::NotFound.into());
    let inside = open_folder(folder)?.ok_or_else(missing)?;
    let beside = format!("{name}.{}", std::process::id());
    // What a process of the same number left.
    let _ = rustix::fs::unlinkat(&inside, &beside, AtFlags::empty());
    let written = write_new(inside.as_fd(), &beside, text);
    let linked = written.and_then(|()| {
        Ok(rustix::fs::linkat(
            &inside,
            &beside,
            &inside,
            name,
            AtFlags::empty(),
        )?)
    });
    let _ = rustix::fs::unlinkat(&inside, &beside, AtFlags::empty());
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(at(error)),
        Ok(()) => {
            File::from(inside).sync_all().map_err(at)?;
            Ok(true)
        }
    }
}

/// Writes a file that only its owner may read, in the place of one that is there. It is not synced: what is kept so
/// counts no longer than the process that wrote it.
pub fn write_private(folder: &Path, name: &str, text: &str) -> Result<(), StateError> {
    let at = |error: io::Error| StateError::io(&folder.join(name), error);
    let inside = open_folder(folder)?.ok_or_else(|| at(io::ErrorKind::NotFound.into()))?;
    let beside = format!("{name}.{}", std::process::id());
    // What a process of the same number left.
    let _ = rustix::fs::unlinkat(&inside, &beside, AtFlags::empty());
    new_file(inside.as_fd(), &beside)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| Ok(rustix::fs::renameat(&inside, &beside, &inside, name)?))
        .map_err(at)
}

/// Makes a folder that only its owner can enter, empty. Its parent must be there.
pub fn clear_private(folder: &Path) -> Result<(), StateError> {
    let at = |error: io::Error| StateError::io(folder, error);
    if check_private(folder)? {
        std::fs::remove_dir_all(folder).map_err(at)?;
    }
    rustix::fs::mkdirat(CWD, folder, Mode::RWXU).map_err(|error| at(error.into()))
}

fn write_new(folder: std::os::fd::BorrowedFd<'_>, name: &str, text: &str) -> io::Result<()> {
    let mut file = new_file(folder, name)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn new_file(folder: std::os::fd::BorrowedFd<'_>, name: &str) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    Ok(File::from(rustix::fs::openat(folder, name, flags, mode)?))
}

/// A folder that is no link; none where there is none.
fn open_folder(path: &Path) -> Result<Option<OwnedFd>, StateError> {
    match rustix::fs::openat(CWD, path, FOLDER, Mode::empty()) {
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            let why = "it is a link, or no folder";
            Err(StateError::not_private(path, why, MOVE_AWAY))
        }
        other => Ok(Some(other.map_err(|error| StateError::io(path, error))?)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_private_file_is_made_once_and_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read_private(folder.path(), "key").unwrap(), None);
        assert!(create_private(folder.path(), "key", "one").unwrap());
        assert!(!create_private(folder.path(), "key", "two").unwrap());
        let text = read_private(folder.path(), "key").unwrap();
        assert_eq!(text.as_deref(), Some("one"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let mode = folder.path().join("key").metadata().unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_private_file_is_replaced_and_its_folder_cleared() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("tokens");
        assert!(write_private(&folder, "s", "one").is_err(), "no folder");
        clear_private(&folder).unwrap();
        write_private(&folder, "s", "one").unwrap();
        write_private(&folder, "s", "two").unwrap();
        assert_eq!(read_private(&folder, "s").unwrap().as_deref(), Some("two"));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("s"))), (0o700, 0o600));
        clear_private(&folder).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        // A link in its place is not followed.
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("kept"), "").unwrap();
        std::fs::remove_dir(&folder).unwrap();
        symlink(elsewhere.path(), &folder).unwrap();
        assert!(clear_private(&folder).is_err());
        assert!(elsewhere.path().join("kept").exists());
    }

    #[test]
    fn a_file_that_others_can_read_or_a_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        create_private(folder.path(), "key", "one").unwrap();
        for mode in [0o640, 0o604, 0o622] {
            std::fs::set_permissions(&key, PermissionsExt::from_mode(mode)).unwrap();
            let refused = read_private(folder.path(), "key").unwrap_err();
            assert!(refused.hint().contains("chmod 600"), "{refused}");
        }
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        symlink(&key, folder.path().join("link")).unwrap();
        let refused = read_private(folder.path(), "link").unwrap_err();
        assert!(matches!(refused, StateError::NotPrivate { .. }));
        let around = tempfile::tempdir().unwrap();
        let link = around.path().join("folder");
        symlink(folder.path(), &link).unwrap();
        assert!(read_private(&link, "key").is_err());
        assert!(create_private(&link, "new", "x").is_err());
        assert!(!folder.path().join("new").exists());
    }
}
