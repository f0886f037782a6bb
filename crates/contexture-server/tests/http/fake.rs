//! A service that does little, and can be watched at it.
#![allow(dead_code, reason = "each test binary uses its own share")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use contexture::inject::{Archetype, canvas_tools};
use contexture_fleet::tokens::{LIFE, Tokens};
use contexture_fleet::{
    Answering, Bus, Call, Caller, Method, RpcError, Service, Subscription, Who, Why,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// The owner's secret.
pub const OWNER: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

pub struct Fake {
    pub tokens: Tokens,
    pub bus: Bus,
    /// Calls under way.
    pub running: AtomicUsize,
    /// What tools were called with.
    pub called: Mutex<Vec<Value>>,
    /// The tools of a session.
    pub tools: Mutex<Vec<Value>>,
    /// The page of every canvas but `none`.
    pub page: Mutex<String>,
    /// Lets a `wait` end.
    pub go_on: Notify,
    methods: Vec<Method>,
}

impl Fake {
    pub fn new() -> Arc<Self> {
        let method = |name, who, streams| Method {
            name,
            about: "For tests.",
            who,
            streams,
            polled: false,
            params: json!({"type": "object"}),
            result: json!({}),
        };
        Arc::new(Self {
            tokens: Tokens::new(LIFE).unwrap(),
            bus: Bus::default(),
            running: AtomicUsize::new(0),
            called: Mutex::default(),
            tools: Mutex::new(canvas_tools().iter().map(|tool| json!(tool)).collect()),
            page: Mutex::new("<p>hello</p>".to_owned()),
            go_on: Notify::new(),
            methods: vec![
                method("echo", Who::Either, false),
                method("who", Who::Either, false),
                method("fail", Who::Either, false),
                method("panic", Who::Either, false),
                method("wait", Who::Either, true),
                method("count", Who::Either, true),
                method("agent.list", Who::Owner, false),
                method("canvas.list", Who::Owner, false),
                method("canvas.get", Who::Owner, false),
                method("internal.tools", Who::Session, false),
                method("internal.callTool", Who::Session, false),
            ],
        })
    }

    /// A token of a session.
    pub fn token(&self, agent: &str, session: &str) -> String {
        let made = self.tokens.generate(agent, session, Archetype::Service);
        made.unwrap().0.reveal().to_owned()
    }

    async fn answer(&self, call: Call) -> Result<Value, RpcError> {
        let text = |key: &str| call.params[key].as_str().unwrap_or_default().to_owned();
        match call.method.as_str() {
            "echo" => Ok(call.params),
            "who" => Ok(match &call.caller {
                Caller::Owner => json!("owner"),
                Caller::Session(grant) => json!([grant.agent(), grant.session_id()]),
            }),
            "fail" => Err(RpcError::new(Why::TooLarge, "it is large").hint("make it smaller")),
            "panic" => panic!("on purpose"),
            "wait" => {
                if let Some(updates) = &call.updates {
                    let _ = updates.send(json!("begun")).await;
                }
                self.go_on.notified().await;
                Ok(json!("over"))
            }
            "count" => {
                for n in 0..call.params["to"].as_u64().unwrap_or(3) {
                    if let Some(updates) = &call.updates
                        && updates.send(json!({"n": n})).await.is_err()
                    {
                        break;
                    }
                }
                Ok(json!("counted"))
            }
            "agent.list" => Ok(
                json!({"agents": [{"name": "bot", "state": "running", "backend": "native", "archetype": "service"}]}),
            ),
            "canvas.list" => Ok(json!({"canvases": [{"agentName": "bot", "title": "Bot's page"}]})),
            "canvas.get" if text("agent") == "none" => {
                Err(RpcError::new(Why::NotFound, "there is no such canvas"))
            }
            "canvas.get" => {
                let page = self.page.lock().unwrap().clone();
                Ok(json!({"agentName": text("agent"), "html": page, "title": "<b>Page</b>"}))
            }
            "internal.tools" => Ok(json!({"tools": *self.tools.lock().unwrap()})),
            "internal.callTool" if text("name") == "hang" => {
                self.go_on.notified().await;
                Ok(json!({"content": "late"}))
            }
            "internal.callTool" => self.tool(&text("name"), &call.params["arguments"]),
            _ => Err(RpcError::new(Why::NoMethod, "never asked")),
        }
    }

    fn tool(&self, name: &str, arguments: &Value) -> Result<Value, RpcError> {
        self.called
            .lock()
            .unwrap()
            .push(json!({"name": name, "arguments": arguments}));
        match name {
            "canvas_update" if !arguments["html"].is_string() => {
                Err(RpcError::new(Why::Invalid, "`html` must be a string"))
            }
            "canvas_update" => {
                Ok(json!({"content": {"bytes": arguments["html"].as_str().unwrap().len()}}))
            }
            "canvas_clear" => Ok(json!({"content": "cleared"})),
            "test_simple_text" => {
                Ok(json!({"content": "This is a simple text response for testing."}))
            }
            "test_error_handling" => {
                let said = "This tool intentionally returns an error for testing";
                Err(RpcError::new(Why::Failed, said))
            }
            "typed" => Ok(json!({"content": arguments})),
            "denied" => Err(RpcError::new(Why::NotAllowed, "this is above your scope")),
            _ => Err(RpcError::new(Why::NotFound, "there is no such tool")),
        }
    }
}

impl Service for Fake {
    fn authenticate(&self, secret: &str) -> Option<Caller> {
        match secret == OWNER {
            true => Some(Caller::Owner),
            false => self.tokens.check(secret).map(Caller::Session),
        }
    }

    fn is_current(&self, caller: &Caller) -> bool {
        match caller {
            Caller::Owner => true,
            Caller::Session(grant) => grant.is_current(),
        }
    }

    fn methods(&self) -> &[Method] {
        &self.methods
    }

    fn call(self: Arc<Self>, call: Call) -> Answering {
        Box::pin(async move {
            let _running = Running::new(&self.running);
            self.answer(call).await
        })
    }

    fn subscribe(&self, after: Option<u64>) -> Subscription {
        self.bus.subscribe(after)
    }
}

struct Running<'a>(&'a AtomicUsize);

impl<'a> Running<'a> {
    fn new(running: &'a AtomicUsize) -> Self {
        running.fetch_add(1, Ordering::SeqCst);
        Self(running)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
