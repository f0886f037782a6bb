//! A call whose news come before its answer, as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use contexture_fleet::{RpcError, Why};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::access::{Place, Visitor};
use crate::door::Door;
use crate::rpc::{self, Asked};

/// How long a stream is silent before a comment says that it lives.
pub(crate) const SILENCE: Duration = Duration::from_secs(15);
/// News that may wait for a reader. Beyond, the method waits.
const WAITING: usize = 64;

/// Answers with a stream. The call runs beside it, so that a reader who does not read cannot keep alive
/// what is revoked; it ends with the stream.
pub(crate) fn respond(door: Arc<Door>, visitor: Visitor, asked: Asked, place: Place) -> Response {
    let (frames, reader) = mpsc::channel(WAITING);
    let call = Ends(tokio::spawn(async move {
        drive(&door, &visitor, asked, &frames).await;
        drop(place);
    }));
    let frames = stream::unfold((reader, call), |(mut reader, call)| async move {
        let frame: Value = reader.recv().await?;
        let event = Event::default().data(frame.to_string());
        Some((Ok::<_, Infallible>(event), (reader, call)))
    });
    let alive = KeepAlive::new().interval(SILENCE);
    Sse::new(frames).keep_alive(alive).into_response()
}

async fn drive(door: &Door, visitor: &Visitor, asked: Asked, frames: &mpsc::Sender<Value>) {
    let id = asked.id.clone();
    tokio::select! {
        () = forward(door, visitor, asked, frames) => {}
        () = visitor.gone(door) => {}
        () = door.stopped() => {
            let error = RpcError::new(Why::Failed, "the daemon stops");
            if let Some(id) = id {
                // A reader who is so far behind hears the end of the stream instead.
                let _ = frames.try_send(rpc::response(&id, Err(error)));
            }
        }
    }
}

/// The news and then the response.
async fn forward(door: &Door, visitor: &Visitor, asked: Asked, frames: &mpsc::Sender<Value>) {
    let (updates, mut news) = mpsc::channel(WAITING);
    let id = asked.id.clone();
    let mut running = std::pin::pin!(rpc::run(door, visitor, asked, Some(updates)));
    let done = loop {
        tokio::select! {
            biased;
            Some(update) = news.recv() => {
                if frames.send(framed(update)).await.is_err() {
                    return;
                }
            }
            done = &mut running => break done,
        }
    };
    while let Ok(update) = news.try_recv() {
        if frames.send(framed(update)).await.is_err() {
            return;
        }
    }
    if let (Ok(done), Some(id)) = (done, id) {
        let _ = frames.send(rpc::response(&id, done)).await;
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is moved into the frame")]
fn framed(update: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "update", "params": update})
}

/// A task that ends with whoever waits for it.
struct Ends(JoinHandle<()>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.abort();
    }
}
