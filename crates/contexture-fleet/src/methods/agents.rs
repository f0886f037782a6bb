//! `agent.*`: agents and their lives.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Entry, any_object, blocking, list, method, object, params, streaming, text};
use crate::agents::{self, Agent, Permissions, Spec, State};
use crate::backends::{self, Wanted};
use crate::fleet::Fleet;
use crate::{Answering, Call, Event, RpcError, Who, Why};

pub(super) fn table() -> Vec<Entry> {
    let by_name = || object(&[("name", text("the agent's name"))]);
    let agent = || any_object("the agent: what it is, and its `state`");
    vec![
        method(
            "agent.create",
            "Makes an agent",
            Who::Owner,
            object(&[
                ("name", text("its name")),
                (
                    "backendType",
                    text("what runs it, as `native` or `claude-code`"),
                ),
                (
                    "archetype?",
                    json!({"enum": ["repo", "service", "employee"]}),
                ),
                (
                    "workspacePolicy?",
                    json!({"enum": ["persistent", "ephemeral"]}),
                ),
                ("launchMode?", json!({"enum": ["managed", "direct"]})),
                (
                    "command?",
                    list(&text("a word of the command that starts it")),
                ),
                (
                    "model?",
                    text("what answers, for a native agent: provider:model"),
                ),
                ("workspace?", text("the folder that it works in")),
                (
                    "env?",
                    list(&text("a variable that it gets of the daemon's environment")),
                ),
                ("permissions?", json!({"enum": ["ask", "allow", "deny"]})),
            ]),
            agent(),
            create,
        ),
        method(
            "agent.list",
            "All agents",
            Who::Owner,
            object(&[]),
            object(&[("agents", list(&agent()))]),
            all,
        ),
        method(
            "agent.show",
            "An agent",
            Who::Owner,
            by_name(),
            agent(),
            show,
        ),
        method(
            "agent.start",
            "Starts an agent with its context",
            Who::Owner,
            object(&[
                ("name", text("the agent's name")),
                (
                    "newSession?",
                    json!({"type": "boolean", "description": "whether it begins a new session, started anew if it runs"}),
                ),
            ]),
            agent(),
            start,
        ),
        method(
            "agent.stop",
            "Stops an agent, and ends its tokens",
            Who::Owner,
            by_name(),
            agent(),
            stop,
        ),
        method(
            "agent.restart",
            "Stops an agent and starts it again",
            Who::Owner,
            by_name(),
            agent(),
            restart,
        ),
        method(
            "agent.remove",
            "Forgets an agent; its sessions stay",
            Who::Owner,
            by_name(),
            object(&[]),
            remove,
        ),
        streaming(method(
            "agent.prompt",
            "Sends a prompt to an agent; its updates come before the answer",
            Who::Owner,
            object(&[
                ("name", text("the agent's name")),
                ("text", text("the prompt")),
            ]),
            object(&[
                ("sessionId", text("the session in our log")),
                ("stopReason", text("why it ended")),
                ("text", text("what the agent said last")),
                ("usage?", any_object("what it used, where it says so")),
            ]),
            prompt,
        )),
        method(
            "agent.cancel",
            "Calls off what an agent does",
            Who::Owner,
            by_name(),
            object(&[]),
            cancel,
        ),
        method(
            "agent.permit",
            "Answers an agent's question; an unknown option is a no",
            Who::Owner,
            object(&[
                ("name", text("the agent's name")),
                ("requestId", text("the question")),
                ("optionId", text("one of its options")),
            ]),
            object(&[("allowed", json!({"type": "boolean"}))]),
            permit,
        ),
        method(
            "agent.backends",
            "The backends that are known by name",
            Who::Owner,
            object(&[]),
            object(&[("backends", list(&any_object("a backend")))]),
            known_backends,
        ),
    ]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

fn create(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let spec: Spec = params(&mut call)?;
        if spec.permissions != Permissions::Allow
            && backends::backend(&spec.backend_type).is_some_and(|known| !known.asks)
        {
            let what = format!(
                "`{}` acts without asking, so nobody could answer it",
                spec.backend_type
            );
            let hint = "--permissions allow says that it may do what it wants";
            return Err(RpcError::new(Why::Invalid, what).hint(hint));
        }
        // Said now, and not when it is started.
        let is_native = spec.backend_type == backends::NATIVE && spec.command.is_empty();
        if spec.model.is_some() && !is_native {
            let what = format!("model: `{}` chooses its own", spec.backend_type);
            let hint = "only native agents take one";
            return Err(RpcError::new(Why::Invalid, what).hint(hint));
        }
        backends::plan(Wanted {
            command: &spec.command,
            ..Wanted::new(&spec.backend_type, &fleet.root)
        })?;
        let making = Arc::clone(&fleet);
        let agent = blocking(move || making.agents.create(spec)).await?;
        fleet.tell(Event::AgentState {
            agent: agent.name().to_owned(),
            state: State::Created.as_str().to_owned(),
            why: None,
        });
        Ok(shown(&agent))
    })
}

fn all(fleet: Arc<Fleet>, _: Call) -> Answering {
    Box::pin(async move {
        let agents: Vec<Value> = fleet
            .agents
            .list()
            .iter()
            .map(|agent| shown(agent))
            .collect();
        Ok(json!({"agents": agents}))
    })
}

fn show(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move { Ok(shown(&*named(&fleet, &mut call)?)) })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Start {
    name: String,
    #[serde(default)]
    new_session: bool,
}

fn start(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Start { name, new_session } = params(&mut call)?;
        let agent = fleet.agents.get(&name)?;
        if new_session {
            fleet.start_afresh(&agent).await?;
        } else {
            fleet.start_agent(&agent).await?;
        }
        Ok(shown(&agent))
    })
}

fn stop(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let agent = named(&fleet, &mut call)?;
        fleet.stop_agent(&agent, true).await?;
        Ok(shown(&agent))
    })
}

fn restart(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let agent = named(&fleet, &mut call)?;
        fleet.stop_agent(&agent, true).await?;
        fleet.start_agent(&agent).await?;
        Ok(shown(&agent))
    })
}

fn remove(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let agent = named(&fleet, &mut call)?;
        if agent.running().is_some() {
            let what = format!("`{}` runs", agent.name());
            let hint = format!("`ctx agent stop {}` first", agent.name());
            return Err(RpcError::new(Why::Conflict, what).hint(hint));
        }
        // Also one that waits to be started again.
        fleet.stop_agent(&agent, true).await?;
        let (removing, gone) = (Arc::clone(&fleet), Arc::clone(&agent));
        blocking(move || Ok(removing.agents.remove(&gone)?)).await?;
        fleet.tell(Event::AgentState {
            agent: agent.name().to_owned(),
            state: "removed".to_owned(),
            why: None,
        });
        Ok(json!({}))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prompt {
    name: String,
    text: String,
}

fn prompt(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Prompt { name, text } = params(&mut call)?;
        let agent = fleet.agents.get(&name)?;
        agent.prompt(text, call.updates).await
    })
}

fn cancel(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let agent = named(&fleet, &mut call)?;
        agents::cancel(&*agent.at_work()?);
        Ok(json!({}))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Permit {
    name: String,
    request_id: String,
    option_id: String,
}

fn permit(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Permit {
            name,
            request_id,
            option_id,
        } = params(&mut call)?;
        let running = fleet.agents.get(&name)?.at_work()?;
        Ok(json!({"allowed": running.desk.answer(&request_id, &option_id)?}))
    })
}

fn known_backends(fleet: Arc<Fleet>, _: Call) -> Answering {
    Box::pin(blocking(move || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<_> = std::env::split_paths(&path).collect();
        let all = backends::BACKENDS.iter().map(|backend| {
            let is_ours = backend.name == backends::NATIVE && fleet.program.is_file();
            let found = folders
                .iter()
                .any(|folder| folder.join(backend.program).is_file());
            let words: Vec<&str> = [&[backend.program], backend.args].concat();
            json!({
                "name": backend.name,
                "about": backend.about,
                "command": words.join(" "),
                "install": backend.install,
                "installed": is_ours || found,
            })
        });
        Ok(json!({"backends": all.collect::<Vec<Value>>()}))
    }))
}

fn named(fleet: &Fleet, call: &mut Call) -> Result<Arc<Agent>, RpcError> {
    let Named { name } = params(call)?;
    fleet.agents.get(&name)
}

fn shown(agent: &Agent) -> Value {
    let mut shown = json!(agent.record());
    if let Some(running) = agent.running() {
        let facts = running.connection.agent();
        shown["agentInfo"] = json!({"name": facts.name, "version": facts.version});
        shown["asks"] = json!(running.desk.waiting());
    }
    shown
}
