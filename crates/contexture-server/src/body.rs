//! Bodies: requests are read within bounds, and answers keep what they rest on until they are sent.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::StreamExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::refusal::Refusal;

/// How long the body of a request may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads a body of at most so many bytes.
pub(crate) async fn read(body: Body, max_bytes: usize) -> Result<Vec<u8>, Refusal> {
    let reading = async {
        let mut bytes = Vec::new();
        let mut chunks = body.into_data_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| Refusal::Malformed("the body cannot be read"))?;
            if bytes.len() + chunk.len() > max_bytes {
                return Err(Refusal::TooLong);
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    };
    let read = tokio::time::timeout(BODY_TIMEOUT, reading).await;
    read.map_err(|_| Refusal::TooSlow)?
}

/// A body that holds something until it is sent or given up.
#[derive(Debug)]
pub(crate) struct Holding<T> {
    body: Body,
    _held: T,
}

impl<T> Holding<T> {
    pub fn new(body: Body, held: T) -> Self {
        Self { body, _held: held }
    }
}

impl<T: Unpin> HttpBody for Holding<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
