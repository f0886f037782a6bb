//! Which conversation's keys and values the engine keeps, and where a request begins to be read.
//!
//! Pure bookkeeping: the engine does what a [`Plan`] says and reports what it did.

/// A token's number in the vocabulary.
pub(super) type Id = i32;

/// The sequences that the engine keeps, within so many cells.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    cells: usize,
    clock: u64,
}

#[derive(Debug, Default, Clone)]
struct Slot {
    held: Vec<Id>,
    used: u64,
}

/// Where a request is read, and what to do before.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The sequence.
    pub slot: usize,
    /// How many of the prompt's tokens are there already.
    pub keep: usize,
    /// The sequence that they are copied from, where it is another one.
    pub copy_from: Option<usize>,
    /// Sequences that must go first, for want of room.
    pub evict: Vec<usize>,
}

impl Slots {
    /// `count` sequences that share `cells` cells.
    pub fn new(count: usize, cells: usize) -> Self {
        Self {
            slots: vec![Slot::default(); count.max(1)],
            cells,
            clock: 0,
        }
    }

    /// What a sequence holds.
    pub fn held(&self, slot: usize) -> &[Id] {
        &self.slots[slot].held
    }

    /// Chooses a place for a prompt of which at most `reusable` tokens may be taken from the cache,
    /// with room for `more` behind it. The bookkeeping is as if the plan were done.
    ///
    /// A conversation that goes on goes on in its place. One that has changed, or another with the
    /// same beginning, begins as a copy, which costs no cells: so going back finds what was there.
    pub fn plan(&mut self, prompt: &[Id], reusable: usize, more: usize) -> Plan {
        self.clock += 1;
        let shared = |slot: &Slot| common(&slot.held, &prompt[..reusable.min(prompt.len())]);
        let best = (0..self.slots.len())
            .max_by_key(|&n| (shared(&self.slots[n]), self.slots[n].used))
            .unwrap_or_default();
        let keep = shared(&self.slots[best]);
        let goes_on = keep == self.slots[best].held.len() && keep > 0;
        let other = (0..self.slots.len())
            .filter(|&n| n != best)
            .min_by_key(|&n| (!self.slots[n].held.is_empty(), self.slots[n].used));
        let slot = match other {
            Some(other) if !goes_on && !self.slots[best].held.is_empty() => other,
            _ => best,
        };
        let copy_from = (slot != best && keep > 0).then_some(best);
        let taken = prompt[..keep].to_vec();
        let mut evict = Vec::new();
        if slot != best && !self.slots[slot].held.is_empty() {
            evict.push(slot);
        }
        self.slots[slot] = Slot {
            held: taken,
            used: self.clock,
        };
        // The oldest go until there is room; what is copied keeps its cells when its source goes.
        let needed = prompt.len() - keep + more;
        while self.cells_in_use() + needed > self.cells {
            let oldest = (0..self.slots.len())
                .filter(|&n| n != slot && !self.slots[n].held.is_empty())
                .min_by_key(|&n| self.slots[n].used);
            let Some(oldest) = oldest else { break };
            self.slots[oldest].held.clear();
            evict.push(oldest);
        }
        Plan {
            slot,
            keep,
            copy_from,
            evict,
        }
    }

    /// The sequence was read on.
    pub fn push(&mut self, slot: usize, ids: &[Id]) {
        self.slots[slot].held.extend_from_slice(ids);
    }

    /// The sequence was cut to so many tokens.
    pub fn truncate(&mut self, slot: usize, len: usize) {
        self.slots[slot].held.truncate(len);
    }

    /// The others that hold something, for an engine that found no room after all.
    pub fn clear_others(&mut self, slot: usize) -> Vec<usize> {
        let others: Vec<usize> = (0..self.slots.len())
            .filter(|&n| n != slot && !self.slots[n].held.is_empty())
            .collect();
        for &n in &others {
            self.slots[n].held.clear();
        }
        others
    }

    /// Equal beginnings are kept once: whoever came second began as a copy.
    fn cells_in_use(&self) -> usize {
        let mut held: Vec<&[Id]> = self.slots.iter().map(|slot| slot.held.as_slice()).collect();
        held.sort_unstable();
        let mut before: &[Id] = &[];
        let mut sum = 0;
        for ids in held {
            sum += ids.len() - common(before, ids);
            before = ids;
        }
        sum
    }
}

/// How many tokens both begin with.
pub(super) fn common(a: &[Id], b: &[Id]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// An engine that does what plans say, cell by cell: each holds a token, and knows by its past
    /// what it was computed from.
    #[derive(Default, Clone)]
    struct Simulated {
        sequences: Vec<Vec<(Id, u64)>>,
    }

    fn past(before: u64, id: Id) -> u64 {
        before
            .wrapping_mul(31)
            .wrapping_add(id.cast_unsigned().into())
            ^ 0x9E37
    }

    impl Simulated {
        fn follow(&mut self, plan: &Plan) {
            if plan.evict.contains(&plan.slot) {
                self.sequences[plan.slot].clear();
            }
            if let Some(from) = plan.copy_from {
                assert!(
                    self.sequences[plan.slot].is_empty(),
                    "copied over something"
                );
                self.sequences[plan.slot] = self.sequences[from][..plan.keep].to_vec();
            }
            for &gone in plan.evict.iter().filter(|gone| **gone != plan.slot) {
                self.sequences[gone].clear();
            }
            self.sequences[plan.slot].truncate(plan.keep);
        }

        fn read(&mut self, slot: usize, ids: &[Id]) {
            for &id in ids {
                let before = self.sequences[slot].last().map_or(7, |(_, past)| *past);
                self.sequences[slot].push((id, past(before, id)));
            }
        }

        /// Equal pasts are one cell.
        fn cells(&self) -> usize {
            let all: std::collections::HashSet<u64> = self
                .sequences
                .iter()
                .flatten()
                .map(|(_, past)| *past)
                .collect();
            all.len()
        }
    }

    proptest! {
        /// Whatever comes, the place that a prompt is read in holds exactly its beginning, what is
        /// kept is the most that any place held, and the cells suffice.
        #[test]
        fn a_plan_never_keeps_what_the_prompt_does_not_begin_with(
            prompts in vec((vec(0..3_i32, 1..24), 0..4_usize), 1..40),
            slots in 1..4_usize,
        ) {
            let cells = 30;
            let mut kept = Slots::new(slots, cells);
            let mut engine = Simulated { sequences: vec![Vec::new(); slots] };
            for (prompt, more) in prompts {
                let reusable = prompt.len() - 1;
                let held = |n: usize| kept.held(n).to_vec();
                let most = (0..slots).map(|n| common(&held(n), &prompt[..reusable])).max();
                let plan = kept.plan(&prompt, reusable, more);
                prop_assert_eq!(Some(plan.keep), most);
                engine.follow(&plan);
                let begins: Vec<Id> = engine.sequences[plan.slot].iter().map(|(id, _)| *id).collect();
                prop_assert_eq!(&begins[..], &prompt[..plan.keep]);
                engine.read(plan.slot, &prompt[plan.keep..]);
                kept.push(plan.slot, &prompt[plan.keep..]);
                for n in 0..slots {
                    let ids: Vec<Id> = engine.sequences[n].iter().map(|(id, _)| *id).collect();
                    prop_assert_eq!(&ids[..], kept.held(n));
                }
                prop_assert!(engine.cells() + more <= cells);
            }
        }
    }

    #[test]
    fn a_conversation_goes_on_in_its_place_and_another_does_not_disturb_it() {
        let mut slots = Slots::new(3, 100);
        let first = slots.plan(&[1, 2, 3], 2, 4);
        slots.push(first.slot, &[1, 2, 3, 4]);
        let other = slots.plan(&[1, 2, 9, 9], 3, 4);
        assert_eq!((other.keep, other.copy_from), (2, Some(first.slot)));
        slots.push(other.slot, &[9, 9]);
        let on = slots.plan(&[1, 2, 3, 4, 5, 6], 5, 4);
        assert_eq!((on.slot, on.keep, on.copy_from), (first.slot, 4, None));
    }

    #[test]
    fn the_oldest_goes_when_there_is_no_room() {
        let mut slots = Slots::new(3, 10);
        for id in 1..=3 {
            let plan = slots.plan(&[id, id, id], 2, 0);
            slots.push(plan.slot, &[id, id, id]);
        }
        let plan = slots.plan(&[3, 3, 3, 4, 5], 4, 2);
        assert_eq!(plan.keep, 3);
        let holds = |ids: [Id; 3]| (0..3).any(|n| slots.held(n) == ids);
        assert!(!holds([1, 1, 1]), "the first was the oldest");
        assert!(holds([2, 2, 2]) && holds([3, 3, 3]));
    }
}
