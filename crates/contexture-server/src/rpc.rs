//! JSON-RPC 2.0: one request or a batch, by name, never by position.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use contexture_fleet::{Call, Caller, RpcError, Updates, Why};
use futures_util::FutureExt;
use serde_json::{Map, Value, json};

use crate::access::Visitor;
use crate::body::{self, Holding};
use crate::connections::Peer;
use crate::door::Door;
use crate::guard::{has_own_origin, is_json};
use crate::refusal::Refusal;
use crate::stream;

/// The longest body.
const MOST_BYTES: usize = 1 << 20;
/// The most memory that it may take once it is parsed.
const MAX_HELD_BYTES: usize = 16 << 20;
/// The most requests of a batch.
const MOST_REQUESTS: usize = 64;
/// The bytes are no JSON.
const PARSE_ERROR: i64 = -32700;
/// The JSON is no request.
const INVALID_REQUEST: i64 = -32600;

/// `POST /rpc`.
pub(crate) async fn rpc(
    State(door): State<Arc<Door>>,
    request: Request,
) -> Result<Response, Refusal> {
    let (head, body) = request.into_parts();
    let peer = head.extensions.get::<Peer>().cloned().unwrap_or_default();
    let visitor = door.admit(&head.headers, &peer)?;
    if visitor.page().is_some() {
        if !has_own_origin(&head.headers) {
            return Err(Refusal::Foreign);
        }
        if !is_json(&head.headers) {
            return Err(Refusal::NotJson);
        }
    }
    let place = door.calls.enter(&visitor.caller).ok_or(Refusal::Busy)?;
    let body = body::read(body, MOST_BYTES).await?;
    let asked = match contexture::json::parse_within(&body, 1, MAX_HELD_BYTES) {
        Ok(asked) => asked,
        Err(error) => return Ok(answer(&problem(PARSE_ERROR, &error.to_string()))),
    };
    drop(body);
    let response = match asked {
        Value::Array(all) if all.is_empty() || all.len() > MOST_REQUESTS => {
            let what = format!("a batch holds 1 to {MOST_REQUESTS} requests");
            Ok(answer(&problem(INVALID_REQUEST, &what)))
        }
        Value::Array(all) => {
            // One after the other: what a later one does may rest on an earlier one.
            let mut answers = Vec::new();
            for one in all {
                answers.extend(match Asked::read(one) {
                    Ok(asked) => respond(&door, &visitor, asked).await?.map(|(_, one)| one),
                    Err(problem) => Some(problem),
                });
            }
            match answers.is_empty() {
                true => Ok(StatusCode::NO_CONTENT.into_response()),
                false => Ok(Json(answers).into_response()),
            }
        }
        one => match Asked::read(one) {
            Ok(asked) if wants_stream(&head.headers) && streams(&door, &asked.method) => {
                let place = place.into_stream().ok_or(Refusal::Busy)?;
                return Ok(stream::respond(door, visitor, asked, place));
            }
            Ok(asked) => match respond(&door, &visitor, asked).await? {
                Some((status, one)) => Ok((status, answer(&one)).into_response()),
                None => Ok(StatusCode::NO_CONTENT.into_response()),
            },
            Err(problem) => Ok(answer(&problem)),
        },
    };
    // An answer that nobody reads is still one of the caller's calls.
    response.map(|response: Response| response.map(|body| Body::new(Holding::new(body, place))))
}

/// A request that is one.
pub(crate) struct Asked {
    /// None for a notification.
    pub id: Option<Value>,
    pub method: String,
    pub params: Map<String, Value>,
}

impl Asked {
    /// The request in a value; or what is answered instead.
    fn read(value: Value) -> Result<Self, Value> {
        let Value::Object(mut value) = value else {
            return Err(problem(INVALID_REQUEST, "a request is an object"));
        };
        let id = match value.remove("id") {
            Some(Value::Number(id)) if !(id.is_i64() || id.is_u64()) => {
                return Err(problem(INVALID_REQUEST, "a number as an id is a whole one"));
            }
            Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
                let what = "an id is a string, a number or null";
                return Err(problem(INVALID_REQUEST, what));
            }
            id => id,
        };
        let said = |what| {
            let error = json!({"code": INVALID_REQUEST, "message": what});
            Err(json!({"jsonrpc": "2.0", "id": id, "error": error}))
        };
        if value.get("jsonrpc") != Some(&json!("2.0")) {
            return said("`jsonrpc` must be \"2.0\"");
        }
        let Some(Value::String(method)) = value.remove("method") else {
            return said("`method` must be a string");
        };
        match value.remove("params") {
            None => Ok(Self {
                id,
                method,
                params: Map::new(),
            }),
            Some(Value::Object(params)) => Ok(Self { id, method, params }),
            Some(_) => said("`params` must be an object: parameters are given by name"),
        }
    }
}

/// The response to a request; none to a notification.
async fn respond(
    door: &Door,
    visitor: &Visitor,
    asked: Asked,
) -> Result<Option<(StatusCode, Value)>, Refusal> {
    let id = asked.id.clone();
    let done = run(door, visitor, asked, None).await?;
    let status = match &done {
        Err(error) if error.why == Why::NotAllowed => StatusCode::FORBIDDEN,
        _ => StatusCode::OK,
    };
    Ok(id.map(|id| (status, response(&id, done))))
}

/// A response.
pub(crate) fn response(id: &Value, done: Result<Value, RpcError>) -> Value {
    match done {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error.to_value()}),
    }
}

/// Does what is asked, as long as the caller's secret counts.
pub(crate) async fn run(
    door: &Door,
    visitor: &Visitor,
    asked: Asked,
    updates: Option<Updates>,
) -> Result<Result<Value, RpcError>, Refusal> {
    let begun = Instant::now();
    let known = door.method(&asked.method);
    let done = if known.is_some_and(|method| !method.who.allows(&visitor.caller)) {
        Ok(Err(not_for(&visitor.caller)))
    } else if let Some(own) = door.own_method(&asked.method) {
        Ok((own.run)(door, visitor, asked.params))
    } else {
        // A method that the service does not have is for it to answer: it knows what is near.
        let call = Call {
            caller: visitor.caller.clone(),
            method: asked.method,
            params: Value::Object(asked.params),
            updates,
        };
        let service = Arc::clone(&door.service);
        let doing = AssertUnwindSafe(async move { service.call(call).await }).catch_unwind();
        tokio::select! {
            done = doing => Ok(done.unwrap_or_else(|_| Err(RpcError::new(Why::Failed, "it failed within")))),
            () = visitor.gone(door) => Err(Refusal::Unknown),
        }
    };
    let (caller, agent) = match &visitor.caller {
        Caller::Owner => ("owner", None),
        Caller::Session(grant) => ("session", Some(grant.agent())),
    };
    let outcome = match &done {
        Ok(Ok(_)) => "ok",
        Ok(Err(error)) => error.why.as_str(),
        Err(_) => "revoked",
    };
    let (method, polled) = known.map_or(("unknown", false), |method| (method.name, method.polled));
    let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    if polled && outcome == "ok" {
        tracing::debug!(method, caller, agent, ms, outcome, "call");
    } else {
        tracing::info!(method, caller, agent, ms, outcome, "call");
    }
    done
}

fn not_for(caller: &Caller) -> RpcError {
    match caller {
        Caller::Owner => RpcError::new(Why::NotAllowed, "this is for an agent's session alone"),
        Caller::Session(_) => RpcError::new(Why::NotAllowed, "this is for the owner alone"),
    }
}

fn problem(code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}})
}

fn answer(value: &Value) -> Response {
    Json(value).into_response()
}

fn streams(door: &Door, method: &str) -> bool {
    door.method(method).is_some_and(|method| method.streams)
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let mut all = headers.get_all(header::ACCEPT).iter();
    all.any(|accept| {
        let accept = accept.to_str().unwrap_or_default();
        let mut kinds = accept.split(',').filter_map(|one| one.split(';').next());
        kinds.any(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
    })
}
