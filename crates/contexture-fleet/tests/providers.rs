//! Providers in Rust: the calls of their tools, and spec 000's registry over them.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use contexture::inject::{
    AgentInstanceMeta, Archetype, ContextProvider, Item, ProviderCall, Scope, ToolDefinition,
};
use contexture::tokens::for_model;
use contexture_fleet::tokens::{LIFE, Tokens};
use contexture_fleet::{Bus, Event, SessionInjector};
use serde_json::{Map, Value, json};

/// Answers as its method says.
struct Wiki(Mutex<Receiver<()>>);

impl ContextProvider for Wiki {
    fn name(&self) -> &'static str {
        "wiki"
    }

    fn tools(&self, _: &AgentInstanceMeta) -> Result<Vec<Item<ToolDefinition>>, String> {
        let tool = ToolDefinition {
            name: "page".to_owned(),
            description: "Reads a page.".to_owned(),
            parameters: json!({"type": "object"}),
            rpc_method: "wiki.page".to_owned(),
            scope: Scope::All,
            context: None,
            provider: None,
        };
        Ok(vec![tool.into()])
    }

    fn call(&self, call: &ProviderCall) -> Result<Value, String> {
        match call.rpc_method.as_str() {
            "wiki.page" => Ok(json!({"page": call.arguments["title"], "for": call.agent_name})),
            "wiki.panics" => panic!("in the middle"),
            "wiki.floods" => Ok(json!("x".repeat(300 << 10))),
            "wiki.hangs" => {
                let _ = self.0.lock().unwrap().recv();
                Ok(Value::Null)
            }
            _ => Err("there is no such page".to_owned()),
        }
    }
}

struct Silent;

impl ContextProvider for Silent {
    fn name(&self) -> &'static str {
        "silent"
    }
}

fn injector(patience: Duration) -> (Arc<SessionInjector>, Sender<()>) {
    let (free, held) = channel();
    let bus = Arc::new(Bus::default());
    let injector = SessionInjector::new(None, bus, for_model(None)).patience(patience);
    injector.register(Arc::new(Wiki(Mutex::new(held))));
    injector.register(Arc::new(Silent));
    (Arc::new(injector), free)
}

fn call(method: &str) -> ProviderCall {
    ProviderCall {
        tool: "page".to_owned(),
        rpc_method: method.to_owned(),
        arguments: Map::from_iter([("title".to_owned(), json!("Home"))]),
        agent_name: "ada".to_owned(),
        archetype: Archetype::Repo,
        session_id: "s".to_owned(),
    }
}

#[tokio::test]
async fn a_provider_answers_the_calls_of_its_tools() {
    let (injector, _free) = injector(Duration::from_secs(60));
    let said = injector.call("wiki", call("wiki.page")).await;
    assert_eq!(said.unwrap(), json!({"page": "Home", "for": "ada"}));
    for (provider, method, words) in [
        ("wiki", "wiki.none", "there is no such page"),
        ("wiki", "wiki.panics", "in the middle of its answer"),
        ("wiki", "wiki.floods", "262144 are taken"),
        ("silent", "x", "answers no calls of `x`"),
        ("gone", "x", "not registered any more"),
    ] {
        let why = injector.call(provider, call(method)).await.unwrap_err();
        assert!(why.contains(words), "{provider} {method}: {why}");
    }
    injector.unregister("wiki");
    assert!(injector.call("wiki", call("wiki.page")).await.is_err());
}

/// Attack 34: calls that hang take a few threads and no more, and others are answered.
#[tokio::test]
async fn calls_that_hang_are_bounded() {
    let (injector, free) = injector(Duration::from_secs(2));
    let hanging = (0..9).map(|_| injector.call("wiki", call("wiki.hangs")));
    let whys: Vec<String> = futures_util::future::join_all(hanging)
        .await
        .into_iter()
        .map(Result::unwrap_err)
        .collect();
    let late = whys.iter().filter(|why| why.contains("2000 ms"));
    assert_eq!(late.count(), 8, "{whys:?}");
    assert!(
        whys.iter().any(|why| why.contains("try again later")),
        "{whys:?}"
    );
    // Another provider has permits of its own.
    let other = injector.call("silent", call("x")).await.unwrap_err();
    assert!(other.contains("answers no calls"), "{other}");
    // Those that end make room.
    drop(free);
    loop {
        match injector.call("wiki", call("wiki.page")).await {
            Ok(_) => break,
            Err(why) => assert!(why.contains("try again later"), "{why}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Spec 000, 2.3 and 3.5: what the class does, and both events with what they carry.
#[tokio::test]
async fn the_injector_of_the_spec() {
    let tokens = Arc::new(Tokens::new(LIFE).unwrap());
    let bus = Arc::new(Bus::default());
    let mut news = bus.subscribe(None);
    let injector =
        SessionInjector::new(Some(Arc::clone(&tokens)), Arc::clone(&bus), for_model(None));
    let (_free, held) = channel();
    injector.register(Arc::new(Silent));
    injector.register(Arc::new(Wiki(Mutex::new(held))));
    // The same name again keeps its place.
    injector.register(Arc::new(Silent));
    assert_eq!(injector.list_providers(), ["silent", "wiki"]);
    let meta = json!({"name": "my-agent", "archetype": "employee", "backendType": "pi"});
    let meta = AgentInstanceMeta::read(meta).unwrap();
    let prepared = injector.prepare(&meta, None).await.unwrap();
    assert_eq!(prepared.context.tools[0].provider.as_deref(), Some("wiki"));
    assert!(prepared.session_id.starts_with("my-agent-"));
    let events = [news.next().await, news.next().await].map(|event| event.unwrap().event.clone());
    assert!(
        matches!(
            &events[0],
            Event::Preparing {
                provider_count: 2,
                ..
            }
        ),
        "{events:?}"
    );
    let ready = matches!(
        &events[1],
        Event::ContextReady {
            mcp_server_count: 0,
            tool_count: 1,
            context_additions: 1,
            ..
        }
    );
    assert!(ready, "{events:?}");
    assert!(tokens.check(&prepared.context.token).is_some());
    assert_eq!(injector.revoke_tokens("my-agent"), 1);
    assert!(tokens.check(&prepared.context.token).is_none());
    assert!(injector.unregister("silent") && !injector.unregister("silent"));
}
