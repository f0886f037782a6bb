mod map;

use std::path::Path;

use contexture::ContextError;
use contexture::pool::{
    Change, Found, Level, Matching, Name, NewResource, Outcome, Pool, Requirement,
};
use contexture::task::TaskError;
use contexture_agent::clock::now;
use contexture_fleet::work::seal::Voice;
use contexture_server::Client;
use contexture_store::{BoardLog, LoadedBoard};
use serde_json::{Value, json};

use super::agent_context::document;
use super::{at, print, print_json, runtime, to_value};
use crate::args::{Pool as Command, PoolAdd};
use crate::config::{self, Config};
use crate::error::CliError;
use crate::fleet::daemon;
use crate::output::note;
use crate::state;
use crate::store::{self, Home};
use crate::view::{self, Paint, plural, safe};
use crate::work;

/// `ctx pool …`.
pub fn pool(what: Command, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    // What is wrong with the words is said before anything is opened.
    let changes = match &what {
        Command::List | Command::Catalog | Command::Match { .. } | Command::Key { .. } => {
            Vec::new()
        }
        Command::Map { capability, tools } => map::change(capability.as_deref(), tools)?,
        // What they need to be repaired from is known with the pool.
        Command::Repair { ids } => each(ids, |id| Change::Recovered { id })?,
        Command::Retire { ids } => each(ids, |id| Change::Retired { id, by_owner: true })?,
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
        Command::RevokeKey { id } => vec![Change::KeyRevoked {
            id: name(id, "ID")?,
        }],
    };
    let config = config::load(dir)?;
    // Whoever hands out tasks holds the log: it is told what to change. To look, the log is enough.
    if let (false, Some(client)) = (changes.is_empty(), daemon(&config)?) {
        return asked(&client, &what, &changes, json);
    }
    let (log, mut loaded) = load(&store::of(&config)?)?;
    state::say_ignored(&config);
    let pool = loaded.board.pool();
    match what {
        Command::List => list(pool, json),
        Command::Catalog => catalog(pool, json),
        Command::Match { needs } => matching(pool, &needs, json),
        Command::Key { id } => key(pool, &id, &config, json),
        Command::Map { capability, .. } if changes.is_empty() => {
            map::table(pool, capability.as_deref(), json)
        }
        Command::Add(_)
        | Command::Map { .. }
        | Command::Remove { .. }
        | Command::Repair { .. }
        | Command::Retire { .. }
        | Command::Grant { .. }
        | Command::Revoke { .. }
        | Command::RevokeKey { .. } => {
            if let [Change::KeyRevoked { id }] = &changes[..] {
                worker(pool, id.as_str())?;
            }
            let at = now();
            log.change(&mut loaded, |board| {
                let all: Vec<Change> = changes
                    .iter()
                    .map(|change| match change {
                        Change::Recovered { id } => board.pool().repair(id),
                        other => other.clone(),
                    })
                    .collect();
                let all = all.into_iter();
                let all = all.map(|change| board.change(change, &at));
                let all: Result<(), TaskError> = all.collect();
                all.map_err(|error| CliError::from(ContextError::from(error)))
            })?;
            changed(&changes, did(&what), json)
        }
    }
}

/// The project's board, with a word on what of it could not be read.
pub(super) fn load(home: &Home) -> Result<(BoardLog, LoadedBoard), CliError> {
    let log = work::board(home)?;
    let loaded = log.load()?;
    for odd in &loaded.oddities {
        note!("ctx: {}", safe(&format!("pool, left aside: {odd}")));
    }
    Ok((log, loaded))
}

/// The word for what was done.
fn did(what: &Command) -> &'static str {
    match what {
        Command::Add(_) => "added",
        Command::Remove { .. } => "removed",
        Command::RevokeKey { .. } => "revoked",
        Command::Repair { .. } => "repaired",
        Command::Retire { .. } => "retired",
        Command::Map { .. } => "mapped",
        _ => "changed",
    }
}

/// Has the daemon change it.
fn asked(client: &Client, what: &Command, changes: &[Change], json: bool) -> Result<(), CliError> {
    let (method, params) = match changes {
        [Change::Granted { id, tool }] => ("pool.grant", json!({"id": id, "tool": tool})),
        [Change::Revoked { id, tool }] => ("pool.revoke", json!({"id": id, "tool": tool})),
        [Change::KeyRevoked { id }] => ("pool.revokeKey", json!({ "id": id })),
        [Change::Mapped { capability, tools }] => (
            "pool.map",
            json!({"capability": capability, "tools": tools}),
        ),
        changes if !matches!(what, Command::Add(_)) => {
            let ids: Vec<&Name> = changes.iter().filter_map(Change::resource).collect();
            let method = match what {
                Command::Repair { .. } => "pool.repair",
                Command::Retire { .. } => "pool.retire",
                _ => "pool.remove",
            };
            (method, json!({"ids": ids}))
        }
        changes => {
            let all = changes.iter().filter_map(|change| match change {
                Change::Added { resource } => Some(resource),
                _ => None,
            });
            ("pool.add", json!({"resources": all.collect::<Vec<_>>()}))
        }
    };
    runtime()?.block_on(client.call(method, params))?;
    changed(changes, did(what), json)
}

/// The secret of a worker that has nothing else of the project.
fn key(pool: &Pool, id: &str, config: &Config, json: bool) -> Result<(), CliError> {
    let name = worker(pool, id)?;
    let revoked = pool.revoked_keys().get(&name).copied();
    let voice = Voice::Guest(revoked.unwrap_or_default());
    let secret = work::key(config)?.seat_of(&name, voice).secret();
    match json {
        true => print_json(&json!({"key": secret})),
        false => print(format!("{secret}\n").as_bytes()),
    }
}

/// The name of a resource that does tasks.
fn worker(pool: &Pool, id: &str) -> Result<Name, CliError> {
    let name = name(id, "ID")?;
    let what = match pool.get(id).map(|resource| resource.kind().does_tasks()) {
        Some(true) => return Ok(name),
        Some(false) => format!("`{name}` does no tasks"),
        None => format!("there is no resource `{name}`"),
    };
    let hint =
        "`ctx pool add ID --capability NAME --worker` makes an executor known, with what it may do";
    Err(ContextError::invalid("ID", what, hint).into())
}

fn list(pool: &Pool, json: bool) -> Result<(), CliError> {
    if json {
        return print_json(&to_value(pool)?);
    }
    if pool.is_empty() {
        note!("no resources yet: `ctx pool add ID --capability NAME` adds one");
        return Ok(());
    }
    print(view::resources(pool, Paint::stdout()).as_bytes())
}

fn catalog(pool: &Pool, json: bool) -> Result<(), CliError> {
    if json {
        return print_json(&to_value(pool.summary())?);
    }
    if pool.is_empty() {
        note!("no resources yet: `ctx pool add ID --capability NAME` adds one");
        return Ok(());
    }
    print(view::catalog(pool, Paint::stdout()).as_bytes())
}

fn matching(pool: &Pool, needs: &[String], json: bool) -> Result<(), CliError> {
    let matching = pool.matching(&requirements(needs, "CAPABILITY")?);
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

/// What is needed: `web_search:8`.
pub(super) fn requirements(needs: &[String], place: &str) -> Result<Vec<Requirement>, CliError> {
    let one = |text: &String| {
        let (capability, level) = levelled(text, place)?;
        let wanted = Requirement::of(capability);
        Ok(Requirement {
            min_level: level.unwrap_or(wanted.min_level),
            ..wanted
        })
    };
    needs.iter().map(one).collect()
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

/// What was changed.
fn changed(changes: &[Change], did: &str, json: bool) -> Result<(), CliError> {
    if let [Change::Mapped { capability, tools }] = changes {
        if json {
            return print_json(&json!({did: {"capability": capability, "tools": tools}}));
        }
        let tools: Vec<&str> = tools.iter().map(Name::as_str).collect();
        return print(format!("{did}: {capability} takes {}\n", tools.join(", ")).as_bytes());
    }
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

/// A resource in words.
pub(super) fn by_words(id: &str, options: &PoolAdd) -> Result<NewResource, CliError> {
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
    if options.worker {
        value["worker"] = json!(true);
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
