use std::fmt::Write as _;
use std::path::Path;

use contexture::json::parse;
use contexture::prompt::signature;
use contexture::{ContextError, inject::ToolDefinition};
use serde_json::{Map, Value, json};

use super::{print, print_content, print_json, runtime};
use crate::args::Tool;
use crate::error::CliError;
use crate::input;
use crate::session;
use crate::view::{plural, safe};

/// `ctx tool`.
pub fn tool(what: &Tool, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    match what {
        Tool::List { at } => {
            let client = session::client(at, dir)?;
            let tools = runtime()?.block_on(session::tools(&client))?;
            list(&tools, json)
        }
        Tool::Call {
            name,
            arguments,
            args,
            at,
        } => {
            let client = session::client(at, dir)?;
            let mut all = object(args.as_deref())?;
            let said = runtime()?.block_on(async {
                if !arguments.is_empty() {
                    let tools = session::tools(&client).await?;
                    let tool = tools.iter().find(|tool| tool.name == *name);
                    add(&mut all, arguments, tool)?;
                }
                Ok::<_, CliError>(session::call(&client, name, Value::Object(all)).await?)
            })?;
            show(said, json)
        }
    }
}

fn list(tools: &[ToolDefinition], json: bool) -> Result<(), CliError> {
    if json {
        return print_json(&json!(tools));
    }
    let mut out = String::new();
    for tool in tools {
        let signature = safe(&signature(&tool.name, &tool.parameters));
        let _ = writeln!(out, " {signature}\n     {}", safe(&tool.description));
        if let Some(context) = &tool.context {
            let _ = writeln!(out, "     {}", safe(context));
        }
    }
    let _ = writeln!(out, " {}", plural(tools.len(), "tool"));
    print(out.as_bytes())
}

fn show(said: Value, json: bool) -> Result<(), CliError> {
    if json {
        return print_json(&json!({"content": said}));
    }
    let text = match said {
        Value::String(text) => text,
        other => other.to_string(),
    };
    print_content(format!("{}\n", text.trim_end_matches('\n')).as_bytes())
}

/// All arguments at once.
fn object(text: Option<&str>) -> Result<Map<String, Value>, CliError> {
    let bytes = match text {
        None => return Ok(Map::new()),
        Some("-") => input::standard_text()?.into_bytes(),
        Some(text) => text.as_bytes().to_vec(),
    };
    let at = |error| CliError::Context {
        place: Some("--args".into()),
        error,
    };
    match parse(&bytes, 1).map_err(at)? {
        Value::Object(all) => Ok(all),
        _ => Err(at(invalid("--args", "must be an object"))),
    }
}

/// Adds the arguments that were given by name, as what the tool takes them.
fn add(
    all: &mut Map<String, Value>,
    arguments: &[(String, String)],
    tool: Option<&ToolDefinition>,
) -> Result<(), CliError> {
    for (name, text) in arguments {
        let wanted = tool.map(|tool| &tool.parameters["properties"][name]["type"]);
        let value = match wanted.is_some_and(is_json) {
            false => Value::String(text.clone()),
            true => parse(text.as_bytes(), 1).map_err(|_| {
                let wanted = wanted.map(Value::to_string).unwrap_or_default();
                let what = format!("must be {}: {text}", wanted.trim_matches('"'));
                invalid(name, what)
            })?,
        };
        if all.insert(name.clone(), value).is_some() {
            return Err(CliError::Usage {
                what: format!("the argument `{name}` is given twice"),
                hint: "a list is one argument: --arg 'names=[\"a\",\"b\"]'".to_owned(),
            });
        }
    }
    Ok(())
}

/// Whether a schema's type is written as JSON. What may be text is text.
fn is_json(wanted: &Value) -> bool {
    let one = |wanted: &Value| {
        matches!(
            wanted.as_str(),
            Some("number" | "integer" | "boolean" | "object" | "array" | "null")
        )
    };
    match wanted {
        Value::Array(all) => !all.is_empty() && all.iter().all(one),
        wanted => one(wanted),
    }
}

fn invalid(place: &str, what: impl Into<String>) -> ContextError {
    ContextError::invalid(place, what, "`ctx tool list` says what the tool takes")
}
