//! Streamable HTTP within bounds.
//!
//! The SDK's own client reads an answer whole, however long it is. This one measures an answer as it arrives: its
//! bytes, and the memory that it would take once it is parsed. A call whose answer is too large is answered with an
//! error, and the connection goes on.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use contexture::json::{self, Footprint, fits};
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use reqwest::header::{
    ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Response, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use super::{MAX_MESSAGE_BYTES, MAX_MESSAGE_HELD_BYTES, bounded, too_large};

/// The most bytes of an error's body that are read.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// The most redirects that are followed.
const MAX_REDIRECTS: usize = 10;
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
const BOTH: HeaderValue = HeaderValue::from_static("text/event-stream, application/json");
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

type Fault = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// An HTTP client that reads no more than it should.
#[derive(Clone)]
pub(super) struct BoundedClient(reqwest::Client);

impl BoundedClient {
    /// A client that leaves no connection idle, and follows a redirect only where the request stays what it is.
    pub fn new() -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .pool_max_idle_per_host(0)
            .redirect(Policy::custom(redirect));
        client.build().map(Self)
    }
}

/// Follows what keeps the method and the body, to the same origin: anything else would lose the message, or
/// show the headers to somebody else.
fn redirect(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let first = attempt.previous().first();
    let same_origin = first.is_some_and(|first| first.origin() == attempt.url().origin());
    if !keeps || !same_origin {
        attempt.stop()
    } else if attempt.previous().len() > MAX_REDIRECTS {
        attempt.error(format!("more than {MAX_REDIRECTS} redirects"))
    } else {
        attempt.follow()
    }
}

impl StreamableHttpClient for BoundedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Fault> {
        let mut headers: HeaderMap = custom_headers.into_iter().collect();
        headers.insert(ACCEPT, BOTH);
        if let Some(id) = session_id.as_deref().and_then(|id| id.parse().ok()) {
            headers.insert(SESSION, id);
        }
        let mut request = self.0.post(uri.as_ref()).headers(headers).json(&message);
        if let Some(token) = auth_header {
            request = request.bearer_auth(token);
        }
        let response = request.send().await?;
        let status = response.status();
        if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session_id.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return refused(response, &message, session_id.is_some()).await;
        }
        let session = response.headers().get(SESSION);
        let session = session.and_then(|id| id.to_str().ok()).map(str::to_owned);
        let asked = Asked::new(&message);
        match kind(&response) {
            Some(EVENTS) => Ok(StreamableHttpPostResponse::Sse(
                events(response, asked.plain),
                session,
            )),
            Some(JSON) => {
                let Some(body) = body(response).await? else {
                    return asked.too_large(session);
                };
                match json::read(&body, MAX_MESSAGE_HELD_BYTES) {
                    Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
                    // What expects no answer is not in need of one that can be read.
                    Err(_) if asked.id.is_none() => Ok(StreamableHttpPostResponse::Accepted),
                    Err(error) => Err(unexpected(format!("its answer is no JSON-RPC: {error}"))),
                }
            }
            _ if asked.id.is_none() && response.content_length() == Some(0) => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            _ => Err(StreamableHttpError::UnexpectedContentType(
                content_type(&response).map(str::to_owned),
            )),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Fault> {
        // Nothing is read of the answer.
        let deleted = self
            .0
            .delete_session(uri, session_id, auth_header, custom_headers);
        deleted.await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Fault> {
        // The SDK bounds the bytes of each event.
        let events = self.0.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            MAX_MESSAGE_BYTES,
        );
        let light = |event: Result<Sse, SseError>| async {
            let mut event = event;
            if let Ok(event) = &mut event
                && event.data.as_ref().is_some_and(|data| !is_light(data))
            {
                // Nobody waits for it.
                event.data = None;
            }
            event
        };
        Ok(events.await?.then(light).boxed())
    }
}

/// Who is told when the answer to a message is too large.
struct Asked {
    id: Option<RequestId>,
    /// The same, unless the answer is a part of a handshake: an error would be taken for a refusal.
    plain: Option<RequestId>,
}

impl Asked {
    fn new(message: &ClientJsonRpcMessage) -> Self {
        let JsonRpcMessage::Request(request) = message else {
            return Self {
                id: None,
                plain: None,
            };
        };
        let shakes = matches!(
            request.request,
            ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_)
        );
        Self {
            id: Some(request.id.clone()),
            plain: (!shakes).then(|| request.id.clone()),
        }
    }

    fn too_large(self, session: Option<String>) -> Result<StreamableHttpPostResponse, Fault> {
        match (self.plain, self.id) {
            (Some(id), _) => Ok(StreamableHttpPostResponse::Json(error(id), session)),
            (None, None) => Ok(StreamableHttpPostResponse::Accepted),
            (None, Some(_)) => Err(unexpected(format!("its answer is {}", too_large()))),
        }
    }
}

fn error(id: RequestId) -> ServerJsonRpcMessage {
    let what = format!("its answer is {}", too_large());
    ServerJsonRpcMessage::error(ErrorData::internal_error(what, None), Some(id))
}

fn unexpected(what: String) -> Fault {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(what))
}

fn is_light(data: &str) -> bool {
    fits(data.as_bytes(), MAX_MESSAGE_HELD_BYTES)
}

fn content_type(response: &Response) -> Option<&str> {
    let kind = response.headers().get(CONTENT_TYPE)?;
    kind.to_str().ok()
}

/// Which of the two an answer is.
fn kind(response: &Response) -> Option<&'static str> {
    let kind = content_type(response)?;
    [EVENTS, JSON]
        .into_iter()
        .find(|known| kind.starts_with(known))
}

/// The body of an answer; none where it is too large.
async fn body(mut response: Response) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let (mut body, mut footprint) = (Vec::new(), Footprint::default());
    while let Some(chunk) = response.chunk().await? {
        footprint.add(&chunk);
        if body.len() + chunk.len() > MAX_MESSAGE_BYTES
            || footprint.bytes() > MAX_MESSAGE_HELD_BYTES
        {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// An answer's events. Where one is too large, an error answers `asked`, and the stream ends.
fn events(response: Response, asked: Option<RequestId>) -> Events {
    let mut limit = EventLimit::default();
    let bytes = response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(std::io::Error::other)?;
        match limit.takes(&chunk) {
            true => Ok(chunk),
            false => Err(std::io::Error::other(too_large())),
        }
    });
    let events = SseStream::from_bytes_stream(bytes);
    ended_by_error(events, asked).boxed()
}

fn ended_by_error(
    events: impl Stream<Item = Result<Sse, SseError>> + Send + Unpin + 'static,
    asked: Option<RequestId>,
) -> impl Stream<Item = Result<Sse, SseError>> + Send + 'static {
    stream::unfold(
        (events, asked, false),
        |(mut events, asked, over)| async move {
            if over {
                return None;
            }
            let event = events.next().await?;
            let light = match &event {
                Ok(event) => event.data.as_ref().is_none_or(|data| is_light(data)),
                Err(SseError::Body(cause)) => cause.to_string() != too_large(),
                Err(_) => true,
            };
            match (light, &asked) {
                (true, _) => Some((event, (events, asked, false))),
                (false, Some(id)) => {
                    let data = serde_json::to_string(&error(id.clone())).unwrap_or_default();
                    Some((Ok(Sse::default().data(data)), (events, asked, true)))
                }
                (false, None) => None,
            }
        },
    )
}

/// Counts the bytes of an event, as they come.
#[derive(Default)]
struct EventLimit {
    bytes: usize,
    last: u8,
}

impl EventLimit {
    fn takes(&mut self, chunk: &[u8]) -> bool {
        for &byte in chunk {
            let last = std::mem::replace(&mut self.last, byte);
            let ends = |byte| matches!(byte, b'\n' | b'\r');
            // An empty line ends an event; both together end one line.
            match (last, byte) {
                (b'\r', b'\n') => {}
                _ if ends(last) && ends(byte) => self.bytes = 0,
                _ => self.bytes += 1,
            }
            if self.bytes > MAX_MESSAGE_BYTES {
                return false;
            }
        }
        true
    }
}

/// What an answer without success means.
async fn refused(
    response: Response,
    message: &ClientJsonRpcMessage,
    in_session: bool,
) -> Result<StreamableHttpPostResponse, Fault> {
    let status = response.status();
    let header = |name| {
        let value = response.headers().get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    if status == StatusCode::UNAUTHORIZED
        && let Some(challenge) = header(WWW_AUTHENTICATE)
    {
        return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(
            challenge,
        )));
    }
    let passing = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let later = HttpStatusError::new(status.as_u16(), header(RETRY_AFTER));
    let is_json = kind(&response) == Some(JSON);
    if passing && (!is_json || status == StatusCode::TOO_MANY_REQUESTS) {
        return Err(later.into());
    }
    let body = beginning(response).await;
    let said = match json::read::<ServerJsonRpcMessage>(&body, MAX_MESSAGE_HELD_BYTES) {
        Ok(JsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    let is_auth = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    // A server that does not know the newest handshake: its own words, or ours, for the request that was made.
    if let JsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && status.is_client_error()
        && !in_session
        && !is_auth
    {
        let error = said.map_or_else(
            || ErrorData::invalid_request(format!("HTTP {status}"), None),
            |said| said.error,
        );
        let error = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(error, None));
    }
    match said {
        Some(said) if !is_auth && is_json => Ok(StreamableHttpPostResponse::Json(
            JsonRpcMessage::Error(said),
            None,
        )),
        _ if passing => Err(later.into()),
        _ => {
            let words = String::from_utf8_lossy(&body);
            Err(unexpected(format!(
                "HTTP {status}: {}",
                bounded(words.trim(), 200)
            )))
        }
    }
}

/// The first bytes of an error's body.
async fn beginning(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let (true, Ok(Some(chunk))) = (body.len() < MAX_ERROR_BYTES, response.chunk().await) {
        body.extend_from_slice(&chunk[..chunk.len().min(MAX_ERROR_BYTES - body.len())]);
    }
    body
}
