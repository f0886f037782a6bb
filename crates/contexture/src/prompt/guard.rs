//! Which part of the template language a user's template may use.
//!
//! Fuel counts steps, not sizes: `{% set a = a ~ a %}` forty times is a hundred steps and a
//! terabyte. So a template that is not ours may only look up, test and loop. It is read here before
//! the engine sees it, and read strictly enough that the two cannot disagree on where a tag ends:
//! no escapes in strings, no braces or brackets in expressions, no raw blocks.

use crate::ContextError;

/// The longest source.
const MAX_SOURCE: usize = 256 << 10;

/// The most tags in a source, and the longest tag: both bound how deep the engine's parser recurses.
const MAX_TAGS: usize = 1000;
const MAX_TAG: usize = 1000;

/// What may follow `{%`.
const STATEMENTS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];

/// Refuses a source that goes beyond lookups, conditions, loops and filters.
pub(super) fn check(name: &str, source: &str) -> Result<(), ContextError> {
    let mut rest = source;
    let mut tags = 0;
    let refuse = |at: &str, what: String, hint: &str| {
        let line = 1 + source[..source.len() - at.len()].matches('\n').count();
        ContextError::invalid(format!("template `{name}`, line {line}"), what, hint)
    };
    if source.len() > MAX_SOURCE {
        let what = format!("is longer than {} KiB", MAX_SOURCE >> 10);
        return Err(refuse(source, what, "pass long texts in as values"));
    }
    while let Some(start) = rest.find('{') {
        let tag = &rest[start..];
        let (close, inside) = match tag.as_bytes().get(1) {
            Some(b'{') => ("}}", &tag[2..]),
            Some(b'%') => ("%}", &tag[2..]),
            Some(b'#') => {
                let body = tag[2..].strip_prefix(['-', '+']).unwrap_or(&tag[2..]);
                let Some(end) = body.find("#}") else {
                    return Err(unclosed(&refuse, tag));
                };
                rest = &body[end + 2..];
                continue;
            }
            _ => {
                rest = &tag[1..];
                continue;
            }
        };
        let Some((code, length)) = code_of(inside, close) else {
            return Err(unclosed(&refuse, tag));
        };
        tags += 1;
        if tags > MAX_TAGS || length > MAX_TAG {
            let what = format!("has over {MAX_TAGS} tags, or a tag of over {MAX_TAG} bytes");
            return Err(refuse(tag, what, "split the template"));
        }
        let checked = match close {
            "%}" => statement(&code),
            _ => expression(&code),
        };
        checked.map_err(|what| refuse(tag, what, HINT))?;
        rest = &inside[length + 2..];
    }
    Ok(())
}

const HINT: &str = "a template of your own can look values up, test them, loop and filter; \
                    compute everything else before and pass it in as a value";

fn unclosed(refuse: &impl Fn(&str, String, &str) -> ContextError, tag: &str) -> ContextError {
    let what = "a tag is not closed, or a string in it holds a backslash";
    refuse(
        tag,
        what.into(),
        "close every `{{`, `{%` and `{#`; to print `{{` itself, write {{ \"{{\" }}",
    )
}

/// The tag's code with its strings emptied, and the length up to `close`.
fn code_of(inside: &str, close: &str) -> Option<(String, usize)> {
    let mut code = String::new();
    let mut quote = None;
    for (at, c) in inside.char_indices() {
        match quote {
            Some(_) if c == '\\' => return None,
            Some(open) if c == open => {
                quote = None;
                code.push(c);
            }
            Some(_) => {}
            None if inside[at..].starts_with(close) => return Some((code, at)),
            None => {
                if matches!(c, '"' | '\'') {
                    quote = Some(c);
                }
                code.push(c);
            }
        }
    }
    None
}

fn statement(code: &str) -> Result<(), String> {
    let code = trimmed(code);
    let (keyword, rest) = word(code);
    if !STATEMENTS.contains(&keyword) {
        return Err(format!("`{{% {keyword} %}}` is not for users' templates"));
    }
    if keyword != "for" {
        return expression(rest);
    }
    let mut words = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    if words.any(|word| word == "recursive") {
        return Err("a recursive loop is not for users' templates".into());
    }
    // `for key, value in …` is the one place for a comma.
    let (first, after) = word(rest.trim_start());
    match after.trim_start().strip_prefix(',') {
        Some(more) if !first.is_empty() => expression(more),
        _ => expression(rest),
    }
}

fn expression(code: &str) -> Result<(), String> {
    let builds = |c: char| matches!(c, '~' | '+' | '*' | '[' | ']' | '{' | '}' | ',');
    match trimmed(code).chars().find(|c| builds(*c)) {
        Some(c) => Err(format!("`{c}` in a tag is not for users' templates")),
        None => Ok(()),
    }
}

/// Without the marks of whitespace control at either end.
fn trimmed(code: &str) -> &str {
    let code = code.strip_prefix(['-', '+']).unwrap_or(code);
    code.strip_suffix(['-', '+']).unwrap_or(code).trim()
}

/// The identifier at the start, and what follows it.
fn word(code: &str) -> (&str, &str) {
    let end = code
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(code.len());
    code.split_at(end)
}

#[cfg(test)]
mod tests;
