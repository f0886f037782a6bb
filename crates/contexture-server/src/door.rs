//! The state that all requests share, and the routes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::http::{HeaderName, header};
use axum::routing::{any, get, post};
use axum::{Json, Router, middleware};
use contexture_fleet::{Method, Service};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::access::Calls;
use crate::limits::Limits;
use crate::methods::{OwnMethod, own_methods};
use crate::openapi::openapi as describe;
use crate::pages::Frame;
use crate::refusal::Refusal;
use crate::secrets::Secrets;
use crate::sign_in::SignIns;
use crate::throttle::Throttle;
use crate::{events, guard, pages, rpc};

/// What all requests share: the service behind, and who is let in to it.
pub struct Door {
    pub(crate) service: Arc<dyn Service>,
    pub(crate) sign_ins: Arc<SignIns>,
    pub(crate) address: SocketAddr,
    pub(crate) throttle: Throttle,
    pub(crate) calls: Calls,
    pub(crate) limits: Limits,
    pub(crate) frames: Mutex<Secrets<Frame>>,
    own: Vec<OwnMethod>,
    stopping: watch::Sender<bool>,
    openapi: Bytes,
}

impl Door {
    /// The door of a service that listens at this address.
    pub fn new(
        service: Arc<dyn Service>,
        sign_ins: Arc<SignIns>,
        address: SocketAddr,
    ) -> Arc<Self> {
        let limits = Limits::new();
        let own = own_methods();
        let mut methods = service.methods().to_vec();
        methods.extend(own.iter().map(|own| own.method.clone()));
        let openapi = describe(&methods).to_string().into();
        Arc::new(Self {
            service,
            sign_ins,
            address,
            throttle: Throttle::default(),
            calls: Calls::new(limits.of_sessions),
            limits,
            frames: Mutex::new(Secrets::new(Frame::LIFE, Frame::MAX)),
            own,
            stopping: watch::Sender::new(false),
            openapi,
        })
    }

    /// Ends all streams. Calls go on.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Waits until [`Self::stop`].
    pub(crate) async fn stopped(&self) {
        // The sender is ours, so it outlives the wait.
        let _ = self
            .stopping
            .subscribe()
            .wait_for(|stopping| *stopping)
            .await;
    }

    /// The method of this name.
    pub(crate) fn method(&self, name: &str) -> Option<&Method> {
        let own = self.own.iter().map(|own| &own.method);
        let mut methods = own.chain(self.service.methods());
        methods.find(|method| method.name == name)
    }

    /// The method of this name, if it is the server's own.
    pub(crate) fn own_method(&self, name: &str) -> Option<&OwnMethod> {
        self.own.iter().find(|own| own.method.name == name)
    }
}

/// All that can be asked over HTTP.
pub fn router(door: Arc<Door>) -> Router {
    const SCRIPT: [(HeaderName, &str); 1] = [(header::CONTENT_TYPE, "text/javascript")];
    const STYLE: [(HeaderName, &str); 1] = [(header::CONTENT_TYPE, "text/css")];
    const JSON: [(HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];
    let described = door.openapi.clone();
    Router::new()
        .route("/", get(pages::dashboard))
        .route("/app.js", get((SCRIPT, include_str!("pages/app.js"))))
        .route(
            "/session.js",
            get((SCRIPT, include_str!("pages/session.js"))),
        )
        .route("/style.css", get((STYLE, include_str!("pages/style.css"))))
        .route("/sign-in", post(pages::sign_in))
        .route("/canvas/{ticket}", get(pages::canvas))
        .route("/rpc", post(rpc::rpc))
        .route("/events", get(events::events))
        .route("/healthz", get(|| async { Json(health()) }))
        .route("/openapi.json", get(|| async { (JSON, described) }))
        .fallback(any(|| async { Refusal::NotFound }))
        .layer(middleware::from_fn_with_state(
            Arc::clone(&door),
            guard::guard,
        ))
        .with_state(door)
}

fn health() -> Value {
    json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")})
}
