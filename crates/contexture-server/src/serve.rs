use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use contexture_fleet::Service;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::door::{Door, Peer, router};
use crate::patience::Patient;
use crate::sign_in::SignIns;

/// Connections at once. Beyond, they wait to be accepted.
const MOST_CONNECTIONS: usize = 256;
/// How long the head of a request may take, the wait for the next one included.
const HEAD: Duration = Duration::from_secs(10);
/// The longest head, and how many headers it may have.
const HEAD_BYTES: usize = 64 << 10;
const HEADERS: usize = 64;
/// How long the other end may leave unread what we write.
const UNREAD: Duration = Duration::from_secs(30);
/// How long calls may go on when we stop.
const LAST_CALLS: Duration = Duration::from_secs(5);
/// The pause after a connection could not be accepted, which is mostly for want of file handles.
const PAUSE: Duration = Duration::from_millis(100);

/// How to serve.
pub struct Options<F> {
    /// The links and browsers of this daemon.
    pub sign_ins: Arc<SignIns>,
    /// When to stop.
    pub stop: F,
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The listener does not listen.
    #[error("cannot listen: {0}")]
    Listen(#[from] std::io::Error),
}

/// Serves until it is told to stop: then no more connections, the streams end, and calls have a moment
/// to come to theirs.
pub async fn serve<F>(
    listener: TcpListener,
    service: Arc<dyn Service>,
    options: Options<F>,
) -> Result<(), ServerError>
where
    F: Future<Output = ()>,
{
    let Options { sign_ins, stop } = options;
    let door = Door::new(service, sign_ins, listener.local_addr()?);
    let router = router(Arc::clone(&door));
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let next = async {
            // It is never closed.
            let place = Arc::clone(&places).acquire_owned().await.ok();
            (place, listener.accept().await)
        };
        tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => {}
            (place, accepted) = next => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(connection(stream, peer, router.clone(), Arc::clone(&door), place));
                }
                Err(error) => {
                    tracing::debug!(%error, "not accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    door.stop();
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(LAST_CALLS, all).await.is_err() {
        tracing::warn!("calls were still under way and are dropped");
    }
    connections.shutdown().await;
    Ok(())
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    door: Arc<Door>,
    _place: Option<OwnedSemaphorePermit>,
) {
    // Small events are to go out as they come.
    let _ = stream.set_nodelay(true);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer.ip()));
        router.call(request)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_headers(HEADERS)
        .max_buf_size(HEAD_BYTES);
    let io = TokioIo::new(Patient::new(stream, UNREAD));
    let mut serving = std::pin::pin!(builder.serve_connection(io, service));
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = door.stopped() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}
