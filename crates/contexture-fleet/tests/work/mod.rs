//! Tasks between a dispatcher and its workers, in this process and over a real NATS server: the same suite for both.

/// The same test for both hubs.
macro_rules! both {
    ($($test:ident),* $(,)?) => {
        mod local {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(crate::work::Scene::local().await).await;
            })*
        }
        mod nats {
            $(
            // needs: nats
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                if let Some(scene) = crate::work::Scene::nats().await {
                    super::$test(scene).await;
                }
            })*
        }
    };
}

mod attacks;
mod suite;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::nats_server::NatsServer;
use contexture::pool::{Change, Level, Locale, Name, NewResource, ResourceType};
use contexture::task::{Board, NewTask, Spent, State, Task};
use contexture_agent::Cancel;
use contexture_fleet::Bus;
use contexture_fleet::hub::{Hub, HubError, LocalHub, NatsHub, NatsOptions};
use contexture_fleet::work::seal::{HubKey, Seat};
use contexture_fleet::work::{
    Came, Dispatcher, Executor, Job, WorkOptions, Worker, WorkerOptions, Working,
};
use contexture_store::{BoardLog, FileLog, FileOptions, Key};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

/// How long a worker may be silent here.
pub const PATIENCE: Duration = Duration::from_secs(2);

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A dispatcher over a hub, with its board in a folder.
pub struct Scene {
    pub dispatcher: Arc<Dispatcher>,
    pub hub: Arc<dyn Hub>,
    pub key: HubKey,
    pub bus: Arc<Bus>,
    stop: Cancel,
    folder: TempDir,
    shared: bool,
    pub nats: Option<NatsServer>,
}

impl Scene {
    pub async fn local() -> Self {
        Self::over(
            Arc::new(LocalHub::default()),
            HubKey::fresh().unwrap(),
            None,
        )
    }

    /// Nothing, where there is no NATS server; it has said so.
    pub async fn nats() -> Option<Self> {
        let server = NatsServer::get()?;
        let key = HubKey::fresh().unwrap();
        let hub = Arc::new(connect(&server, &key).await);
        Some(Self::over(hub, key, Some(server)))
    }

    fn over(hub: Arc<dyn Hub>, key: HubKey, nats: Option<NatsServer>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bus = Arc::new(Bus::default());
        let mut scene = Self {
            dispatcher: dispatcher(&hub, &key, &folder, &bus, nats.is_some()),
            hub,
            key,
            bus,
            stop: Cancel::default(),
            folder,
            shared: nats.is_some(),
            nats,
        };
        scene.run();
        scene
    }

    fn run(&mut self) {
        tokio::spawn(Arc::clone(&self.dispatcher).run(self.stop.clone()));
    }

    /// The dispatcher is gone without a word.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// The dispatcher is gone without a word, and another comes.
    pub async fn restart(&mut self) {
        self.stop.cancel();
        sleep(Duration::from_millis(50)).await;
        self.stop = Cancel::default();
        let Self {
            hub,
            key,
            folder,
            bus,
            shared,
            ..
        } = self;
        self.dispatcher = dispatcher(hub, key, folder, bus, *shared);
        self.run();
    }

    /// A worker that can do this; what it does follows from the words of the task. Stopped by the handle without a
    /// word, as `kill -9` would.
    pub fn worker(&self, id: &str, can: &[&str]) -> tokio::task::JoinHandle<()> {
        self.worker_as(&self.key, id, can, true)
    }

    pub fn worker_as(
        &self,
        key: &HubKey,
        id: &str,
        can: &[&str],
        owner: bool,
    ) -> tokio::task::JoinHandle<()> {
        let working = self.working(key.seat(&name(id), owner), can, false);
        tokio::spawn(async move { drop(working.run(Cancel::default()).await) })
    }

    /// A worker with this key, which nobody knows any more when it goes. Gives how it ended.
    pub fn worker_in(
        &self,
        seat: Seat,
        can: &[&str],
        stop: Cancel,
    ) -> tokio::task::JoinHandle<Result<(), HubError>> {
        tokio::spawn(self.working(seat, can, true).run(stop))
    }

    fn working(&self, seat: Seat, can: &[&str], fleeting: bool) -> Worker {
        let options = WorkerOptions {
            beat: Duration::from_millis(300),
            fleeting,
            ..WorkerOptions::default()
        };
        let hub = Arc::clone(&self.hub);
        let resource = resource(seat.name.as_str(), can);
        Worker::new(hub, seat, resource, Arc::new(Words), options).unwrap()
    }

    pub async fn create(&self, description: &str, requires: &[&str]) -> String {
        let task =
            json!({"description": description, "requires": requires, "limits": {"seconds": 60}});
        let task = NewTask::from_value(task).unwrap();
        let made = self
            .dispatcher
            .change(move |board, now| Ok((board.create(task.clone(), now)?, Vec::new())));
        made.await.unwrap()
    }

    pub async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Board) -> T + Send + 'static,
    ) -> T {
        self.dispatcher.look(look).await.unwrap()
    }

    pub async fn task(&self, id: &str) -> Task {
        let id = id.to_owned();
        self.look(move |board| board.tasks().get(&id).unwrap().clone())
            .await
    }

    /// Waits until a task is so.
    #[track_caller]
    pub fn until<'a>(&'a self, id: &'a str, state: State) -> impl Future<Output = Task> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let looking = async {
                loop {
                    let task = self.task(id).await;
                    if task.state() == state {
                        return task;
                    }
                    sleep(Duration::from_millis(20)).await;
                }
            };
            match timeout(Duration::from_secs(30), looking).await {
                Ok(task) => task,
                Err(_) => panic!("{place}: never {state:?}: {:?}", self.task(id).await),
            }
        }
    }

    pub async fn add(&self, resource: NewResource) {
        let change = move |board: &mut Board, now: &contexture::task::Now| {
            let resource = resource.clone();
            board.change(Change::Added { resource }, &now.at)?;
            Ok(((), Vec::new()))
        };
        self.dispatcher.change(change).await.unwrap();
    }

    pub async fn statuses(&self) -> BTreeMap<String, &'static str> {
        self.look(|board| {
            let all = board.pool().resources();
            all.map(|r| (r.id().as_str().to_owned(), r.status().as_str()))
                .collect()
        })
        .await
    }
}

fn dispatcher(
    hub: &Arc<dyn Hub>,
    key: &HubKey,
    folder: &TempDir,
    bus: &Arc<Bus>,
    shared: bool,
) -> Arc<Dispatcher> {
    let log = Arc::new(FileLog::new(folder.path(), FileOptions::default()));
    dispatcher_over(log, hub, key, bus, shared)
}

pub fn dispatcher_over(
    log: Arc<FileLog>,
    hub: &Arc<dyn Hub>,
    key: &HubKey,
    bus: &Arc<Bus>,
    shared: bool,
) -> Arc<Dispatcher> {
    let options = WorkOptions {
        log: BoardLog::new(log, Key::new("main").unwrap()),
        hub: Arc::clone(hub),
        key: key.clone(),
        shared,
        patience: PATIENCE,
        locale: Locale::En,
    };
    Dispatcher::new(options, Arc::clone(bus)).unwrap()
}

pub async fn connect(server: &NatsServer, key: &HubKey) -> NatsHub {
    let options = NatsOptions {
        url: server.url(),
        namespace: key.namespace(),
        credentials: None,
        beat: Duration::from_millis(300),
        patience: PATIENCE,
    };
    NatsHub::connect(options).await.unwrap()
}

pub fn resource(id: &str, can: &[&str]) -> NewResource {
    let mut resource = NewResource::new(name(id), ResourceType::Executor);
    for capability in can {
        resource = resource.with(name(capability), Level::MIDDLE);
    }
    resource.worker = true;
    resource
}

/// Does what the words of a task say: `wait` until it is called off, `fail`, or anything else.
struct Words;

impl Executor for Words {
    fn run<'a>(&'a self, job: &'a Job, cancel: &'a Cancel) -> Working<'a> {
        Box::pin(async move {
            let spent = Spent {
                tokens: 10,
                cost_micros: 1,
            };
            match job.description.as_str() {
                "wait" => {
                    cancel.cancelled().await;
                    Came::failed("called off", spent)
                }
                "fail" => Came::hopeless("it says so", spent),
                words => Came::done(format!("{} by {}", words, job.executor), spent),
            }
        })
    }
}
