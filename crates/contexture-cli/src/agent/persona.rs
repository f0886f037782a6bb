//! The persona of an agent and its workflow step: the sections of spec 004, from flags and the configuration.

use std::path::Path;

use contexture::ContextError;
use contexture::prompt::{
    self, AgentInfo, ComposeOptions, RunContext, Section, SessionMode, Templates, ToolPolicy,
};
use serde_json::Value;

use crate::args::AgentOptions;
use crate::command::{at, document};
use crate::config::Config;
use crate::error::CliError;

/// The sections beside the project's own: the configured system prompt, mode and base rules, tool policy, persona and
/// run directive, each where it is given.
pub fn sections(
    options: &AgentOptions,
    config: &Config,
    templates: &Templates,
) -> Result<Vec<Section>, CliError> {
    let set = &config.agent;
    let persona = match &options.persona {
        Some(file) => Some(read(file, AgentInfo::from_value)?),
        None => set.persona.clone(),
    };
    let run = match &options.run_context {
        Some(file) => Some(read(file, RunContext::from_value)?),
        None => set.run_context.clone(),
    };
    let mode = options.mode.map(SessionMode::from).or(set.mode);
    // A step is given with its mode.
    let mode = mode.or(run.as_ref().map(|_| SessionMode::Run));
    let composed = prompt::sections(&ComposeOptions {
        messages: Vec::new(),
        mode: mode.unwrap_or(SessionMode::Chat),
        agent: persona,
        tool_policy: None,
        run_context: run,
        settings: prompt::Settings::default(),
        templates: templates.clone(),
    })?;
    let is_of_mode = |section: &Section| ["mode", "base-rules"].contains(&section.name.as_str());
    let (of_mode, rest): (Vec<Section>, Vec<Section>) = composed.into_iter().partition(is_of_mode);
    let system = set.system_prompt.as_deref();
    let mut sections: Vec<Section> = system.map(prompt::configured).into_iter().collect();
    sections.extend(of_mode.into_iter().filter(|_| mode.is_some()));
    // Its lists are enforced: a tool that is not offered is not named either.
    let rules: Vec<ToolPolicy> = set.tool_policies.iter().map(rules_alone).collect();
    sections.extend(prompt::tool_policies(&rules, templates)?);
    sections.extend(rest);
    Ok(sections)
}

fn rules_alone(policy: &ToolPolicy) -> ToolPolicy {
    ToolPolicy {
        custom_rules: policy.custom_rules.clone(),
        ..ToolPolicy::default()
    }
}

fn read<T>(file: &Path, read: impl Fn(Value) -> Result<T, ContextError>) -> Result<T, CliError> {
    let (value, source) = document(file)?;
    read(value).map_err(at(&source))
}
