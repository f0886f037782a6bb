//! The list of attacks in `docs/attacks.md`: complete, and each test that it names exists.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::ROOT;

/// The last attack and the last fault of the list.
const LAST_ATTACK: usize = 57;
const LAST_FAULT: usize = 13;

/// A row: its number, and its cells.
fn rows(text: &str) -> Vec<(String, Vec<String>)> {
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim().trim_matches('|');
        line.split(" | ")
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    let numbered = |cells: &Vec<String>| {
        let number = cells[0].trim_start_matches('F');
        number.parse::<usize>().is_ok()
    };
    text.lines()
        .filter(|line| line.starts_with('|'))
        .map(cells)
        .filter(numbered)
        .map(|cells| (cells[0].clone(), cells[1..].to_vec()))
        .collect()
}

#[test]
fn every_attack_has_a_test_that_exists_or_an_argument() {
    let text = std::fs::read_to_string(Path::new(ROOT).join("docs/attacks.md")).unwrap();
    let rows = rows(&text);
    let numbers: Vec<&str> = rows.iter().map(|(number, _)| number.as_str()).collect();
    let attacks = (1..=LAST_ATTACK).map(|number| number.to_string());
    let faults = (1..=LAST_FAULT).map(|number| format!("F{number}"));
    let expected: Vec<String> = attacks.chain(faults).collect();
    assert_eq!(numbers, expected, "each number once, in order");
    for (number, cells) in &rows {
        let [_, answer, tests] = cells.as_slice() else {
            panic!("{number}: {cells:?}");
        };
        let named: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(
            !named.is_empty() || answer.contains("does not apply:"),
            "{number} has neither a test nor a reason"
        );
        named.iter().for_each(|test| exists(number, test));
    }
}

#[track_caller]
fn exists(number: &str, test: &str) {
    let (file, name) = test.split_once("::").unwrap_or((test, ""));
    let source = std::fs::read_to_string(Path::new(ROOT).join(file))
        .unwrap_or_else(|error| panic!("{number}: {file}: {error}"));
    // The suites of the fleet's work are functions over a scene, which run against every kind of hub.
    let has_test = ["test]", "::test(", "(scene: Scene)"]
        .iter()
        .any(|form| source.contains(form));
    assert!(has_test, "{number}: {file} has no test");
    let found = source.contains(&format!("fn {name}("));
    assert!(name.is_empty() || found, "{number}: {file} has no {name}");
}

/// A file of attacks that nobody lists is one that nobody finds.
#[test]
fn every_file_of_attacks_is_listed() {
    let text = std::fs::read_to_string(Path::new(ROOT).join("docs/attacks.md")).unwrap();
    let mut missing = BTreeSet::new();
    for entry in std::fs::read_dir(Path::new(ROOT).join("tests/attacks")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.starts_with('a') && !text.contains(&format!("tests/attacks/{name}")) {
            missing.insert(name);
        }
    }
    assert!(missing.is_empty(), "not in docs/attacks.md: {missing:?}");
}
