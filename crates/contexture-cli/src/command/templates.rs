//! `ctx templates`: the texts that models are told, and whose they are.

use std::fmt::Write as _;
use std::path::Path;

use contexture::prompt::{Template, Templates};
use serde_json::{Value, json};

use super::{print, print_content, print_json};
use crate::args;
use crate::config;
use crate::error::CliError;
use crate::templates;
use crate::view::{plural, safe};

/// `ctx templates`.
pub fn templates(what: &args::Templates, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let templates = templates::load(&config::load(dir)?)?;
    match what {
        args::Templates::List => list(&templates, json),
        args::Templates::Show { name } => show(&templates, name, json),
    }
}

fn list(templates: &Templates, json: bool) -> Result<(), CliError> {
    let all = Template::ALL;
    if json {
        let all: Vec<Value> = all.iter().map(|one| about(templates, *one)).collect();
        return print_json(&json!({ "templates": all }));
    }
    let mut out = String::new();
    for template in all {
        let whose = match templates.place(*template) {
            Some(place) => safe(place),
            None if template.is_replaceable() => "built-in".to_owned(),
            None => "built-in, cannot be replaced".to_owned(),
        };
        let _ = writeln!(out, " {:<22} {whose}", template.name());
    }
    let _ = writeln!(out, " {}", plural(all.len(), "template"));
    print(out.as_bytes())
}

fn show(templates: &Templates, name: &str, json: bool) -> Result<(), CliError> {
    let template = Template::parse(name)?;
    if json {
        let mut about = about(templates, template);
        about["text"] = json!(templates.source(template));
        return print_json(&about);
    }
    print_content(templates.source(template).as_bytes())
}

fn about(templates: &Templates, template: Template) -> Value {
    json!({
        "name": template.name(),
        "replaceable": template.is_replaceable(),
        "place": templates.place(template),
    })
}
