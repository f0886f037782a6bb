//! The client against a server that does as it is told, also badly.

mod errors;
mod faults;
mod replies;

use std::time::Duration;

use crate::model_server::ModelServer;
use contexture_model::{Client, Delta, Endpoint, Model, ModelError, Patience, Reply, Secret};

/// One model for each form.
const MODELS: [(&str, &str); 3] = [
    ("openai:m", "chat/completions"),
    ("openai-responses:m", "responses"),
    ("anthropic:m", "messages"),
];

const KEY: &str = "sk-test-0123456789abcdef";

fn patience() -> Patience {
    Patience {
        connect: Duration::from_secs(2),
        // Long enough for a machine that has other things to do.
        first: Duration::from_secs(20),
        next: Duration::from_secs(20),
        retries: 2,
        pause: Duration::from_millis(5),
        longest_pause: Duration::from_secs(2),
    }
}

/// Calls the model, and gives what came and what came on the way.
fn call(model: &str, server: &ModelServer, body: &str) -> (Result<Reply, ModelError>, Vec<Delta>) {
    call_with(patience(), model, server, body)
}

fn call_with(
    patience: Patience,
    model: &str,
    server: &ModelServer,
    body: &str,
) -> (Result<Reply, ModelError>, Vec<Delta>) {
    let mut endpoint = Endpoint::parse(model, Some(&server.url)).unwrap();
    endpoint.key = Some(Secret::from(KEY));
    let client = Client::new(endpoint, patience).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut deltas = Vec::new();
    let reply =
        runtime.block_on(client.call(body.as_bytes().to_vec(), &mut |delta| deltas.push(delta)));
    (reply, deltas)
}
