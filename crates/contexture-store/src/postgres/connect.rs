//! Connecting to a server, whose answers are measured as they arrive.
//!
//! The driver keeps a message until it is whole, however long it claims to be. So we connect by ourselves, as the
//! driver would, and give it a socket that counts: one call may bring so many bytes and no more.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use futures_util::TryStreamExt;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, LoadBalanceHosts, TargetSessionAttrs};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Row, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failure::Failure;

/// The most bytes that a server may send in answer to one call. A page of records is 4 MiB, or one record.
const MAX_ANSWER_BYTES: usize = 96 << 20;

/// The most memory that the rows of an answer may take, and what a row takes beside its bytes.
const MAX_HELD_BYTES: usize = 96 << 20;
const ROW: usize = 512;

/// What a server has sent since the last call began.
#[derive(Clone, Default)]
pub struct Meter(Arc<AtomicUsize>);

impl Meter {
    /// A call begins.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Why a call failed: to the driver, an answer that is too long is a connection that was lost.
    pub fn explain(&self, failure: Failure) -> Failure {
        match self.0.load(Ordering::Relaxed) > MAX_ANSWER_BYTES {
            true => too_long("has", MAX_ANSWER_BYTES),
            false => failure,
        }
    }
}

/// A connection, and what moves its bytes.
pub struct Connected {
    pub client: Client,
    pub driver: JoinHandle<()>,
    pub meter: Meter,
}

/// The rows of an answer, if they take no more memory than one may.
pub async fn rows(
    client: &Client,
    query: &str,
    parameters: &[(&(dyn ToSql + Sync), Type)],
) -> Result<Vec<Row>, Failure> {
    let parameters = parameters.iter().cloned();
    let mut answer = pin!(client.query_typed_raw(query, parameters).await?);
    let (mut rows, mut held) = (Vec::new(), 0);
    while let Some(row) = answer.try_next().await? {
        held += row.raw_size_bytes() + ROW;
        if held > MAX_HELD_BYTES {
            return Err(too_long("takes", MAX_HELD_BYTES));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn too_long(does: &str, most: usize) -> Failure {
    Failure::Unusable {
        what: format!("an answer {does} more than {} MiB", most >> 20),
        hint: "see who else writes to this database",
    }
}

/// Connects to the first of the configured servers that answers and is what it should be.
pub async fn connect(config: &Config, tls: &MakeRustlsConnect) -> Result<Connected, Failure> {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let count = hosts.len().max(addresses.len());
    let first = match config.get_load_balance_hosts() {
        LoadBalanceHosts::Random => chance(count),
        _ => 0,
    };
    let mut failed = None;
    for n in (0..count).map(|n| (n + first) % count) {
        let ports = config.get_ports();
        let port = ports.get(n).or(ports.first()).copied().unwrap_or(5432);
        let name = match hosts.get(n) {
            Some(Host::Tcp(name)) => name.as_str(),
            _ => "",
        };
        let places: Vec<Place<'_>> = match (addresses.get(n), hosts.get(n)) {
            (Some(address), _) => vec![Place::Tcp((*address, port).into())],
            (None, Some(Host::Unix(folder))) => vec![Place::Unix(folder)],
            (None, _) => match lookup_host((name, port)).await {
                Ok(found) => found.map(Place::Tcp).collect(),
                Err(error) => {
                    failed = Some(error.into());
                    continue;
                }
            },
        };
        for place in places {
            match connect_to(config, tls, &place, port, name).await {
                Ok(connected) => return Ok(connected),
                Err(error) => failed = Some(error),
            }
        }
    }
    let nowhere = || io::Error::new(io::ErrorKind::InvalidInput, "its name leads nowhere");
    Err(failed.unwrap_or_else(|| nowhere().into()))
}

enum Place<'c> {
    Tcp(std::net::SocketAddr),
    Unix(&'c std::path::Path),
}

async fn connect_to(
    config: &Config,
    tls: &MakeRustlsConnect,
    place: &Place<'_>,
    port: u16,
    name: &str,
) -> Result<Connected, Failure> {
    let opening = open(config, place, port);
    let socket = match config.get_connect_timeout() {
        Some(limit) => tokio::time::timeout(*limit, opening)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??,
        None => opening.await?,
    };
    let meter = Meter::default();
    let socket = Metered {
        inner: socket,
        meter: meter.clone(),
    };
    let mut tls = tls.clone();
    let tls = MakeTlsConnect::<Metered>::make_tls_connect(&mut tls, name);
    let tls = tls.unwrap_or_else(|never| match never {});
    let (client, connection) = config.connect_raw(socket, tls).await?;
    let driver = tokio::task::spawn_local(async move {
        // Whoever waits for an answer is told as well.
        let _ = connection.await;
    });
    let connected = Connected {
        client,
        driver,
        meter,
    };
    fits(config.get_target_session_attrs(), &connected.client).await?;
    Ok(connected)
}

/// Whether a server takes writes or does not, where that matters.
async fn fits(wanted: TargetSessionAttrs, client: &Client) -> Result<(), Failure> {
    let (refused, why) = match wanted {
        TargetSessionAttrs::ReadWrite => ("on", "it takes no writes"),
        TargetSessionAttrs::ReadOnly => ("off", "it takes writes"),
        _ => return Ok(()),
    };
    let rows = client.simple_query("SHOW transaction_read_only").await?;
    let is = rows.iter().find_map(|row| match row {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    match is == Some(refused) {
        true => Err(io::Error::new(io::ErrorKind::PermissionDenied, why).into()),
        false => Ok(()),
    }
}

async fn open(config: &Config, place: &Place<'_>, port: u16) -> io::Result<Box<dyn Socket>> {
    let address = match place {
        Place::Unix(folder) => {
            let path = folder.join(format!(".s.PGSQL.{port}"));
            return Ok(Box::new(UnixStream::connect(path).await?));
        }
        Place::Tcp(address) => address,
    };
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    #[cfg(target_os = "linux")]
    if let Some(limit) = config.get_tcp_user_timeout() {
        socket.set_tcp_user_timeout(Some(*limit))?;
    }
    if config.get_keepalives() {
        let mut keepalive = TcpKeepalive::new().with_time(config.get_keepalives_idle());
        if let Some(interval) = config.get_keepalives_interval() {
            keepalive = keepalive.with_interval(interval);
        }
        if let Some(retries) = config.get_keepalives_retries() {
            keepalive = keepalive.with_retries(retries);
        }
        socket.set_tcp_keepalive(&keepalive)?;
    }
    Ok(Box::new(stream))
}

/// Which of them to begin with.
fn chance(count: usize) -> usize {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.subsec_micros() as usize) % count.max(1)
}

trait Socket: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Socket for S {}

/// A socket that counts what it brings, and fails beyond what one call may bring.
struct Metered {
    inner: Box<dyn Socket>,
    meter: Meter,
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, into))?;
        let fresh = into.filled().len() - before;
        let seen = self.meter.0.fetch_add(fresh, Ordering::Relaxed) + fresh;
        Poll::Ready(match seen > MAX_ANSWER_BYTES {
            true => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "an answer is too long",
            )),
            false => Ok(()),
        })
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
