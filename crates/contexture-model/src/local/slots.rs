//! Which conversations the engine keeps, and where a request begins to be read.
//!
//! One is live: it is in the engine's cells. Each token that is read or written passes over all cells
//! in use, so the others rest outside of them, as states that the engine gave. To bring a token back
//! copies its keys and values, and to read it runs the whole network, so whoever shares most with a
//! prompt is taken, and nothing that was read is given up while there is room.
//!
//! Pure bookkeeping: what is done is done by [`Cells`].

use std::collections::VecDeque;

/// A token's number in the vocabulary.
pub(super) type Id = i32;

/// The engine's cells, which hold one conversation.
pub(super) trait Cells {
    /// What they held at some time.
    type State;

    /// What their state takes, in bytes; 0 where it cannot be had.
    fn bytes(&self) -> usize;

    /// What they hold; nothing where it cannot be had.
    fn save(&self) -> Option<Self::State>;

    /// Puts a state in the place of what they hold, if it can be done.
    fn restore(&mut self, state: &Self::State) -> bool;

    /// Whether they hold all from the first token on. The state of a model that looks back only so far
    /// has no more than that: it can be read on, and not be cut.
    fn reach_back(&self) -> bool;

    /// Cuts them to so many tokens, if it can be done.
    fn cut(&mut self, keep: usize) -> bool;
}

/// The live conversation and those at rest.
#[derive(Debug)]
pub(super) struct Slots<S> {
    live: Vec<Id>,
    /// With fewer tokens than this, the live one cannot be read on.
    floor: usize,
    /// The one that was used longest ago comes first.
    resting: VecDeque<Resting<S>>,
    /// The bytes that those at rest may take.
    room: usize,
}

#[derive(Debug)]
struct Resting<S> {
    ids: Vec<Id>,
    state: S,
    bytes: usize,
}

impl<S> Slots<S> {
    /// Empty cells, and so many bytes for what rests.
    pub fn new(room: usize) -> Self {
        Self {
            live: Vec::new(),
            floor: 0,
            resting: VecDeque::new(),
            room,
        }
    }

    /// What the cells hold.
    pub fn live(&self) -> &[Id] {
        &self.live
    }

    /// Makes the cells hold as much of a prompt's beginning as anybody has, and nothing else. Gives how
    /// many tokens that is.
    ///
    /// A conversation that goes on goes on in the cells. One that has changed, or another one, leaves
    /// what was there at rest: so going back finds it.
    pub fn place(&mut self, cells: &mut impl Cells<State = S>, prompt: &[Id]) -> usize {
        let here = common(&self.live, prompt);
        let shared = self.resting.iter().map(|other| common(&other.ids, prompt));
        let best = shared.enumerate().max_by_key(|(_, shared)| *shared);
        let best = best.filter(|(_, shared)| *shared > here);
        let back = best.and_then(|(n, shared)| Some((self.resting.remove(n)?, shared)));
        let back_ids = back.as_ref().map(|(back, _)| &back.ids);
        let mut others = self.resting.iter().map(|other| &other.ids).chain(back_ids);
        let stays = prompt.starts_with(&self.live) || others.any(|ids| ids.starts_with(&self.live));
        if !stays {
            self.rest(cells, back.as_ref().map_or(0, |(back, _)| back.bytes));
        }
        match back {
            Some((back, keep)) => self.bring_back(cells, back, keep),
            None => self.cut(cells, here),
        }
    }

    /// The live conversation was read on.
    pub fn push(&mut self, ids: &[Id]) {
        self.live.extend_from_slice(ids);
    }

    /// Cuts the live conversation to so many tokens, and gives how many are left: what cannot lose its
    /// end is lost.
    pub fn cut(&mut self, cells: &mut impl Cells<State = S>, keep: usize) -> usize {
        let left = match keep >= self.floor && cells.cut(keep) {
            true => keep,
            false => {
                cells.cut(0);
                self.floor = 0;
                0
            }
        };
        self.live.truncate(left);
        left
    }

    /// Puts a copy of the live conversation to rest beside `taken` bytes, if it can be done; the oldest
    /// go for it.
    fn rest(&mut self, cells: &impl Cells<State = S>, taken: usize) {
        let bytes = cells.bytes();
        let needed = bytes.saturating_add(taken);
        if bytes == 0 || needed > self.room {
            return;
        }
        let live = &self.live;
        self.resting.retain(|other| !live.starts_with(&other.ids));
        let in_use = |all: &VecDeque<Resting<S>>| all.iter().map(|one| one.bytes).sum::<usize>();
        while in_use(&self.resting) + needed > self.room {
            self.resting.pop_front();
        }
        if let Some(state) = cells.save() {
            let ids = self.live.clone();
            self.resting.push_back(Resting { ids, state, bytes });
        }
    }

    /// Puts a conversation into the cells, cut to so many tokens. It stays at rest as well if that is
    /// not all of it.
    fn bring_back(
        &mut self,
        cells: &mut impl Cells<State = S>,
        back: Resting<S>,
        keep: usize,
    ) -> usize {
        if !cells.restore(&back.state) {
            return self.cut(cells, 0);
        }
        self.live.clone_from(&back.ids);
        self.floor = match cells.reach_back() {
            true => 0,
            false => back.ids.len(),
        };
        if keep < back.ids.len() {
            self.resting.push_back(back);
        }
        self.cut(cells, keep)
    }
}

/// How many tokens both begin with.
pub(super) fn common(a: &[Id], b: &[Id]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// An engine that knows of each token what was before it.
    struct Simulated {
        past: Vec<u64>,
        /// Tokens at the beginning that are no longer there.
        gone: usize,
        /// How far it looks back.
        window: usize,
        /// Every so often, what is asked of it fails.
        fails: Option<usize>,
        asked: Cell<usize>,
        room: usize,
        at_rest: Rc<Cell<usize>>,
    }

    struct State {
        past: Vec<u64>,
        bytes: usize,
        at_rest: Rc<Cell<usize>>,
    }

    impl Drop for State {
        fn drop(&mut self) {
            self.at_rest.set(self.at_rest.get() - self.bytes);
        }
    }

    fn past(ids: &[Id]) -> Vec<u64> {
        let mut all = Vec::new();
        for &id in ids {
            let before: u64 = all.last().copied().unwrap_or(7);
            let id: u64 = id.cast_unsigned().into();
            all.push(before.wrapping_mul(31).wrapping_add(id) ^ 0x9E37);
        }
        all
    }

    impl Simulated {
        fn new(room: usize) -> Self {
            Self {
                past: Vec::new(),
                gone: 0,
                window: usize::MAX,
                fails: None,
                asked: Cell::new(0),
                room,
                at_rest: Rc::default(),
            }
        }

        fn works(&self) -> bool {
            self.asked.set(self.asked.get() + 1);
            self.fails
                .is_none_or(|often| !self.asked.get().is_multiple_of(often))
        }

        /// Reads the rest of a prompt, and says what is wrong with what is there.
        fn read(&mut self, slots: &mut Slots<State>, prompt: &[Id], keep: usize) {
            assert_eq!(slots.live(), &prompt[..keep], "its beginning and no more");
            assert_eq!(self.past, past(&prompt[..keep]), "and so do the cells");
            let needed = keep.saturating_sub(self.window);
            assert!(keep == 0 || self.gone <= needed, "as far as it looks back");
            self.past = past(prompt);
            slots.push(&prompt[keep..]);
        }
    }

    impl Cells for Simulated {
        type State = State;

        fn bytes(&self) -> usize {
            self.past.len() + 1
        }

        fn save(&self) -> Option<State> {
            let bytes = self.bytes();
            self.at_rest.set(self.at_rest.get() + bytes);
            assert!(
                self.at_rest.get() <= self.room,
                "more than there is room for"
            );
            let state = State {
                past: self.past.clone(),
                bytes,
                at_rest: Rc::clone(&self.at_rest),
            };
            self.works().then_some(state)
        }

        fn restore(&mut self, state: &State) -> bool {
            self.past.clone_from(&state.past);
            self.gone = self.past.len().saturating_sub(self.window);
            self.works()
        }

        fn reach_back(&self) -> bool {
            self.gone == 0
        }

        fn cut(&mut self, keep: usize) -> bool {
            self.past.truncate(keep);
            if keep == 0 {
                self.gone = 0;
            }
            keep == 0 || self.works()
        }
    }

    fn prompts() -> impl Strategy<Value = Vec<Vec<Id>>> {
        vec(vec(0..3_i32, 1..24), 1..40)
    }

    proptest! {
        /// While there is room, whatever was read is found again, as far as a prompt begins like it.
        #[test]
        fn nothing_that_was_read_is_read_again(prompts in prompts()) {
            let mut engine = Simulated::new(usize::MAX);
            let mut slots = Slots::new(usize::MAX);
            let mut read: Vec<Vec<Id>> = Vec::new();
            for prompt in prompts {
                let reusable = &prompt[..prompt.len() - 1];
                let most = read.iter().map(|one| common(one, reusable)).max();
                let keep = slots.place(&mut engine, reusable);
                prop_assert_eq!(keep, most.unwrap_or_default());
                engine.read(&mut slots, &prompt, keep);
                read.push(prompt);
            }
        }

        /// Whatever comes and whatever fails, the cells hold the beginning of the prompt, all of it that
        /// is looked back to, and what rests takes no more than it may.
        #[test]
        fn the_cells_hold_what_the_prompt_begins_with(
            prompts in prompts(),
            room in 0..80_usize,
            window in 1..30_usize,
            fails in proptest::option::of(1..6_usize),
        ) {
            let mut engine = Simulated { window, fails, ..Simulated::new(room) };
            let mut slots = Slots::new(room);
            for prompt in prompts {
                let keep = slots.place(&mut engine, &prompt[..prompt.len() - 1]);
                engine.read(&mut slots, &prompt, keep);
                prop_assert!(engine.at_rest.get() <= room);
            }
        }
    }

    /// Reads prompts one after the other; gives how many tokens of each were there.
    #[track_caller]
    fn check(room: usize, prompts: &[(&[Id], usize)]) {
        let (mut engine, mut slots) = (Simulated::new(room), Slots::new(room));
        for (n, (prompt, expected)) in prompts.iter().enumerate() {
            let keep = slots.place(&mut engine, prompt);
            assert_eq!(keep, *expected, "of prompt {n}, {prompt:?}");
            engine.read(&mut slots, prompt, keep);
        }
    }

    #[test]
    fn a_conversation_goes_on_and_another_does_not_disturb_it() {
        check(
            100,
            &[
                (&[1, 2, 3, 4], 0),
                (&[1, 2, 9, 9], 2),
                (&[1, 2, 3, 4, 5, 6], 4),
                (&[1, 2, 9, 9, 9], 4),
            ],
        );
    }

    #[test]
    fn the_oldest_goes_when_there_is_no_room() {
        let (one, two, three) = ([1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]);
        // Two of them can rest, and the small one.
        check(
            12,
            &[
                (&one, 0),
                (&two, 0),
                (&three, 0),
                (&[4], 0),
                (&two, 4),
                (&three, 4),
                (&one, 0),
            ],
        );
    }

    #[test]
    fn two_take_turns_where_there_is_room_for_both() {
        let (one, two) = ([1; 9], [2; 9]);
        let turns: [(&[Id], usize); 4] = [(&one, 0), (&two, 0), (&one, 9), (&two, 9)];
        check(20, &turns);
        let turns: [(&[Id], usize); 4] = [(&one, 0), (&two, 0), (&one, 9), (&two, 0)];
        check(19, &turns);
    }
}
