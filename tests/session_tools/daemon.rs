use std::sync::Arc;

use contexture_server::{Options, SignIns, serve};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::common::{Ctx, Project};
use crate::session_tools::fake::Fake;

/// A daemon with a fake fleet, in this process.
pub struct Daemon {
    pub fake: Arc<Fake>,
    pub url: String,
    pub project: Project,
    stop: Option<oneshot::Sender<()>>,
    runtime: Runtime,
}

impl Daemon {
    pub fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let fake = Fake::new();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let options = Options {
            sign_ins: SignIns::new(url.clone()),
            stop: async {
                let _ = stopped.await;
            },
        };
        runtime.spawn(serve(listener, Arc::clone(&fake) as _, options));
        Self {
            fake,
            url,
            project: Project::new(),
            stop: Some(stop),
            runtime,
        }
    }

    /// `ctx` in a session of this agent.
    pub fn ctx(&self, agent: &str, args: &[&str]) -> Ctx {
        self.project
            .ctx(args)
            .env("CONTEXTURE_URL", &self.url)
            .env("CONTEXTURE_SESSION_TOKEN", &self.fake.token(agent, "s"))
    }

    pub fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        // Until nothing answers there.
        let address = self.url.strip_prefix("http://").unwrap();
        while std::net::TcpStream::connect(address).is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}
