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

/// The memory that may still be taken: of the machine, of the group that this process is in, and by
/// its own limit.
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
    // What the shell's `ulimit -v` leaves.
    let own = read("/proc/self/limits").and_then(|limits| {
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max address space"))?;
        let most: u64 = line.split_whitespace().next()?.parse().ok()?;
        let pages = read("/proc/self/statm")?;
        let taken: u64 = pages.split(' ').next()?.parse().ok()?;
        Some(most.saturating_sub(taken.saturating_mul(4096)))
    });
    [machine, group, own].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_fewer_where_memory_is_short_and_too_few_are_refused() {
        let (weights, cell) = (100 << 20, 20_000);
        let room = |free: u64| within(Some(free), weights, cell, 8_192);
        assert!(matches!(room(2 << 30), Ok(8_192)));
        let some = room(weights + ENGINE + 2_000 * cell).ok();
        assert_eq!(some, Some(2_000));
        let Err(LocalError::Memory { needed, free }) = room(weights + ENGINE + 100 * cell) else {
            unreachable!("a hundred cells are of no use");
        };
        assert!(needed > free);
        assert!(
            within(None, u64::MAX, u64::MAX, 8_192).is_ok(),
            "nobody says how much there is"
        );
        assert!(
            within(Some(1 << 40), u64::MAX, u64::MAX, 8_192).is_err(),
            "and no overflow"
        );
    }
}
