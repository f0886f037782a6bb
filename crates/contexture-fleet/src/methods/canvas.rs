//! `canvas.*`: what agents show, for whoever looks at it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Entry, answer, any_object, list, method, object, params, text};
use crate::fleet::Fleet;
use crate::{Answering, Call, Caller, RpcError, Who, Why};

pub(super) fn table() -> Vec<Entry> {
    vec![
        method(
            "canvas.get",
            "An agent's page; a session sees its own alone",
            Who::Either,
            object(&[("agent?", text("whose; a session need not say"))]),
            any_object("`agentName`, `html`, `title`, `updatedAt`"),
            get,
        ),
        method(
            "canvas.list",
            "All pages, without their text; a session sees its own alone",
            Who::Either,
            object(&[]),
            object(&[(
                "canvases",
                list(&any_object("`agentName`, `title`, `updatedAt`, `bytes`")),
            )]),
            list_all,
        ),
    ]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Get {
    agent: Option<String>,
}

fn get(fleet: Arc<Fleet>, mut call: Call) -> Answering {
    Box::pin(async move {
        let Get { agent } = params(&mut call)?;
        let agent = match (&call.caller, agent) {
            (Caller::Session(grant), None) => grant.agent().to_owned(),
            (Caller::Session(grant), Some(agent)) if agent == grant.agent() => agent,
            // Whether there is such an agent is not said.
            (Caller::Session(_), Some(_)) => {
                return Err(RpcError::new(
                    Why::NotAllowed,
                    "a session sees its own canvas",
                ));
            }
            (Caller::Owner, Some(agent)) => agent,
            (Caller::Owner, None) => {
                return Err(RpcError::new(Why::Invalid, "`agent` is missing"));
            }
        };
        let canvas = fleet.canvases.get(&agent).ok_or_else(|| {
            let what = format!("`{}` shows nothing", crate::live::clipped(&agent));
            RpcError::new(Why::NotFound, what).hint("`ctx canvas list` shows who does")
        })?;
        answer(canvas)
    })
}

fn list_all(fleet: Arc<Fleet>, call: Call) -> Answering {
    Box::pin(async move {
        let all = fleet.canvases.list();
        let seen = all.into_iter().filter(|canvas| match &call.caller {
            Caller::Owner => true,
            Caller::Session(grant) => grant.agent() == canvas.agent_name,
        });
        let canvases: Vec<Value> = seen
            .map(|canvas| {
                json!({
                    "agentName": canvas.agent_name,
                    "title": canvas.title,
                    "updatedAt": canvas.updated_at,
                    "bytes": canvas.html.len(),
                })
            })
            .collect();
        Ok(json!({"canvases": canvases}))
    })
}
