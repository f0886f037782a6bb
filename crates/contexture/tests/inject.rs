//! What a session begins with (spec 000), and that every item is accounted for.

use contexture::ContextError;
use contexture::inject::{
    AgentInstanceMeta, Archetype, Audience, CanvasProvider, ContextProvider, CoreProvider,
    InjectedRule, InjectionReceipt, Item, LaunchMode, McpServerStdio, Offer, Offered, Scope,
    SessionContext, ToolDefinition, Traits, Weaving, WorkspacePolicy, gather, weave,
};
use contexture::prompt::Templates;
use contexture::tokens::for_model;
use proptest::prelude::*;
use serde_json::{Map, json};

fn meta(archetype: Archetype) -> AgentInstanceMeta {
    AgentInstanceMeta {
        name: "my-agent".into(),
        archetype,
        backend_type: "native".into(),
        workspace_policy: WorkspacePolicy::Persistent,
        launch_mode: LaunchMode::Managed,
        more: Map::new(),
    }
}

fn tool(name: &str, scope: Scope) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        description: format!("does {name}"),
        parameters: json!({"type": "object", "properties": {
            "path": {"type": "string"}, "lines": {"type": "integer"}}, "required": ["path"]}),
        rpc_method: format!("internal.{name}"),
        scope,
        context: None,
        provider: None,
    }
}

fn server(name: &str) -> McpServerStdio {
    McpServerStdio {
        name: name.into(),
        command: "server".into(),
        args: vec![name.into()],
        env: Vec::new(),
    }
}

fn offers(provider: &str, offer: Offer) -> Offered {
    Offered {
        provider: provider.into(),
        traits: Traits::default(),
        offer: Ok(offer),
    }
}

fn woven(
    archetype: Archetype,
    offered: Vec<Offered>,
    token: Option<&str>,
) -> (SessionContext, InjectionReceipt) {
    woven_in(usize::MAX, archetype, offered, token).unwrap()
}

fn woven_in(
    room: usize,
    archetype: Archetype,
    offered: Vec<Offered>,
    token: Option<&str>,
) -> Result<(SessionContext, InjectionReceipt), ContextError> {
    let of = Weaving {
        meta: &meta(archetype),
        session_id: "s",
        tokenizer: &*for_model(None),
        templates: &Templates::default(),
        room,
    };
    weave(of, offered, token)
}

/// A line an item, as people read it.
fn lines(receipt: &InjectionReceipt) -> Vec<String> {
    let items = receipt.items.iter();
    items
        .map(|item| format!("{} {}", json!(item.rule).as_str().unwrap(), item.id))
        .collect()
}

fn built_in(archetype: Archetype) -> Vec<Offered> {
    let all: [&dyn ContextProvider; 2] = [&CoreProvider::default(), &CanvasProvider::default()];
    all.map(|provider| Offered {
        provider: provider.name().into(),
        traits: provider.traits(),
        offer: gather(provider, &meta(archetype)),
    })
    .into()
}

#[test]
fn the_built_in_providers_say_this_to_each_archetype() {
    for archetype in Archetype::ALL {
        let (context, receipt) = woven(archetype, built_in(archetype), Some("f00"));
        let mut text = lines(&receipt).join("\n");
        for addition in &context.system_context_additions {
            text.push_str("\n---\n");
            text.push_str(addition);
        }
        insta::assert_snapshot!(format!("built-in-{}", archetype.as_str()), text);
        assert!(!text.contains("f00"), "the token itself is in no text");
    }
}

#[test]
fn additions_stand_in_the_order_of_the_providers_and_instructions_last() {
    let text = |text: &str| Offer {
        system_context: vec![text.to_owned().into()],
        ..Offer::default()
    };
    let mut both = text("b");
    both.tools.push(tool("t", Scope::All).into());
    let offered = vec![
        offers("1", both),
        offers("2", text("a")),
        offers("3", text(" \n")),
    ];
    let (context, receipt) = woven(Archetype::Repo, offered.clone(), Some("x"));
    assert_eq!(context.system_context_additions[..2], ["b", "a"]);
    assert_eq!(context.system_context_additions.len(), 3);
    assert_eq!(
        lines(&receipt),
        [
            "kept 1/tool/t",
            "kept 1/system/0",
            "kept 2/system/0",
            "empty 3/system/0",
            "kept contexture/system/tool-instructions",
        ]
    );
    // Where there is no store for tokens, there is no token and no block.
    let (context, _) = woven(Archetype::Repo, offered, None);
    assert_eq!(
        (
            context.token.as_str(),
            context.system_context_additions.len()
        ),
        ("", 2)
    );
}

#[test]
fn the_first_of_a_name_wins_and_one_out_of_scope_claims_none() {
    let of = |tools: Vec<ToolDefinition>, servers: &[&str]| Offer {
        tools: tools.into_iter().map(Item::from).collect(),
        mcp_servers: servers.iter().map(|name| server(name).into()).collect(),
        ..Offer::default()
    };
    let mut later = tool("t", Scope::All);
    later.description = "the one that may".into();
    let offered = vec![
        offers(
            "1",
            of(vec![tool("t", Scope::Employee)], &["files", "contexture"]),
        ),
        offers(
            "2",
            of(vec![later, tool("t", Scope::All)], &["files", "git"]),
        ),
    ];
    let (context, receipt) = woven(Archetype::Service, offered, Some("x"));
    assert_eq!(context.tools.len(), 1);
    assert_eq!(context.tools[0].description, "the one that may");
    let names: Vec<&str> = context
        .mcp_servers
        .iter()
        .map(|s| s.name.as_str())
        .collect();
    assert_eq!(names, ["files", "git"]);
    assert_eq!(
        lines(&receipt)[..7],
        [
            "kept 1/mcp/files",
            "reserved 1/mcp/contexture",
            "out-of-scope 1/tool/t",
            "duplicate 2/mcp/files",
            "kept 2/mcp/git",
            "kept 2/tool/t",
            "duplicate 2/tool/t",
        ]
    );
}

/// Attack 27.
#[test]
fn what_is_meant_for_another_session_is_left_out() {
    let only = |session: &str| Audience {
        session_id: Some(session.into()),
        agent: None,
    };
    let mut offer = Offer::default();
    for session in ["s", "other"] {
        let audience = only(session);
        offer.system_context.push(Item {
            value: format!("for {session}"),
            audience: audience.clone(),
        });
        offer.tools.push(Item {
            value: tool(&format!("t-{session}"), Scope::All),
            audience: audience.clone(),
        });
        offer.mcp_servers.push(Item {
            value: server(&format!("m-{session}")),
            audience,
        });
    }
    let (context, receipt) = woven(Archetype::Repo, vec![offers("p", offer)], Some("x"));
    assert!(!json!(context).to_string().contains("other"));
    let foreign = receipt
        .items
        .iter()
        .filter(|item| item.rule == InjectedRule::Foreign);
    assert_eq!(foreign.count(), 3);
}

/// Attack 28, and 22 for what is shown as text.
#[test]
fn what_a_provider_says_is_text_and_shows_all_of_itself() {
    let hostile = "{{token}} {{env.HOME}} \u{202e}\u{e0041} end";
    let mut named = tool("t", Scope::All);
    named.description = hostile.into();
    let offer = Offer {
        tools: vec![named.into()],
        system_context: vec![hostile.to_owned().into()],
        ..Offer::default()
    };
    let (context, receipt) = woven(Archetype::Repo, vec![offers("p", offer)], Some("secret"));
    let all = context.system_context_additions.join("\n");
    assert!(all.contains("{{token}} {{env.HOME}}") && !all.contains("secret"));
    assert!(!all.contains('\u{202e}') && !all.contains('\u{e0041}'));
    assert_eq!(
        receipt.items.iter().map(|item| item.hidden).sum::<usize>(),
        4
    );
}

#[test]
fn a_provider_that_fails_is_noted_and_a_required_one_ends_it() {
    let failed = |required| Offered {
        provider: "db".into(),
        traits: Traits {
            required,
            ..Traits::default()
        },
        offer: Err("no route to host".into()),
    };
    let (context, receipt) = woven(Archetype::Repo, vec![failed(false)], Some("x"));
    assert!(context.system_context_additions.is_empty());
    assert_eq!(lines(&receipt), ["failed db/provider"]);
    assert_eq!(receipt.items[0].why.as_deref(), Some("no route to host"));
    let error = woven_in(usize::MAX, Archetype::Repo, vec![failed(true)], None);
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("db") && error.contains("no route"),
        "{error}"
    );
}

#[test]
fn priority_decides_what_is_left_out_when_room_is_short() {
    let says = |provider: &str, priority, required| Offered {
        traits: Traits {
            priority,
            required,
            ..Traits::default()
        },
        ..offers(
            provider,
            Offer {
                system_context: vec![format!("{provider} ").repeat(40).into()],
                ..Offer::default()
            },
        )
    };
    let mut with_tool = says("low", -1, false);
    with_tool
        .offer
        .as_mut()
        .unwrap()
        .tools
        .push(tool("t", Scope::All).into());
    let offered = vec![
        with_tool,
        says("must", -9, true),
        says("high", 5, false),
        says("late", 0, false),
    ];
    let (whole, receipt) = woven(Archetype::Repo, offered.clone(), Some("x"));
    assert_eq!(whole.system_context_additions.len(), 5);
    let of = |name: &str| {
        receipt
            .items
            .iter()
            .find(|item| item.id == name)
            .unwrap()
            .tokens
    };
    let fixed = of("must/system/0") + of("contexture/system/tool-instructions");
    let room = fixed + of("high/system/0");
    let (context, receipt) = woven_in(room, Archetype::Repo, offered, Some("x")).unwrap();
    assert_eq!(
        lines(&receipt),
        [
            "kept low/tool/t",
            "no-room low/system/0",
            "kept must/system/0",
            "kept high/system/0",
            "no-room late/system/0",
            "kept contexture/system/tool-instructions",
        ]
    );
    assert_eq!((receipt.room, receipt.tokens), (room, room));
    assert_eq!(receipt.items[3].priority, 5);
    // Who has no room for a text keeps the tool, and the sections are those that are in.
    assert_eq!(context.tools.len(), 1);
    let sections = receipt.sections(&context);
    let names: Vec<&str> = sections
        .iter()
        .map(|section| section.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "must/system/0",
            "high/system/0",
            "contexture/system/tool-instructions"
        ]
    );
    assert!(sections[1].text.starts_with("high"));
}

#[test]
fn a_provider_can_name_only_itself_for_the_calls_of_its_tools() {
    let mut lying = tool("t", Scope::All);
    lying.provider = Some("canvas".into());
    let offer = Offer {
        tools: vec![lying.into()],
        ..Offer::default()
    };
    let (context, _) = woven(Archetype::Repo, vec![offers("p", offer)], Some("x"));
    assert_eq!(context.tools[0].provider.as_deref(), Some("p"));
}

fn any_offer() -> impl Strategy<Value = Offer> {
    let name = prop_oneof![Just("a"), Just("b"), Just(""), Just("contexture")];
    let scope = prop_oneof![
        Just(Scope::All),
        Just(Scope::Service),
        Just(Scope::Employee)
    ];
    let session = prop_oneof![Just(None), Just(Some("s")), Just(Some("t"))];
    let one = (name, scope, session, "[ a]{0,3}");
    proptest::collection::vec((one, 0..3), 0..6).prop_map(|all| {
        let mut offer = Offer::default();
        for ((name, scope, session, text), kind) in all {
            let audience = Audience {
                session_id: session.map(str::to_owned),
                agent: None,
            };
            match kind {
                0 => offer.tools.push(Item {
                    value: tool(name, scope),
                    audience,
                }),
                1 => offer.mcp_servers.push(Item {
                    value: server(name),
                    audience,
                }),
                _ => offer.system_context.push(Item {
                    value: text,
                    audience,
                }),
            }
        }
        offer
    })
}

proptest! {
    #[test]
    fn every_item_is_accounted_for_and_nothing_comes_from_nowhere(
        all in proptest::collection::vec(any_offer(), 0..4),
        level in 0..3_usize,
    ) {
        let archetype = Archetype::ALL[level];
        let count = all.iter().map(|o| o.tools.len() + o.mcp_servers.len() + o.system_context.len());
        let count: usize = count.sum();
        let offered: Vec<Offered> = all
            .into_iter()
            .enumerate()
            .map(|(n, offer)| offers(&n.to_string(), offer))
            .collect();
        let (context, receipt) = woven(archetype, offered.clone(), Some("x"));
        let block = usize::from(!context.tools.is_empty());
        prop_assert_eq!(receipt.items.len(), count + block);
        let kept = receipt.items.iter().filter(|item| item.rule == InjectedRule::Kept).count();
        let given = context.tools.len() + context.mcp_servers.len()
            + context.system_context_additions.len();
        prop_assert_eq!(kept, given);
        prop_assert!(context.tools.iter().all(|tool| tool.scope.has(archetype)));
        let mut names: Vec<&str> = context.tools.iter().map(|tool| tool.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        prop_assert_eq!(names.len(), context.tools.len());
        // The same again, to the byte.
        prop_assert_eq!(woven(archetype, offered, Some("x")), (context, receipt));
    }
}
