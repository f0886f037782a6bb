//! Traces of agents and their tools for OpenTelemetry, with the names of its GenAI conventions.
//!
//! On where `OTEL_EXPORTER_OTLP_ENDPOINT` names a collector: spans go there over OTLP/HTTP in its JSON form,
//! a batch a second. What was said is not among it, unless the usual variable asks for that. A collector
//! that is slow or gone loses spans, and holds nothing up.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use contexture_fleet::tokens::{hex, random};
use contexture_fleet::{Event, Fleet, Subscription};
use reqwest::redirect::Policy;
use serde_json::{Value, json};

/// Where the collector is.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// Whether what was said may leave.
const CONTENT: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
/// How long spans wait for others.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the collector may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most spans of a batch; what is more is lost.
const MOST: usize = 2_048;

/// Exports what happens in a fleet from now on, where somebody wants it. To be called inside a runtime.
pub fn export(fleet: &Fleet) {
    let Some(endpoint) = std::env::var(ENDPOINT).ok().filter(|url| !url.is_empty()) else {
        return;
    };
    let content = std::env::var(CONTENT).is_ok_and(|value| value.eq_ignore_ascii_case("true"));
    let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
    tokio::spawn(run(fleet.bus().subscribe(None), url, content));
}

async fn run(mut events: Subscription, url: String, content: bool) {
    // One for the whole process; that it was set before is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .timeout(PATIENCE)
        // What an agent did goes to the collector that was named, and to no other.
        .redirect(Policy::none())
        .build();
    let Ok(client) = client else { return };
    let mut turns = Turns {
        content,
        ..Turns::default()
    };
    let mut spans: Vec<Value> = Vec::new();
    let mut tick = tokio::time::interval(PAUSE);
    loop {
        tokio::select! {
            happened = events.next() => {
                let Some(happened) = happened else { return };
                if let Some(span) = turns.take(&happened.event)
                    && spans.len() < MOST
                {
                    spans.push(span);
                }
            }
            _ = tick.tick(), if !spans.is_empty() => {
                let body = batch(&std::mem::take(&mut spans));
                let sent = client
                    .post(&url)
                    .header("content-type", "application/json")
                    .body(body.to_string())
                    .send()
                    .await
                    .and_then(reqwest::Response::error_for_status);
                match sent {
                    Ok(answer) if !answer.status().is_success() => {
                        let status = answer.status().as_u16();
                        tracing::warn!(status, "traces were not taken; redirects are not followed");
                    }
                    Ok(_) => {}
                    Err(error) => tracing::warn!(%error, "traces could not be exported"),
                }
            }
        }
    }
}

/// The turns under way, to which tools belong.
#[derive(Default)]
struct Turns {
    content: bool,
    open: HashMap<String, Open>,
}

struct Open {
    trace: String,
    span: String,
    began: u128,
}

impl Turns {
    /// The span that has ended with this event.
    fn take(&mut self, event: &Event) -> Option<Value> {
        match event {
            Event::Prompted { session_id, .. } => {
                let open = Open {
                    trace: id(16)?,
                    span: id(8)?,
                    began: now(),
                };
                self.open.insert(session_id.clone(), open);
                None
            }
            Event::Answered {
                agent,
                session_id,
                stop_reason,
                usage,
                ..
            } => {
                let open = self.open.remove(session_id)?;
                let mut attributes = vec![
                    text("gen_ai.operation.name", "invoke_agent"),
                    text("gen_ai.provider.name", "contexture"),
                    text("gen_ai.agent.name", agent),
                    text("gen_ai.conversation.id", session_id),
                    list("gen_ai.response.finish_reasons", stop_reason),
                ];
                let used = usage.iter().flat_map(|usage| {
                    ["input", "output"].into_iter().filter_map(move |side| {
                        let tokens = usage[format!("{side}Tokens")].as_u64()?;
                        Some(number(&format!("gen_ai.usage.{side}_tokens"), tokens))
                    })
                });
                attributes.extend(used);
                let known = [
                    "end_turn",
                    "cancelled",
                    "max_tokens",
                    "max_turn_requests",
                    "refusal",
                ];
                let failed = !known.contains(&stop_reason.as_str());
                Some(span(
                    &format!("invoke_agent {agent}"),
                    (&open.trace, &open.span, None),
                    open.began,
                    &attributes,
                    failed.then_some(stop_reason),
                ))
            }
            Event::ToolCalled {
                agent,
                session_id,
                tool,
                arguments,
                success,
                error,
                ..
            } => {
                let open = self.open.get(session_id);
                let (trace, parent) = match open {
                    Some(open) => (open.trace.clone(), Some(open.span.as_str())),
                    None => (id(16)?, None),
                };
                let mut attributes = vec![
                    text("gen_ai.operation.name", "execute_tool"),
                    text("gen_ai.agent.name", agent),
                    text("gen_ai.conversation.id", session_id),
                    text("gen_ai.tool.name", tool),
                    text("gen_ai.tool.type", "function"),
                ];
                if self.content {
                    attributes.push(text("gen_ai.tool.call.arguments", &arguments.to_string()));
                }
                if !success {
                    attributes.push(text("error.type", "tool_error"));
                }
                Some(span(
                    &format!("execute_tool {tool}"),
                    (&trace, &id(8)?, parent),
                    now(),
                    &attributes,
                    error.as_ref().filter(|_| !success),
                ))
            }
            _ => None,
        }
    }
}

fn span(
    name: &str,
    (trace, own, parent): (&str, &str, Option<&str>),
    began: u128,
    attributes: &[Value],
    failed: Option<&String>,
) -> Value {
    let mut span = json!({
        "traceId": trace,
        "spanId": own,
        "name": name,
        "kind": 1,
        "startTimeUnixNano": began.to_string(),
        "endTimeUnixNano": now().to_string(),
        "attributes": attributes,
        "status": match failed {
            Some(why) => json!({"code": 2, "message": why}),
            None => json!({}),
        },
    });
    if let Some(parent) = parent {
        span["parentSpanId"] = json!(parent);
    }
    span
}

/// As OTLP's JSON form has it.
fn batch(spans: &[Value]) -> Value {
    let service = std::env::var("OTEL_SERVICE_NAME").unwrap_or_else(|_| "contexture".to_owned());
    let scope = json!({"name": "contexture", "version": env!("CARGO_PKG_VERSION")});
    json!({"resourceSpans": [{
        "resource": {"attributes": [text("service.name", &service)]},
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]})
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn number(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

fn list(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"arrayValue": {"values": [{"stringValue": value}]}}})
}

fn id(bytes: usize) -> Option<String> {
    random().ok().map(|random| hex(&random[..bytes]))
}

fn now() -> u128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_nanos()
}
