//! One connection to a server.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;

use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use tokio::time::timeout;

use super::MAX_MESSAGE_HELD_BYTES;
use super::config::{Secret, ServerConfig, Transport};
use super::handler::Handler;
use super::http::BoundedClient;
use super::servers::Options;
use crate::inherit::ChildKind;
use crate::process::{Process, Program};

/// A server that answered.
pub(super) struct Connection {
    pub service: RunningService<RoleClient, Handler>,
    pub process: Option<Process>,
}

/// Why there is none.
pub(super) struct Failure {
    pub why: String,
    /// Whether trying again cannot change it.
    pub forever: bool,
}

/// Connects, within the time that the options allow.
pub(super) async fn connect(
    config: &ServerConfig,
    options: &Options,
    handler: &Handler,
) -> Result<Connection, Failure> {
    match open(config, options, handler, ClientLifecycleMode::Initialize).await {
        // A server of the newest kind has no handshake: it is asked what it is.
        Err(Refused::Handshake) => {
            let preferred_versions = vec![ProtocolVersion::LATEST];
            let mode = ClientLifecycleMode::Discover { preferred_versions };
            open(config, options, handler, mode).await
        }
        other => other,
    }
    .map_err(|refused| match refused {
        Refused::Handshake => Failure::passing("it refuses the handshake"),
        Refused::Other(failure) => failure,
    })
}

enum Refused {
    /// It is there, and does not take this handshake.
    Handshake,
    Other(Failure),
}

impl Failure {
    fn passing(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            forever: false,
        }
    }

    fn forever(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            forever: true,
        }
    }
}

async fn open(
    config: &ServerConfig,
    options: &Options,
    handler: &Handler,
    mode: ClientLifecycleMode,
) -> Result<Connection, Refused> {
    let late = || format!("it did not answer within {} s", options.start.as_secs_f32());
    match &config.transport {
        Transport::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            let program = Program {
                kind: ChildKind::McpServer,
                command,
                args,
                env: resolved(env).map_err(Refused::Other)?,
                folder: &cwd
                    .as_ref()
                    .map_or(options.root.clone(), |cwd| options.root.join(cwd)),
                supervisor: options.supervisor.as_deref(),
            };
            let (process, stdout, stdin) = Process::start(&program).map_err(|error| {
                Refused::Other(Failure::forever(format!(
                    "`{command}` cannot be started: {error}"
                )))
            })?;
            let stdout = stdout.holding(MAX_MESSAGE_HELD_BYTES);
            let serving = handler.clone().serve_with_lifecycle((stdout, stdin), mode);
            match timeout(options.start, serving).await {
                Ok(Ok(service)) => Ok(Connection {
                    service,
                    process: Some(process),
                }),
                Ok(Err(ClientInitializeError::JsonRpcError(_))) => Err(Refused::Handshake),
                Ok(Err(ClientInitializeError::ConnectionClosed(_))) => Err(Refused::Other(
                    Failure::passing(process.post_mortem().await),
                )),
                Ok(Err(error)) => {
                    let said = process.post_mortem().await;
                    Err(Refused::Other(Failure::passing(format!(
                        "{}; {said}",
                        words(&error)
                    ))))
                }
                Err(_) => Err(Refused::Other(Failure::passing(late()))),
            }
        }
        Transport::Http { url, headers } => {
            // One for the whole process; that it was set before is fine.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let mut sent = HashMap::new();
            for (name, value) in resolved(headers).map_err(Refused::Other)? {
                let wrong =
                    || Refused::Other(Failure::forever(format!("the header `{name}` is not one")));
                sent.insert(
                    name.parse().map_err(|_| wrong())?,
                    value.parse().map_err(|_| wrong())?,
                );
            }
            let transport = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                .custom_headers(sent)
                .control_request_timeout(options.start);
            let client = BoundedClient::new()
                .map_err(|error| Refused::Other(Failure::forever(error.to_string())))?;
            let transport = StreamableHttpClientTransport::with_client(client, transport);
            let serving = handler.clone().serve_with_lifecycle(transport, mode);
            match timeout(options.start, serving).await {
                Ok(Ok(service)) => Ok(Connection {
                    service,
                    process: None,
                }),
                Ok(Err(ClientInitializeError::JsonRpcError(_))) => Err(Refused::Handshake),
                Ok(Err(error)) if error.is_authorization_required() => Err(Refused::Other(
                    Failure::forever("it asks for an authorization: give one in `headers`"),
                )),
                Ok(Err(error)) => Err(Refused::Other(Failure::passing(words(&error)))),
                Err(_) => Err(Refused::Other(Failure::passing(late()))),
            }
        }
    }
}

/// What went wrong at the bottom: the words on top name types of the SDK, or hold a whole message of the
/// server's.
fn words(error: &ClientInitializeError) -> String {
    let mut cause: &(dyn Error + 'static) = match error {
        ClientInitializeError::TransportError { error, .. } => error.error.as_ref(),
        other => other,
    };
    // This one does not name its cause as such, and quotes the address.
    if let Some(StreamableHttpError::Client(sending)) =
        cause.downcast_ref::<StreamableHttpError<reqwest::Error>>()
    {
        cause = sending;
    }
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    super::bounded(&cause.to_string(), 300)
}

fn resolved(secrets: &BTreeMap<String, Secret>) -> Result<BTreeMap<String, String>, Failure> {
    let resolve = |(name, secret): (&String, &Secret)| match secret.resolve() {
        Ok(value) => Ok((name.clone(), value)),
        Err(variable) => Err(Failure::forever(format!(
            "`{name}` needs the variable `{variable}`, which is not set, or not for others"
        ))),
    };
    secrets.iter().map(resolve).collect()
}
