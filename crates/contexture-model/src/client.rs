use std::time::{Duration, SystemTime};

use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Response, StatusCode};

use crate::error::MAX_ERROR_BYTES;
use crate::read::{MAX_REPLY_BYTES, Reader, reader, too_large, whole};
use crate::sse::Events;
use crate::{Api, Called, Delta, Endpoint, Model, ModelError, Reply};

/// How long to wait for what, and how often to try again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patience {
    /// For a connection.
    pub connect: Duration,
    /// For the first word of an answer. A long request on a slow machine takes its time.
    pub first: Duration,
    /// For the next.
    pub next: Duration,
    /// How often a call is made again that failed and may pass.
    pub retries: u32,
    /// The first pause between two tries; it doubles.
    pub pause: Duration,
    /// The longest pause, also where the provider asks for a longer one.
    pub longest_pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first: Duration::from_secs(300),
            next: Duration::from_secs(90),
            retries: 4,
            pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(60),
        }
    }
}

/// A model behind HTTP.
pub struct Client {
    endpoint: Endpoint,
    patience: Patience,
    http: reqwest::Client,
}

/// The most bytes of a stream. What is kept of it is bounded apart (`read`): most of it is envelopes.
const MAX_STREAM_BYTES: usize = 64 << 20;

impl Client {
    /// A client for this model. Fails before any attempt where the provider is sure to refuse.
    pub fn new(endpoint: Endpoint, patience: Patience) -> Result<Self, ModelError> {
        endpoint.check_key()?;
        let http = builder()
            .connect_timeout(patience.connect)
            // A key goes to the address that was given, and to no other.
            .redirect(Policy::none())
            .build()
            .map_err(|error| ModelError::Invalid {
                what: error.to_string(),
            })?;
        Ok(Self {
            endpoint,
            patience,
            http,
        })
    }

    /// The model and its address.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    async fn answer(
        &self,
        body: Vec<u8>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let mut pause = self.patience.pause;
        let mut tries = 0;
        loop {
            let failed = match self.once(body.clone(), on_delta).await {
                Ok(reply) => return Ok(reply),
                Err(error) => self.without_key(error),
            };
            if tries >= self.patience.retries || !failed.may_pass() {
                return Err(failed);
            }
            // Who is asked to wait longer than we would is told, instead of sitting there.
            let asked = failed.retry_after().unwrap_or_default();
            if asked > self.patience.longest_pause {
                return Err(failed);
            }
            on_delta(Delta::Again {
                why: failed.to_string(),
            });
            tokio::time::sleep(asked.max(jittered(pause))).await;
            pause = (pause * 2).min(self.patience.longest_pause);
            tries += 1;
        }
    }

    async fn once(
        &self,
        body: Vec<u8>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let mut request = self
            .http
            .post(self.endpoint.url())
            .header(CONTENT_TYPE, "application/json");
        for (name, value) in self.endpoint.headers() {
            request = request.header(name, value);
        }
        let sent = within(self.patience.first, request.body(body).send()).await?;
        let response = sent.map_err(|error| self.unsent(&error))?;
        let status = response.status();
        if status != StatusCode::OK {
            let retry_after = retry_after(response.headers());
            let (body, _) = self.beginning(response, MAX_ERROR_BYTES).await?;
            return Err(ModelError::of_status(status.as_u16(), retry_after, &body));
        }
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        match kind.is_some_and(|kind| kind.starts_with("application/json")) {
            true => match self.beginning(response, MAX_REPLY_BYTES).await? {
                (body, true) => whole(self.endpoint.api(), &body),
                (_, false) => Err(too_large()),
            },
            false => self.stream(response, on_delta).await,
        }
    }

    async fn stream(
        &self,
        mut response: Response,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let mut reader: Box<dyn Reader> = reader(self.endpoint.api());
        let mut events = Events::default();
        let (mut seen, mut patience) = (0, self.patience.first);
        loop {
            let chunk = within(patience, response.chunk()).await?;
            let Some(chunk) = chunk.map_err(|_| ModelError::Cut)? else {
                return reader.end();
            };
            seen += chunk.len();
            let mut outcome = Ok(None);
            let pushed = events.push(&chunk, |event| {
                if let Ok(None) = outcome {
                    outcome = reader.event(&event.kind, &event.data, on_delta);
                }
            });
            if pushed.is_err() || seen > MAX_STREAM_BYTES {
                return Err(too_large());
            }
            if let Some(reply) = outcome? {
                return Ok(reply);
            }
            patience = self.patience.next;
        }
    }

    /// The first `most` bytes of a body, and whether these are all.
    async fn beginning(
        &self,
        mut response: Response,
        most: usize,
    ) -> Result<(Vec<u8>, bool), ModelError> {
        let mut body = Vec::new();
        while let Some(chunk) = within(self.patience.first, response.chunk())
            .await?
            .map_err(|_| ModelError::Cut)?
        {
            let room = most - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                return Ok((body, false));
            }
        }
        Ok((body, true))
    }

    fn unsent(&self, error: &reqwest::Error) -> ModelError {
        if error.is_builder() {
            return ModelError::Invalid {
                what: error.to_string(),
            };
        }
        ModelError::Unreachable {
            place: self.endpoint.base_url.clone(),
            what: innermost(error),
        }
    }

    /// The error without the key, which some servers repeat.
    fn without_key(&self, mut error: ModelError) -> ModelError {
        if let (Some(key), Some(what)) = (&self.endpoint.key, error.words()) {
            *what = key.hidden_in(what);
        }
        error
    }
}

impl Model for Client {
    fn name(&self) -> &str {
        &self.endpoint.model
    }

    fn api(&self) -> Api {
        self.endpoint.api()
    }

    fn call<'a>(
        &'a self,
        body: Vec<u8>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> Called<'a> {
        Box::pin(self.answer(body, on_delta))
    }
}

/// What every client of ours begins with.
pub(crate) fn builder() -> reqwest::ClientBuilder {
    // One for the whole process; that it was set before is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().user_agent(concat!("contexture/", env!("CARGO_PKG_VERSION")))
}

/// The innermost reason says most: "connection refused", "certificate expired".
pub(crate) fn innermost(error: &reqwest::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

async fn within<T>(patience: Duration, work: impl Future<Output = T>) -> Result<T, ModelError> {
    let done = tokio::time::timeout(patience, work).await;
    done.map_err(|_| ModelError::Stalled { after: patience })
}

/// Seconds, or a fraction of them in some gateways' own header.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = match number("retry-after-ms") {
        Some(millis) => millis / 1_000.0,
        None => number(RETRY_AFTER.as_str())?,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// A little more or less, so that those who failed together do not come back together.
fn jittered(pause: Duration) -> Duration {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    pause * (80 + now.subsec_nanos() % 41) / 100
}
