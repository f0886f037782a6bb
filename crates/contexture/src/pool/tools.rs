use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

use super::Name;

/// Which tools a capability needs: all of them.
///
/// What is not in the table needs the tool of its own name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityTools {
    needs: BTreeMap<Name, BTreeSet<Name>>,
    /// What is in the table on its right side.
    mentioned: BTreeSet<Name>,
}

/// Spec 003's table.
const TABLE: [(&str, &[&str]); 5] = [
    ("web_search", &["web_search"]),
    ("file_ops", &["read_file", "write_file"]),
    ("code_generation", &["code_generation_tool"]),
    ("shell_exec", &["shell_exec"]),
    ("report_generation", &["report_generator"]),
];

impl CapabilityTools {
    /// Whether `tools` are all that a capability needs.
    pub fn are_enough(&self, capability: &Name, tools: &BTreeSet<Name>) -> bool {
        match self.needs.get(capability) {
            Some(needed) => needed.is_subset(tools),
            None => tools.contains(capability),
        }
    }

    /// The tools that a capability needs.
    pub fn needed<'a>(&'a self, capability: &'a Name) -> impl Iterator<Item = &'a Name> {
        let row = self.needs.get(capability);
        let itself = row.is_none().then_some(capability);
        row.into_iter().flatten().chain(itself)
    }

    /// The table: what is not in it takes the tool of its own name.
    pub fn rows(&self) -> impl Iterator<Item = (&Name, &BTreeSet<Name>)> {
        self.needs.iter()
    }

    /// The capabilities that these tools give.
    ///
    /// A tool that the table does not mention gives the capability of its own name, unless the table knows
    /// that one and wants another tool for it.
    pub fn given<'a>(&'a self, tools: &'a BTreeSet<Name>) -> impl Iterator<Item = &'a Name> {
        let rows = self.needs.iter();
        let rows = rows.filter(|(_, needed)| needed.is_subset(tools));
        let rest = tools
            .iter()
            .filter(|tool| !self.mentioned.contains(*tool) && !self.needs.contains_key(*tool));
        rows.map(|(capability, _)| capability).chain(rest)
    }

    /// Says what a capability needs from now on. At least one tool: what needs none, every agent could do.
    pub(super) fn set(&mut self, capability: Name, tools: BTreeSet<Name>) {
        self.needs.insert(capability, tools);
        self.mentioned = self.needs.values().flatten().cloned().collect();
    }

    /// Whether this is the spec's table, unchanged.
    pub(super) fn is_default(&self) -> bool {
        self.changed().next().is_none()
    }

    /// The rows that the spec's table does not have so.
    fn changed(&self) -> impl Iterator<Item = (&Name, &BTreeSet<Name>)> {
        self.needs.iter().filter(|(capability, needed)| {
            let row = TABLE.iter().find(|(name, _)| *name == capability.as_str());
            !row.is_some_and(|(_, tools)| {
                tools.len() == needed.len() && tools.iter().all(|tool| needed.contains(*tool))
            })
        })
    }
}

impl Default for CapabilityTools {
    fn default() -> Self {
        let row = |(capability, tools): (&'static str, &'static [&'static str])| {
            let tools: BTreeSet<Name> = tools.iter().map(|tool| Name::known(tool)).collect();
            (Name::known(capability), tools)
        };
        let needs: BTreeMap<Name, BTreeSet<Name>> = TABLE.into_iter().map(row).collect();
        let mentioned = needs.values().flatten().cloned().collect();
        Self { needs, mentioned }
    }
}

impl Serialize for CapabilityTools {
    /// What differs from the spec's table.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.changed())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<Name> {
        names.iter().map(|name| Name::new(name).unwrap()).collect()
    }

    #[track_caller]
    fn check(table: &CapabilityTools, tools: &[&str], wanted: &[&str]) {
        let tools = names(tools);
        let given: BTreeSet<Name> = table.given(&tools).cloned().collect();
        assert_eq!(given, names(wanted));
        for capability in &given {
            assert!(table.are_enough(capability, &tools));
            assert!(table.needed(capability).all(|tool| tools.contains(tool)));
        }
    }

    #[test]
    fn tools_give_capabilities() {
        let mut table = CapabilityTools::default();
        check(&table, &[], &[]);
        check(&table, &["read_file"], &[]);
        check(&table, &["read_file", "write_file"], &["file_ops"]);
        check(
            &table,
            &["schedule_task", "web_search"],
            &["schedule_task", "web_search"],
        );
        // The name of a capability is not the tool that it needs.
        check(&table, &["code_generation", "file_ops"], &[]);
        assert!(table.is_default());
        table.set(
            Name::new("deploy").unwrap(),
            names(&["shell_exec", "schedule_task"]),
        );
        check(&table, &["schedule_task"], &[]);
        check(
            &table,
            &["schedule_task", "shell_exec"],
            &["deploy", "shell_exec"],
        );
        let json = serde_json::to_string(&table).unwrap();
        insta::assert_snapshot!(json, @r#"{"deploy":["schedule_task","shell_exec"]}"#);
    }
}
