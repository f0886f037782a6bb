use std::hash::{DefaultHasher, Hash, Hasher};

/// The ids of a stream, in bounded memory: a Bloom filter. "No" is certain; "maybe" is settled by
/// looking into the file.
pub struct Ids {
    bits: Vec<u64>,
    count: usize,
}

const FIRST: usize = 1 << 10;
/// 4 MiB. With 10 million ids in it, one new id in eight costs a look into the file.
const MOST: usize = 1 << 19;
const PROBES: u64 = 4;
/// At eight bits an id one in forty is a false alarm: time for a larger one.
const BITS_EACH: usize = 8;

impl Ids {
    /// An empty one with room for about so many.
    pub fn for_about(ids: usize) -> Self {
        let words = (ids * BITS_EACH / 64).next_power_of_two();
        Self {
            bits: vec![0; words.clamp(FIRST, MOST)],
            count: 0,
        }
    }

    /// An empty one with room for twice what this one has; none if it is the largest, or not full
    /// yet.
    pub fn grown(&self) -> Option<Self> {
        let full = self.count * BITS_EACH > self.bits.len() * 64;
        (full && self.bits.len() < MOST).then(|| Self::for_about(self.count * 2))
    }

    pub fn insert(&mut self, id: &str) {
        for bit in self.bits_of(id) {
            self.bits[bit / 64] |= 1 << (bit % 64);
        }
        self.count += 1;
    }

    pub fn may_have(&self, id: &str) -> bool {
        self.bits_of(id)
            .all(|bit| self.bits[bit / 64] & (1 << (bit % 64)) != 0)
    }

    fn bits_of(&self, id: &str) -> impl Iterator<Item = usize> + use<> {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let hash = hasher.finish();
        let (a, b) = (hash & 0xffff_ffff, hash >> 32 | 1);
        let bits = self.bits.len() as u64 * 64;
        (0..PROBES).map(move |n| (a.wrapping_add(n.wrapping_mul(b)) % bits) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Growing is reading the file again: it must not take more than once to have room.
    #[test]
    fn one_growth_makes_room_for_all() {
        for count in [10_000, 1_000_000, 3_000_000] {
            let full = Ids {
                count,
                ..Ids::for_about(0)
            };
            let large = Ids {
                count,
                ..full.grown().unwrap_or_else(|| Ids::for_about(0))
            };
            assert!(large.grown().is_none(), "{count}");
        }
    }
}
