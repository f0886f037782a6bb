//! The system prompt, as sections and as one string.

use serde_json::json;

use super::options::{AgentInfo, ComposeOptions, RunContext, SessionMode, ToolPolicy};
use super::{Section, Template, Templates};
use crate::ContextError;

/// What stands between two sections in the one string.
pub const SEPARATOR: &str = "\n\n---\n\n";

/// The sections of the system prompt in their order: `mode`, `base-rules`, `tool-policy`,
/// `persona`, `run-directive`, without those that have nothing to say.
///
/// The run directive alone is volatile. It changes with each step, and were it stable, each step
/// would cost a cache miss over the whole conversation.
pub fn sections(options: &ComposeOptions) -> Result<Vec<Section>, ContextError> {
    let templates = &options.templates;
    let mode = options.mode.as_str().to_uppercase();
    let rules = match options.mode {
        SessionMode::Run => Template::BaseRulesRun,
        SessionMode::Chat | SessionMode::Agent => Template::BaseRulesChat,
    };
    let mut sections = vec![
        Section::stable(
            "mode",
            BUILT_IN,
            templates.render(Template::Mode, json!({"mode": mode}))?,
        ),
        Section::stable("base-rules", BUILT_IN, templates.render(rules, json!({}))?),
    ];
    if let Some(policy) = &options.tool_policy
        && let Some(text) = tool_policy(policy, templates)?
    {
        sections.push(Section::stable("tool-policy", "toolPolicy", text));
    }
    if let Some(agent) = &options.agent {
        sections.push(persona(agent, templates)?);
    }
    if let (SessionMode::Run, Some(run)) = (options.mode, &options.run_context) {
        sections.push(Section::volatile(
            "run-directive",
            "runContext",
            run_directive(run, templates)?,
        ));
    }
    Ok(sections)
}

/// The section that tells of these policies, each of which must allow a tool; none where they have nothing to say.
pub fn tool_policies(
    policies: &[ToolPolicy],
    templates: &Templates,
) -> Result<Option<Section>, ContextError> {
    let texts = policies.iter().map(|policy| tool_policy(policy, templates));
    let texts: Vec<Option<String>> = texts.collect::<Result<_, ContextError>>()?;
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    Ok((!texts.is_empty())
        .then(|| Section::stable("tool-policy", "toolPolicy", texts.join("\n\n"))))
}

/// The section of the configured system prompt (`prompt.system`).
pub fn configured(text: &str) -> Section {
    Section::stable("system", CONFIGURED, text)
}

/// The origin of the configured system prompt.
pub(crate) const CONFIGURED: &str = "prompt.system";

/// The system prompt as one string, for clients that send it anew each turn.
pub fn system_prompt(options: &ComposeOptions) -> Result<String, ContextError> {
    let texts: Vec<String> = sections(options)?.into_iter().map(|s| s.text).collect();
    Ok(texts.join(SEPARATOR))
}

/// The origin of what ships with Contexture.
const BUILT_IN: &str = "built-in";

fn tool_policy(policy: &ToolPolicy, templates: &Templates) -> Result<Option<String>, ContextError> {
    // Destructured, so that a list which is enforced cannot be left unsaid.
    let ToolPolicy {
        allowed_categories,
        denied_categories,
        allowed_tools,
        denied_tools,
        custom_rules,
    } = policy;
    let lists = [
        allowed_categories,
        denied_categories,
        allowed_tools,
        denied_tools,
        custom_rules,
    ];
    let allows = [allowed_categories, allowed_tools];
    if lists.iter().all(|list| said(list).is_empty()) && allows.iter().all(|list| list.is_none()) {
        return Ok(None);
    }
    let values = json!({
        "allowedCategories": or_none(allowed_categories),
        "deniedCategories": said(denied_categories),
        "allowedTools": or_none(allowed_tools),
        "deniedTools": said(denied_tools),
        "customRules": said(custom_rules),
    });
    templates.render(Template::ToolPolicy, values).map(Some)
}

/// The names in a list that says nothing when it is empty.
fn said(list: &Option<Vec<String>>) -> Vec<&str> {
    list.iter().flatten().map(String::as_str).collect()
}

/// The names in a list that says a great deal when it is empty.
fn or_none(list: &Option<Vec<String>>) -> Vec<&str> {
    match list {
        Some(names) if names.is_empty() => vec!["none"],
        list => said(list),
    }
}

fn persona(agent: &AgentInfo, templates: &Templates) -> Result<Section, ContextError> {
    let AgentInfo {
        id: _,
        name,
        role,
        identity,
        communication_style,
        principles,
        system_prompt,
    } = agent;
    if let Some(whole) = system_prompt
        .as_deref()
        .filter(|text| !text.trim().is_empty())
    {
        return Ok(Section::stable("persona", "agent.systemPrompt", whole));
    }
    let text = templates.render(
        Template::Persona,
        json!({
            "name": name,
            "role": role,
            "identity": identity,
            "communicationStyle": communication_style,
            "principles": principles,
        }),
    )?;
    Ok(Section::stable("persona", "agent", text))
}

fn run_directive(run: &RunContext, templates: &Templates) -> Result<String, ContextError> {
    let edges: Vec<_> = run
        .graph
        .outgoing_edges
        .iter()
        .map(|edge| {
            json!({
                "label": edge.label,
                "targetNodeId": edge.target_node_id,
                "isDefault": edge.is_default,
            })
        })
        .collect();
    templates.render(
        Template::RunDirective,
        json!({
            "packageName": run.package_name,
            "workflowName": run.workflow_name,
            "step": run.current_step,
            "stepsCompleted": run.state.steps_completed,
            "edges": edges,
        }),
    )
}

#[cfg(test)]
mod tests;
