use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::index::{Rank, Slot};
use super::{Level, Name, Pool, Resource, Status};

impl Pool {
    /// The capabilities of those in service, in the order in which they were registered: the spec's
    /// `getCapabilityCatalog`.
    pub fn capability_catalog(&self) -> Vec<CatalogEntry<'_>> {
        let slots = self.index.slots.iter();
        let mut entries: Vec<CatalogEntry<'_>> = slots
            .map(|(capability, slot)| CatalogEntry {
                capability,
                slot,
                pool: self,
            })
            .collect();
        // The sort is stable, and the index is in the order of names.
        entries.sort_by_key(|entry| entry.slot.first());
        entries
    }

    /// The pool in numbers, and its catalog: the spec's `getResourcePoolSummary`.
    pub fn summary(&self) -> Summary<'_> {
        let held = Status::ALL.into_iter().filter(|status| status.is_held());
        Summary {
            total_resources: self.len(),
            available: self.count(Status::Available),
            busy: held.map(|status| self.count(status)).sum(),
            error: self.count(Status::Error),
            released: self.count(Status::Released),
            capability_catalog: self.capability_catalog(),
        }
    }
}

/// A pool in numbers: those available, busy, in error and released are all there are.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary<'p> {
    /// How many resources.
    pub total_resources: usize,
    /// Free to take work now.
    pub available: usize,
    /// A task has them: deployed, busy or blocked.
    pub busy: usize,
    /// Failed.
    pub error: usize,
    /// Out of service.
    pub released: usize,
    /// What they can do.
    pub capability_catalog: Vec<CatalogEntry<'p>>,
}

/// A capability, and who has it. Those that failed or are out of service do not count.
#[derive(Debug, Clone, Copy)]
pub struct CatalogEntry<'p> {
    capability: &'p Name,
    slot: &'p Slot,
    pool: &'p Pool,
}

impl<'p> CatalogEntry<'p> {
    /// Which.
    pub fn capability(&self) -> &'p Name {
        self.capability
    }

    /// How many have it.
    pub fn resource_count(&self) -> usize {
        self.slot.free.len() + self.slot.held.len()
    }

    /// How many of them are available.
    pub fn available_count(&self) -> usize {
        self.slot.free.len()
    }

    /// The ids of those that are available, in the order in which they were registered.
    pub fn available(&self) -> impl ExactSizeIterator<Item = &'p Name> + use<'p> {
        self.best(usize::MAX)
    }

    /// The same of those that would be taken first: the best, of these the ones that failed least, then by id.
    pub fn best(&self, most: usize) -> impl ExactSizeIterator<Item = &'p Name> + use<'p> {
        let best = self.slot.free.iter().take(most);
        registered(best).into_iter().map(|rank| &rank.id)
    }

    /// All that have it, with how well, in the order in which they were registered.
    pub fn resources(&self) -> impl Iterator<Item = (&'p Resource, Level)> + use<'p> {
        let pool = self.pool;
        let all = registered(self.slot.free.iter().chain(&self.slot.held)).into_iter();
        all.filter_map(|rank| Some((pool.resources.get(&rank.id)?, rank.level())))
    }
}

/// These in the order in which they were registered.
fn registered<'p>(ranks: impl Iterator<Item = &'p Rank>) -> Vec<&'p Rank> {
    let mut all: Vec<&Rank> = ranks.collect();
    all.sort_unstable_by_key(|rank| rank.number);
    all
}

impl Serialize for CatalogEntry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct One<'a> {
            id: &'a Name,
            name: &'a str,
            level: Level,
            status: Status,
        }
        struct All<'a>(CatalogEntry<'a>);
        impl Serialize for All<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(self.0.resources().map(|(resource, level)| One {
                    id: resource.id(),
                    name: resource.name(),
                    level,
                    status: resource.status(),
                }))
            }
        }
        let mut out = serializer.serialize_struct("CatalogEntry", 4)?;
        out.serialize_field("capability", self.capability)?;
        out.serialize_field("resourceCount", &self.resource_count())?;
        out.serialize_field("availableCount", &self.available_count())?;
        out.serialize_field("resources", &All(*self))?;
        out.end()
    }
}
