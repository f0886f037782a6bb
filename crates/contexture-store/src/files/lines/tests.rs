#![allow(clippy::unwrap_used)]

use std::io;

use proptest::prelude::*;

use super::*;
use crate::files::behind::{Behind, Settled};

struct Memory(Vec<u8>);

impl DiskFile for Memory {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }
    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn try_lock(&self) -> io::Result<bool> {
        Ok(true)
    }
}

/// Where each line begins, what it holds, and whether it has a line break.
fn naive(bytes: &[u8]) -> Vec<(usize, &[u8], bool)> {
    let mut start = 0;
    let mut out = Vec::new();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let broken = line.last() == Some(&b'\n');
        out.push((start, &line[..line.len() - usize::from(broken)], broken));
        start += line.len();
    }
    out
}

fn naive_settle(bytes: &[u8], longest: usize) -> Settled {
    let mut lines = naive(bytes);
    let sound = |line: &[u8]| (line.len() <= longest).then(|| record(line).ok()).flatten();
    let mut end = bytes.len();
    let mut unbroken = false;
    while let Some((start, line, broken)) = lines.last().copied() {
        let more = line.first() == Some(&MORE);
        if more || (!broken && sound(line).is_none()) {
            end = start;
            lines.pop();
            continue;
        }
        unbroken = !broken;
        break;
    }
    let tail = lines.iter().rev().find_map(|(_, line, _)| sound(line));
    Settled {
        end: end as u64,
        unbroken,
        tail: tail.map(|record| record.id().clone()),
    }
}

/// Records, marks, breaks and rubbish, in any order.
fn files() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop_oneof![
        4 => "[a-c]{1,3}".prop_map(|id| format!("{{\"id\":\"{id}\"}}").into_bytes()),
        4 => Just(b"\n".to_vec()),
        1 => Just(b"\r\n".to_vec()),
        1 => Just(b" ".to_vec()),
        1 => Just(vec![b' '; 40]),
        1 => Just(vec![0; 3]),
        1 => Just(vec![0xff, b'{']),
        1 => "[x ]{1,60}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn lines_are_those_that_a_plain_split_gives(
        bytes in files(), block in 1usize..40, longest in 1usize..50, start in 0usize..8
    ) {
        let lines = naive(&bytes);
        let first = start.min(lines.len());
        let from = lines.get(first).map_or(bytes.len(), |line| line.0);
        let file = Memory(bytes.clone());
        let end = bytes.len() as u64;
        let mut read = Lines::new(&file as &dyn DiskFile, from as u64, end).sized(block, longest);
        for (start, line, _) in &lines[first..] {
            let met = read.next().unwrap().unwrap();
            prop_assert_eq!(met.offset, *start as u64);
            prop_assert_eq!(met.too_long, line.len() > longest);
            if met.too_long {
                prop_assert!(line.starts_with(met.bytes));
                prop_assert!(met.record().is_err());
            } else {
                prop_assert_eq!(met.bytes, *line);
            }
        }
        prop_assert!(read.next().unwrap().is_none());
        prop_assert!(read.next().unwrap().is_none());
    }

    #[test]
    fn the_end_is_the_one_that_a_look_at_all_of_it_gives(
        bytes in files(), step in 1u64..40, longest in 1usize..50
    ) {
        let file = Memory(bytes.clone());
        let found = Behind::new(&file, bytes.len() as u64).sized(step, longest).settle().unwrap();
        prop_assert_eq!(found, naive_settle(&bytes, longest));
    }
}

/// A file of line breaks alone is passed over once, not read again for each of them.
#[test]
fn blank_lines_cost_what_they_weigh() {
    let mut bytes = b"{\"id\":\"a\"}\n".to_vec();
    bytes.resize(1 << 20, b'\n');
    let begun = std::time::Instant::now();
    let file = Memory(bytes);
    let found = Behind::new(&file, 1 << 20).settle().unwrap();
    assert_eq!(found.tail, Some("a".into()));
    assert!(begun.elapsed() < std::time::Duration::from_secs(5));
}
