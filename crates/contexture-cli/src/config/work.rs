//! What handing out tasks needs of the configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use contexture::ContextError;
use contexture::pool::Locale;
use contexture_agent::Price;
use serde_json::{Value, json};

use super::layers::{Chosen, Layers};

/// How many seconds a worker may be silent.
pub(super) const PATIENCE_SECONDS: u64 = 15;

/// How tasks are handed out.
#[derive(Debug)]
pub struct WorkConfig {
    /// A NATS server, where executors are on several machines.
    pub url: Option<Chosen<String>>,
    /// The user's credentials there.
    pub credentials: Option<PathBuf>,
    /// How long a worker may be silent.
    pub patience: Duration,
    /// The language of what agents are told of the pool.
    pub locale: Locale,
    /// What models cost, by their specs.
    pub prices: BTreeMap<String, Price>,
}

impl WorkConfig {
    pub(super) fn read(layers: &Layers<'_>) -> Result<Self, ContextError> {
        let seconds = layers.get("hub.patienceSeconds");
        let seconds = seconds.and_then(|chosen| chosen.value.as_u64());
        let locale = layers.text("pool.locale");
        let locale = locale.and_then(|chosen| Locale::parse(&chosen.value));
        let mut all = prices(layers.of_project("prices"))?;
        // The user's own word on what they pay is the last.
        all.extend(prices(layers.of_user("prices"))?);
        Ok(Self {
            url: layers.text("hub.url"),
            credentials: layers
                .text("hub.credentials")
                .map(|chosen| chosen.value.into()),
            patience: Duration::from_secs(seconds.unwrap_or(PATIENCE_SECONDS)),
            locale: locale.unwrap_or_default(),
            prices: all,
        })
    }

    /// What a model costs; nothing, for one that runs on this machine.
    pub fn price(&self, spec: &str) -> Option<Price> {
        let known = self.prices.get(spec).copied();
        let free = || spec.starts_with("local:").then(Price::default);
        known.or_else(free)
    }
}

/// The most dollars for a million tokens.
const MAX_DOLLARS: f64 = 1e6;

/// Reads prices, in dollars for a million tokens, and says which is wrong.
pub(super) fn prices(given: Option<&Value>) -> Result<BTreeMap<String, Price>, ContextError> {
    const HINT: &str = "prices are dollars for a million tokens: {\"openai:NAME\": {\"input\": 1.25, \"cachedInput\": 0.125, \"output\": 10}}";
    let all = given.and_then(Value::as_object).into_iter().flatten();
    all.map(|(spec, price)| {
        let wrong = |field: &str, what: &str| {
            let shown: String = spec.chars().take(60).collect();
            ContextError::invalid(format!("prices.{shown}{field}"), what, HINT)
        };
        let price = price
            .as_object()
            .ok_or_else(|| wrong("", "must be an object"))?;
        let known = ["input", "cachedInput", "output"];
        if let Some(other) = price.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(wrong(&format!(".{other}"), "is an unknown key"));
        }
        let amount = |key: &str| match price.get(key).map(Value::as_f64) {
            None => Ok(None),
            Some(Some(dollars)) if (0.0..=MAX_DOLLARS).contains(&dollars) => {
                Ok(Some((dollars * 1e6).round() as u64))
            }
            Some(given) => {
                let given = given.map_or_else(String::new, |dollars| format!(", not {dollars}"));
                let what = format!("must be an amount of dollars from 0 to {MAX_DOLLARS}{given}");
                Err(wrong(&format!(".{key}"), &what))
            }
        };
        let input = amount("input")?.unwrap_or_default();
        let price = Price {
            input,
            cached_input: amount("cachedInput")?.unwrap_or(input),
            output: amount("output")?.unwrap_or_default(),
        };
        Ok((spec.clone(), price))
    })
    .collect()
}

/// The JSON Schema of `prices`.
pub(super) fn prices_schema() -> Value {
    let amount = json!({ "type": "number", "minimum": 0, "maximum": MAX_DOLLARS });
    json!({
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": false,
            "properties": { "input": amount, "cachedInput": amount, "output": amount },
        },
    })
}
