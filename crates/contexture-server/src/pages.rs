//! What a browser is shown. Nothing of it comes from elsewhere, and what agents say is inert in it.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use contexture_fleet::{Call, Caller, Why};
use serde_json::{Value, json};

use crate::door::{Door, Peer};
use crate::refusal::Refusal;
use crate::sign_in::COOKIE_LIFE;

/// For the dashboard: our own script and style, our own answers, canvases in frames.
const DASHBOARD: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     frame-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// For a canvas: it can look like anything, and do nothing.
const CANVAS: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
     frame-ancestors 'self'; base-uri 'none'; form-action 'none'";
/// The longest name of a canvas that is asked for.
const NAME: usize = 256;

/// `GET /`. The page is the same for everyone; what it shows, it asks for.
pub(crate) async fn dashboard() -> Response {
    page(StatusCode::OK, DASHBOARD, include_str!("pages/index.html"))
}

/// `GET /sign-in?code=…`.
pub(crate) async fn sign_in(
    State(door): State<Arc<Door>>,
    request: Request,
) -> Result<Response, Refusal> {
    // To look at the link is not to use it.
    if request.method() != Method::GET {
        return Ok(StatusCode::METHOD_NOT_ALLOWED.into_response());
    }
    let query = Query::<HashMap<String, String>>::try_from_uri(request.uri());
    let code = query.ok().and_then(|Query(mut query)| query.remove("code"));
    let entered = door.sign_ins.enter(&code.unwrap_or_default());
    let Some(secret) = entered.map_err(|_| Refusal::Failed)? else {
        let peer = request.extensions().get::<Peer>().copied();
        return match door.wrong(peer.unwrap_or_default().0) {
            Refusal::Unknown => Ok(page(
                StatusCode::UNAUTHORIZED,
                DASHBOARD,
                include_str!("pages/used.html"),
            )),
            guessing => Err(guessing),
        };
    };
    let cookie = format!(
        "{}={secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age={}",
        door.sign_ins.cookie(),
        COOKIE_LIFE.as_secs()
    );
    let mut cookie = HeaderValue::try_from(cookie).map_err(|_| Refusal::Failed)?;
    cookie.set_sensitive(true);
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response())
}

/// `GET /canvas/NAME`.
pub(crate) async fn canvas(
    State(door): State<Arc<Door>>,
    name: Option<Path<String>>,
    request: Request,
) -> Result<Response, Refusal> {
    let peer = request.extensions().get::<Peer>().copied();
    let visitor = door.admit(request.headers(), peer.unwrap_or_default().0)?;
    if !matches!(visitor.caller, Caller::Owner) {
        return Err(Refusal::NotAllowed);
    }
    let Some(Path(name)) = name.filter(|Path(name)| name.len() <= NAME) else {
        return Err(Refusal::Malformed("this is no name of a canvas"));
    };
    let place = door.calls.enter(&visitor.caller).ok_or(Refusal::Busy)?;
    let call = Call {
        caller: visitor.caller,
        method: "canvas.get".to_owned(),
        params: json!({"agent": name}),
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
        &escaped(title.unwrap_or(&name)),
        middle,
        &escaped(text("html").unwrap_or_default()),
        after,
    ];
    let mut response = page(StatusCode::OK, CANVAS, shown.concat());
    let frames = HeaderValue::from_static("SAMEORIGIN");
    response
        .headers_mut()
        .insert(header::X_FRAME_OPTIONS, frames);
    Ok(response)
}

fn page(status: StatusCode, policy: &'static str, html: impl Into<String>) -> Response {
    let policy: [(HeaderName, &str); 1] = [(header::CONTENT_SECURITY_POLICY, policy)];
    (status, policy, Html(html.into())).into_response()
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
