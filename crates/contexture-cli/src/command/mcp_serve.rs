//! `ctx mcp serve`: an agent that knows nothing of us has the session's tools as those of an MCP server.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use contexture::inject::{RESERVED, ToolDefinition};
use contexture_server::{Client, ClientError, Fault};
use contexture_tools::process::{LONGEST_LINE, Lines};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, ListToolsResult, MetaObject, PaginatedRequestParams, ServerCapabilities,
    ServerConfig, SubscriptionFilter, Tool, ToolAnnotations,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ServerHandler, ServiceExt};
use serde_json::Value;
use tokio::sync::watch;

use super::runtime;
use crate::args::At;
use crate::error::CliError;
use crate::output::{JsonLines, note};
use crate::session;

/// The most memory that one message may take once it is parsed.
const MAX_MESSAGE_HELD_BYTES: usize = 24 << 20;
/// How often it is looked whether the tools are others.
const POLL: Duration = Duration::from_secs(2);
/// How long a list of tools may take.
const LIST: Duration = Duration::from_secs(10);

/// Serves until standard input ends.
pub fn serve(at: &At, dir: Option<&Path>) -> Result<(), CliError> {
    let client = session::client(at, dir)?;
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let server = Server::new(client);
        match server.tools().await {
            // Nothing that could be said over the protocol would be of use to a session that is over.
            Err(error) if error.why == Fault::Unauthorized => return Err(error.into()),
            // The daemon may come back, and each call says how it is.
            Err(error) => note!("ctx: {}", crate::view::safe(&error.to_string())),
            Ok(_) => {}
        }
        let watching = tokio::spawn(server.clone().watch());
        let stdin = Lines::new(tokio::io::stdin(), LONGEST_LINE).holding(MAX_MESSAGE_HELD_BYTES);
        let serving = server.serve((stdin, JsonLines::new()));
        let served = async {
            // One who hangs up before a word was said has no complaint.
            if let Ok(service) = serving.await {
                let _ = service.waiting().await;
            }
        };
        served.await;
        watching.abort();
        Ok(())
    });
    // A read from standard input cannot be called off.
    runtime.shutdown_background();
    served
}

#[derive(Clone)]
struct Server {
    client: Arc<Client>,
    /// The tools as they were last listed.
    known: Arc<Mutex<Vec<ToolDefinition>>>,
    /// How often they have changed.
    changes: watch::Sender<u64>,
}

impl Server {
    fn new(client: Client) -> Self {
        Self {
            client: Arc::new(client),
            known: Arc::default(),
            changes: watch::Sender::new(0),
        }
    }

    /// The tools as they are now.
    async fn tools(&self) -> Result<Vec<ToolDefinition>, ClientError> {
        let listing = tokio::time::timeout(LIST, session::tools(&self.client));
        let tools = listing.await.map_err(|_| ClientError {
            why: Fault::Unreachable,
            message: "the daemon does not answer".to_owned(),
            hint: None,
        })??;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != tools {
            known.clone_from(&tools);
            self.changes.send_modify(|changes| *changes += 1);
        }
        Ok(tools)
    }

    /// Looks again and again, as nobody tells a session that its tools are others.
    async fn watch(self) {
        loop {
            tokio::time::sleep(POLL).await;
            match self.tools().await {
                // A token that counts no more will not count again.
                Err(error) if error.why == Fault::Unauthorized => return,
                // What a daemon that is away had counts until it is back.
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn knows(&self, name: &str) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().any(|tool| tool.name == name)
    }

    async fn call(&self, request: CallToolRequestParams) -> Result<CallToolResult, ErrorData> {
        if !self.knows(&request.name) {
            // It may be new.
            if let Err(error) = self.tools().await {
                return Ok(failed(&error));
            }
            if !self.knows(&request.name) {
                let what = format!("unknown tool: {}", request.name);
                return Err(ErrorData::invalid_params(what, None));
            }
        }
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        match session::call(&self.client, &request.name, arguments).await {
            Ok(Value::String(text)) => Ok(CallToolResult::success(vec![ContentBlock::text(text)])),
            Ok(value @ Value::Object(_)) => Ok(CallToolResult::structured(value)),
            Ok(other) => {
                let text = ContentBlock::text(other.to_string());
                Ok(CallToolResult::success(vec![text]))
            }
            Err(error) => Ok(failed(&error)),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut instructions = include_str!("mcp_instructions.md").trim().to_owned();
        for tool in known.iter() {
            if let Some(context) = &tool.context {
                instructions += &format!("\n- {}: {context}", tool.name);
            }
        }
        ServerConfig::new(can)
            .with_server_info(Implementation::new(RESERVED, env!("CARGO_PKG_VERSION")))
            .with_instructions(instructions)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools().await;
        let tools = tools.map_err(|error| ErrorData::internal_error(words(&error), None))?;
        Ok(ListToolsResult::with_all_items(
            tools.into_iter().map(described).collect(),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tokio::select! {
            done = self.call(request) => done.map(CallToolResponse::from),
            // The connection to the daemon is closed, and with it the call.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("called off", None)),
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut changes = self.changes.subscribe();
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                if context.peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        });
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = changes.changed() => {
                    if changed.is_err() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn described(tool: ToolDefinition) -> Tool {
    let parameters = match tool.parameters {
        Value::Object(parameters) => parameters,
        _ => serde_json::Map::from_iter([("type".to_owned(), "object".into())]),
    };
    let annotations = annotations(&tool.rpc_method);
    // Claude Code offers the tools of a server only when they are searched for, unless they say so.
    let at_once = serde_json::Map::from_iter([("anthropic/alwaysLoad".to_owned(), true.into())]);
    Tool::new(tool.name, tool.description, parameters)
        .with_annotations(annotations)
        .with_meta(MetaObject(at_once))
}

/// The hints that a host gets about a tool, so that it need not ask about those that show a page and do nothing else.
/// Of what is behind a provider's tool we know nothing, and the protocol's defaults assume the worst.
fn annotations(method: &str) -> ToolAnnotations {
    let reads = match method {
        "internal.canvasGet" => true,
        "internal.canvasUpdate" | "internal.canvasClear" => false,
        _ => return ToolAnnotations::new(),
    };
    ToolAnnotations::new()
        .read_only(reads)
        .destructive(false)
        .idempotent(true)
        .open_world(false)
}

/// A call that came to nothing, for the model to read.
fn failed(error: &ClientError) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(words(error))])
}

fn words(error: &ClientError) -> String {
    match &error.hint {
        Some(hint) => format!("{error} ({hint})"),
        None => error.to_string(),
    }
}
