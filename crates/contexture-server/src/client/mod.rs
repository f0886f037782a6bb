//! Speaks with a daemon.

mod events;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use contexture::json;
use contexture_fleet::Why;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use serde_json::{Value, json};

pub use events::Events;
use events::Reader;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a connection is kept for the next call.
const IDLE: Duration = Duration::from_secs(5);
/// How long an answer may take, where nobody says otherwise.
const ANSWER: Duration = Duration::from_secs(10 * 60);
/// How long a stream may be silent: the daemon says every 15 s that it is there.
const SILENCE: Duration = Duration::from_secs(60);
/// The most bytes of an answer, and of an event.
const MAX_BYTES: usize = 32 << 20;

/// A daemon, seen from outside.
pub struct Client {
    http: reqwest::Client,
    base: Url,
    secret: HeaderValue,
    patience: Duration,
    calls: AtomicU64,
}

/// Why a call came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ClientError {
    /// Of what kind it is.
    pub why: Fault,
    /// What a person reads.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The method said so.
    Said(Why),
    /// The secret does not count, or no more.
    Unauthorized,
    /// The daemon let the call not in: too many at once, too long, from the wrong place.
    Refused,
    /// No daemon answers there.
    Unreachable,
    /// What answers is not what a daemon says.
    Broken,
}

impl ClientError {
    fn new(why: Fault, message: impl Into<String>) -> Self {
        Self {
            why,
            message: message.into(),
            hint: None,
        }
    }

    fn hint(self, hint: &str) -> Self {
        Self {
            hint: Some(hint.to_owned()).filter(|hint| !hint.is_empty()),
            ..self
        }
    }

    fn broken(message: impl Into<String>) -> Self {
        Self::new(Fault::Broken, message).hint("is this a daemon of this version?")
    }

    /// What is said to whoever waits for too long.
    fn silent(patience: Duration) -> Self {
        let message = format!("no answer within {} s", patience.as_secs());
        Self::new(Fault::Unreachable, message)
    }
}

impl Client {
    /// Speaks with the daemon at this address, with this secret.
    pub fn new(url: &str, secret: &str) -> Result<Self, ClientError> {
        let wrong = |what: &str| {
            ClientError::new(Fault::Broken, format!("the daemon's address {what}"))
                .hint("it looks like http://127.0.0.1:4100")
        };
        let base = Url::parse(url).map_err(|_| wrong("cannot be read"))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(wrong("is not one of HTTP"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(wrong("must not hold a password"));
        }
        let unauthorized = |_| ClientError::new(Fault::Unauthorized, "this is no secret");
        let mut secret = HeaderValue::try_from(format!("Bearer {secret}")).map_err(unauthorized)?;
        secret.set_sensitive(true);
        // One for the whole process; that it was set before is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .user_agent(concat!("contexture/", env!("CARGO_PKG_VERSION")))
            // The secret goes to the daemon and nowhere else.
            .redirect(Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT)
            // The daemon closes what is idle after ten seconds.
            .pool_idle_timeout(IDLE)
            .build()
            .map_err(|error| ClientError::broken(innermost(&error)))?;
        Ok(Self {
            http,
            base,
            secret,
            patience: ANSWER,
            calls: AtomicU64::new(0),
        })
    }

    /// Waits for an answer as long as this.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Calls a method.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value, ClientError> {
        let answering = async {
            let (id, request) = self.request(method, &params)?;
            let response = self.send(request).await?;
            let said = document(response).await?;
            outcome(said, id)
        };
        let patience = tokio::time::timeout(self.patience, answering);
        patience
            .await
            .map_err(|_| ClientError::silent(self.patience))?
    }

    /// Calls a method that tells something before its answer. To call it off, drop it.
    pub async fn stream(
        &self,
        method: &str,
        params: Value,
        mut on_update: impl FnMut(Value),
    ) -> Result<Value, ClientError> {
        let (id, request) = self.request(method, &params)?;
        let request = request.header(ACCEPT, "text/event-stream, application/json");
        let response = self.send(request).await?;
        if !is_events(response.headers()) {
            return outcome(document(response).await?, id);
        }
        let mut reader = Reader::new(response);
        while let Some(event) = reader.next().await? {
            let mut said: Value = read(event.data.as_bytes())?;
            match said.get("method") {
                Some(_) => on_update(said["params"].take()),
                None => return outcome(said, id),
            }
        }
        Err(
            ClientError::new(Fault::Unreachable, "the stream ended without an answer")
                .hint("the daemon stopped, or the session's token was revoked"),
        )
    }

    /// What happens from now on; with `after`, also what happened behind that event.
    pub async fn events(&self, after: Option<u64>) -> Result<Events, ClientError> {
        let mut url = self.url("events")?;
        if let Some(after) = after {
            url.set_query(Some(&format!("after={after}")));
        }
        let request = self.http.get(url).header(ACCEPT, "text/event-stream");
        let response = self.send(request).await?;
        match is_events(response.headers()) {
            true => Ok(Events::new(Reader::new(response))),
            false => Err(ClientError::broken("the daemon sends no events")),
        }
    }

    fn request(&self, method: &str, params: &Value) -> Result<(u64, RequestBuilder), ClientError> {
        let id = self.calls.fetch_add(1, Ordering::Relaxed);
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let request = self
            .http
            .post(self.url("rpc")?)
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string());
        Ok((id, request))
    }

    fn url(&self, path: &str) -> Result<Url, ClientError> {
        let joined = self.base.join(path);
        joined.map_err(|error| ClientError::broken(error.to_string()))
    }

    /// Sends a request, and gives the response where it is one of a method.
    async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let request = request.header(reqwest::header::AUTHORIZATION, self.secret.clone());
        let response = request.send().await.map_err(|error| {
            let message = format!("no daemon answers at {}: {}", self.base, innermost(&error));
            ClientError::new(Fault::Unreachable, message)
                .hint("start it with `ctx serve`, or name its address in CONTEXTURE_URL")
        })?;
        match response.status() {
            StatusCode::OK => Ok(response),
            StatusCode::NO_CONTENT => Err(ClientError::broken("the daemon says nothing")),
            status => Err(refusal(status, document(response).await)),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("base", &self.base.as_str())
            .finish_non_exhaustive()
    }
}

/// What a status other than "OK" means.
fn refusal(status: StatusCode, said: Result<Value, ClientError>) -> ClientError {
    let said = said.unwrap_or_default();
    if said.get("jsonrpc").is_some()
        && let Err(error) = outcome_of(&said)
    {
        return error;
    }
    let text = |key: &str| said["error"][key].as_str().unwrap_or_default();
    // Whoever is said to guess has come with a wrong secret.
    if status == StatusCode::UNAUTHORIZED || text("code") == "Guessing" {
        let message = "the token counts no more, or never did";
        return ClientError::new(Fault::Unauthorized, message);
    }
    match text("message") {
        "" => ClientError::broken(format!("the daemon answers with HTTP {status}")),
        message => ClientError::new(Fault::Refused, message).hint(text("hint")),
    }
}

/// The result in a response, or the error.
fn outcome(mut said: Value, id: u64) -> Result<Value, ClientError> {
    if said.get("id") != Some(&json!(id)) && said.get("error").is_none() {
        return Err(ClientError::broken("the answer is another call's"));
    }
    outcome_of(&said)?;
    match said.get_mut("result") {
        Some(result) => Ok(result.take()),
        None => Err(ClientError::broken("the answer has no result")),
    }
}

fn outcome_of(said: &Value) -> Result<(), ClientError> {
    let Some(error) = said.get("error") else {
        return Ok(());
    };
    let why = Why::of_code(error["code"].as_i64().unwrap_or_default());
    let message = error["message"].as_str().unwrap_or("it failed");
    let hint = error["data"]["hint"].as_str().unwrap_or_default();
    Err(ClientError::new(Fault::Said(why), message).hint(hint))
}

fn is_events(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// The JSON of an answer, within bounds.
async fn document(mut response: Response) -> Result<Value, ClientError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| cut(&error))? {
        if bytes.len() + chunk.len() > MAX_BYTES {
            return Err(too_long());
        }
        bytes.extend_from_slice(&chunk);
    }
    read(&bytes)
}

fn read(bytes: &[u8]) -> Result<Value, ClientError> {
    json::read(bytes, json::MAX_HELD_BYTES).map_err(|error| ClientError::broken(error.to_string()))
}

fn too_long() -> ClientError {
    ClientError::broken(format!("an answer is longer than {} MiB", MAX_BYTES >> 20))
}

fn cut(error: &reqwest::Error) -> ClientError {
    let message = format!("the daemon went away: {}", innermost(error));
    ClientError::new(Fault::Unreachable, message)
}

/// The innermost reason says most.
fn innermost(error: &reqwest::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
