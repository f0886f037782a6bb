//! A server's tool as one of ours.

use std::sync::Arc;

use rmcp::model::{CallToolRequestParams, CallToolResponse};
use serde_json::{Map, Value};

use super::link::Link;
use super::{CATEGORY, McpError, bounded, result};
use crate::schema::Schema;
use crate::secrets::mask;
use crate::{Calling, Effect, Outcome, Tool, ToolSpec};

/// The most characters of a tool's name.
const LONGEST_NAME: usize = 128;
/// The most characters of a description.
const LONGEST_DESCRIPTION: usize = 8_000;

pub(super) struct McpTool {
    spec: ToolSpec,
    schema: Schema,
    /// What the server calls it.
    theirs: String,
    link: Arc<Link>,
}

impl McpTool {
    /// The tool, and why its schema had to be replaced, if so; else why it cannot be one.
    pub fn new(
        link: &Arc<Link>,
        tool: &rmcp::model::Tool,
    ) -> Result<(Self, Option<String>), String> {
        let name = tool.name.as_ref();
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err("its name is empty or has control characters".to_owned());
        }
        if link.secrets.hide(name) != name {
            return Err("its name has a key in it".to_owned());
        }
        let mut parameters = Value::Object(tool.input_schema.as_ref().clone());
        mask::hide_in(&link.secrets, &mut parameters);
        if parameters.get("type").is_none() {
            parameters["type"] = "object".into();
        }
        let (schema, loosened) = match Schema::compile(&parameters) {
            Ok(schema) => (schema, None),
            Err(error) => {
                parameters = Schema::permissive();
                let schema = Schema::compile(&parameters).map_err(|error| error.to_string())?;
                (schema, Some(error.to_string()))
            }
        };
        let title = tool.title.as_deref().unwrap_or_default();
        let description = tool.description.as_deref().unwrap_or(title);
        let claims = tool.annotations.as_ref();
        let reads = claims.is_some_and(|hints| {
            hints.read_only_hint == Some(true) && hints.destructive_hint != Some(true)
        });
        let tool = Self {
            spec: ToolSpec {
                name: format!("{}:{}", link.server, bounded(name, LONGEST_NAME)),
                description: link
                    .secrets
                    .hide(&bounded(description, LONGEST_DESCRIPTION)),
                parameters,
                category: CATEGORY.to_owned(),
                effect: if reads { Effect::Reads } else { Effect::Acts },
            },
            schema,
            theirs: name.to_owned(),
            link: Arc::clone(link),
        };
        Ok((tool, loosened))
    }

    async fn run(&self, arguments: &Map<String, Value>) -> Result<Outcome, McpError> {
        let params =
            CallToolRequestParams::new(self.theirs.clone()).with_arguments(arguments.clone());
        let ask =
            |peer: rmcp::Peer<rmcp::RoleClient>| async move { peer.call_tool_once(params).await };
        let unsupported = |what| McpError::Unsupported {
            server: self.link.server.clone(),
            what,
        };
        match self.link.ask(ask).await? {
            CallToolResponse::Complete(answer) => Ok(result::outcome(answer)),
            CallToolResponse::InputRequired(_) => Err(unsupported("a question to the user")),
            CallToolResponse::Task(_) => Err(unsupported("a task to ask for later")),
            _ => Err(unsupported("something new")),
        }
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: &'a Map<String, Value>) -> Calling<'a> {
        Box::pin(async move {
            if let Err(why) = self.schema.check(arguments) {
                return Outcome::failed(format!("The arguments do not fit: {why}"));
            }
            self.run(arguments)
                .await
                .unwrap_or_else(|error| failed(&error))
        })
    }
}

/// What a model is told of an error.
pub(super) fn failed(error: &McpError) -> Outcome {
    let hint = match error {
        McpError::Unknown { .. } | McpError::Ended { .. } | McpError::TooMuch { .. } => {
            format!(" ({})", error.hint())
        }
        _ => String::new(),
    };
    Outcome::failed(format!("{error}{hint}"))
}
