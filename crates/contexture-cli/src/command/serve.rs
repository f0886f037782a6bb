//! `ctx serve`: the daemon, from its lock to its end.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use contexture_agent::{Cancel, clock};
use contexture_fleet::{RpcError, Why};
use contexture_server::{Daemon, DaemonLock, Options, SignIns, serve as serve_http};
use contexture_store::StoreError;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use super::{print, print_json, runtime};
use crate::args::{AgentOptions, LogFormat, Serve};
use crate::config::{self, Config};
use crate::error::CliError;
use crate::fleet;
use crate::output;
use crate::state;
use crate::telemetry;
use crate::view::{Paint, safe};
use crate::work::{self, Native};

/// What of the log is shown.
const LOG: &str = "CONTEXTURE_LOG";

/// `ctx serve`.
pub fn serve(options: &Serve, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let config = config::load(dir)?;
    log(options.log, "info");
    runtime()?.block_on(async {
        let lock = DaemonLock::take(state::made(&config)?)?;
        let listener = listen(options, &config).await?;
        let address = listener.local_addr()?;
        let key = work::key(&config)?;
        let hub = work::hub(&config, &key.namespace()).await?;
        let fleet = fleet::open(&config, dir, hub)?;
        let url = format!("http://{}", reachable(address));
        let reachable = fleet.reachable_at(&url, state::folder(&config)?);
        reachable.map_err(StoreError::from)?;
        fleet.start_natives_with(answering(&options.agent));
        lock.publish(&Daemon {
            secret: fleet.owner_secret().to_owned(),
            ..Daemon::new(url.as_str(), clock::now()).map_err(|error| failed(error.to_string()))?
        })?;
        let sign_ins = SignIns::new(url.as_str());
        let link = sign_ins.link().map_err(|error| failed(error.to_string()))?;
        if json {
            print_json(&json!({"url": url, "signIn": link, "pid": std::process::id()}))?;
        } else {
            let paint = Paint::stdout();
            let root = safe(&config.root.display().to_string());
            print(format!(" {}  serves {root}\n", paint.bold(&url)).as_bytes())?;
            print(format!(" {}  opens the dashboard, once\n", paint.fg(75, &link)).as_bytes())?;
        }
        telemetry::export(&fleet);
        fleet.resume().await;
        let native = Native::new(&options.agent, dir.map(Path::to_owned));
        let (ending, working) = (Cancel::default(), Arc::clone(&fleet));
        let until = ending.clone();
        let handing_out =
            tokio::spawn(async move { working.work(Some(Arc::new(native)), until).await });
        let stop = stop();
        let served = serve_http(listener, fleet.clone(), Options { sign_ins, stop }).await;
        tracing::info!("stops its agents");
        ending.cancel();
        let _ = handing_out.await;
        // Whoever asks a second time does not wait.
        tokio::select! {
            () = fleet.shut_down() => {}
            () = self::stop() => {}
        }
        drop(lock);
        served.map_err(|error| failed(error.to_string()))
    })
}

/// The options that say what answers, for agents that the daemon starts.
fn answering(options: &AgentOptions) -> Vec<String> {
    let named = [
        ("--model", &options.model),
        ("--base-url", &options.base_url),
    ];
    let given = named
        .into_iter()
        .filter_map(|(name, value)| Some([name.to_owned(), value.clone()?]));
    given.flatten().collect()
}

/// Listens, on this machine alone unless somebody said otherwise.
async fn listen(options: &Serve, config: &Config) -> Result<TcpListener, CliError> {
    let wanted = options.listen.as_deref().unwrap_or(&config.fleet.listen);
    let address = tokio::net::lookup_host(wanted)
        .await
        .ok()
        .and_then(|mut all| all.next());
    let address = address.ok_or_else(|| CliError::Usage {
        what: format!("`{wanted}` is no address to listen at"),
        hint: "for example: --listen 127.0.0.1:4100".to_owned(),
    })?;
    if !address.ip().is_loopback() && !options.public {
        return Err(CliError::NotAllowed {
            what: format!("{address} can be reached from other machines"),
            hint: "say --public if that is meant; it speaks plain HTTP, so put TLS before it"
                .to_owned(),
        });
    }
    TcpListener::bind(address).await.map_err(|error| {
        let failed = RpcError::new(Why::Failed, format!("{address}: {error}"));
        match error.kind() {
            std::io::ErrorKind::AddrInUse => failed
                .hint("another program listens there: choose another with --listen 127.0.0.1:0")
                .into(),
            _ => failed.into(),
        }
    })
}

/// The address as somebody on this machine calls it.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::from(([127, 0, 0, 1], address.port())),
        IpAddr::V6(ip) if ip.is_unspecified() => {
            SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], address.port()))
        }
        _ => address,
    }
}

/// Ends when somebody wants us to.
pub(super) async fn stop() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// Logs to standard error.
pub(super) fn log(format: LogFormat, level: &str) {
    let filter = EnvFilter::try_from_env(LOG).unwrap_or_else(|_| EnvFilter::new(level));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| output::Log)
        .with_ansi(false);
    // Only once in a process, which is where we are.
    let _ = match format {
        LogFormat::Text => log.with_target(false).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
}

fn failed(message: String) -> CliError {
    RpcError::new(Why::Failed, message).into()
}
