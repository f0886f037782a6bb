//! `internal.*`: what agents may use. Everything goes through one place, where the session's own record
//! decides and where the call is noted, whether it worked or not.

use std::sync::Arc;

use contexture::inject::Archetype;
use contexture_store::Key;
use contexture_tools::secrets::mask;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Entry, any_object, blocking, list, method, object, params, text};
use crate::canvas::CanvasError;
use crate::fleet::Fleet;
use crate::tokens::Grant;
use crate::{Answering, Call, Caller, Event, RpcError, Who, Why};

/// How much of a text is noted.
const NOTED: usize = 200;

pub(super) fn table() -> Vec<Entry> {
    let called = |name, about, parameters| {
        let done = object(&[("content", json!({"description": "what came of it"}))]);
        method(name, about, Who::Session, parameters, done, call_by_method)
    };
    let mut all = vec![
        method(
            "internal.tools",
            "The tools that this session may use",
            Who::Session,
            object(&[]),
            object(&[("tools", list(&any_object("a tool's definition")))]),
            tools,
        ),
        method(
            "internal.callTool",
            "Uses a tool of this session",
            Who::Session,
            object(&[
                ("name", text("the tool's name")),
                ("arguments?", any_object("as its parameters say")),
            ]),
            object(&[("content", json!({"description": "what came of it"}))]),
            call_tool,
        ),
        method(
            "internal.validateToken",
            "What the caller's token allows; the owner may ask about any",
            Who::Either,
            object(&[("token?", text("the owner says which"))]),
            object(&[
                ("valid", json!({"type": "boolean"})),
                ("agentName?", text("whose it is")),
                ("sessionId?", text("of which session")),
                ("archetype?", text("what the agent is")),
            ]),
            validate,
        ),
        method(
            "internal.rotateToken",
            "Exchanges the caller's token for a new one that allows as much, or less",
            Who::Session,
            object(&[(
                "archetype?",
                text("as much as this; the same, where it is absent"),
            )]),
            object(&[("token", text("the new one: the old one counts no more"))]),
            rotate,
        ),
    ];
    for tool in TOOLS {
        let known = contexture::inject::canvas_tools();
        let definition = known
            .into_iter()
            .find(|known| known.rpc_method == tool.method);
        let parameters = definition.map_or_else(|| object(&[]), |found| found.parameters);
        all.push(called(tool.method, tool.about, parameters));
    }
    all
}

/// What is behind a tool: a provider can offer a tool for one of these, and for nothing else.
struct Behind {
    method: &'static str,
    about: &'static str,
    run: Run,
}

type Run = fn(&Fleet, &Grant, Map<String, Value>) -> Result<Value, RpcError>;

const TOOLS: [Behind; 3] = [
    Behind {
        method: "internal.canvasUpdate",
        about: "Shows a page on the agent's canvas",
        run: canvas_update,
    },
    Behind {
        method: "internal.canvasClear",
        about: "Takes the page off the agent's canvas",
        run: canvas_clear,
    },
    Behind {
        method: "internal.canvasGet",
        about: "The page on the agent's canvas",
        run: canvas_get,
    },
];

fn tools(fleet: Arc<Fleet>, call: Call) -> Answering {
    Box::pin(async move {
        let grant = session(&call)?;
        Ok(json!({"tools": fleet.live.tools(&grant)}))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallTool {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

fn call_tool(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let grant = session(&call)?;
        let CallTool { name, arguments } = params(&mut call)?;
        blocking(move || use_tool(&fleet, &grant, &name, arguments)).await
    })
}

/// A tool by its method: the same door.
fn call_by_method(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let grant = session(&call)?;
        let arguments = params(&mut call)?;
        blocking(move || use_tool(&fleet, &grant, &call.method, arguments)).await
    })
}

fn use_tool(
    fleet: &Fleet,
    grant: &Grant,
    wanted: &str,
    mut arguments: Map<String, Value>,
) -> Result<Value, RpcError> {
    // Here, before anything is made of it: what an agent shows or notes holds no secret.
    let wanted = &*mask::hide(&fleet.mask, wanted);
    mask::hide_in_map(&fleet.mask, &mut arguments);
    let noted = noted(&arguments);
    let done = fleet.live.find(grant, wanted, &arguments).and_then(|tool| {
        let behind = TOOLS.iter().find(|known| known.method == tool.rpc_method);
        let behind = behind.ok_or_else(|| {
            let what = format!(
                "nothing is behind `{}`: no `{}`",
                tool.name, tool.rpc_method
            );
            RpcError::new(Why::NotFound, what)
        })?;
        (behind.run)(fleet, grant, arguments)
    });
    let error = done
        .as_ref()
        .err()
        .map(|error| error.message.chars().take(NOTED).collect());
    fleet.tell(Event::ToolCalled {
        agent: grant.agent().to_owned(),
        session_id: grant.session_id().to_owned(),
        tool: crate::live::clipped(wanted),
        token: grant.shown().to_owned(),
        arguments: noted,
        success: done.is_ok(),
        error,
    });
    Ok(json!({"content": done?}))
}

/// Arguments as they are noted: long texts cut, and not more than a few.
fn noted(arguments: &Map<String, Value>) -> Value {
    let short = |value: &Value| {
        let whole = match value {
            Value::String(text) => text.clone(),
            other if other.is_object() || other.is_array() => other.to_string(),
            other => return other.clone(),
        };
        match whole.char_indices().nth(NOTED) {
            Some((end, _)) => format!("{}…", &whole[..end]).into(),
            None => Value::String(whole),
        }
    };
    let few = arguments.iter().take(16);
    few.map(|(name, value)| (crate::live::clipped(name), short(value)))
        .collect::<Map<String, Value>>()
        .into()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Validate {
    token: Option<String>,
}

fn validate(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Validate { token } = params(&mut call)?;
        let grant = match (&call.caller, token) {
            (Caller::Session(own), None) => Some(Arc::clone(own)),
            // A session learns nothing about any token but its own.
            (Caller::Session(own), Some(token)) => {
                let given = fleet.tokens.check(&token);
                given.filter(|given| Arc::ptr_eq(given, own))
            }
            (Caller::Owner, Some(token)) => fleet.tokens.check(&token),
            (Caller::Owner, None) => {
                return Err(RpcError::new(Why::Invalid, "`token` is missing"));
            }
        };
        Ok(match grant {
            None => json!({"valid": false}),
            Some(grant) => json!({
                "valid": true,
                "agentName": grant.agent(),
                "sessionId": grant.session_id(),
                "archetype": grant.archetype(),
            }),
        })
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rotate {
    archetype: Option<Archetype>,
}

fn rotate(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let grant = session(&call)?;
        let Rotate { archetype } = params(&mut call)?;
        let wanted = archetype.unwrap_or(grant.archetype());
        // Without a pause: whose token counts no more is not waited for.
        let token = fleet.rotate(&grant, wanted)?;
        Ok(json!({"token": token.reveal()}))
    })
}

fn canvas_update(
    fleet: &Fleet,
    grant: &Grant,
    mut arguments: Map<String, Value>,
) -> Result<Value, RpcError> {
    let mut text = |name: &str| match arguments.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let (html, title) = (text("html"), text("title"));
    let html = html.ok_or_else(|| RpcError::new(Why::Invalid, "`html` is missing"))?;
    let agent = Key::new(grant.agent())?;
    let canvas = fleet.canvases.update(&agent, html, title)?;
    fleet.tell(Event::CanvasChanged {
        agent: canvas.agent_name,
        title: canvas.title,
        bytes: canvas.html.len(),
    });
    Ok(json!({"updatedAt": canvas.updated_at, "bytes": canvas.html.len()}))
}

fn canvas_clear(fleet: &Fleet, grant: &Grant, _: Map<String, Value>) -> Result<Value, RpcError> {
    let cleared = fleet.canvases.clear(&Key::new(grant.agent())?)?;
    if cleared {
        fleet.tell(Event::CanvasChanged {
            agent: grant.agent().to_owned(),
            title: None,
            bytes: 0,
        });
    }
    Ok(json!({"cleared": cleared}))
}

fn canvas_get(fleet: &Fleet, grant: &Grant, _: Map<String, Value>) -> Result<Value, RpcError> {
    Ok(json!(fleet.canvases.get(grant.agent())))
}

fn session(call: &Call) -> Result<Arc<Grant>, RpcError> {
    match &call.caller {
        Caller::Session(grant) => Ok(Arc::clone(grant)),
        Caller::Owner => Err(RpcError::new(Why::NotAllowed, "this is for a session")),
    }
}

impl From<CanvasError> for RpcError {
    fn from(error: CanvasError) -> Self {
        match error {
            CanvasError::Store(error) => error.into(),
            long @ CanvasError::TooLong { .. } => {
                RpcError::new(Why::Invalid, long.to_string()).hint("show less of it")
            }
        }
    }
}
