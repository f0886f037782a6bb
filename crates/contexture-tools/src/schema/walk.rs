//! What a schema would cost, found out without paying for it.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::SchemaError;

/// The deepest nesting of a schema, and the longest chain of schemas that look at the same value.
const DEEPEST: usize = 64;
/// The most schemas applied to values in one check.
const MOST_STEPS: usize = 200_000;
/// The deepest that one check may go: it recurses.
const DEEPEST_CHECK: usize = 300;

/// Where the subschemas of a keyword are.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    One,
    List,
    Map,
}

/// What the subschemas of a keyword look at.
#[derive(Clone, Copy, PartialEq)]
enum Sight {
    /// The same value.
    Same,
    /// The property of the subschema's own name.
    Named,
    /// All that is inside the value.
    Inside,
}

/// Each keyword that has subschemas.
const KEYWORDS: [(&str, Form, Sight); 22] = [
    ("allOf", Form::List, Sight::Same),
    ("anyOf", Form::List, Sight::Same),
    ("oneOf", Form::List, Sight::Same),
    ("not", Form::One, Sight::Same),
    ("if", Form::One, Sight::Same),
    ("then", Form::One, Sight::Same),
    ("else", Form::One, Sight::Same),
    ("dependentSchemas", Form::Map, Sight::Same),
    ("dependencies", Form::Map, Sight::Same),
    ("properties", Form::Map, Sight::Named),
    ("patternProperties", Form::Map, Sight::Inside),
    ("additionalProperties", Form::One, Sight::Inside),
    ("unevaluatedProperties", Form::One, Sight::Inside),
    ("propertyNames", Form::One, Sight::Inside),
    ("items", Form::One, Sight::Inside),
    ("items", Form::List, Sight::Inside),
    ("prefixItems", Form::List, Sight::Inside),
    ("additionalItems", Form::One, Sight::Inside),
    ("unevaluatedItems", Form::One, Sight::Inside),
    ("contains", Form::One, Sight::Inside),
    ("contentSchema", Form::One, Sight::Inside),
    ("extends", Form::One, Sight::Same),
];

/// Whether every reference stays inside, and whether following those that look at the same value ends.
pub(super) fn inspect(root: &Value) -> Result<(), SchemaError> {
    if depth(root) > DEEPEST {
        let place = "#".to_owned();
        return Err(SchemaError::TooDeep { place });
    }
    let mut all = Inspection {
        root,
        chains: HashMap::new(),
        todo: vec![("#".to_owned(), root)],
    };
    while let Some((place, schema)) = all.todo.pop() {
        all.chain(&place, schema, 0)?;
    }
    Ok(())
}

struct Inspection<'a> {
    root: &'a Value,
    /// By address: whether the chain of schemas behind it is known to end.
    chains: HashMap<*const Value, bool>,
    /// Those that look at other values.
    todo: Vec<(String, &'a Value)>,
}

impl<'a> Inspection<'a> {
    /// Follows what looks at the same value as `schema`.
    fn chain(&mut self, place: &str, schema: &'a Value, deep: usize) -> Result<(), SchemaError> {
        let Value::Object(map) = schema else {
            return Ok(());
        };
        let place = || place.to_owned();
        match self.chains.get(&std::ptr::from_ref(schema)) {
            Some(true) => return Ok(()),
            Some(false) => return Err(SchemaError::Cycle { place: place() }),
            None => {}
        }
        if deep > DEEPEST {
            return Err(SchemaError::TooDeep { place: place() });
        }
        self.chains.insert(schema, false);
        for word in ["$dynamicRef", "$recursiveRef", "$id", "id"] {
            let Some(to) = map.get(word).and_then(Value::as_str) else {
                continue;
            };
            // The root may say who it is: nothing here refers to it by that name.
            if word.ends_with("id") && std::ptr::eq(schema, self.root) {
                continue;
            }
            let to = to.to_owned();
            return Err(SchemaError::Outside { place: place(), to });
        }
        if let Some(to) = map.get("$ref") {
            let outside = || SchemaError::Outside {
                place: place(),
                to: super::cut(to.as_str().unwrap_or("?")),
            };
            let target = resolve(self.root, to).ok_or_else(outside)?;
            let to = to.as_str().unwrap_or_default().to_owned();
            self.chain(&to, target, deep + 1)?;
        }
        for (name, sight, sub) in subschemas(map) {
            let inner = format!("{}/{name}", place());
            match sight {
                Sight::Same => self.chain(&inner, sub, deep + 1)?,
                Sight::Named | Sight::Inside => {
                    if !self.chains.contains_key(&std::ptr::from_ref(sub)) {
                        self.todo.push((inner, sub));
                    }
                }
            }
        }
        self.chains.insert(schema, true);
        Ok(())
    }
}

/// Whether a check of `instance` takes few enough steps. Every subschema is taken to be applied, which
/// is the worst that a validator can do.
pub(super) fn affordable(root: &Value, instance: &Value) -> bool {
    let mut left = MOST_STEPS;
    spend(root, root, instance, 0, &mut left).is_some()
}

fn spend(root: &Value, at: &Value, value: &Value, deep: usize, left: &mut usize) -> Option<()> {
    let Value::Object(schema) = at else {
        return Some(());
    };
    if deep > DEEPEST_CHECK {
        return None;
    }
    let choices = schema.get("enum").and_then(Value::as_array);
    *left = left.checked_sub(1 + choices.map_or(0, Vec::len))?;
    let mut go = |sub: &Value, value: &Value| spend(root, sub, value, deep + 1, left);
    if let Some(to) = schema.get("$ref") {
        go(resolve(root, to)?, value)?;
    }
    for (name, sight, sub) in subschemas(schema) {
        match (sight, value) {
            (Sight::Same, _) => go(sub, value)?,
            (Sight::Named, Value::Object(map)) => {
                if let Some(inner) = map.get(name) {
                    go(sub, inner)?;
                }
            }
            (Sight::Inside, Value::Object(map)) => {
                for inner in map.values() {
                    go(sub, inner)?;
                }
            }
            (Sight::Inside, Value::Array(items)) => {
                for inner in items {
                    go(sub, inner)?;
                }
            }
            _ => {}
        }
    }
    Some(())
}

/// The subschemas of a schema; the name is the property's for those that have one.
fn subschemas(
    schema: &Map<String, Value>,
) -> impl Iterator<Item = (&str, Sight, &Value)> + use<'_> {
    KEYWORDS.iter().flat_map(move |&(word, form, sight)| {
        let found: Vec<(&str, Sight, &Value)> = match (form, schema.get(word)) {
            (Form::One, Some(sub @ Value::Object(_))) => vec![(word, sight, sub)],
            (Form::List, Some(Value::Array(subs))) => {
                subs.iter().map(|sub| (word, sight, sub)).collect()
            }
            (Form::Map, Some(Value::Object(subs))) => subs
                .iter()
                .map(|(name, sub)| (name.as_str(), sight, sub))
                .collect(),
            _ => Vec::new(),
        };
        found
    })
}

/// What a reference inside the schema refers to.
fn resolve<'a>(root: &'a Value, to: &Value) -> Option<&'a Value> {
    let pointer = to.as_str()?.strip_prefix('#')?;
    if pointer.contains('%') {
        return None;
    }
    root.pointer(pointer)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 1,
    }
}
