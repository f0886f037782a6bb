//! `agent_load_context`: what was done in earlier runs, as one message of the system's.

use contexture_store::{Execution, ToolOutcome};
use serde_json::{Map, Value};

use super::Stores;
use super::arguments::{COUNT, OFFSET};
use super::inject::{chat, failed, fingerprint, fitted, refused};
use crate::plain::{hanging, one_line, plural};
use crate::template::Template;
use crate::{Outcome, RunContext};

pub(super) fn load(
    stores: &Stores,
    run: &RunContext,
    arguments: &Map<String, Value>,
) -> Result<Outcome, String> {
    const NAME: &str = "agent_load_context";
    let (count, offset) = (COUNT.of(arguments)?, OFFSET.of(arguments)?);
    let mut memory = stores
        .memories
        .load(&chat(run)?)
        .map_err(|error| failed(&error))?;
    memory
        .lines
        .retain(|known| known.request_id != run.run_id());
    let end = memory.lines.len().saturating_sub(offset);
    let begin = end.saturating_sub(count);
    let blocks: Vec<String> = memory.lines[begin..end].iter().map(block).collect();
    let fitted = fitted(Template::AgentContext, &blocks)?;
    let print = fingerprint(NAME, &fitted.content);
    if let Err(refusal) = run.inject_system_message_once(&print, &fitted.content, NAME) {
        return Ok(refused(refusal));
    }
    let mut answer = format!(
        "The record of {} added before the user's message.",
        plural(fitted.shown, "run")
    );
    if fitted.left > 0 {
        let next = offset + fitted.shown;
        answer.push_str(&format!(
            " {} earlier ones did not fit: offset {next} loads them.",
            fitted.left
        ));
    }
    if memory.skipped > 0 {
        let skipped = plural(memory.skipped, "stored line");
        answer.push_str(&format!(" {skipped} could not be read."));
    }
    Ok(Outcome::done(answer))
}

/// A run, a line for each thing that is known of it.
fn block(run: &Execution) -> String {
    let mut out = format!("run {} ({})", one_line(&run.request_id), one_line(&run.ts));
    let mut line = |name: &str, text: &str| {
        if !text.trim().is_empty() {
            out.push_str(&format!("\n  {name}: {}", hanging(text, "    ")));
        }
    };
    line("asked", &run.user_preview);
    line("came out", &run.output_preview);
    let calls: Vec<String> = run.tool_calls.iter().map(call).collect();
    line("tools", &calls.join("; "));
    if let Some(many) = &run.compacted {
        let tools = many.tools.iter().map(|(tool, count)| {
            let tool = one_line(tool);
            format!("{tool}: {} calls, {} failed", count.calls, count.failures)
        });
        line("tools", &tools.collect::<Vec<_>>().join("; "));
    }
    out
}

fn call(outcome: &ToolOutcome) -> String {
    let tool = one_line(&outcome.tool);
    match (outcome.success, &outcome.error) {
        (Some(false), Some(error)) => format!("{tool} failed ({})", one_line(error)),
        (Some(false), None) => format!("{tool} failed"),
        (Some(true), _) => format!("{tool} worked"),
        (None, _) => format!("{tool} did not end"),
    }
}
