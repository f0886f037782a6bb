use std::path::Path;

use contexture::tokens::Tokenizer;
use contexture_tools::skills::{LIST, LOAD, Skill, Skills};
use contexture_tools::system::SKILLS_TOKENS;
use serde_json::{Value, json};

use super::{print, print_json};
use crate::args::{Model, Skills as Command};
use crate::error::CliError;
use crate::output::note;
use crate::settings::tokenizer;
use crate::view::{Paint, plural, safe, safe_lines, thousands};
use crate::{config, skills as found};

/// `ctx skills`.
pub fn skills(what: &Command, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let config = config::load(dir)?;
    let (skills, left_out) = found::discover(&config)?;
    if left_out > 0 {
        note!(
            "ctx: {} of this project left out: the folder is not trusted",
            plural(left_out, "skill")
        );
        note!("     `ctx trust` shows what it would allow, and asks");
    }
    let counter = |model: &Model| {
        let chosen = config
            .agent
            .model
            .as_ref()
            .map(|model| model.value.as_str());
        tokenizer(model, model.name.as_deref().or(chosen))
    };
    match what {
        Command::List { model } => list(&skills, counter(model)?.as_ref(), left_out, json),
        Command::Show { skill, model } => show(&skills, skill, counter(model)?.as_ref(), json),
    }
}

fn list(
    skills: &Skills,
    tokenizer: &dyn Tokenizer,
    left_out: usize,
    json: bool,
) -> Result<(), CliError> {
    let offered = [LIST, LOAD].map(str::to_owned).into();
    let overview = skills.overview(tokenizer, SKILLS_TOKENS, &offered)?;
    let price = overview.map_or(0, |section| tokenizer.count(&section.text));
    let each = |list: &[Skill]| -> Result<Vec<Value>, CliError> {
        list.iter().map(|skill| about(skill, tokenizer)).collect()
    };
    let (used, shadowed) = (each(skills.used())?, each(skills.shadowed())?);
    if json {
        let refused = skills.refused().iter().map(|refused| {
            json!({
                "folder": refused.folder.display().to_string(),
                "reason": refused.fault.to_string(),
                "hint": refused.fault.hint(),
            })
        });
        return print_json(&json!({
            "skills": used,
            "shadowed": shadowed,
            "refused": refused.collect::<Vec<_>>(),
            "notTrusted": left_out,
            "overviewTokens": price,
        }));
    }
    let paint = Paint::stdout();
    let mut out = String::new();
    for skill in &used {
        out.push_str(&line(skill, paint));
    }
    for skill in &shadowed {
        let note = format!(
            "another `{}` stands before it: {}",
            text(skill, "name"),
            text(skill, "folder")
        );
        out.push_str(&format!(
            "{}  {}\n",
            paint.dim(&text(skill, "id")),
            paint.dim(&safe(&note))
        ));
    }
    for refused in skills.refused() {
        let folder = safe(&refused.folder.display().to_string());
        out.push_str(&format!("{}\n", paint.fg(1, &format!("refused: {folder}"))));
        let (why, hint) = (refused.fault.to_string(), refused.fault.hint());
        out.push_str(&format!("  {}\n  {}\n", safe(&why), paint.dim(hint)));
    }
    out.push_str(&format!(
        "{}; the overview costs {} tokens of every request\n",
        plural(used.len(), "skill"),
        thousands(price)
    ));
    print(out.as_bytes())
}

fn show(
    skills: &Skills,
    name: &str,
    tokenizer: &dyn Tokenizer,
    json: bool,
) -> Result<(), CliError> {
    let skill = skills.find(name).map_err(|error| CliError::Usage {
        what: error.to_string(),
        hint: "`ctx skills list` names them, and says which were refused and why".to_owned(),
    })?;
    let content = skill.content()?;
    if json {
        let mut about = about(skill, tokenizer)?;
        about["content"] = json!(content);
        return print_json(&about);
    }
    note!(
        "{} tokens when it is loaded",
        thousands(tokenizer.count(&content))
    );
    print(format!("{}\n", safe_lines(content.trim_end_matches('\n'))).as_bytes())
}

fn about(skill: &Skill, tokenizer: &dyn Tokenizer) -> Result<Value, CliError> {
    Ok(json!({
        "id": skill.id(),
        "name": skill.name,
        "scope": skill.scope.as_str(),
        "description": skill.description,
        "license": skill.license,
        "compatibility": skill.compatibility,
        "metadata": skill.metadata,
        "allowedTools": skill.allowed_tools,
        "folder": skill.folder.display().to_string(),
        "tokens": tokenizer.count(&skill.content()?),
    }))
}

fn line(skill: &Value, paint: Paint) -> String {
    let tokens = skill["tokens"].as_u64().unwrap_or_default() as usize;
    let (id, about) = (text(skill, "id"), safe(&text(skill, "description")));
    let price = format!("{:>7}", thousands(tokens));
    let room = paint
        .width
        .saturating_sub(price.len() + id.len() + 4)
        .max(20);
    let about = match about.char_indices().nth(room) {
        Some((at, _)) => format!("{}…", &about[..at]),
        None => about,
    };
    format!("{price}  {}  {}\n", paint.bold(&id), paint.dim(&about))
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}
