//! The tools that options allow, checked against those that there are.

use std::sync::Arc;

use contexture::text::nearest;
use contexture_tools::Tool;
use contexture_tools::mcp::{Servers, State};

use crate::error::CliError;

/// Tools that come and go with the sandbox, and with what servers have.
const AT_TIMES: [&str; 4] = [
    "exec_shell",
    "tool_search",
    "mcp_resources",
    "mcp_read_resource",
];

/// Refuses to allow a tool that there is none of. Of a server that is not up nobody knows the tools, so any of its
/// names will do.
pub fn check<'a>(
    allowed: &[String],
    tools: impl Iterator<Item = &'a Arc<dyn Tool>>,
    servers: &'a Servers,
) -> Result<(), CliError> {
    let of_servers = servers.tools();
    let mut known: Vec<String> = tools.map(|tool| tool.spec().name.clone()).collect();
    known.extend(of_servers.iter().map(|tool| tool.spec().name.clone()));
    known.extend(AT_TIMES.map(str::to_owned));
    let mut waited_for = Vec::new();
    for server in servers.states() {
        known.push(format!("{}:*", server.name));
        if !matches!(server.state, State::Ready { .. } | State::Disabled) {
            waited_for.push(format!("{}:", server.name));
        }
    }
    known.sort_unstable();
    known.dedup();
    for name in allowed {
        let may_come = waited_for.iter().any(|server| name.starts_with(server));
        if known.contains(name) || may_come {
            continue;
        }
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        return Err(CliError::Usage {
            what: format!("--allow: there is no tool `{name}`"),
            hint: match nearest(name, &names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", names.join(", ")),
            },
        });
    }
    Ok(())
}
