//! `docs/specs.md`: a table for each spec, whose rows name tests that exist, or say in words why there is none.
//!
//! A test is named by its file, with `::function` behind it; `::function` alone is in the file before it, and a file may be
//! named from the folder of the file before it. A sentence of a section can give a file a shorter name: "`core` is
//! `crates/…`".

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::ROOT;

/// The specs, by the numbers that their headings begin with.
const SPECS: [&str; 5] = ["000", "001", "002", "003", "004"];
/// The fewest characters of a reason.
const REASON: usize = 40;

/// The code in a text.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// A section's shorter names for files.
fn names(prose: &str) -> BTreeMap<&str, &str> {
    let parts: Vec<&str> = prose.split('`').collect();
    let is_name = |three: &&[&str]| three[1].trim() == "is" && three[2].ends_with(".rs");
    let odd = parts.windows(3).skip(1).step_by(2);
    odd.filter(is_name)
        .map(|three| (three[0], three[2]))
        .collect()
}

/// The files that a section speaks of.
struct Files<'a> {
    names: BTreeMap<&'a str, &'a str>,
    /// The last one that was named in a row.
    last: Option<PathBuf>,
}

impl Files<'_> {
    /// Returns true if the code names a test; an error where that does not exist.
    fn names_test(&mut self, code: &str) -> Result<bool, String> {
        let (file, name) = code.split_once("::").unwrap_or((code, ""));
        let file = self.names.get(file).copied().unwrap_or(file);
        if file.contains('*') || !(file.is_empty() && !name.is_empty() || file.ends_with(".rs")) {
            return Ok(false);
        }
        let path = match file {
            "" => self.last.clone(),
            file => self.find(file),
        };
        let path = path.ok_or_else(|| format!("there is no file for `{code}`"))?;
        let source = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        if !name.is_empty() && !source.contains(&format!("fn {name}(")) {
            return Err(format!("{} has no `{name}`", path.display()));
        }
        self.last = Some(path);
        Ok(true)
    }

    /// From the root, or from a folder of the file before.
    fn find(&self, file: &str) -> Option<PathBuf> {
        let root = Path::new(ROOT);
        let before = self.last.iter().flat_map(|last| last.ancestors().skip(1));
        let usual = [
            "crates/contexture/src",
            "crates/contexture/tests/scenarios",
            "crates/contexture-tools/tests",
        ]
        .map(|one| root.join(one));
        let mut folders = [root]
            .into_iter()
            .chain(before)
            .chain(usual.iter().map(PathBuf::as_path));
        folders.find_map(|folder| Some(folder.join(file)).filter(|path| path.is_file()))
    }
}

#[test]
fn every_clause_has_a_test_that_exists_or_a_reason() {
    let text = std::fs::read_to_string(Path::new(ROOT).join("docs/specs.md")).unwrap();
    let sections: Vec<(&str, &str)> = text
        .split("\n## ")
        .skip(1)
        .map(|section| section.split_once(' ').unwrap())
        .collect();
    let found: Vec<&str> = sections.iter().map(|(spec, _)| *spec).collect();
    assert_eq!(found, SPECS, "docs/specs.md has a section for each spec");
    let mut wrong = Vec::new();
    for (spec, section) in sections {
        let in_table = |line: &&str| line.starts_with('|');
        let prose: Vec<&str> = section.lines().filter(|line| !in_table(line)).collect();
        let prose = prose.join(" ");
        let rows: Vec<&str> = section.lines().filter(in_table).skip(2).collect();
        assert!(
            rows.len() >= 5,
            "docs/specs.md: spec {spec} has {} clauses",
            rows.len()
        );
        for row in rows {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
            let [clause, shown] = cells[..] else {
                wrong.push(format!("{spec}: a row has two cells: {row}"));
                continue;
            };
            let mut files = Files {
                names: names(&prose),
                last: None,
            };
            let tests: Result<Vec<bool>, String> =
                code(shown).map(|code| files.names_test(code)).collect();
            match tests {
                Ok(tests) if tests.contains(&true) || shown.trim().len() >= REASON => {}
                Ok(_) => wrong.push(format!(
                    "{spec}:{clause}: name a test (`file.rs::function`), or say why there is none"
                )),
                Err(why) => wrong.push(format!("{spec}:{clause}: {why}")),
            }
        }
    }
    assert!(wrong.is_empty(), "docs/specs.md: {wrong:#?}");
}

/// The checks above can fail.
#[test]
fn a_test_that_is_not_there_is_found() {
    let mut files = Files {
        names: names("Tests: `here` is `tests/docs/specs.rs`, and more"),
        last: None,
    };
    assert_eq!(
        files.names_test("here::a_test_that_is_not_there_is_found"),
        Ok(true)
    );
    assert_eq!(files.names_test("::names"), Ok(true));
    assert_eq!(files.names_test("page.rs::blocks"), Ok(true));
    assert_eq!(files.names_test("ctx build"), Ok(false));
    for gone in [
        "::nothing",
        "here::nothing",
        "tests/docs/nothing.rs",
        "nothing.rs::x",
    ] {
        assert!(files.names_test(gone).is_err(), "{gone}");
    }
}
