//! What every hub promises, asked of each of them; and what a broker that goes away must not break.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs
)]

mod home;
mod nats;
#[path = "../../../../tests/common/nats_server.rs"]
mod nats_server;
mod outage;
mod sending;
mod suite;

use home::Home;
use nats_server::NatsServer;

#[tokio::test]
async fn a_hub_in_the_process_keeps_every_promise() {
    suite::all(Home::local).await;
}

// needs: nats
#[tokio::test]
async fn a_hub_on_nats_keeps_every_promise() {
    let Some(server) = NatsServer::get() else {
        return;
    };
    suite::all(|| Home::nats(&server.url())).await;
}
