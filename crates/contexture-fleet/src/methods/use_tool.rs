//! The one door for a tool of a session: the host or a provider answers, and the call is noted.

use std::sync::Arc;

use contexture::build::visible_value;
use contexture::inject::{ProviderCall, ToolDefinition};
use contexture_tools::Secrets;
use contexture_tools::secrets::mask;
use serde_json::{Map, Value, json};

use super::blocking;
use super::internal::TOOLS;
use crate::fleet::Fleet;
use crate::tokens::Grant;
use crate::{Event, RpcError, Why};

/// Maximum characters of a text that is noted.
const NOTED: usize = 200;

/// The beginning of the host's own methods: no provider answers one.
const OWN_METHODS: &str = "internal.";

/// Uses a tool to the end and notes that, also when nobody waits for it any more.
pub(super) async fn use_tool(
    fleet: Arc<Fleet>,
    grant: Arc<Grant>,
    wanted: String,
    arguments: Map<String, Value>,
) -> Result<Value, RpcError> {
    let using = tokio::spawn(noting(fleet, grant, wanted, arguments));
    let broken = |_| RpcError::new(Why::Failed, "the tool ended in the middle of its answer");
    using.await.map_err(broken)?
}

async fn noting(
    fleet: Arc<Fleet>,
    grant: Arc<Grant>,
    wanted: String,
    mut arguments: Map<String, Value>,
) -> Result<Value, RpcError> {
    // Here, before anything is made of it: what an agent shows or notes holds no secret.
    let wanted = mask::hide(&fleet.mask, &wanted).into_owned();
    mask::hide_in_map(&fleet.mask, &mut arguments);
    let noted = noted(&arguments);
    let done = answered(&fleet, &grant, &wanted, arguments).await;
    let error = done
        .as_ref()
        .err()
        .map(|error| error.message.chars().take(NOTED).collect());
    fleet.tell(Event::ToolCalled {
        agent: grant.agent().to_owned(),
        session_id: grant.session_id().to_owned(),
        tool: crate::live::clipped(&wanted),
        token: grant.shown().to_owned(),
        arguments: noted,
        success: done.is_ok(),
        error,
    });
    Ok(json!({"content": done?}))
}

/// Has the host, or the provider that offered the tool, answer a call.
async fn answered(
    fleet: &Arc<Fleet>,
    grant: &Arc<Grant>,
    wanted: &str,
    arguments: Map<String, Value>,
) -> Result<Value, RpcError> {
    let (of, by, name) = (Arc::clone(fleet), Arc::clone(grant), wanted.to_owned());
    let finding = blocking(move || {
        let tool = of.live.find(&by, &name, &arguments)?;
        Ok((tool, arguments))
    });
    let (tool, arguments) = finding.await?;
    let ToolDefinition {
        name,
        rpc_method,
        provider,
        ..
    } = tool;
    if let Some(behind) = TOOLS.iter().find(|known| known.method == rpc_method) {
        let (of, by) = (Arc::clone(fleet), Arc::clone(grant));
        return blocking(move || (behind.run)(&of, &by, arguments)).await;
    }
    let Some(provider) = provider.filter(|_| !rpc_method.starts_with(OWN_METHODS)) else {
        let what = format!("nothing is behind `{name}`: no `{rpc_method}`");
        return Err(RpcError::new(Why::NotFound, what));
    };
    let call = ProviderCall {
        tool: name.clone(),
        rpc_method,
        arguments,
        agent_name: grant.agent().to_owned(),
        archetype: grant.archetype(),
        session_id: grant.session_id().to_owned(),
    };
    let answer = fleet.injector.call(&provider, call).await;
    // An answer is words of others: no secret of ours, and nothing that is not seen.
    let mut answer = answer.map_err(|why| {
        let why = mask::hide(&fleet.mask, &why);
        RpcError::new(
            Why::Failed,
            format!("{name}: the provider `{provider}` failed: {why}"),
        )
    })?;
    mask::hide_in(&fleet.mask, &mut answer);
    hide_keys(&mut answer);
    Ok(visible_value(&answer, &mut 0))
}

/// Masks in a provider's answer whatever looks like a key, as in the output of any tool.
fn hide_keys(answer: &mut Value) {
    match answer {
        Value::String(text) => *text = Secrets::default().hide(text),
        Value::Array(values) => values.iter_mut().for_each(hide_keys),
        Value::Object(map) => map.values_mut().for_each(hide_keys),
        _ => {}
    }
}

/// Arguments as they are noted: long texts cut, and not more than a few.
fn noted(arguments: &Map<String, Value>) -> Value {
    let short = |value: &Value| {
        let whole = match value {
            Value::String(text) => text.clone(),
            other if other.is_object() || other.is_array() => other.to_string(),
            other => return other.clone(),
        };
        match whole.char_indices().nth(NOTED) {
            Some((end, _)) => format!("{}…", &whole[..end]).into(),
            None => Value::String(whole),
        }
    };
    let few = arguments.iter().take(16);
    few.map(|(name, value)| (crate::live::clipped(name), short(value)))
        .collect::<Map<String, Value>>()
        .into()
}
