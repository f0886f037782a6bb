use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Level, Name, Resource, ResourceType, Status};

/// What can be asked of a pool without looking at every resource.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// Who can do what, of those in service.
    pub slots: BTreeMap<Name, Slot>,
    /// Who declares something or can do it, in service or not: who comes into question.
    pub asked: BTreeMap<Name, BTreeSet<Name>>,
    /// All there are, in the order in which they were registered.
    pub order: BTreeMap<u64, Name>,
    numbers: BTreeMap<Name, u64>,
    /// Who works for which task.
    pub tasks: BTreeMap<String, BTreeSet<Name>>,
    counts: [usize; Status::ALL.len()],
}

/// Those who can do something, the best first.
#[derive(Debug, Clone, Default)]
pub(super) struct Slot {
    pub free: BTreeSet<Rank>,
    pub held: BTreeSet<Rank>,
    /// The number of each, and where the capability stands among those that it declares.
    places: BTreeSet<(u64, usize)>,
}

/// The order in which resources are taken: the best first, of these the ones that failed least, then by id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    level: Reverse<Level>,
    errors: u64,
    pub id: Name,
    /// Behind the id, so that they are no part of the order.
    pub kind: ResourceType,
    pub number: u64,
}

impl Rank {
    pub fn new(resource: &Resource, level: Level, number: u64) -> Self {
        Self {
            level: Reverse(level),
            errors: resource.error_count,
            id: resource.id().clone(),
            kind: resource.kind(),
            number,
        }
    }

    pub fn level(&self) -> Level {
        self.level.0
    }
}

impl Index {
    pub fn count(&self, status: Status) -> usize {
        self.counts[status as usize]
    }

    /// Gives a resource the next number.
    pub fn register(&mut self, id: &Name) {
        let last = self.order.last_key_value();
        let number = last.map_or(0, |(number, _)| number + 1);
        self.order.insert(number, id.clone());
        self.numbers.insert(id.clone(), number);
    }

    /// Takes it back.
    pub fn unregister(&mut self, id: &Name) {
        if let Some(number) = self.numbers.remove(id) {
            self.order.remove(&number);
        }
    }

    fn number(&self, id: &Name) -> u64 {
        self.numbers.get(id).copied().unwrap_or(u64::MAX)
    }

    /// Takes in what a resource declares and can do.
    pub fn learn(&mut self, resource: &Resource) {
        for kind in resource.declared().keys().chain(resource.can.keys()) {
            let asked = self.asked.entry(kind.clone()).or_default();
            asked.insert(resource.id().clone());
        }
    }

    /// Takes that out again.
    pub fn forget(&mut self, resource: &Resource) {
        for kind in resource.declared().keys().chain(resource.can.keys()) {
            if let Some(asked) = self.asked.get_mut(kind) {
                asked.remove(resource.id());
                if asked.is_empty() {
                    self.asked.remove(kind);
                }
            }
        }
    }

    /// Takes in what a resource is doing.
    pub fn add(&mut self, resource: &Resource) {
        self.counts[resource.status as usize] += 1;
        if let Some(task) = &resource.current_task_id {
            let held = self.tasks.entry(task.clone()).or_default();
            held.insert(resource.id().clone());
        }
        if !resource.status.is_in_service() {
            return;
        }
        let number = self.number(resource.id());
        for (kind, level) in &resource.can {
            let slot = match self.slots.get_mut(kind) {
                Some(slot) => slot,
                None => self.slots.entry(kind.clone()).or_default(),
            };
            slot.side(resource.status)
                .insert(Rank::new(resource, *level, number));
            slot.places.insert((number, place(resource, kind)));
        }
    }

    /// Takes that out again.
    pub fn remove(&mut self, resource: &Resource) {
        self.counts[resource.status as usize] -= 1;
        if let Some(task) = &resource.current_task_id
            && let Some(held) = self.tasks.get_mut(task)
        {
            held.remove(resource.id());
            if held.is_empty() {
                self.tasks.remove(task);
            }
        }
        if !resource.status.is_in_service() {
            return;
        }
        let number = self.number(resource.id());
        for (kind, level) in &resource.can {
            if let Some(slot) = self.slots.get_mut(kind) {
                slot.side(resource.status)
                    .remove(&Rank::new(resource, *level, number));
                slot.places.remove(&(number, place(resource, kind)));
                if slot.free.is_empty() && slot.held.is_empty() {
                    self.slots.remove(kind);
                }
            }
        }
    }
}

/// The rank of a capability among those that a resource declares; behind all of them where it follows from its tools.
fn place(resource: &Resource, capability: &Name) -> usize {
    let declared = resource.declared().get_index_of(capability);
    declared.unwrap_or(usize::MAX)
}

impl Slot {
    /// The number of the first that can do it, and the capability's place there.
    pub fn first(&self) -> (u64, usize) {
        self.places
            .first()
            .copied()
            .unwrap_or((u64::MAX, usize::MAX))
    }

    fn side(&mut self, status: Status) -> &mut BTreeSet<Rank> {
        match status {
            Status::Available => &mut self.free,
            _ => &mut self.held,
        }
    }
}
