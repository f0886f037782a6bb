//! The one template environment, and what can go wrong in it.

use std::io::{self, Write};
use std::sync::OnceLock;

use minijinja::value::{Serde, Value};
use minijinja::{Environment, Error, ErrorKind, Output, State, UndefinedBehavior};
use serde::Serialize;

use super::{Template, filters};
use crate::ContextError;
use crate::json::kind;

/// Steps of the template machine that one rendering may take: some thirty thousand lines.
const FUEL: u64 = 200_000;

/// How deep loops and conditions may stand in one another.
const DEPTH: usize = 64;

/// The longest text a template may produce. No model reads as much.
pub(super) const MAX_OUTPUT: usize = 16 << 20;

/// Renders a template of ours.
pub(super) fn render_builtin(
    template: Template,
    values: impl Serialize,
) -> Result<String, ContextError> {
    let name = template.name();
    let compiled = environment()?.get_template(name);
    render(name, compiled, values)
}

/// Renders a source that has passed the guard.
pub(super) fn render_source(
    name: &str,
    source: &str,
    values: impl Serialize,
) -> Result<String, ContextError> {
    let environment: &Environment<'_> = environment()?;
    let compiled = environment.template_from_named_str(name, source);
    render(name, compiled, values)
}

/// Refuses a source that cannot be compiled.
pub(super) fn check_source(name: &str, source: &str) -> Result<(), ContextError> {
    let compiled = environment()?.template_from_named_str(name, source);
    compiled.map(drop).map_err(|error| explain(name, &error))
}

fn environment() -> Result<&'static Environment<'static>, ContextError> {
    static ENVIRONMENT: OnceLock<Result<Environment<'static>, ContextError>> = OnceLock::new();
    ENVIRONMENT
        .get_or_init(build)
        .as_ref()
        .map_err(Clone::clone)
}

fn build() -> Result<Environment<'static>, ContextError> {
    // Empty, because a feature that is not there cannot be misused: no escaping by file name, no
    // globals, and only the filters and tests below.
    let mut env = Environment::empty();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_fuel(Some(FUEL));
    env.set_recursion_limit(DEPTH);
    env.set_formatter(write_value);
    // Errors name the undefined variable only in this mode, which release builds leave off.
    env.set_debug(true);

    filters::add(&mut env);

    for template in Template::ALL {
        env.add_template(template.name(), template.source())
            .map_err(|error| explain(template.name(), &error))?;
    }
    Ok(env)
}

fn render(
    name: &str,
    compiled: Result<minijinja::Template<'_, '_>, Error>,
    values: impl Serialize,
) -> Result<String, ContextError> {
    let template = compiled.map_err(|error| explain(name, &error))?;
    // By way of JSON, so that what a template sees is plain data and nothing else.
    let values = match serde_json::to_value(values) {
        Ok(serde_json::Value::Object(values)) => values,
        Ok(other) => return Err(no_object(name, kind(&other))),
        Err(error) => return Err(no_object(name, &error.to_string())),
    };
    let mut out = Bounded(Vec::new());
    template
        .render_captured_to(Value::from(Serde(&values)), &mut out)
        .map_err(|error| match explain(name, &error) {
            ContextError::InvalidInput { place, what, .. }
                if error.kind() == ErrorKind::UndefinedError =>
            {
                let given: Vec<&str> = values.keys().map(String::as_str).collect();
                let hint = match given.as_slice() {
                    [] => "the template was given nothing".to_owned(),
                    given => format!("the template was given: {}", given.join(", ")),
                };
                ContextError::invalid(place, what, hint)
            }
            other => other,
        })?;
    String::from_utf8(out.0).map_err(|_| no_object(name, "text that is not UTF-8"))
}

fn explain(name: &str, error: &Error) -> ContextError {
    let place = match error.line() {
        Some(line) => format!("template `{name}`, line {line}"),
        None => format!("template `{name}`"),
    };
    let (what, hint) = match error.kind() {
        ErrorKind::OutOfFuel => (
            format!("takes more than {FUEL} steps"),
            "loop over less: the limit keeps a template from running forever",
        ),
        ErrorKind::WriteFailure => (
            format!("makes more than {} MiB of text", MAX_OUTPUT >> 20),
            "give the template less to repeat",
        ),
        kind => (
            error
                .detail()
                .map_or_else(|| kind.to_string(), str::to_owned),
            "see https://docs.rs/minijinja for the syntax",
        ),
    };
    ContextError::invalid(place, what, hint)
}

fn no_object(name: &str, found: &str) -> ContextError {
    ContextError::invalid(
        format!("template `{name}`"),
        format!("its values must be an object, found {found}"),
        "give the template a map from variable to value",
    )
}

/// Strings as they are, everything else as JSON: the engine's own spelling of a list or of null is
/// nothing a model has seen before.
fn write_value(out: &mut Output, _: &mut State, value: &Value) -> Result<(), Error> {
    // Only `a if b` without `else` arrives here undefined, and means nothing.
    if !value.is_undefined() {
        out.write_str(&filters::text(value)?)?;
    }
    Ok(())
}

/// Memory that refuses to grow past [`MAX_OUTPUT`].
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_OUTPUT {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::prompt::render_str;
    use serde_json::json;

    #[track_caller]
    fn refused(source: &str, what: &str) {
        let values = json!({"a": "x", "b": {}, "l": [], "big": "x".repeat(1 << 20), "many": vec!["y"; 1000]});
        let error = render_str("mine", source, values).unwrap_err().to_string();
        assert!(error.contains("`mine`") && error.contains(what), "{error}");
    }

    #[test]
    fn whatever_touches_an_undefined_value_names_it() {
        for source in [
            "{{ gone }}",
            "{% if gone %}{% endif %}",
            "{% for x in gone %}{% endfor %}",
            "{{ gone | join(', ') }}",
            "{{ gone | upper }}",
            "{{ gone | lower }}",
            "{{ gone | trim }}",
            "{{ gone | length }}",
            "{{ gone | first }}",
            "{{ gone | last }}",
            "{{ gone | sort }}",
            "{{ gone | items }}",
            "{{ gone | attr('x') }}",
            "{{ gone.deeper }}",
            "{{ gone == 1 }}",
            "{{ not gone }}",
            "{{ a in gone }}",
        ] {
            refused(source, "`gone");
        }
        for filter in [
            "join(', ')",
            "upper",
            "lower",
            "trim",
            "length",
            "first",
            "last",
            "sort",
            "items",
            "attr('x')",
        ] {
            refused(&format!("{{{{ b.c | {filter} }}}}"), "`b.c`");
        }
        refused("{{ b.c }}", "`b.c`");
        refused("{{ b.c.d }}", "`b.c`");
        refused("line\n{{ b.c }}", "line 2");
    }

    #[test]
    fn absence_can_be_asked_about() {
        let source = "{{ x | default('d') }} {% if x is defined %}{{ x }}{% else %}no{% endif %}{{ 'n' if y }}";
        let text = render_str("mine", source, json!({"y": false})).unwrap();
        assert_eq!(text, "d no");
    }

    #[test]
    fn work_and_output_are_bounded() {
        refused(
            "{% for x in many %}{% for y in many %}{{ x }}{% endfor %}{% endfor %}",
            "200000 steps",
        );
        refused("{% for x in many %}{{ big }}{% endfor %}", "16 MiB");
        refused("{{ many | join(big) }}", "16 MiB");
        refused("{{ a | join(a) }}", "not a string");
    }

    #[test]
    fn values_must_be_an_object() {
        assert!(render_str("mine", "x", json!([1])).is_err());
        assert!(render_str("mine", "x", f64::NAN).is_err());
    }
}
