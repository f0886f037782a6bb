//! Read-only mounts over what is protected, seen by one thread and what it starts.

use std::path::Path;

use rustix::mount::{MountFlags, MountPropagationFlags, mount_bind, mount_change, mount_remount};
use rustix::thread::{CapabilitySet, UnshareFlags, remove_capability_from_bounding_set};

use crate::shell::protected::Protected;

/// Gives this thread mounts of its own: what is sealed becomes read-only, and as a mount it can be
/// neither moved nor removed.
pub fn seal(protected: &Protected) -> Result<(), String> {
    private().map_err(|error| format!("mounts of its own: {error}"))?;
    for path in &protected.pinned {
        bind(path, MountFlags::empty())?;
    }
    for path in &protected.sealed {
        bind(path, MountFlags::RDONLY)?;
    }
    Ok(())
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

fn bind(path: &Path, flags: MountFlags) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", path.display());
    mount_bind(path, path).map_err(failed)?;
    let flags = MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV | flags;
    mount_remount(path, flags, "").map_err(failed)
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
