//! What an agent can do follows from the tools it has.

use contexture::pool::{Change, Pool, PoolError};
use serde_json::json;

use crate::pool::{does, name, pool};

fn grant(pool: &mut Pool, id: &str, tool: &str) -> Result<(), PoolError> {
    let (id, tool) = (name(id), name(tool));
    does(pool, Change::Granted { id, tool })
}

fn revoke(pool: &mut Pool, id: &str, tool: &str) -> Result<(), PoolError> {
    let (id, tool) = (name(id), name(tool));
    does(pool, Change::Revoked { id, tool })
}

/// `capability available/total`, in the order of the catalog.
fn catalog(pool: &Pool) -> String {
    let line = |entry: &contexture::pool::CatalogEntry<'_>| {
        let (free, all) = (entry.available_count(), entry.resource_count());
        format!("{} {free}/{all}", entry.capability())
    };
    let lines: Vec<String> = pool.capability_catalog().iter().map(line).collect();
    lines.join(", ")
}

#[test]
fn a_tool_that_is_granted_is_in_the_catalog_at_once() {
    let mut pool = pool(json!([
        {"id": "agent", "capabilities": [{"type": "web_search", "level": 7}]},
        {"id": "scheduler-1", "type": "tool", "capabilities": [{"type": "schedule_task", "level": 8}]},
    ]));
    assert_eq!(catalog(&pool), "web_search 1/1, schedule_task 1/1");
    grant(&mut pool, "agent", "schedule_task").unwrap();
    assert_eq!(catalog(&pool), "web_search 1/1, schedule_task 2/2");
    revoke(&mut pool, "agent", "schedule_task").unwrap();
    revoke(&mut pool, "agent", "web_search").unwrap();
    assert_eq!(catalog(&pool), "schedule_task 1/1");
    grant(&mut pool, "agent", "web_search").unwrap();
    // What it declared it has again, as well as it did.
    assert_eq!(pool.get("agent").unwrap().can()["web_search"].get(), 7);
}

#[test]
fn a_capability_takes_all_of_its_tools() {
    let mut pool = pool(json!([{"id": "a", "tools": ["read_file"], "capabilities": ["file_ops"]}]));
    assert_eq!(catalog(&pool), "");
    grant(&mut pool, "a", "write_file").unwrap();
    assert_eq!(catalog(&pool), "file_ops 1/1");
    revoke(&mut pool, "a", "read_file").unwrap();
    assert_eq!(catalog(&pool), "");
}

#[test]
fn a_denial_beats_a_grant_and_an_empty_list_is_nothing() {
    let mut pool = pool(json!([
        {"id": "denied", "capabilities": ["shell_exec", "web_search"], "deniedTools": ["shell_exec"]},
        {"id": "none", "capabilities": ["shell_exec"], "tools": []},
    ]));
    assert_eq!(catalog(&pool), "web_search 1/1");
    let before = pool.clone();
    let error = grant(&mut pool, "denied", "shell_exec").unwrap_err();
    insta::assert_snapshot!(error, @"resource `denied` is denied the tool `shell_exec`");
    assert_eq!(pool, before);
    let said = pool
        .get("denied")
        .unwrap()
        .tools()
        .map(|tool| tool.as_str().to_owned());
    assert_eq!(said.collect::<Vec<_>>(), ["web_search"]);
}

/// Attack 39: an agent that claims what it has no tools for is not in the catalog.
#[test]
fn a_claim_makes_nothing_true() {
    let pool = pool(json!([{"id": "a", "tools": ["web_search"],
        "capabilities": [{"type": "shell_exec", "level": 10}]}]));
    assert_eq!(catalog(&pool), "web_search 1/1");
    assert_eq!(
        pool.get("a").unwrap().can()["web_search"].get(),
        1,
        "nobody vouched for more"
    );
}

#[test]
fn only_agents_hold_tools() {
    let mut pool = pool(json!([{"id": "db", "type": "database", "capabilities": ["sql"]}]));
    let error = grant(&mut pool, "db", "shell_exec").unwrap_err();
    insta::assert_snapshot!(error, @"resource `db` is of type `database`, which holds no tools");
    assert_eq!(catalog(&pool), "sql 1/1");
}

#[test]
fn another_table_changes_what_agents_can_do() {
    let mut pool = pool(json!({
        "resources": [{"id": "a", "tools": ["shell_exec", "git"]}],
        "capabilityTools": {"release": ["shell_exec", "git", "sign"]},
    }));
    assert_eq!(catalog(&pool), "shell_exec 1/1");
    grant(&mut pool, "a", "sign").unwrap();
    assert_eq!(catalog(&pool), "release 1/1, shell_exec 1/1");
    let mapped = Change::Mapped {
        capability: name("release"),
        tools: [name("robot")].into(),
    };
    does(&mut pool, mapped).unwrap();
    assert_eq!(catalog(&pool), "git 1/1, shell_exec 1/1, sign 1/1");
    let nothing = Change::Mapped {
        capability: name("release"),
        tools: [].into(),
    };
    assert!(does(&mut pool, nothing).is_err(), "else everybody could");
}
