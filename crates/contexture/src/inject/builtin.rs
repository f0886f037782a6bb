//! The providers that every fleet has.

use std::sync::Arc;

use serde_json::json;

use super::{AgentInstanceMeta, Archetype, ContextProvider, Item, Scope, ToolDefinition, Traits};
use crate::prompt::{Template, Templates};

/// `core-identity`: who the agent is, and where it runs.
#[derive(Debug, Clone, Default)]
pub struct CoreProvider(pub Arc<Templates>);

impl ContextProvider for CoreProvider {
    fn name(&self) -> &'static str {
        "core-identity"
    }

    fn is_quick(&self) -> bool {
        true
    }

    fn traits(&self) -> Traits {
        Traits {
            required: true,
            ..Traits::default()
        }
    }

    fn system_context(&self, meta: &AgentInstanceMeta) -> Result<Vec<Item<String>>, String> {
        let description = match meta.archetype {
            Archetype::Repo => Template::ArchetypeRepo,
            Archetype::Service => Template::ArchetypeService,
            Archetype::Employee => Template::ArchetypeEmployee,
        };
        let said = |error: crate::ContextError| error.to_string();
        let description = self.0.render(description, json!({})).map_err(said)?;
        let values = json!({
            "agentName": meta.name,
            "archetype": meta.archetype,
            "archetypeDescription": description,
            "backendType": meta.backend_type,
            "workspacePolicy": meta.workspace_policy.as_str(),
        });
        let text = self.0.render(Template::CoreIdentity, values);
        Ok(vec![text.map_err(said)?.into()])
    }
}

/// `canvas`: a page that an agent can show to people.
#[derive(Debug, Clone, Default)]
pub struct CanvasProvider(pub Arc<Templates>);

impl ContextProvider for CanvasProvider {
    fn name(&self) -> &'static str {
        "canvas"
    }

    fn is_quick(&self) -> bool {
        true
    }

    fn tools(&self, _: &AgentInstanceMeta) -> Result<Vec<Item<ToolDefinition>>, String> {
        Ok(canvas_tools().into_iter().map(Item::from).collect())
    }

    fn system_context(&self, meta: &AgentInstanceMeta) -> Result<Vec<Item<String>>, String> {
        // Whoever cannot have the tools is not told of them.
        if !Scope::Service.has(meta.archetype) {
            return Ok(Vec::new());
        }
        let text = self.0.render(Template::CanvasContext, json!({}));
        Ok(vec![text.map_err(|error| error.to_string())?.into()])
    }
}

/// The canvas tools.
pub fn canvas_tools() -> Vec<ToolDefinition> {
    let tool = |name: &str, description: &str, method: &str, parameters| ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
        rpc_method: method.to_owned(),
        scope: Scope::Service,
        context: None,
        provider: None,
    };
    vec![
        tool(
            "canvas_update",
            "Shows a page of HTML on your canvas, in the place of the one before.",
            "internal.canvasUpdate",
            json!({
                "type": "object",
                "properties": {
                    "html": {"type": "string", "description": "The whole page, at most 512 KiB. Scripts do not run and nothing is fetched."},
                    "title": {"type": "string", "description": "A few words for the page's tab."},
                },
                "required": ["html"],
                "additionalProperties": false,
            }),
        ),
        tool(
            "canvas_clear",
            "Takes the page off your canvas.",
            "internal.canvasClear",
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
        ),
    ]
}
