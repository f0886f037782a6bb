use std::path::Path;

use contexture::ContextError;
use contexture::pool::{
    Change, Found, Level, Matching, Name, NewResource, Outcome, Pool, PoolEvent, Requirement,
};
use contexture_agent::clock::now;
use contexture_store::{Key, LoadedPool, PoolLog};
use serde_json::{Value, json};

use super::agent_context::document;
use super::{at, print, print_json, to_value};
use crate::args::{Pool as Command, PoolAdd};
use crate::error::CliError;
use crate::store::{self, Home};
use crate::view::{self, Paint, plural, safe};

/// The project's pool.
const KEY: &str = "main";

/// `ctx pool …`.
pub fn pool(what: Command, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    // What is wrong with the words is said before anything is opened.
    let changes = match &what {
        Command::List | Command::Catalog | Command::Match { .. } => Vec::new(),
        Command::Add(options) => added(options)?,
        Command::Remove { ids } => each(ids, |id| Change::Removed { id })?,
        Command::Grant { id, tool } => {
            let (id, tool) = (name(id, "ID")?, name(tool, "TOOL")?);
            vec![Change::Granted { id, tool }]
        }
        Command::Revoke { id, tool } => {
            let (id, tool) = (name(id, "ID")?, name(tool, "TOOL")?);
            vec![Change::Revoked { id, tool }]
        }
    };
    let (log, mut loaded) = load(&store::open(dir)?)?;
    match what {
        Command::List => list(&loaded.pool, json),
        Command::Catalog => catalog(&loaded.pool, json),
        Command::Match { needs } => matching(&loaded.pool, &needs, json),
        Command::Add(_) => change(&log, &mut loaded, &changes, "added", json),
        Command::Remove { .. } => change(&log, &mut loaded, &changes, "removed", json),
        Command::Grant { .. } | Command::Revoke { .. } => {
            change(&log, &mut loaded, &changes, "changed", json)
        }
    }
}

/// The project's pool, with a word on what of it could not be read.
pub(super) fn load(home: &Home) -> Result<(PoolLog, LoadedPool), CliError> {
    let log = PoolLog::new(home.sessions.log().clone(), Key::new(KEY)?);
    let loaded = log.load()?;
    for odd in &loaded.oddities {
        eprintln!("ctx: {}", safe(&format!("pool, left aside: {odd}")));
    }
    Ok((log, loaded))
}

fn list(pool: &Pool, json: bool) -> Result<(), CliError> {
    if json {
        return print_json(&to_value(pool)?);
    }
    if pool.is_empty() {
        eprintln!("no resources yet: `ctx pool add ID --capability NAME` adds one");
        return Ok(());
    }
    print(view::resources(pool, Paint::stdout()).as_bytes())
}

fn catalog(pool: &Pool, json: bool) -> Result<(), CliError> {
    if json {
        return print_json(&to_value(pool.summary())?);
    }
    if pool.is_empty() {
        eprintln!("no resources yet: `ctx pool add ID --capability NAME` adds one");
        return Ok(());
    }
    print(view::catalog(pool, Paint::stdout()).as_bytes())
}

fn matching(pool: &Pool, needs: &[String], json: bool) -> Result<(), CliError> {
    let wanted = needs.iter().map(|text| {
        let (capability, level) = levelled(text, "CAPABILITY")?;
        let wanted = Requirement::of(capability);
        Ok(Requirement {
            min_level: level.unwrap_or(wanted.min_level),
            ..wanted
        })
    });
    let matching = pool.matching(&wanted.collect::<Result<Vec<_>, CliError>>()?);
    if json {
        print_json(&json!({"met": matching.is_met(), "outcomes": to_value(&matching.outcomes)?}))?;
    } else {
        print(in_words(&matching).as_bytes())?;
    }
    match matching.shortages().count() {
        0 => Ok(()),
        short => Err(CliError::Unfinished {
            what: format!("{} not met", plural(short, "requirement")),
            hint: "wait until somebody is free, or add a resource or a tool".to_owned(),
        }),
    }
}

fn in_words(matching: &Matching) -> String {
    let line = |outcome: &Outcome| match outcome {
        Outcome::Found(Found {
            capability,
            resource,
            level,
        }) => format!(" {capability}  {resource} (level {})\n", level.get()),
        Outcome::Missing(short) => format!(" missing {short}\n"),
    };
    matching.outcomes.iter().map(line).collect()
}

/// Has the changes happen, all or none.
fn change(
    log: &PoolLog,
    loaded: &mut LoadedPool,
    changes: &[Change],
    did: &str,
    json: bool,
) -> Result<(), CliError> {
    let at = now();
    let events: Vec<PoolEvent> = changes.iter().map(|one| one.clone().at(&at)).collect();
    log.change(loaded, |_| Ok::<_, CliError>((events.clone(), ())))?;
    let ids: Vec<&Name> = changes.iter().filter_map(Change::resource).collect();
    if json {
        return print_json(&json!({ did: ids }));
    }
    let lines: String = ids.iter().map(|id| format!("{did}: {id}\n")).collect();
    print(lines.as_bytes())
}

fn added(options: &PoolAdd) -> Result<Vec<Change>, CliError> {
    let resources = match (&options.file, &options.id) {
        (Some(file), _) => {
            let (value, source) = document(file)?;
            read(value).map_err(at(&source))?
        }
        (None, Some(id)) => vec![by_words(id, options)?],
        (None, None) => Vec::new(),
    };
    let add = |resource| Change::Added { resource };
    Ok(resources.into_iter().map(add).collect())
}

/// A resource, a list of them, or a pool of which only the resources count.
fn read(value: Value) -> Result<Vec<NewResource>, ContextError> {
    let listed = match value {
        Value::Array(list) => list,
        one => return Ok(vec![NewResource::from_value(one)?]),
    };
    let one = |(n, value)| {
        let read = NewResource::from_value(value);
        read.map_err(|error| error.within(&format!("[{n}]")))
    };
    listed.into_iter().enumerate().map(one).collect()
}

fn by_words(id: &str, options: &PoolAdd) -> Result<NewResource, CliError> {
    let mut value = json!({"id": name(id, "ID")?, "type": options.kind});
    if let Some(name) = &options.name {
        value["name"] = json!(name);
    }
    let capability = |text: &String| {
        let (kind, level) = levelled(text, "--capability")?;
        Ok(json!({"type": kind, "level": level}))
    };
    let capabilities = options.capabilities.iter().map(capability);
    value["capabilities"] = capabilities.collect::<Result<_, CliError>>()?;
    for (key, tools) in [
        ("tools", &options.tools),
        ("deniedTools", &options.denied_tools),
    ] {
        if !tools.is_empty() {
            value[key] = json!(tools);
        }
    }
    Ok(NewResource::from_value(value)?)
}

/// `web_search:8`. A name may have colons of its own.
fn levelled(text: &str, place: &str) -> Result<(Name, Option<Level>), CliError> {
    let number = |level: &str| level.parse::<u64>().ok();
    match text.rsplit_once(':') {
        Some((before, level)) if number(level).is_some() => {
            let level = Level::new(number(level).unwrap_or_default());
            let level = level.map_err(|error| error.within(&format!("{place} {text}")))?;
            Ok((name(before, place)?, Some(level)))
        }
        _ => Ok((name(text, place)?, None)),
    }
}

fn each(ids: &[String], change: impl Fn(Name) -> Change) -> Result<Vec<Change>, CliError> {
    ids.iter().map(|id| Ok(change(name(id, "ID")?))).collect()
}

fn name(text: &str, place: &str) -> Result<Name, CliError> {
    Ok(Name::new(text).map_err(|error| error.within(place))?)
}
