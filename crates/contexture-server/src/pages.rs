//! What a browser is shown. Nothing of it comes from elsewhere, and what agents say is inert in it.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use contexture_fleet::{Call, Caller, Why};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::Visitor;
use crate::body;
use crate::connections::Peer;
use crate::door::Door;
use crate::guard::{has_own_origin, is_json};
use crate::refusal::Refusal;
use crate::secrets::SecretId;
use crate::sign_in::PAGE_LIFE;

/// For the dashboard: our own scripts and style, our own answers, canvases in frames, and no text as markup.
const DASHBOARD: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     frame-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";
/// For a canvas: it can look like anything, and do nothing.
const CANVAS: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
     frame-ancestors 'self'; base-uri 'none'; form-action 'none'";
/// The longest body of a sign-in.
const MAX_SIGN_IN_BYTES: usize = 1 << 10;
/// The most memory that it may take once it is parsed.
const MAX_SIGN_IN_HELD_BYTES: usize = 1 << 20;

/// A canvas that a page may show once. A frame's request carries no header, so its path stands for the page.
#[derive(Debug)]
pub(crate) struct Frame {
    pub agent: String,
    pub visitor: Visitor,
}

impl Frame {
    /// How long a frame may take to load.
    pub const LIFE: Duration = Duration::from_secs(30);
    /// Frames that may be loading at once.
    pub const MAX: usize = 64;
    /// The longest name of an agent.
    pub const MAX_NAME_BYTES: usize = 256;
}

/// `GET /`. The page is the same for everyone; what it shows, it asks for.
pub(crate) async fn dashboard() -> Response {
    page(DASHBOARD, include_str!("pages/index.html"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Code {
    code: String,
}

/// `POST /sign-in`: exchanges the code of a link for a page's secret. For our own page alone.
pub(crate) async fn sign_in(
    State(door): State<Arc<Door>>,
    request: Request,
) -> Result<Response, Refusal> {
    let (head, body) = request.into_parts();
    if !has_own_origin(&head.headers) {
        return Err(Refusal::Foreign);
    }
    if !is_json(&head.headers) {
        return Err(Refusal::NotJson);
    }
    let body = body::read(body, MAX_SIGN_IN_BYTES).await?;
    let Ok(Code { code }) = contexture::json::read(&body, MAX_SIGN_IN_HELD_BYTES) else {
        return Err(Refusal::Malformed("the body must be {\"code\": \"…\"}"));
    };
    match door.sign_ins.exchange(&code) {
        Ok(Some(secret)) => {
            let seconds = PAGE_LIFE.as_secs();
            Ok(Json(json!({"secret": secret, "seconds": seconds})).into_response())
        }
        Ok(None) => {
            let peer = head.extensions.get::<Peer>().cloned().unwrap_or_default();
            match door.wrong(&peer) {
                Refusal::Unknown => Err(Refusal::DeadLink),
                guessing => Err(guessing),
            }
        }
        Err(_) => Err(Refusal::Failed),
    }
}

/// `GET /canvas/TICKET`: a canvas in a frame of our page, once.
pub(crate) async fn canvas(
    State(door): State<Arc<Door>>,
    Path(ticket): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    // To look at the path is not to use it.
    if request.method() != Method::GET {
        return Ok(StatusCode::METHOD_NOT_ALLOWED.into_response());
    }
    let frame = {
        let mut frames = door.frames.lock().unwrap_or_else(PoisonError::into_inner);
        frames.take(SecretId::new(&ticket))
    };
    let peer = request.extensions().get::<Peer>().cloned();
    let peer = peer.unwrap_or_default();
    let Some(Frame { agent, visitor }) = frame.filter(|frame| frame.visitor.is_current(&door))
    else {
        return match door.wrong(&peer) {
            Refusal::Unknown => Err(Refusal::NotFound),
            guessing => Err(guessing),
        };
    };
    if !peer.admit() {
        return Err(Refusal::Busy);
    }
    let place = door.calls.enter(&visitor.caller).ok_or(Refusal::Busy)?;
    let call = Call {
        caller: Caller::Owner,
        method: "canvas.get".to_owned(),
        params: json!({"agent": agent}),
        updates: None,
    };
    let found = Arc::clone(&door.service).call(call).await;
    drop(place);
    let canvas = found.map_err(|error| match error.why {
        Why::NotFound | Why::NoMethod => Refusal::NotFound,
        Why::NotAllowed => Refusal::NotAllowed,
        Why::Invalid => Refusal::Malformed("this is no name of a canvas"),
        _ => Refusal::Failed,
    })?;
    let text = |key: &str| canvas.get(key).and_then(Value::as_str);
    let title = text("title").filter(|title| !title.is_empty());
    let html = include_str!("pages/canvas.html");
    let (before, rest) = html.split_once("{title}").unwrap_or((html, ""));
    let (middle, after) = rest.split_once("{html}").unwrap_or((rest, ""));
    let shown = [
        before,
        &escaped(title.unwrap_or(&agent)),
        middle,
        &escaped(text("html").unwrap_or_default()),
        after,
    ];
    let mut response = page(CANVAS, shown.concat());
    let frames = HeaderValue::from_static("SAMEORIGIN");
    response
        .headers_mut()
        .insert(header::X_FRAME_OPTIONS, frames);
    Ok(response)
}

fn page(policy: &'static str, html: impl Into<String>) -> Response {
    let policy: [(HeaderName, &str); 1] = [(header::CONTENT_SECURITY_POLICY, policy)];
    (policy, Html(html.into())).into_response()
}

/// Text as it stands in HTML, within quotes or without.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
