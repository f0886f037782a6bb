use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::index::Index;
use super::{
    CapabilityTools, Change, Name, NewResource, PoolError, PoolEvent, Resource, Status, Task,
};
use crate::text::nearest;

/// The resources there are, and what each is doing: a fold of events.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    pub(super) resources: BTreeMap<Name, Resource>,
    pub(super) tools: CapabilityTools,
    /// How often the key of a worker was revoked, also of one that was removed since: an old key never counts again.
    pub(super) revoked_keys: BTreeMap<Name, u64>,
    pub(super) index: Index,
}

/// How much of a reason is kept.
const REASON: usize = 200;

impl Pool {
    /// Takes an event in, or says why it does not fit; then nothing is changed.
    pub fn apply(&mut self, event: &PoolEvent) -> Result<(), PoolError> {
        let PoolEvent { at, change } = event;
        match change {
            Change::Added { resource } => self.add(resource, at),
            Change::Removed { id } => self.remove(id),
            Change::Granted { id, tool } => {
                let agent = self.agent(id)?;
                if agent.denied_tools().contains(tool) {
                    return Err(PoolError::Denied {
                        id: id.clone(),
                        tool: tool.clone(),
                    });
                }
                self.retool(id, at, |tools| tools.insert(tool.clone()));
                Ok(())
            }
            Change::Revoked { id, tool } => {
                self.agent(id)?;
                self.retool(id, at, |tools| tools.remove(tool));
                Ok(())
            }
            Change::KeyRevoked { id } => {
                self.agent(id)?;
                *self.revoked_keys.entry(id.clone()).or_default() += 1;
                Ok(())
            }
            Change::Mapped { capability, tools } => self.map(capability, tools),
            _ => self.go(change, at),
        }
    }

    /// A resource.
    pub fn get(&self, id: &str) -> Option<&Resource> {
        self.resources.get(id)
    }

    /// All resources, in the order in which they were registered.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        let ids = self.index.order.values();
        ids.filter_map(|id| self.resources.get(id))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.resources.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// How many are doing this.
    pub fn count(&self, status: Status) -> usize {
        self.index.count(status)
    }

    /// Which tools a capability needs.
    pub fn capability_tools(&self) -> &CapabilityTools {
        &self.tools
    }

    /// How often the key of each worker was revoked, of those whose was.
    pub fn revoked_keys(&self) -> &BTreeMap<Name, u64> {
        &self.revoked_keys
    }

    /// The change that has a resource work again that failed, or that was taken out of service.
    pub fn repair(&self, id: &Name) -> Change {
        let id = id.clone();
        match self.get(id.as_str()).map(Resource::status) {
            Some(Status::Released) => Change::Restored { id },
            _ => Change::Recovered { id },
        }
    }

    /// The resources that a task has, by id.
    pub fn held_by(&self, task: &str) -> impl Iterator<Item = &Resource> {
        let ids = self.index.tasks.get(task).into_iter().flatten();
        ids.filter_map(|id| self.resources.get(id))
    }

    /// The resource, or an error that names one of nearly the same id.
    pub(super) fn known(&self, id: &Name) -> Result<&Resource, PoolError> {
        self.resources.get(id).ok_or_else(|| {
            let ids: Vec<&str> = self.resources.keys().map(Name::as_str).collect();
            let near = nearest(id.as_str(), &ids);
            PoolError::Unknown {
                id: id.clone(),
                nearest: near.and_then(|near| Some(self.get(near)?.id().clone())),
            }
        })
    }

    /// Puts a resource in as it is.
    pub(super) fn put(&mut self, resource: Resource) {
        self.index.register(resource.id());
        self.index.learn(&resource);
        self.index.add(&resource);
        self.resources.insert(resource.id().clone(), resource);
    }

    fn add(&mut self, resource: &NewResource, at: &str) -> Result<(), PoolError> {
        let id = &resource.id;
        if self.resources.contains_key(id) {
            return Err(PoolError::Exists { id: id.clone() });
        }
        let mut resource = Resource::new(resource.clone(), &self.tools);
        resource.updated_at = Some(at.to_owned());
        self.put(resource);
        Ok(())
    }

    fn remove(&mut self, id: &Name) -> Result<(), PoolError> {
        let status = self.known(id)?.status;
        if status != Status::Available {
            return Err(PoolError::InUse {
                id: id.clone(),
                status,
            });
        }
        if let Some(resource) = self.resources.remove(id) {
            self.index.remove(&resource);
            self.index.forget(&resource);
            self.index.unregister(id);
        }
        Ok(())
    }

    /// Another status, and all that goes with it.
    fn go(&mut self, change: &Change, at: &str) -> Result<(), PoolError> {
        let (Some(id), Some((after, to))) = (change.resource(), change.leads()) else {
            return Ok(());
        };
        let resource = self.known(id)?;
        let from = resource.status;
        if !after.contains(&from) {
            return Err(PoolError::Transition {
                id: id.clone(),
                from,
                to,
                after,
            });
        }
        if let Some(said) = change.said_by()
            && resource.task() != Some(said)
        {
            return Err(PoolError::OtherTask {
                id: id.clone(),
                has: resource.current_task_id.clone(),
                said: said.to_owned(),
            });
        }
        self.change(id, |resource| {
            resource.status = to;
            resource.retired = matches!(change, Change::Retired { by_owner: true, .. });
            resource.updated_at = Some(at.to_owned());
            resource.blocked_by = None;
            if !to.is_held() {
                resource.current_session_id = None;
                resource.current_workflow_id = None;
                resource.current_task_id = None;
            }
            match change {
                Change::Allocated { task, .. } => {
                    let Task {
                        task_id,
                        session_id,
                        workflow_id,
                    } = task.clone();
                    resource.current_task_id = Some(task_id);
                    resource.current_session_id = session_id;
                    resource.current_workflow_id = workflow_id;
                    resource.total_tasks += 1;
                }
                Change::Blocked { reason, .. } => resource.blocked_by = Some(beginning(reason)),
                Change::Freed { completed, .. } => {
                    resource.completed_tasks += u64::from(*completed);
                }
                Change::Failed { error, .. } => {
                    resource.error_count += 1;
                    resource.last_error = Some(beginning(error));
                }
                _ => {}
            }
        });
        Ok(())
    }

    fn agent(&self, id: &Name) -> Result<&Resource, PoolError> {
        let resource = self.known(id)?;
        match resource.kind().is_agent() {
            true => Ok(resource),
            false => Err(PoolError::NoAgent {
                id: id.clone(),
                kind: resource.kind(),
            }),
        }
    }

    fn retool(&mut self, id: &Name, at: &str, change: impl FnOnce(&mut BTreeSet<Name>) -> bool) {
        self.relearn(id, |resource| {
            change(resource.is.tools.get_or_insert_default());
            resource.updated_at = Some(at.to_owned());
        });
    }

    fn map(&mut self, capability: &Name, tools: &BTreeSet<Name>) -> Result<(), PoolError> {
        if tools.is_empty() {
            return Err(PoolError::NeedsNothing {
                capability: capability.clone(),
            });
        }
        self.tools.set(capability.clone(), tools.clone());
        let ids: Vec<Name> = self.resources.keys().cloned().collect();
        for id in ids {
            self.relearn(&id, |_| {});
        }
        Ok(())
    }

    /// Changes what a resource is doing: the index never knows it otherwise than it is.
    fn change(&mut self, id: &Name, change: impl FnOnce(&mut Resource)) {
        if let Some(resource) = self.resources.get_mut(id) {
            self.index.remove(resource);
            change(resource);
            self.index.add(resource);
        }
    }

    /// The same for what decides what it can do.
    fn relearn(&mut self, id: &Name, change: impl FnOnce(&mut Resource)) {
        if let Some(resource) = self.resources.get_mut(id) {
            self.index.remove(resource);
            self.index.forget(resource);
            change(resource);
            resource.learn(&self.tools);
            self.index.learn(resource);
            self.index.add(resource);
        }
    }
}

fn beginning(text: &str) -> String {
    text.chars().take(REASON).collect()
}

impl PartialEq for Pool {
    /// The index follows from the rest, and the order of the resources.
    fn eq(&self, other: &Self) -> bool {
        self.resources().eq(other.resources())
            && self.tools == other.tools
            && self.revoked_keys == other.revoked_keys
    }
}

impl Serialize for Pool {
    /// As [`Pool::from_value`] reads it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct All<'a>(&'a Pool);
        impl Serialize for All<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(self.0.resources())
            }
        }
        let own = !self.tools.is_default();
        let revoked = !self.revoked_keys.is_empty();
        let fields = 1 + usize::from(own) + usize::from(revoked);
        let mut out = serializer.serialize_struct("Pool", fields)?;
        out.serialize_field("resources", &All(self))?;
        if own {
            out.serialize_field("capabilityTools", &self.tools)?;
        }
        if revoked {
            out.serialize_field("revokedKeys", &self.revoked_keys)?;
        }
        out.end()
    }
}
