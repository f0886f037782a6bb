//! Mounts seen by one thread and what it starts: all is read-only but what may be written, and what must not be read or
//! changed has another mount over it.
//!
//! Read-only mounts refuse what Landlock does not know: modes, owners, times and extended attributes.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount,
};
use rustix::thread::{CapabilitySet, UnshareFlags, remove_capability_from_bounding_set};

use super::reach::{DEVICES, Reach};

/// Gives this thread mounts of its own. What is sealed or masked is a mount, so it can be neither moved nor removed.
pub fn seal(reach: &Reach) -> Result<(), String> {
    private().map_err(|error| format!("mounts of its own: {error}"))?;
    for path in &reach.write {
        mount_bind_recursive(path, path).map_err(at(path))?;
    }
    let writable = |path: &Path| reach.write.iter().any(|write| path.starts_with(write));
    let mounted = mounted()?;
    for (path, flags) in mounted.iter().filter(|(path, _)| !writable(path)) {
        match mount_remount(path, MountFlags::BIND | MountFlags::RDONLY | *flags, "") {
            // Under another mount, or closed to us: nothing that we start gets there.
            Ok(()) | Err(Errno::INVAL | Errno::NOENT | Errno::ACCESS | Errno::NOTDIR) => {}
            Err(error) => return Err(at(path)(error)),
        }
    }
    for path in &reach.protected.pinned {
        bind(path, path, MountFlags::empty())?;
    }
    for path in &reach.protected.sealed {
        bind(path, path, MountFlags::RDONLY)?;
    }
    reach.masked.iter().try_for_each(|path| mask(path))?;
    hide_processes(&mounted);
    Ok(())
}

/// Makes the devices read-only that bubblewrap lends to commands: their modes are the system's. Only root could change
/// them, and root may do this, mostly.
pub fn keep_devices() {
    if private().is_err() {
        return;
    }
    for device in DEVICES.iter().chain(&["/dev/tty"]) {
        if mount_bind(*device, *device).is_ok() {
            _ = mount_remount(
                *device,
                MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID,
                "",
            );
        }
    }
}

/// Whether this thread may do that here. It must end afterwards.
pub fn try_out() -> Result<(), String> {
    seal(&Reach::default())
}

// It is deprecated for what it does to shared descriptors, which are left alone here.
#[allow(deprecated)]
fn private() -> rustix::io::Result<()> {
    rustix::thread::unshare(UnshareFlags::NEWNS)?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
}

fn bind(what: &Path, path: &Path, flags: MountFlags) -> Result<(), String> {
    mount_bind(what, path).map_err(at(path))?;
    let flags = MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV | flags;
    mount_remount(path, flags, "").map_err(at(path))
}

/// Hides a file behind a device that cannot be opened, a folder behind an empty one.
fn mask(path: &Path) -> Result<(), String> {
    if path.is_dir() {
        let flags =
            MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        return mount("none", path, "tmpfs", flags, c"mode=000,size=4k").map_err(at(path));
    }
    bind(Path::new("/dev/null"), path, MountFlags::RDONLY)
}

/// Shows of the processes only those that a command may look into: its own. Where parts of `/proc` are covered, they stay
/// so; then only the command lines of others can be read, because Landlock refuses the rest.
fn hide_processes(mounted: &[(PathBuf, MountFlags)]) {
    let covered = |path: &Path| {
        path.starts_with("/proc") && !path.ends_with("proc") && !path.ends_with("binfmt_misc")
    };
    if !mounted.iter().any(|(path, _)| covered(path)) {
        let flags =
            MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        _ = mount("proc", "/proc", "proc", flags, c"hidepid=ptraceable");
    }
}

/// Every mount that this thread sees, and what it keeps when it is changed.
fn mounted() -> Result<Vec<(PathBuf, MountFlags)>, String> {
    const INFO: &str = "/proc/thread-self/mountinfo";
    let info = fs::read(INFO).map_err(|error| format!("{INFO}: {error}"))?;
    let lines = info.split(|byte| *byte == b'\n');
    Ok(lines.filter_map(parse).collect())
}

/// `ID PARENT DEVICE ROOT PATH OPTIONS …`
fn parse(line: &[u8]) -> Option<(PathBuf, MountFlags)> {
    let mut fields = line.split(|byte| *byte == b' ').skip(4);
    let path = unescape(fields.next()?);
    let options = fields.next()?.split(|byte| *byte == b',');
    let kept = options.filter_map(|option| match option {
        b"nosuid" => Some(MountFlags::NOSUID),
        b"nodev" => Some(MountFlags::NODEV),
        b"noexec" => Some(MountFlags::NOEXEC),
        _ => None,
    });
    Some((path, kept.collect()))
}

/// Blanks and the like are written as `\` with three octal digits.
fn unescape(path: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&first, behind)) = rest.split_first() {
        let digits = behind.get(..3).filter(|_| first == b'\\');
        let number = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match number.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[3..];
            }
            None => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

fn at(path: &Path) -> impl FnOnce(Errno) -> String {
    move |error| format!("{}: {error}", path.display())
}

/// What root keeps: to own, read and write files as root does, and to become somebody else.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// Takes root's powers over the system from what this thread starts. Others have none to lose, so it
/// does not matter if it fails.
pub fn drop_powers() {
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        _ = remove_capability_from_bounding_set(capability);
    }
}
