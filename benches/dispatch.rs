//! Tasks over a real NATS server, from being made to their results in the log, against what the server itself can do:
//! messages that are published, acknowledged, taken and acknowledged again.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

#[path = "../tests/common/nats_server.rs"]
#[allow(dead_code, reason = "a server is started, and no more")]
mod nats_server;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream;
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::stream::{Config, RetentionPolicy};
use contexture::pool::{Locale, Name, NewResource, ResourceType};
use contexture::task::{NewTask, Spent};
use contexture_agent::Cancel;
use contexture_benches::{Bar, Times, asked, note, row};
use contexture_fleet::Bus;
use contexture_fleet::hub::{Hub, LocalHub, NatsHub, NatsOptions};
use contexture_fleet::work::seal::HubKey;
use contexture_fleet::work::{
    Came, Dispatcher, Executor, Job, WorkOptions, Worker, WorkerOptions, Working,
};
use contexture_store::{BoardLog, FileLog, FileOptions, Key};
use futures_util::StreamExt;
use nats_server::NatsServer;
use serde_json::json;

const ROUNDS: usize = 7;
const EACH: usize = 500;
const WORKERS: usize = 32;

fn main() {
    if !asked("dispatch: a task over NATS : a message that is published, taken and acknowledged") {
        return;
    }
    let Some(server) = NatsServer::get() else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        // On the disk of the project: temporary folders are often in memory.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let key = HubKey::fresh().unwrap();
        let bare = Bare::new(&server).await;
        let options = NatsOptions {
            url: server.url(),
            namespace: key.namespace(),
            credentials: None,
            beat: Duration::from_secs(3),
            patience: Duration::from_secs(15),
        };
        let hub = Arc::new(NatsHub::connect(options).await.unwrap());
        let nats = Ours::new(hub, &key, true, &folder.path().join("nats")).await;
        let local = Arc::new(LocalHub::default());
        let here = Ours::new(local, &key, false, &folder.path().join("here")).await;
        let (mut of_bare, mut of_nats, mut of_here) = <(Times, Times, Times)>::default();
        for _ in 0..ROUNDS {
            of_bare.add(each(bare.round()).await);
            of_nats.add(each(nats.round()).await);
            of_here.add(each(here.round()).await);
        }
        let rate = |times: &Times| 1.0 / times.median().as_secs_f64();
        note(&format!(
            "{WORKERS} workers; bare {:.0}/s, tasks over NATS {:.0}/s, in one process {:.0}/s",
            rate(&of_bare),
            rate(&of_nats),
            rate(&of_here)
        ));
        row(
            "a task over NATS : a bare message",
            of_nats.median(),
            of_bare.median(),
            Bar::None,
        );
        row(
            "a task in one process : a bare message",
            of_here.median(),
            of_bare.median(),
            Bar::None,
        );
    });
}

async fn each(round: impl Future<Output = ()>) -> Duration {
    let began = Instant::now();
    round.await;
    began.elapsed() / u32::try_from(EACH).unwrap()
}

/// JetStream and nothing else.
struct Bare {
    context: jetstream::Context,
    consumer: jetstream::consumer::Consumer<pull::Config>,
}

impl Bare {
    async fn new(server: &NatsServer) -> Self {
        let client = async_nats::connect(server.url()).await.unwrap();
        let context = jetstream::new(client);
        let stream = Config {
            name: "BARE".to_owned(),
            subjects: vec!["bare".to_owned()],
            retention: RetentionPolicy::WorkQueue,
            ..Config::default()
        };
        let stream = context.create_stream(stream).await.unwrap();
        let consumer = pull::Config {
            durable_name: Some("bare".to_owned()),
            ..pull::Config::default()
        };
        let consumer = stream.create_consumer(consumer).await.unwrap();
        Self { context, consumer }
    }

    async fn round(&self) {
        let text = "x".repeat(1_000);
        let publishing = async {
            let mut acks = Vec::new();
            for _ in 0..EACH {
                acks.push(
                    self.context
                        .publish("bare", text.clone().into())
                        .await
                        .unwrap(),
                );
            }
            for ack in acks {
                ack.await.unwrap();
            }
        };
        let taking = async {
            let mut messages = self.consumer.messages().await.unwrap();
            for _ in 0..EACH {
                messages.next().await.unwrap().unwrap().ack().await.unwrap();
            }
        };
        tokio::join!(publishing, taking);
    }
}

/// A dispatcher with its workers.
struct Ours {
    dispatcher: Arc<Dispatcher>,
}

impl Ours {
    async fn new(hub: Arc<dyn Hub>, key: &HubKey, shared: bool, folder: &Path) -> Self {
        let log = Arc::new(FileLog::new(folder, FileOptions::default()));
        let options = WorkOptions {
            log: BoardLog::new(log, Key::new("main").unwrap()),
            hub: Arc::clone(&hub),
            key: key.clone(),
            shared,
            patience: Duration::from_secs(15),
            locale: Locale::En,
        };
        let dispatcher = Dispatcher::new(options, Arc::new(Bus::default())).unwrap();
        tokio::spawn(Arc::clone(&dispatcher).run(Cancel::default()));
        for n in 0..WORKERS {
            let name = Name::new(&format!("w{n}")).unwrap();
            let mut resource = NewResource::new(name.clone(), ResourceType::Executor);
            resource.worker = true;
            let seat = key.seat(&name, true);
            let options = WorkerOptions::default();
            let worker =
                Worker::new(Arc::clone(&hub), seat, resource, Arc::new(Nothing), options).unwrap();
            tokio::spawn(worker.run(Cancel::default()));
        }
        while dispatcher.look(|board| board.pool().len()).await.unwrap() < WORKERS {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Self { dispatcher }
    }

    async fn round(&self) {
        let task = NewTask::from_value(json!({"description": "x".repeat(500)})).unwrap();
        let mut changes = self.dispatcher.changes();
        let made = self.dispatcher.change(move |board, now| {
            for _ in 0..EACH {
                board.create(task.clone(), now)?;
            }
            Ok(((), Vec::new()))
        });
        made.await.unwrap();
        loop {
            let open = |board: &contexture::task::Board| {
                board
                    .tasks()
                    .iter()
                    .rev()
                    .take(EACH)
                    .any(|task| !task.state().is_over())
            };
            if !self.dispatcher.look(open).await.unwrap() {
                return;
            }
            changes.changed().await.unwrap();
        }
    }
}

struct Nothing;

impl Executor for Nothing {
    fn run<'a>(&'a self, _: &'a Job, _: &'a Cancel) -> Working<'a> {
        Box::pin(async { Came::done("done", Spent::default()) })
    }
}
