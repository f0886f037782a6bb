//! The life of one server: connect, list, serve, die, and again, a little later each time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::PaginatedRequestParams;
use rmcp::service::{Peer, RoleClient, ServiceError};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use super::connect::{Connection, connect};
use super::handler::Handler;
use super::link::{Line, Way};
use super::registry::{Notice, State};
use super::servers::Shared;
use super::tool::McpTool;
use super::{ServerConfig, bounded};
use crate::Tool;
use crate::process::Process;

/// The most tools of one server.
const MOST_TOOLS: usize = 1_000;
/// The most bytes of all their specs.
const MOST_BYTES: usize = 8 << 20;
/// The most characters of what a server says of its use.
const MOST_INSTRUCTIONS: usize = 16 << 10;
/// The most pages that a list is read in.
const MOST_PAGES: usize = 100;
/// How long to wait before a list is read again, so that a burst of changes is one; twice as long before
/// each next, so that a server which never stops changing costs little.
const CALM: Duration = Duration::from_millis(200);
/// The longest such wait.
const LONGEST_CALM: Duration = Duration::from_secs(30);
/// A server that lived this long is healthy, and its next death the first.
const HEALTHY: Duration = Duration::from_secs(60);

/// Keeps a server alive until `stop` says otherwise.
pub(super) async fn live(
    shared: Arc<Shared>,
    server: usize,
    config: ServerConfig,
    mut stop: watch::Receiver<bool>,
) {
    let options = &shared.options;
    let relist = Arc::new(Notify::new());
    let handler = Handler::new(&options.root, Arc::clone(&relist));
    let mut deaths = 0;
    loop {
        let born = Instant::now();
        let connected = tokio::select! {
            connected = connect(&config, options, &handler) => connected,
            () = stopped(&mut stop) => return,
        };
        let (why, forever) = match connected {
            Ok(connection) => {
                let served = serve(&shared, server, connection, &relist, &mut stop);
                let Some(why) = served.await else { return };
                (why, false)
            }
            Err(failure) => (failure.why, failure.forever),
        };
        let why = config.without_secrets(why);
        if born.elapsed() > HEALTHY {
            deaths = 0;
        }
        deaths += 1;
        if forever || deaths > options.restarts {
            shared.change(|registry| registry.set_down(server, State::Failed { why }));
            return;
        }
        let after = options
            .pause
            .saturating_mul(1 << (deaths - 1).min(16))
            .min(options.longest_pause);
        shared.change(|registry| registry.set_down(server, State::Restarting { why, after }));
        tokio::select! {
            () = sleep(after) => {}
            () = stopped(&mut stop) => return,
        }
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Serves until the server is gone; says why, or nothing when we are to stop.
async fn serve(
    shared: &Shared,
    server: usize,
    connection: Connection,
    relist: &Notify,
    stop: &mut watch::Receiver<bool>,
) -> Option<String> {
    let Connection { service, process } = connection;
    let peer = service.peer().clone();
    let hang_up = service.cancellation_token();
    let broken = Arc::new(Notify::new());
    let fault = process.as_ref().map(Process::fault).unwrap_or_default();
    let link = shared.look(|registry| Arc::clone(&registry.entries[server].link));
    let waiting = service.waiting();
    tokio::pin!(waiting);
    let mut calm = CALM;
    let why = loop {
        let listed = tokio::select! {
            listed = list(shared, server, &peer) => listed,
            _ = &mut waiting => Err(String::new()),
            () = stopped(stop) => break None,
        };
        if let Err(why) = listed {
            break Some(why);
        }
        link.set(Line::Up(Way {
            peer: peer.clone(),
            broken: Arc::clone(&broken),
            fault: Arc::clone(&fault),
        }));
        let ended = tokio::select! {
            _ = &mut waiting => Some(Some(String::new())),
            () = broken.notified() => Some(Some("it cannot be reached".to_owned())),
            () = stopped(stop) => Some(None),
            () = async { relist.notified().await; sleep(calm).await } => None,
        };
        if let Some(why) = ended {
            break why;
        }
        calm = (calm * 2).min(LONGEST_CALM);
    };
    match (why, process) {
        (Some(why), Some(process)) => {
            let said = process.post_mortem().await;
            Some(match why.is_empty() {
                true => said,
                false => format!("{why}; {said}"),
            })
        }
        (Some(why), None) if why.is_empty() => Some("it closed the connection".to_owned()),
        (Some(why), None) => Some(why),
        (None, process) => {
            // Closes its input, on which a server leaves by itself.
            hang_up.cancel();
            let _ = timeout(Duration::from_secs(1), waiting).await;
            if let Some(process) = process {
                process.end().await;
            }
            None
        }
    }
}

/// Reads the list of tools, and registers them.
async fn list(shared: &Shared, server: usize, peer: &Peer<RoleClient>) -> Result<(), String> {
    let info = peer.peer_info();
    let can = info
        .as_ref()
        .map(|info| info.capabilities.clone())
        .unwrap_or_default();
    let instructions = info.and_then(|info| info.instructions.clone());
    let instructions = instructions.map(|text| bounded(&text, MOST_INSTRUCTIONS));
    let mut found = Vec::new();
    let mut more = false;
    if can.tools.is_some() {
        let reading = timeout(shared.options.start, pages(peer, &mut found));
        more = match reading.await {
            Ok(Ok(more)) => more,
            Ok(Err(error)) => {
                return Err(format!(
                    "its tools cannot be listed: {}",
                    bounded(&error.to_string(), 300)
                ));
            }
            Err(_) => return Err("its list of tools did not come in time".to_owned()),
        };
    }
    let (link, before) = shared.look(|registry| {
        let entry = &registry.entries[server];
        (Arc::clone(&entry.link), entry.tools.clone())
    });
    let name = link.server.clone();
    let before: HashMap<String, Arc<McpTool>> = before
        .into_iter()
        .map(|tool| (tool.spec().digest(), tool))
        .collect();
    let mut tools = Vec::new();
    let mut notices = Vec::new();
    for theirs in &found {
        let full = || format!("{name}:{}", link.secrets.hide(&bounded(&theirs.name, 128)));
        match McpTool::new(&link, theirs) {
            Ok((tool, loosened)) => {
                if let Some(why) = loosened {
                    notices.push(Notice::Unchecked { tool: full(), why });
                }
                let known = before.get(&tool.spec().digest()).cloned();
                tools.push(known.unwrap_or_else(|| Arc::new(tool)));
            }
            Err(why) => notices.push(Notice::Refused { tool: full(), why }),
        }
        // Reading many schemas takes a while, and others have work to do as well.
        tokio::task::yield_now().await;
    }
    if more {
        notices.push(Notice::TooMany {
            server: name,
            kept: tools.len(),
        });
    }
    shared.change(|registry| {
        registry.entries[server].resources = can.resources.is_some();
        registry.entries[server].prompts = can.prompts.is_some();
        registry.entries[server].instructions = instructions;
        registry.set_tools(server, tools, notices);
    });
    Ok(())
}

/// Reads page after page; says whether there is more than is read.
async fn pages(
    peer: &Peer<RoleClient>,
    found: &mut Vec<rmcp::model::Tool>,
) -> Result<bool, ServiceError> {
    let mut cursor = None;
    let mut bytes = 0;
    for _ in 0..MOST_PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_tools(Some(page)).await?;
        for tool in page.tools {
            bytes += serde_json::to_string(&tool).map_or(0, |text| text.len());
            if found.len() == MOST_TOOLS || bytes > MOST_BYTES {
                return Ok(true);
            }
            found.push(tool);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}
