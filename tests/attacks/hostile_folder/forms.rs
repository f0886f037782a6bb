//! The forms in which a file or a folder can be something else than it seems.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

/// What stands in the place of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A link to the same, outside.
    Link,
    /// A link to something outside that is not there: to follow it would make it.
    Dangling,
    /// A link to itself.
    Loop,
    /// Another name of a file outside.
    HardLink,
    Fifo,
    Socket,
    /// Many megabytes of nothing.
    Sparse,
    /// A link to an endless device.
    Device,
    Unreadable,
    /// Open to everybody.
    Open,
    /// A folder in the place of a file, or a file in the place of a folder.
    Other,
    Empty,
    /// A line of many megabytes, of tiny values.
    Tiny,
    /// The last bytes are missing.
    Torn,
    /// No UTF-8.
    Bytes,
}

impl Form {
    pub const ALL: [Self; 15] = [
        Self::Link,
        Self::Dangling,
        Self::Loop,
        Self::HardLink,
        Self::Fifo,
        Self::Socket,
        Self::Sparse,
        Self::Device,
        Self::Unreadable,
        Self::Open,
        Self::Other,
        Self::Empty,
        Self::Tiny,
        Self::Torn,
        Self::Bytes,
    ];

    /// Puts it in the place of what is at `path`; `twin` is what stands for it outside.
    pub fn take(self, path: &Path, twin: &Path) {
        let about = path.symlink_metadata();
        let folder = about.as_ref().is_ok_and(fs::Metadata::is_dir);
        // What is odd already may have no end.
        let plain = about.is_ok_and(|about| about.is_file() && about.len() < 1 << 20);
        let known = if plain {
            fs::read(path).unwrap_or_default()
        } else {
            Vec::new()
        };
        if !matches!(self, Self::Unreadable | Self::Open) {
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
            assert!(
                path.symlink_metadata().is_err(),
                "{} is still there",
                path.display()
            );
        }
        match self {
            Self::Link => symlink(twin, path).unwrap(),
            Self::Dangling => symlink(twin.with_extension("missing"), path).unwrap(),
            Self::Loop => symlink(path, path).unwrap(),
            Self::HardLink if folder => symlink(twin, path).unwrap(),
            Self::HardLink => fs::hard_link(twin, path).unwrap(),
            Self::Fifo => {
                mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
            }
            // The address of a socket is short; a longer one is no loss.
            Self::Socket => drop(UnixListener::bind(path)),
            Self::Sparse => drop(File::create(path).unwrap().set_len(1 << 24)),
            Self::Device => symlink("/dev/zero", path).unwrap(),
            // Of a link there is none to change.
            Self::Unreadable => drop(fs::set_permissions(path, Permissions::from_mode(0o000))),
            Self::Open => drop(fs::set_permissions(path, Permissions::from_mode(0o777))),
            Self::Other if folder => fs::write(path, "no folder").unwrap(),
            Self::Other => fs::create_dir(path).unwrap(),
            Self::Empty if folder => fs::create_dir(path).unwrap(),
            Self::Empty => fs::write(path, "").unwrap(),
            Self::Tiny => fs::write(
                path,
                format!(
                    "{{\"id\":\"x\",\"type\":\"custom\",\"payload\":[{}{{}}]}}\n",
                    "{},".repeat(1 << 18)
                ),
            )
            .unwrap(),
            Self::Torn => fs::write(path, &known[..known.len() * 9 / 10]).unwrap(),
            Self::Bytes => {
                fs::write(path, [&known[..], b"\xff\xfe\0\x1b]0;x\x07\n"].concat()).unwrap();
            }
        }
    }
}
