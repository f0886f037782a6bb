//! The options out of JSON: one door, whose errors name their place.

use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use super::Templates;
use super::fields::{Fields, boolean, count, list, mismatch, string};
use super::options::{
    AgentInfo, ComposeOptions, Edge, Graph, RunContext, RunState, SessionMode, Settings, Step,
    ToolPolicy,
};
use crate::ContextError;
use crate::json::object;
use crate::message::openai;

/// Gives a type its public `from_value`, and a `Deserialize` that goes through it, so that there is
/// only one way to read it.
macro_rules! readable {
    ($($type:ident by $read:ident,)*) => {$(
        impl $type {
            /// Reads it from JSON. An error names the place, as in `agent.name`, and for an unknown
            /// key the hint names the nearest known one.
            pub fn from_value(value: Value) -> Result<Self, ContextError> {
                $read(value)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $read(Value::deserialize(deserializer)?)
                    .map_err(|error| de::Error::custom(format!("{error} ({})", error.hint())))
            }
        }
    )*};
}

readable! {
    ComposeOptions by options,
    SessionMode by mode,
    AgentInfo by agent,
    ToolPolicy by policy,
    RunContext by run_context,
    Settings by settings,
}

fn options(value: Value) -> Result<ComposeOptions, ContextError> {
    const KEYS: &[&str] = &[
        "messages",
        "mode",
        "agent",
        "toolPolicy",
        "runContext",
        "settings",
    ];
    let mut fields = match value {
        // The one place without a name of its own.
        Value::Object(_) => Fields::open(value, KEYS)?,
        other => return Err(mismatch("an object", &other).within("options")),
    };
    Ok(ComposeOptions {
        mode: fields.need("mode", mode)?,
        messages: fields.need("messages", list(openai::read))?,
        agent: fields.take("agent", agent)?,
        tool_policy: fields.take("toolPolicy", policy)?,
        run_context: fields.take("runContext", run_context)?,
        settings: fields.take("settings", settings)?.unwrap_or_default(),
        templates: Templates::default(),
    })
}

fn mode(value: Value) -> Result<SessionMode, ContextError> {
    let name = string(value)?;
    SessionMode::parse(&name).ok_or_else(|| {
        let known = SessionMode::ALL.map(SessionMode::as_str);
        let shown: String = name.chars().take(40).flat_map(char::escape_debug).collect();
        ContextError::invalid(
            "",
            format!("unknown mode `{shown}`"),
            format!("a mode is one of {}", known.join(", ")),
        )
    })
}

fn agent(value: Value) -> Result<AgentInfo, ContextError> {
    const KEYS: &[&str] = &[
        "id",
        "name",
        "role",
        "identity",
        "communicationStyle",
        "principles",
        "systemPrompt",
    ];
    let mut fields = Fields::open(value, KEYS)?;
    Ok(AgentInfo {
        id: fields.need("id", string)?,
        name: fields.need("name", string)?,
        role: fields.need("role", string)?,
        identity: fields.take("identity", string)?,
        communication_style: fields.take("communicationStyle", string)?,
        principles: fields.take("principles", principles)?.unwrap_or_default(),
        system_prompt: fields.take("systemPrompt", string)?,
    })
}

/// A list, or one string of which each line is a principle, with or without a bullet of its own.
fn principles(value: Value) -> Result<Vec<String>, ContextError> {
    match value {
        Value::String(text) => Ok(text
            .lines()
            .map(str::trim)
            .map(|line| {
                line.strip_prefix("- ")
                    .or(line.strip_prefix("* "))
                    .unwrap_or(line)
            })
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect()),
        Value::Array(_) => list(string)(value),
        other => Err(mismatch("a string or an array of strings", &other)),
    }
}

fn policy(value: Value) -> Result<ToolPolicy, ContextError> {
    const KEYS: &[&str] = &[
        "allowedCategories",
        "deniedCategories",
        "allowedTools",
        "deniedTools",
        "customRules",
    ];
    let mut fields = Fields::open(value, KEYS)?;
    Ok(ToolPolicy {
        allowed_categories: fields.take("allowedCategories", list(string))?,
        denied_categories: fields.take("deniedCategories", list(string))?,
        allowed_tools: fields.take("allowedTools", list(string))?,
        denied_tools: fields.take("deniedTools", list(string))?,
        custom_rules: fields.take("customRules", list(string))?,
    })
}

fn run_context(value: Value) -> Result<RunContext, ContextError> {
    const KEYS: &[&str] = &[
        "packageName",
        "workflowName",
        "currentStep",
        "state",
        "graph",
    ];
    let mut fields = Fields::open(value, KEYS)?;
    Ok(RunContext {
        package_name: fields.need("packageName", string)?,
        workflow_name: fields.need("workflowName", string)?,
        current_step: fields.need("currentStep", step)?,
        state: fields.take("state", state)?.unwrap_or_default(),
        graph: fields.take("graph", graph)?.unwrap_or_default(),
    })
}

fn step(value: Value) -> Result<Step, ContextError> {
    let mut fields = Fields::open(value, &["id", "name", "instruction"])?;
    Ok(Step {
        id: fields.need("id", string)?,
        name: fields.need("name", string)?,
        instruction: fields.need("instruction", string)?,
    })
}

fn state(value: Value) -> Result<RunState, ContextError> {
    let mut fields = Fields::open(value, &["variables", "stepsCompleted", "artifacts"])?;
    Ok(RunState {
        variables: fields.take("variables", object)?.unwrap_or_default(),
        steps_completed: fields
            .take("stepsCompleted", list(string))?
            .unwrap_or_default(),
        artifacts: fields.take("artifacts", list(string))?.unwrap_or_default(),
    })
}

fn graph(value: Value) -> Result<Graph, ContextError> {
    let mut fields = Fields::open(value, &["outgoingEdges"])?;
    Ok(Graph {
        outgoing_edges: fields
            .take("outgoingEdges", list(edge))?
            .unwrap_or_default(),
    })
}

fn edge(value: Value) -> Result<Edge, ContextError> {
    let mut fields = Fields::open(value, &["label", "targetNodeId", "isDefault"])?;
    Ok(Edge {
        label: fields.need("label", string)?,
        target_node_id: fields.need("targetNodeId", string)?,
        is_default: fields.take("isDefault", boolean)?.unwrap_or_default(),
    })
}

fn settings(value: Value) -> Result<Settings, ContextError> {
    let mut fields = Fields::open(value, &["includeSystemPrompt", "maxMessages"])?;
    Ok(Settings {
        include_system_prompt: fields.take("includeSystemPrompt", boolean)?.unwrap_or(true),
        max_messages: fields.take("maxMessages", count)?,
    })
}

#[cfg(test)]
mod tests;
