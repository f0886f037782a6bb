use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use contexture_fleet::{Event, Service};
use contexture_server::{Options, ServerError, SignIns, serve};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, ORIGIN};
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub use crate::fake::{Fake, OWNER};

/// Enough for anything that is not stuck.
pub const LONG: Duration = Duration::from_secs(30);

/// A server of its own for a test.
pub struct Server {
    pub fake: Arc<Fake>,
    pub url: String,
    pub address: String,
    pub sign_ins: Arc<SignIns>,
    pub http: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    pub serving: JoinHandle<Result<(), ServerError>>,
}

pub async fn server() -> Server {
    let fake = Fake::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let url = format!("http://{address}");
    let sign_ins = SignIns::new(url.clone());
    let (stop, stopped) = oneshot::channel::<()>();
    let options = Options {
        sign_ins: Arc::clone(&sign_ins),
        stop: async {
            let _ = stopped.await;
        },
    };
    let service: Arc<dyn Service> = Arc::clone(&fake) as _;
    let serving = tokio::spawn(serve(listener, service, options));
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .timeout(LONG)
        .build()
        .unwrap();
    Server {
        fake,
        url,
        address,
        sign_ins,
        http,
        stop: Some(stop),
        serving,
    }
}

impl Server {
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    pub fn get(&self, path: &str) -> RequestBuilder {
        self.http.get(self.at(path))
    }

    /// A request to `/rpc` with this secret.
    pub fn post(&self, secret: &str, body: impl Into<reqwest::Body>) -> RequestBuilder {
        self.http
            .post(self.at("/rpc"))
            .header(AUTHORIZATION, format!("Bearer {secret}"))
            .header(CONTENT_TYPE, "application/json")
            .body(body)
    }

    pub async fn call(&self, secret: &str, method: &str, params: Value) -> (u16, Value) {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        said(self.post(secret, body.to_string()).send().await.unwrap()).await
    }

    /// What the server says to these bytes, up to where it closes the connection.
    pub async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let _ = stream.write_all(bytes).await;
        let mut said = Vec::new();
        let reading = stream.read_to_end(&mut said);
        let _ = tokio::time::timeout(LONG, reading).await.expect("it hangs");
        String::from_utf8_lossy(&said).into_owned()
    }

    pub fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub fn tell(&self, agent: &str) {
        self.fake.bus.tell(state(agent));
    }

    pub fn running(&self) -> usize {
        self.fake.running.load(Ordering::SeqCst)
    }

    /// What our page asks to exchange the code of a link.
    pub fn exchange(&self, link: &str) -> RequestBuilder {
        let code = link.split_once("#sign-in=").unwrap().1;
        self.http
            .post(self.at("/sign-in"))
            .header(ORIGIN, &self.url)
            .header(CONTENT_TYPE, "application/json")
            .body(json!({ "code": code }).to_string())
    }

    /// The secret of a page that is signed in.
    pub async fn page(&self) -> String {
        let link = self.sign_ins.link().unwrap();
        let (status, said) = said(self.exchange(&link).send().await.unwrap()).await;
        assert_eq!(status, 200, "{said}");
        said["secret"].as_str().unwrap().to_owned()
    }

    /// A path that shows a canvas once.
    pub async fn frame(&self, agent: &str) -> String {
        let (_, said) = self
            .call(OWNER, "canvas.frame", json!({ "agent": agent }))
            .await;
        said["result"]["path"].as_str().unwrap().to_owned()
    }
}

pub fn state(agent: &str) -> Event {
    Event::AgentState {
        agent: agent.to_owned(),
        state: "running".to_owned(),
        why: None,
    }
}

/// The status and the JSON.
pub async fn said(reply: Response) -> (u16, Value) {
    let status = reply.status().as_u16();
    let text = reply.text().await.unwrap();
    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    (status, value)
}

/// Waits until something is so.
pub async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < LONG, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
