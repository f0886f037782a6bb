//! What a template can do with a value: few things, all strict, none that makes it grow unbounded.

use std::borrow::Cow;

use minijinja::value::{Kwargs, Value};
use minijinja::{Environment, Error, ErrorKind, State, filters, tests};

use super::engine::MAX_OUTPUT;
use super::line;

/// Adds the filters and tests that templates have.
pub(super) fn add(env: &mut Environment<'_>) {
    env.add_filter("attr", filters::attr);
    env.add_filter("default", filters::default);
    env.add_filter("first", |list: &Value| {
        defined(list)?;
        filters::first(list)
    });
    env.add_filter("items", |map: &Value| {
        defined(map)?;
        filters::items(map)
    });
    env.add_filter("join", join);
    env.add_filter("last", |list: Value| {
        defined(&list)?;
        filters::last(list)
    });
    env.add_filter("length", filters::length);
    env.add_filter("lower", filters::lower);
    env.add_filter("sort", |state: &State, list: Value, options: Kwargs| {
        defined(&list)?;
        filters::sort(state, list, options)
    });
    env.add_filter("trim", filters::trim);
    env.add_filter("upper", filters::upper);

    env.add_test("defined", tests::is_defined);
    env.add_test("undefined", tests::is_undefined);
    env.add_test("none", tests::is_none);
    env.add_test("string", tests::is_string);
    env.add_test("number", tests::is_number);
    env.add_test("mapping", tests::is_mapping);
    env.add_test("sequence", tests::is_sequence);
}

/// The value as it is printed.
pub(super) fn text(value: &Value) -> Result<Cow<'_, str>, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.into());
    }
    let json = serde_json::to_value(value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    Ok(line::json(&json).into())
}

/// The engine's own `join` has no limit, takes a string for a list of letters, and takes what is
/// undefined for empty.
fn join(list: &Value, separator: &str) -> Result<String, Error> {
    defined(list)?;
    if list.as_str().is_some() {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "`join` takes a list, not a string",
        ));
    }
    let mut out = String::new();
    for (i, item) in list.try_iter()?.enumerate() {
        let item = text(&item)?.into_owned();
        if out.len() + separator.len() + item.len() > MAX_OUTPUT {
            return Err(Error::from(ErrorKind::WriteFailure));
        }
        if i > 0 {
            out.push_str(separator);
        }
        out.push_str(&item);
    }
    Ok(out)
}

/// An error that names the expression, if the value is undefined. Only the engine can make one; a
/// lookup in the value makes it do so.
fn defined(value: &Value) -> Result<(), Error> {
    if value.is_undefined() {
        value.get_attr("")?;
    }
    Ok(())
}
