//! The methods of the server itself: sign-in links, signing out, and frames that show a canvas.

use std::sync::PoisonError;

use contexture_fleet::tokens::TokenError;
use contexture_fleet::{Method, RpcError, Who, Why};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::access::Visitor;
use crate::door::Door;
use crate::pages::Frame;
use crate::sign_in::{LINK_LIFE, PAGE_LIFE};

/// A method, and the function that answers it.
pub(crate) struct OwnMethod {
    pub method: Method,
    pub run: Run,
}

type Params = Map<String, Value>;
type Run = fn(&Door, &Visitor, Params) -> Result<Value, RpcError>;

/// All of them. They are the owner's.
pub(crate) fn own_methods() -> Vec<OwnMethod> {
    let method = |name, about, params, result, run| OwnMethod {
        method: Method {
            name,
            about,
            who: Who::Owner,
            streams: false,
            polled: false,
            params,
            result,
        },
        run,
    };
    vec![
        method(
            "serve.link",
            "A new sign-in link for a browser, for programs alone: a signed-in page cannot extend its own stay",
            object(&json!({})),
            object(&json!({
                "signIn": {"type": "string", "description": "opens the dashboard, once"},
                "expiresSeconds": {"type": "integer"},
                "pageSeconds": {"type": "integer", "description": "how long the page stays signed in"},
            })),
            link,
        ),
        method(
            "serve.signOut",
            "Signs out the page that asks; asked by a program, signs out every page and voids open links",
            object(&json!({})),
            object(&json!({})),
            sign_out,
        ),
        method(
            "canvas.frame",
            "A path that shows an agent's canvas in a frame, once, within 30 seconds",
            object(&json!({"agent": {"type": "string"}})),
            object(&json!({"path": {"type": "string"}})),
            frame,
        ),
    ]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

fn link(door: &Door, visitor: &Visitor, given: Params) -> Result<Value, RpcError> {
    let Nothing {} = params(given)?;
    if visitor.page().is_some() {
        let what = "a signed-in page cannot make sign-in links";
        return Err(RpcError::new(Why::NotAllowed, what).hint("run `ctx serve link`"));
    }
    Ok(json!({
        "signIn": door.sign_ins.link().map_err(no_random)?,
        "expiresSeconds": LINK_LIFE.as_secs(),
        "pageSeconds": PAGE_LIFE.as_secs(),
    }))
}

fn sign_out(door: &Door, visitor: &Visitor, given: Params) -> Result<Value, RpcError> {
    let Nothing {} = params(given)?;
    match visitor.page() {
        Some(page) => door.sign_ins.sign_out(page),
        None => door.sign_ins.sign_out_all(),
    }
    Ok(json!({}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfAgent {
    agent: String,
}

fn frame(door: &Door, visitor: &Visitor, given: Params) -> Result<Value, RpcError> {
    let OfAgent { agent } = params(given)?;
    if agent.len() > Frame::MAX_NAME_BYTES {
        return Err(RpcError::new(
            Why::Invalid,
            "`agent` is too long for a name",
        ));
    }
    let frame = Frame {
        agent,
        visitor: visitor.clone(),
    };
    let mut frames = door.frames.lock().unwrap_or_else(PoisonError::into_inner);
    let ticket = frames.issue(frame).map_err(no_random)?;
    Ok(json!({"path": format!("/canvas/{ticket}")}))
}

fn object(properties: &Value) -> Value {
    let required: Vec<&String> = properties
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn params<T: DeserializeOwned>(given: Params) -> Result<T, RpcError> {
    serde_json::from_value(Value::Object(given)).map_err(|error| {
        RpcError::new(Why::Invalid, error.to_string())
            .hint("/openapi.json has the parameters of each method")
    })
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
fn no_random(error: TokenError) -> RpcError {
    RpcError::new(Why::Failed, error.to_string())
}
