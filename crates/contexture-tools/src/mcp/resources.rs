//! Servers' resources, by two tools of our own.

use std::fmt::Write as _;
use std::sync::Arc;

use futures_util::future::join_all;
use rmcp::model::{PaginatedRequestParams, ReadResourceRequestParams, Resource};
use rmcp::service::ServiceError;
use serde_json::{Map, Value, json};

use super::link::Link;
use super::servers::Shared;
use super::tool::failed;
use super::{CATEGORY, McpError, bounded, result};
use crate::{Calling, Effect, Outcome, Tool, ToolSpec};

/// The most resources that one list names.
const MOST: usize = 200;

/// One table: name, description, parameters.
const TABLE: [(What, &str, &str); 2] = [
    (
        What::List,
        "mcp_resources",
        include_str!("../../templates/mcp_resources.md"),
    ),
    (
        What::Read,
        "mcp_read_resource",
        include_str!("../../templates/mcp_read_resource.md"),
    ),
];

#[derive(Clone, Copy)]
enum What {
    List,
    Read,
}

struct ResourceTool {
    what: What,
    spec: ToolSpec,
    shared: Arc<Shared>,
}

/// The two tools.
pub(super) fn tools(shared: &Arc<Shared>) -> Vec<Arc<dyn Tool>> {
    let tool = |(what, name, about): (What, &str, &str)| -> Arc<dyn Tool> {
        let server = json!({ "type": "string", "description": "The name of the server." });
        let uri = json!({ "type": "string", "description": "The resource's address, as listed." });
        let (properties, required) = match what {
            What::List => (json!({ "server": server }), json!([])),
            What::Read => (
                json!({ "server": server, "uri": uri }),
                json!(["server", "uri"]),
            ),
        };
        Arc::new(ResourceTool {
            what,
            spec: ToolSpec {
                name: name.to_owned(),
                description: about.trim().to_owned(),
                parameters: json!({
                    "type": "object",
                    "properties": properties,
                    "required": required,
                    "additionalProperties": false,
                }),
                category: CATEGORY.to_owned(),
                effect: Effect::Reads,
            },
            shared: Arc::clone(shared),
        })
    };
    TABLE.map(tool).into()
}

impl Tool for ResourceTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: &'a Map<String, Value>) -> Calling<'a> {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str);
        let (server, uri) = (text("server"), text("uri"));
        Box::pin(async move {
            let done = match (self.what, server, uri) {
                (What::List, server, _) => list(&self.shared, server).await,
                (What::Read, Some(server), Some(uri)) => read(&self.shared, server, uri).await,
                (What::Read, ..) => return Outcome::failed("`server` and `uri` must be texts"),
            };
            done.unwrap_or_else(|error| failed(&error))
        })
    }
}

async fn list(shared: &Shared, server: Option<&str>) -> Result<Outcome, McpError> {
    let links = shared.links(server, "resources", |entry| entry.resources)?;
    let lists = join_all(links.iter().map(|link| of(link))).await;
    let mut told = String::new();
    let mut count = 0;
    for (link, list) in links.iter().zip(lists) {
        let resources = match list {
            Ok(resources) => resources,
            Err(error) => {
                let _ = writeln!(told, "({error})");
                continue;
            }
        };
        count += resources.len();
        for resource in resources {
            let about = resource
                .description
                .or(resource.title)
                .unwrap_or(resource.name);
            let uri = bounded(&resource.uri, 1_000);
            let _ = writeln!(told, "{} {uri} {}", link.server, bounded(&about, 200));
        }
    }
    if told.is_empty() {
        told.push_str("There are no resources.");
    }
    Ok(Outcome::done(told).saying(format!("{count} resources")))
}

/// The first of a server's resources.
async fn of(link: &Link) -> Result<Vec<Resource>, McpError> {
    link.ask(|peer| async move {
        let mut found = Vec::new();
        let mut cursor = None;
        while found.len() < MOST {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = peer.list_resources(Some(page)).await?;
            let fresh = page.resources.len();
            found.extend(page.resources);
            cursor = page.next_cursor;
            // A page without anything in it is the last one, whatever it says.
            if cursor.is_none() || fresh == 0 {
                break;
            }
        }
        found.truncate(MOST);
        Ok::<_, ServiceError>(found)
    })
    .await
}

async fn read(shared: &Shared, server: &str, uri: &str) -> Result<Outcome, McpError> {
    let links = shared.links(Some(server), "resources", |entry| entry.resources)?;
    let mut contents = Vec::new();
    for link in links {
        let params = ReadResourceRequestParams::new(uri);
        let answer = link
            .ask(|peer| async move { peer.read_resource(params).await })
            .await?;
        contents.extend(answer.contents);
    }
    Ok(result::resource(contents))
}
