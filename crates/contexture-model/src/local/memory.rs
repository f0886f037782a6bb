//! What there is, before the engine asks for it: it would end the process where there is too little.

use super::LocalError;

/// What the engine needs beside weights and cells.
const ENGINE: u64 = 192 << 20;

/// The fewest tokens with which a model is of any use.
const FEWEST: usize = 512;

/// What a state has beside keys and values, for each token.
const NOTES: u64 = 64;

/// What has to be left when a conversation is put to rest.
const SPARE: u64 = 64 << 20;

/// Tokens that there is memory for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    /// In the cells.
    pub window: usize,
    /// At rest, all together.
    pub resting: usize,
}

impl Room {
    /// The bytes that those at rest may take.
    pub fn resting_bytes(self, cell: u64) -> usize {
        let bytes = cell
            .saturating_add(NOTES)
            .saturating_mul(self.resting as u64);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

/// How much of what is wanted there is memory for. The cells come first: without anything at rest a
/// model works as well, only slower.
pub(super) fn fitting(weights: u64, cell: u64, wanted: Room) -> Result<Room, LocalError> {
    within(free(), weights, cell, wanted)
}

/// Whether so many bytes can be taken now. What rests comes and goes long after the start, and others
/// may have taken the memory that there was.
pub(super) fn allows(bytes: usize) -> bool {
    free().is_none_or(|free| free.saturating_sub(SPARE) >= bytes as u64)
}

fn within(free: Option<u64>, weights: u64, cell: u64, wanted: Room) -> Result<Room, LocalError> {
    // Where nobody says how much there is, it is tried.
    let Some(free) = free else { return Ok(wanted) };
    let fixed = weights.saturating_add(ENGINE);
    let left = free.saturating_sub(fixed);
    let tokens = |bytes: u64, each: u64, wanted: usize| {
        let tokens = bytes.checked_div(each).unwrap_or(u64::MAX);
        usize::try_from(tokens).unwrap_or(usize::MAX).min(wanted)
    };
    let window = tokens(left, cell, wanted.window);
    if window < FEWEST.min(wanted.window) {
        let needed = fixed.saturating_add(cell.saturating_mul(FEWEST as u64));
        return Err(LocalError::Memory { needed, free });
    }
    let left = left.saturating_sub(cell.saturating_mul(window as u64));
    let resting = tokens(left, cell.saturating_add(NOTES), wanted.resting);
    Ok(Room { window, resting })
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

    const WANTED: Room = Room {
        window: 8_192,
        resting: 16_384,
    };

    #[test]
    fn there_are_fewer_cells_where_memory_is_short_and_too_few_are_refused() {
        let (weights, cell) = (100 << 20, 20_000);
        let room = |free: u64| within(Some(free), weights, cell, WANTED);
        assert!(matches!(room(2 << 30), Ok(WANTED)));
        let some = room(weights + ENGINE + 2_000 * cell).ok();
        let short = Room {
            window: 2_000,
            resting: 0,
        };
        assert_eq!(some, Some(short), "the cells come first");
        let Err(LocalError::Memory { needed, free }) = room(weights + ENGINE + 100 * cell) else {
            unreachable!("a hundred cells are of no use");
        };
        assert!(needed > free);
        assert!(
            within(None, u64::MAX, u64::MAX, WANTED).is_ok(),
            "nobody says how much there is"
        );
        assert!(
            within(Some(1 << 40), u64::MAX, u64::MAX, WANTED).is_err(),
            "and no overflow"
        );
    }

    #[test]
    fn what_rests_has_what_the_cells_leave() {
        let (weights, cell) = (100 << 20, 20_000);
        let free = weights + ENGINE + 8_192 * cell + 1_000 * (cell + NOTES);
        let Ok(room) = within(Some(free), weights, cell, WANTED) else {
            unreachable!("there is room for the cells");
        };
        assert_eq!((room.window, room.resting), (8_192, 1_000));
        let bytes = room.resting_bytes(cell) as u64;
        assert!(weights + ENGINE + 8_192 * cell + bytes <= free);
        assert_eq!(WANTED.resting_bytes(u64::MAX), usize::MAX, "no overflow");
    }
}
