//! What there is, before the engine asks for it: it would end the process where there is too little.

use super::LocalError;

/// What the engine needs beside weights and cells.
const ENGINE: u64 = 192 << 20;

/// The fewest tokens with which a model is of any use.
const FEWEST: usize = 512;

/// How many cells there is memory for, of those that are wanted.
pub(super) fn fitting(weights: u64, cell: u64, wanted: usize) -> Result<usize, LocalError> {
    within(free(), weights, cell, wanted)
}

fn within(free: Option<u64>, weights: u64, cell: u64, wanted: usize) -> Result<usize, LocalError> {
    // Where nobody says how much there is, it is tried.
    let Some(free) = free else { return Ok(wanted) };
    let fixed = weights.saturating_add(ENGINE);
    let left = free.saturating_sub(fixed);
    let cells = left.checked_div(cell).unwrap_or(u64::MAX);
    let cells = usize::try_from(cells).unwrap_or(usize::MAX).min(wanted);
    if cells < FEWEST.min(wanted) {
        let needed = fixed.saturating_add(cell.saturating_mul(FEWEST as u64));
        return Err(LocalError::Memory { needed, free });
    }
    Ok(cells)
}

/// The memory that may still be taken: of the machine, and of the group that limits this process.
fn free() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|info| {
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix("MemAvailable:"))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes << 10)
    });
    let group = read("/proc/self/cgroup").and_then(|groups| {
        let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
        let number = |name: &str| -> Option<u64> {
            let path = format!("/sys/fs/cgroup{}/{name}", own.trim_end_matches('/'));
            read(&path)?.trim().parse().ok()
        };
        Some(number("memory.max")?.saturating_sub(number("memory.current")?))
    });
    match (machine, group) {
        (Some(machine), Some(group)) => Some(machine.min(group)),
        (one, other) => one.or(other),
    }
}
