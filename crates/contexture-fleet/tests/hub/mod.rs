//! What every hub promises, asked of each of them; and what a broker that goes away must not break.

mod home;
mod nats;
mod outage;
mod sending;
mod suite;

use crate::nats_server::NatsServer;
use home::Home;

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
