//! The accept loop: connections in, requests to the router, and an orderly end.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use contexture_fleet::Service;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::body::Holding;
use crate::connections::{Connection, Connections, Peer};
use crate::door::{Door, router};
use crate::patience::Patient;
use crate::sign_in::SignIns;

/// How long the head of a request may take, the wait for the next one included.
const HEAD: Duration = Duration::from_secs(10);
/// The longest head, and how many headers it may have.
const HEAD_BYTES: usize = 64 << 10;
const HEADERS: usize = 64;
/// How long the other end may leave unread what we write.
const UNREAD: Duration = Duration::from_secs(30);
/// How long calls may go on when we stop.
const LAST_CALLS: Duration = Duration::from_secs(5);
/// How long the first bytes of a new connection are waited for before it counts as idle.
const FIRST_BYTES: Duration = Duration::from_millis(10);
/// The pause after a connection could not be accepted, which is mostly for want of file handles: one comes back as soon
/// as the connection that made room is closed, or else when somebody is done.
const PAUSE_FOR_ROOM: Duration = Duration::from_millis(1);
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
    let table = Connections::new(door.limits);
    let unread = Arc::new(Semaphore::new(door.limits.unread));
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let next = async {
            // The semaphore is never closed.
            let unread = Arc::clone(&unread).acquire_owned().await.ok();
            (unread, listener.accept().await)
        };
        tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => {}
            (unread, accepted) = next => match accepted {
                Ok((stream, peer)) => {
                    let open = table.open(peer.ip());
                    connections.spawn(connection(stream, open, router.clone(), Arc::clone(&door), unread));
                }
                Err(error) => {
                    tracing::debug!(%error, "not accepted");
                    let room = table.evict_one();
                    tokio::time::sleep(if room { PAUSE_FOR_ROOM } else { PAUSE }).await;
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
    open: Arc<Connection>,
    router: Router,
    door: Arc<Door>,
    unread: Option<OwnedSemaphorePermit>,
) {
    // Small events are to go out as they come.
    let _ = stream.set_nodelay(true);
    let _ = tokio::time::timeout(FIRST_BYTES, stream.readable()).await;
    let router = TowerToHyperService::new(router);
    let of_requests = Arc::clone(&open);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        let turn = of_requests.turn();
        let peer = Peer(Some(Arc::clone(&of_requests)));
        request.extensions_mut().insert(peer);
        let answering = router.call(request);
        async move {
            let answer: Result<Response, _> = answering.await;
            answer.map(|answer| answer.map(|body| Holding::new(body, turn)))
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_headers(HEADERS)
        .max_buf_size(HEAD_BYTES);
    let io = TokioIo::new(Patient::new(stream, UNREAD));
    let mut serving = std::pin::pin!(builder.serve_connection(io, service));
    // The first poll reads what has come.
    let first = poll_fn(|context| Poll::Ready(serving.as_mut().poll(context))).await;
    drop(unread);
    if first.is_ready() {
        return;
    }
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = open.evicted() => return tracing::debug!("a connection makes room for another"),
        () = door.stopped() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}
