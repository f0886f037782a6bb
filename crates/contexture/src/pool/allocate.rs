use super::{Change, Matching, Name, Pool, PoolEvent, Requirement, Task};

/// What came of the wish to give a task its resources. What is to happen is in events; until they are applied,
/// nothing has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allocation {
    /// The task has resources already: it keeps them.
    Already(Vec<Name>),
    /// Everything that it cannot do without is there.
    Taken {
        /// Who does what.
        matching: Matching,
        /// What takes them.
        events: Vec<PoolEvent>,
    },
    /// Something is missing, and nothing is taken.
    Short(Matching),
}

impl Pool {
    /// Takes what a task needs: all, or nothing.
    pub fn allocate(&self, task: &Task, requirements: &[Requirement], at: &str) -> Allocation {
        let held: Vec<Name> = self
            .held_by(&task.task_id)
            .map(|resource| resource.id().clone())
            .collect();
        if !held.is_empty() {
            return Allocation::Already(held);
        }
        let matching = self.matching(requirements);
        if !matching.is_met() {
            return Allocation::Short(matching);
        }
        let take = |id: &Name| {
            let (id, task) = (id.clone(), task.clone());
            Change::Allocated { id, task }.at(at)
        };
        let events = matching.resources().into_iter().map(take).collect();
        Allocation::Taken { matching, events }
    }

    /// Lets all go that a task has.
    pub fn release(&self, task: &str, completed: bool, at: &str) -> Vec<PoolEvent> {
        let free = self.held_by(task).map(|resource| {
            let (id, task_id) = (resource.id().clone(), task.to_owned());
            let change = Change::Freed {
                id,
                task_id,
                completed,
            };
            change.at(at)
        });
        free.collect()
    }
}
