//! Every scalar of every line is found again, as often as it came.

use std::collections::BTreeMap;

use contexture::import::Imported;
use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::import::FIXTURES;

type Bag = BTreeMap<String, usize>;

#[test]
fn nothing_of_a_fixture_is_lost() {
    for (name, text) in FIXTURES {
        check(name, text);
    }
}

proptest! {
    #[test]
    fn nor_of_lines_with_unheard_of_fields_and_values(
        file in 0..FIXTURES.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), change()), 1..6),
    ) {
        let mut lines: Vec<Value> = objects(FIXTURES[file].1).collect();
        for (at, change) in changes {
            let at = at.index(lines.len());
            change.make(&mut lines[at]);
        }
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        check(FIXTURES[file].0, &text);
    }
}

/// A new field, or another value in the place of one, somewhere in a line.
#[derive(Debug, Clone)]
struct Change {
    path: Vec<prop::sample::Index>,
    key: Option<String>,
    value: Value,
}

fn change() -> impl Strategy<Value = Change> {
    let value = prop_oneof![
        "[a-z]{1,8}".prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        "[a-z]{1,4}".prop_map(|s| serde_json::json!({ "x": s })),
        "[a-z]{1,4}".prop_map(|s| serde_json::json!([{ "type": "text", "text": s }, s])),
    ];
    let path = prop::collection::vec(any::<prop::sample::Index>(), 1..5);
    (path, prop::option::of("[a-z]{2,6}"), value).prop_map(|(path, key, value)| Change {
        path,
        key,
        value,
    })
}

impl Change {
    fn make(&self, line: &mut Value) {
        let mut at = line;
        for step in &self.path {
            let deeper = match &*at {
                Value::Object(map) if !map.is_empty() => {
                    let key = map.keys().nth(step.index(map.len())).unwrap();
                    // The ids say which file it is; without them it is another's.
                    !matches!(map[key], Value::Null) && !["type", "role"].contains(&key.as_str())
                }
                Value::Array(list) => !list.is_empty(),
                _ => false,
            };
            if !deeper {
                break;
            }
            at = match at {
                Value::Object(map) => {
                    let n = step.index(map.len());
                    map.values_mut().nth(n).unwrap()
                }
                Value::Array(list) => {
                    let n = step.index(list.len());
                    &mut list[n]
                }
                _ => unreachable!(),
            };
        }
        match (at, &self.key) {
            (Value::Object(map), Some(key)) => drop(map.insert(key.clone(), self.value.clone())),
            (Value::Object(_), None) => {}
            (other, _) => *other = self.value.clone(),
        }
    }
}

#[track_caller]
fn check(name: &str, text: &str) {
    let imported = Imported::read(text.as_bytes()).unwrap();
    let mut wanted = Bag::new();
    for line in objects(text) {
        scalars(&line, &mut wanted);
    }
    let mut found = Bag::new();
    for entry in &imported.entries {
        scalars(&serde_json::to_value(entry).unwrap(), &mut found);
    }
    for (scalar, n) in wanted {
        let there = found.get(&scalar).copied().unwrap_or(0);
        assert!(
            there >= n,
            "{name}: {scalar} is there {there} times, not {n}\n{text}"
        );
    }
}

fn objects(text: &str) -> impl Iterator<Item = Value> {
    text.lines()
        .filter_map(|line| serde_json::from_str::<Map<String, Value>>(line).ok())
        .map(Value::Object)
}

/// Counts the scalars of a value. Arguments as text hold what is in them, and so do data addresses;
/// null is nothing.
fn scalars(value: &Value, bag: &mut Bag) {
    match value {
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) => *bag.entry(value.to_string()).or_default() += 1,
        Value::String(text) => {
            *bag.entry(value.to_string()).or_default() += 1;
            if let Some((media, data)) = text
                .strip_prefix("data:")
                .and_then(|rest| rest.split_once(";base64,"))
            {
                scalars(&media.into(), bag);
                scalars(&data.into(), bag);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| scalars(value, bag)),
        Value::Object(map) => {
            for (key, value) in map {
                scalars(value, bag);
                if key == "arguments"
                    && let Some(text) = value.as_str()
                    && let Ok(inner) = serde_json::from_str(text)
                {
                    scalars(&inner, bag);
                }
            }
        }
    }
}
