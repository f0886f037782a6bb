//! `pool.*`: who there is to work, and what each can do.

use std::collections::BTreeSet;
use std::sync::Arc;

use contexture::pool::{Change, ContextOptions, Locale, Name, NewResource, Pool, Requirement};
use contexture::task::TaskError;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Entry, answer, any_object, list, method, object, params, text};
use crate::fleet::Fleet;
use crate::work::seal::Voice;
use crate::{Answering, Call, RpcError, Who, Why};

pub(super) fn table() -> Vec<Entry> {
    let id = || text("the resource's id");
    let changed = || object(&[("ids", list(&text("a resource's id")))]);
    vec![
        method(
            "pool.list",
            "All resources, and what each is doing",
            Who::Owner,
            object(&[]),
            any_object("`resources`; and `capabilityTools`, where they are not the usual ones"),
            |fleet, _| looking(fleet, |pool| answer(pool)),
        ),
        method(
            "pool.catalog",
            "What can be done, and by how many",
            Who::Owner,
            object(&[]),
            any_object("the spec's `ResourcePoolSummary`"),
            |fleet, _| looking(fleet, |pool| answer(pool.summary())),
        ),
        method(
            "pool.match",
            "Who would do it, or why nobody would",
            Who::Owner,
            object(&[("requires", list(&json!({})))]),
            any_object("`met`, and `outcomes`, one for each requirement"),
            matching,
        ),
        method(
            "pool.context",
            "What an agent is told of the pool and its task",
            Who::Owner,
            object(&[
                ("options?", any_object("the options of `buildAgentContext`")),
                ("locale?", json!({"enum": ["en", "zh"]})),
            ]),
            object(&[
                ("context", any_object("the spec's `AgentContext`")),
                ("prompt", text("the same for a model")),
            ]),
            context,
        ),
        method(
            "pool.add",
            "Adds resources, all or none",
            Who::Owner,
            object(&[("resources", list(&any_object("a resource")))]),
            changed(),
            add,
        ),
        method(
            "pool.remove",
            "Removes resources that are available, all or none",
            Who::Owner,
            object(&[("ids", list(&id()))]),
            changed(),
            |fleet, call| each_of(fleet, call, |id| Change::Removed { id }),
        ),
        method(
            "pool.grant",
            "Gives an agent a tool",
            Who::Owner,
            object(&[("id", id()), ("tool", text("the tool's name"))]),
            changed(),
            |fleet, call| tool(fleet, call, |id, tool| Change::Granted { id, tool }),
        ),
        method(
            "pool.revoke",
            "Takes a tool from an agent",
            Who::Owner,
            object(&[("id", id()), ("tool", text("the tool's name"))]),
            changed(),
            |fleet, call| tool(fleet, call, |id, tool| Change::Revoked { id, tool }),
        ),
        method(
            "pool.map",
            "Says which tools a capability takes: all of them, for every agent of the pool",
            Who::Owner,
            object(&[
                ("capability", text("the capability")),
                ("tools", list(&text("a tool's name"))),
            ]),
            object(&[
                ("capability", text("the capability")),
                ("tools", list(&text("a tool's name"))),
            ]),
            map,
        ),
        method(
            "pool.repair",
            "Has resources work again that failed or were retired, all or none",
            Who::Owner,
            object(&[("ids", list(&id()))]),
            changed(),
            repair,
        ),
        method(
            "pool.retire",
            "Takes resources out of service that are available or failed, all or none",
            Who::Owner,
            object(&[("ids", list(&id()))]),
            changed(),
            |fleet, call| each_of(fleet, call, retired),
        ),
        method(
            "pool.key",
            "The secret with which a worker on another machine is a resource",
            Who::Owner,
            object(&[("id", id())]),
            object(&[("key", text("for CONTEXTURE_WORKER_KEY"))]),
            key,
        ),
        method(
            "pool.revokeKey",
            "Ends the secret of a resource's worker; `pool.key` gives the next one",
            Who::Owner,
            object(&[("id", id())]),
            changed(),
            revoke_key,
        ),
    ]
}

fn looking(
    fleet: Arc<Fleet>,
    look: impl FnOnce(&Pool) -> Result<Value, RpcError> + Send + 'static,
) -> Answering {
    Box::pin(async move { fleet.dispatcher.look(|board| look(board.pool())).await? })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Match {
    requires: Vec<Value>,
}

fn matching(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Match { requires } = params(&mut call)?;
        let wanted = each(requires, "requires", Requirement::from_value)?;
        let look = move |pool: &Pool| {
            let matching = pool.matching(&wanted);
            Ok(json!({"met": matching.is_met(), "outcomes": matching.outcomes}))
        };
        looking(fleet, look).await
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Context {
    #[serde(default)]
    options: Value,
    locale: Option<String>,
}

fn context(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Context { options, locale } = params(&mut call)?;
        let options = match options {
            Value::Null => ContextOptions::default(),
            options => ContextOptions::from_value(options)?,
        };
        let locale = match locale.as_deref() {
            None => Locale::default(),
            Some(name) => Locale::parse(name).ok_or_else(|| {
                RpcError::new(Why::Invalid, "`locale` is unknown").hint("known: en, zh")
            })?,
        };
        let now = contexture_agent::clock::now();
        let look = move |pool: &Pool| {
            let context = pool.agent_context(options, now)?;
            Ok(json!({"prompt": context.render(locale)?, "context": context}))
        };
        looking(fleet, look).await
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Add {
    resources: Vec<Value>,
}

fn add(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Add { resources } = params(&mut call)?;
        let resources = each(resources, "resources", NewResource::from_value)?;
        fleet.expect(&resources);
        let all = resources.into_iter();
        changing(
            fleet,
            all.map(|resource| Change::Added { resource }).collect(),
        )
        .await
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ids {
    ids: Vec<String>,
}

fn retired(id: Name) -> Change {
    Change::Retired { id, by_owner: true }
}

fn each_of(fleet: Arc<Fleet>, mut call: Call, change: fn(Name) -> Change) -> Answering {
    Box::pin(async move {
        let Ids { ids } = params(&mut call)?;
        let one = |id: &String| Ok(change(Name::new(id)?));
        let all = ids.iter().map(one).collect::<Result<_, RpcError>>()?;
        changing(fleet, all).await
    })
}

fn repair(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Ids { ids } = params(&mut call)?;
        let ids = ids.iter().map(|id| Ok(Name::new(id)?));
        let ids: Vec<Name> = ids.collect::<Result<_, RpcError>>()?;
        let named = ids.clone();
        let repaired = fleet.dispatcher.change(move |board, now| {
            let changes: Vec<Change> = ids.iter().map(|id| board.pool().repair(id)).collect();
            for change in changes {
                board.change(change, &now.at)?;
            }
            Ok(((), Vec::new()))
        });
        repaired.await?;
        Ok(json!({"ids": named}))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mapped {
    capability: String,
    tools: Vec<String>,
}

fn map(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Mapped { capability, tools } = params(&mut call)?;
        let capability = Name::new(&capability)?;
        let tools = tools.iter().map(|tool| Ok(Name::new(tool)?));
        let tools: BTreeSet<Name> = tools.collect::<Result<_, RpcError>>()?;
        let answer = json!({"capability": capability, "tools": tools});
        changing(fleet, vec![Change::Mapped { capability, tools }]).await?;
        Ok(answer)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    id: String,
    tool: String,
}

fn tool(fleet: Arc<Fleet>, mut call: Call, change: fn(Name, Name) -> Change) -> Answering {
    Box::pin(async move {
        let Tool { id, tool } = params(&mut call)?;
        let change = change(Name::new(&id)?, Name::new(&tool)?);
        changing(fleet, vec![change]).await
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    id: String,
}

fn key(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Key { id } = params(&mut call)?;
        let name = worker(&fleet, &id).await?;
        let of = name.clone();
        let revoked = fleet.dispatcher.look(move |board| {
            let revoked = board.pool().revoked_keys().get(&of);
            revoked.copied().unwrap_or_default()
        });
        let voice = Voice::Guest(revoked.await?);
        let seat = fleet.dispatcher.key().seat_of(&name, voice);
        Ok(json!({"key": seat.secret()}))
    })
}

fn revoke_key(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Key { id } = params(&mut call)?;
        let id = worker(&fleet, &id).await?;
        changing(fleet, vec![Change::KeyRevoked { id }]).await
    })
}

/// The name of a resource that does tasks.
async fn worker(fleet: &Fleet, id: &str) -> Result<Name, RpcError> {
    let (name, id) = (Name::new(id)?, id.to_owned());
    let known = fleet.dispatcher.look(move |board| {
        let known = board.pool().get(&id);
        known.map(|resource| resource.kind().does_tasks())
    });
    match known.await? {
        Some(true) => Ok(name),
        Some(false) => Err(
            RpcError::new(Why::Invalid, format!("`{name}` does no tasks"))
                .hint("executors and reviewers join as workers"),
        ),
        None => Err(
            RpcError::new(Why::NotFound, format!("there is no resource `{name}`"))
                .hint("`ctx pool add` makes it known, with what it may do"),
        ),
    }
}

/// Has the changes happen, all or none.
async fn changing(fleet: Arc<Fleet>, changes: Vec<Change>) -> Result<Value, RpcError> {
    let ids: Vec<Name> = changes
        .iter()
        .filter_map(Change::resource)
        .cloned()
        .collect();
    let happened = fleet.dispatcher.change(move |board, now| {
        let all = changes.iter().cloned();
        let all = all.map(|change| board.change(change, &now.at));
        all.collect::<Result<(), TaskError>>()?;
        Ok(((), Vec::new()))
    });
    happened.await?;
    Ok(json!({"ids": ids}))
}

/// Reads a list, and says which of it is wrong.
fn each<T>(
    values: Vec<Value>,
    place: &str,
    read: impl Fn(Value) -> Result<T, contexture::ContextError>,
) -> Result<Vec<T>, RpcError> {
    let one = |(n, value)| read(value).map_err(|error| error.within(&format!("{place}[{n}]")));
    Ok(values
        .into_iter()
        .enumerate()
        .map(one)
        .collect::<Result<_, _>>()?)
}
