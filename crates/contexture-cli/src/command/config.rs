//! `ctx config`: the settings in effect with their sources, and the schema of `contexture.json`.

use std::path::Path;

use serde_json::{Value, json};

use super::{print, print_json, schema};
use crate::args::{ConfigCommand, ConfigShow, SchemaName};
use crate::config::{
    self,
    show::{Origin, Setting, Settings},
};
use crate::error::CliError;
use crate::view::{Paint, clip, safe};

/// `ctx config`.
pub fn config(what: &ConfigCommand, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    match what {
        ConfigCommand::Schema => schema::document(SchemaName::Config),
        ConfigCommand::Show(options) => show(options, json, dir),
    }
}

/// `ctx config show`.
fn show(options: &ConfigShow, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let ConfigShow {
        model,
        base_url,
        max_steps,
        budget,
        reserve,
    } = options;
    let given = [
        ("model", "--model", model.as_ref().map(|text| json!(text))),
        (
            "baseUrl",
            "--base-url",
            base_url.as_ref().map(|text| json!(text)),
        ),
        ("agent.maxSteps", "--max-steps", max_steps.map(|n| json!(n))),
        (
            "context.maxInputTokens",
            "--budget",
            budget.map(|n| json!(n)),
        ),
        (
            "context.reservedOutput",
            "--reserve",
            reserve.map(|n| json!(n)),
        ),
    ];
    let settings = config::show::settings(dir, &config::here()?, &given)?;
    if json {
        return print_json(&as_json(&settings));
    }
    print(in_words(&settings, Paint::stdout()).as_bytes())
}

fn as_json(settings: &Settings) -> Value {
    let one = |setting: &Setting| {
        let mut row = json!({
            "key": setting.key,
            "value": setting.value,
            "source": setting.origin.as_str(),
        });
        if let Some(name) = setting.origin.name() {
            row["name"] = json!(name);
        }
        if let Some(withheld) = &setting.withheld {
            row["withheld"] = withheld.clone();
        }
        row
    };
    json!({
        "userFile": settings.user,
        "projectFile": settings.project,
        "trust": settings.trust.as_str(),
        "settings": settings.all.iter().map(one).collect::<Vec<_>>(),
    })
}

fn in_words(settings: &Settings, paint: Paint) -> String {
    let there = |path: &Path| match path.is_file() {
        true => "",
        false => " (not there)",
    };
    let mut out = String::new();
    if let Some(user) = &settings.user {
        let path = safe(&user.display().to_string());
        out.push_str(&format!("user     {path}{}\n", there(user)));
    }
    let path = safe(&settings.project.display().to_string());
    let trust = match settings.project.is_file() {
        true => format!(" ({})", trusted(settings)),
        false => there(&settings.project).to_owned(),
    };
    out.push_str(&format!("project  {path}{trust}\n\n"));
    let widest = settings.all.iter().map(|one| one.key.len()).max();
    let widest = widest.unwrap_or_default();
    for setting in &settings.all {
        let value = shown(&setting.value);
        let origin = setting.origin;
        let source = match origin {
            Origin::Environment(name) | Origin::Option(name) => name,
            origin => origin.as_str(),
        };
        let row = format!("{:<widest$}  {source:<22} {value}", setting.key);
        let row = clip(&row, paint.width);
        let row = match origin {
            Origin::Default => paint.dim(&row),
            _ => row,
        };
        out.push_str(&format!("{row}\n"));
        if let Some(withheld) = &setting.withheld {
            let what = format!("not trusted: {}", shown(withheld));
            let row = clip(&format!("{:widest$}  {what}", ""), paint.width);
            out.push_str(&format!("{}\n", paint.fg(179, &row)));
        }
    }
    out
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => safe(text),
        value => safe(&value.to_string()),
    }
}

fn trusted(settings: &Settings) -> &'static str {
    match settings.trust {
        crate::trust::State::Trusted => "trusted",
        crate::trust::State::Unknown => "not trusted: `ctx trust`",
        crate::trust::State::Changed => "changed since it was trusted: `ctx trust`",
    }
}
