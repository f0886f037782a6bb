#![allow(clippy::unwrap_used)]
use super::*;
use serde_json::json;

fn policy(value: Value) -> ToolPolicy {
    ToolPolicy::from_value(value).unwrap()
}

#[test]
fn every_combination_of_lists() {
    use Verdict::*;
    let fs = || "fs".to_owned();
    // `read` of category `fs` against each policy.
    for (lists, verdict) in [
        (json!({}), Unrestricted),
        (json!({"deniedTools": []}), Unrestricted),
        (json!({"deniedCategories": []}), Unrestricted),
        (json!({"deniedTools": ["write"]}), Unrestricted),
        (json!({"customRules": ["never read"]}), Unrestricted),
        (json!({"deniedTools": ["read"]}), DeniedTool),
        (json!({"deniedCategories": ["fs"]}), DeniedCategory(fs())),
        (json!({"allowedTools": ["read"]}), AllowedTool),
        (json!({"allowedTools": ["write"]}), NotAllowed),
        (json!({"allowedTools": ["Read"]}), NotAllowed),
        (json!({"allowedTools": []}), NothingAllowed),
        (json!({"allowedCategories": ["fs"]}), AllowedCategory(fs())),
        (json!({"allowedCategories": ["ui"]}), NotAllowed),
        (json!({"allowedCategories": []}), NotAllowed),
        (
            json!({"allowedTools": ["read"], "allowedCategories": ["ui"]}),
            AllowedTool,
        ),
        (
            json!({"allowedTools": ["read"], "allowedCategories": []}),
            AllowedTool,
        ),
        (
            json!({"allowedTools": ["write"], "allowedCategories": ["fs"]}),
            AllowedCategory(fs()),
        ),
        (
            json!({"allowedTools": ["write"], "allowedCategories": ["ui"]}),
            NotAllowed,
        ),
        (
            json!({"allowedTools": [], "allowedCategories": ["fs"]}),
            NothingAllowed,
        ),
        (
            json!({"allowedTools": ["read"], "deniedTools": ["read"]}),
            DeniedTool,
        ),
        (
            json!({"allowedTools": ["read"], "deniedCategories": ["fs"]}),
            DeniedCategory(fs()),
        ),
        (
            json!({"allowedCategories": ["fs"], "deniedTools": ["read"]}),
            DeniedTool,
        ),
        (
            json!({"allowedCategories": ["fs"], "deniedCategories": ["fs"]}),
            DeniedCategory(fs()),
        ),
    ] {
        assert_eq!(
            policy(lists.clone()).allows("read", Some("fs")),
            verdict,
            "{lists}"
        );
    }
}

#[test]
fn a_tool_without_a_category_is_in_none() {
    let allows = |lists| policy(lists).allows("read", None);
    assert_eq!(
        allows(json!({"deniedCategories": ["fs"]})),
        Verdict::Unrestricted
    );
    assert_eq!(
        allows(json!({"allowedCategories": ["fs"]})),
        Verdict::NotAllowed
    );
    assert_eq!(
        allows(json!({"allowedCategories": ["fs"], "allowedTools": ["read"]})),
        Verdict::AllowedTool
    );
}

#[test]
fn the_specs_of_allowed_tools_stay_in_their_order() {
    let specs = vec![
        json!({"type": "function", "function": {"name": "b", "parameters": {}}}),
        json!({"type": "function", "function": {"name": "rm"}}),
        json!({"name": "a"}),
        json!({"type": "function", "category": "net", "function": {"name": "get"}}),
        json!({"name": "put", "category": "net"}),
        json!({"type": "web_search"}),
        json!({"type": "function"}),
        json!(null),
    ];
    let policy = policy(json!({"deniedTools": ["rm", "web_search"], "deniedCategories": ["net"]}));
    let filtered = policy.filter(specs.clone());
    assert_eq!(filtered.kept, [specs[0].clone(), specs[2].clone()]);
    let removed: Vec<String> = filtered
        .removed
        .iter()
        .map(|r| format!("{}: {}", r.name, r.verdict))
        .collect();
    insta::assert_snapshot!(removed.join("\n"), @"
    rm: it is in deniedTools
    get: its category `net` is in deniedCategories
    put: its category `net` is in deniedCategories
    web_search: it is in deniedTools
    : it has no name
    : it has no name
    ");
}

#[test]
fn the_host_can_overrule_the_category_a_spec_states() {
    let policy = policy(json!({"allowedCategories": ["safe"]}));
    let specs = vec![
        json!({"name": "liar", "category": "safe"}),
        json!({"name": "honest"}),
    ];
    let of = |name: &str| (name == "honest").then(|| "safe".to_owned());
    assert_eq!(
        policy.filter_by(specs, of).kept,
        [json!({"name": "honest"})]
    );
}
