//! `GET /events`: what happens, as server-sent events, for the owner.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, Request, State};
use axum::http::HeaderName;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use contexture_fleet::{Caller, Happened, Subscription};
use futures_util::stream;
use serde_json::json;
use tokio::time::{Interval, MissedTickBehavior};

use crate::access::Visitor;
use crate::connections::Peer;
use crate::door::Door;
use crate::guard::only;
use crate::refusal::Refusal;
use crate::stream::SILENCE;

/// How often it is asked whether the caller's secret still counts.
const POLL: Duration = Duration::from_millis(500);

/// `GET /events?after=ID&agent=NAME&type=PREFIX`.
pub(crate) async fn events(
    State(door): State<Arc<Door>>,
    request: Request,
) -> Result<Response, Refusal> {
    let peer = request.extensions().get::<Peer>().cloned();
    let visitor = door.admit(request.headers(), &peer.unwrap_or_default())?;
    if !matches!(visitor.caller, Caller::Owner) {
        return Err(Refusal::NotAllowed);
    }
    let Query(mut query) = Query::<HashMap<String, String>>::try_from_uri(request.uri())
        .map_err(|_| Refusal::Malformed("the query cannot be read"))?;
    let last = HeaderName::from_static("last-event-id");
    // A browser that comes back says where it was, which is later than where it began.
    let after = match request.headers().contains_key(&last) {
        true => Some(
            only(request.headers(), &last)
                .unwrap_or_default()
                .to_owned(),
        ),
        false => query.remove("after"),
    };
    let after = match after.filter(|after| !after.is_empty()) {
        Some(after) => Some(
            after
                .parse()
                .map_err(|_| Refusal::Malformed("`after` must be the number of an event"))?,
        ),
        None => None,
    };
    let place = door.calls.listen(&visitor.caller).ok_or(Refusal::Busy)?;
    let mut poll = tokio::time::interval(POLL);
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let listener = Listener {
        subscription: door.service.subscribe(after),
        held: None,
        agent: query.remove("agent"),
        kind: query.remove("type").unwrap_or_default(),
        door,
        visitor,
        poll,
    };
    let events = stream::unfold((listener, place), |(mut listener, place)| async move {
        let event = listener.next().await?;
        Some((Ok::<_, Infallible>(event), (listener, place)))
    });
    let alive = KeepAlive::new().interval(SILENCE);
    Ok(Sse::new(events).keep_alive(alive).into_response())
}

struct Listener {
    subscription: Subscription,
    /// An event that stands behind the word on what was missed.
    held: Option<Arc<Happened>>,
    agent: Option<String>,
    kind: String,
    door: Arc<Door>,
    visitor: Visitor,
    poll: Interval,
}

impl Listener {
    /// The next event to send; none when it is over.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let missed = self.subscription.missed();
            if missed > 0 {
                let data = json!({"missed": missed}).to_string();
                return Some(Event::default().event("missed").data(data));
            }
            if let Some(happened) = self.held.take() {
                // Something may have been revoked since, and who reads slowly reads later.
                if !self.visitor.is_current(&self.door) {
                    return None;
                }
                return Some(event(&happened));
            }
            tokio::select! {
                happened = self.subscription.next() => {
                    self.held = Some(happened?).filter(|happened| self.wants(happened));
                }
                _ = self.poll.tick() => {
                    if !self.visitor.is_current(&self.door) {
                        return None;
                    }
                }
                () = self.door.stopped() => return None,
            }
        }
    }

    fn wants(&self, happened: &Happened) -> bool {
        let agent = self.agent.as_deref();
        happened.event.name().starts_with(&self.kind)
            && agent.is_none_or(|agent| happened.event.agent() == Some(agent))
    }
}

fn event(happened: &Happened) -> Event {
    let data = serde_json::to_string(happened).unwrap_or_default();
    Event::default()
        .id(happened.id.to_string())
        .event(happened.event.name())
        .data(data)
}
