use std::fmt;

use serde::Serialize;

use super::index::Rank;
use super::{Level, Name, Pool, Resource, ResourceType, Status};

/// Something that a task needs somebody to be able to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// What.
    pub capability: Name,
    /// How well at least.
    pub min_level: Level,
    /// What it must be; anything unless said.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<ResourceType>,
    /// Whether the task can do without.
    pub optional: bool,
}

impl Requirement {
    /// This capability, however well.
    pub fn of(capability: Name) -> Self {
        Self {
            capability,
            min_level: Level::LEAST,
            kind: None,
            optional: false,
        }
    }
}

/// What became of each requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Matching {
    /// One for each requirement, in its order.
    pub outcomes: Vec<Outcome>,
}

/// What became of a requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// There is somebody.
    Found(Found),
    /// There is nobody.
    Missing(Shortage),
}

/// Who would do it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// What.
    pub capability: Name,
    /// Who.
    pub resource: Name,
    /// How well.
    pub level: Level,
}

/// That there is nobody for a requirement, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shortage {
    /// What nobody can do.
    pub requirement: Requirement,
    /// How many come into question: those that declare it, or have the tools for it.
    pub in_question: usize,
    /// The first of them, those that lack least first, each with all that it lacks.
    pub candidates: Vec<Candidate>,
}

/// One that comes into question, and what it lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Who.
    pub resource: Name,
    /// What, the gravest first.
    pub lacks: Vec<Lack>,
}

/// What stands between a resource and a requirement. The order is that of gravity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "what", rename_all = "camelCase")]
pub enum Lack {
    /// It is not free.
    Available {
        /// What it is doing.
        status: Status,
    },
    /// It does not do it well enough.
    Level {
        /// How well it does.
        level: Level,
    },
    /// It lacks tools.
    Authorised {
        /// Tools that it does not hold.
        missing: Vec<Name>,
        /// Tools that it is denied.
        denied: Vec<Name>,
    },
}

/// How many candidates a shortage names.
const NAMED: usize = 16;

impl Pool {
    /// Finds somebody for each requirement, each on its own: of those that are available, authorised and good
    /// enough the best, of these the one that failed least, then by id. One resource may serve several
    /// requirements of a task.
    pub fn matching(&self, requirements: &[Requirement]) -> Matching {
        let one = |requirement| match self.find(requirement) {
            Some(found) => Outcome::Found(found),
            None => Outcome::Missing(self.shortage(requirement)),
        };
        Matching {
            outcomes: requirements.iter().map(one).collect(),
        }
    }

    fn find(&self, requirement: &Requirement) -> Option<Found> {
        let slot = self.index.slots.get(&requirement.capability)?;
        let mut good = slot
            .free
            .iter()
            .take_while(|rank| rank.level() >= requirement.min_level);
        let fits = |rank: &&Rank| requirement.kind.is_none_or(|kind| kind == rank.kind);
        let best = good.find(fits)?;
        Some(Found {
            capability: requirement.capability.clone(),
            resource: best.id.clone(),
            level: best.level(),
        })
    }

    fn shortage(&self, requirement: &Requirement) -> Shortage {
        let mut all: Vec<(u8, &Resource)> = self
            .asked(&requirement.capability)
            .filter(|resource| requirement.kind.is_none_or(|kind| kind == resource.kind()))
            .map(|resource| (gravity(resource, requirement), resource))
            .collect();
        // The sort is stable, and they come in the order of their ids.
        all.sort_by_key(|(gravity, _)| *gravity);
        Shortage {
            requirement: requirement.clone(),
            in_question: all.len(),
            candidates: all
                .into_iter()
                .take(NAMED)
                .filter_map(|(_, resource)| self.candidate(resource, requirement))
                .collect(),
        }
    }

    /// Those that come into question, by id.
    fn asked(&self, capability: &Name) -> Box<dyn Iterator<Item = &Resource> + '_> {
        let Some(asked) = self.index.asked.get(capability) else {
            return Box::new(std::iter::empty());
        };
        // Both are in the order of ids: to walk along all is less than to look most of them up.
        if asked.len() * 8 > self.resources.len() {
            let mut all = self.resources.iter();
            let next = move |id| all.find(|(known, _)| *known == id);
            return Box::new(asked.iter().filter_map(next).map(|(_, resource)| resource));
        }
        Box::new(asked.iter().filter_map(|id| self.resources.get(id)))
    }

    /// What the resource lacks, if it comes into question at all.
    fn candidate(&self, resource: &Resource, requirement: &Requirement) -> Option<Candidate> {
        let capability = &requirement.capability;
        let can = resource.can.get(capability);
        let level = can.or_else(|| resource.declared().get(capability))?;
        let mut lacks = Vec::new();
        if can.is_none() {
            let needed = self.tools.needed(capability);
            let held = resource.is.tools.as_ref();
            let (denied, rest): (Vec<&Name>, Vec<&Name>) =
                needed.partition(|tool| resource.denied_tools().contains(*tool));
            let missing = rest
                .into_iter()
                .filter(|tool| held.is_none_or(|held| !held.contains(*tool)));
            lacks.push(Lack::Authorised {
                missing: missing.cloned().collect(),
                denied: denied.into_iter().cloned().collect(),
            });
        }
        if *level < requirement.min_level {
            lacks.push(Lack::Level { level: *level });
        }
        if resource.status != Status::Available {
            lacks.push(Lack::Available {
                status: resource.status,
            });
        }
        Some(Candidate {
            resource: resource.id().clone(),
            lacks,
        })
    }
}

/// How far a resource is from a requirement: a bit for each thing that it lacks, the gravest the highest.
fn gravity(resource: &Resource, requirement: &Requirement) -> u8 {
    let can = resource.can.get(&requirement.capability);
    let level = can.or_else(|| resource.declared().get(&requirement.capability));
    let authorised = u8::from(can.is_none()) << 2;
    let good = u8::from(level.is_none_or(|level| *level < requirement.min_level)) << 1;
    authorised | good | u8::from(resource.status != Status::Available)
}

impl Matching {
    /// Whether there is somebody for everything that the task cannot do without.
    pub fn is_met(&self) -> bool {
        self.shortages().all(|short| short.requirement.optional)
    }

    /// The requirements for which there is nobody.
    pub fn shortages(&self) -> impl Iterator<Item = &Shortage> {
        self.outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Missing(short) => Some(short),
            Outcome::Found(_) => None,
        })
    }

    /// Those that were found, each once, by id.
    pub fn resources(&self) -> Vec<&Name> {
        let found = self.outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Found(found) => Some(&found.resource),
            Outcome::Missing(_) => None,
        });
        let mut all: Vec<&Name> = found.collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Requirement {
            capability,
            min_level,
            ..
        } = &self.requirement;
        write!(f, "`{capability}`")?;
        if *min_level > Level::LEAST {
            write!(f, " (level {} or more)", min_level.get())?;
        }
        if self.candidates.is_empty() {
            return f.write_str(": nobody declares it");
        }
        for (i, Candidate { resource, lacks }) in self.candidates.iter().enumerate() {
            f.write_str(if i == 0 { ": " } else { "; " })?;
            write!(f, "`{resource}` ")?;
            for (i, lack) in lacks.iter().enumerate() {
                write!(f, "{}{lack}", if i == 0 { "" } else { ", " })?;
            }
        }
        match self.in_question - self.candidates.len() {
            0 => Ok(()),
            more => write!(f, "; {more} more"),
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |names: &[Name]| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            names.join(", ")
        };
        match self {
            Self::Available { status } => write!(f, "is {}", status.as_str()),
            Self::Level { level } => write!(f, "has level {}", level.get()),
            Self::Authorised { missing, denied } if denied.is_empty() => {
                write!(f, "lacks the tool {}", listed(missing))
            }
            Self::Authorised { missing, denied } if missing.is_empty() => {
                write!(f, "is denied the tool {}", listed(denied))
            }
            Self::Authorised { missing, denied } => write!(
                f,
                "lacks the tool {} and is denied {}",
                listed(missing),
                listed(denied)
            ),
        }
    }
}
