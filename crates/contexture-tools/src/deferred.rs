//! Many tools in few tokens: when the specs of MCP servers take too much of the budget they are left
//! out of the request, and the model finds them with `tool_search`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use crate::{Calling, Effect, Outcome, Tool, ToolSpec};

/// The name of the tool that finds tools.
pub(crate) const SEARCH: &str = "tool_search";

/// How many tools one search finds at most.
const MOST_FOUND: usize = 5;
/// The most words of a query that are looked for.
const MOST_WORDS: usize = 16;

/// When tools are deferred.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deferral {
    /// The share of the budget, in percent, that the specs of MCP servers may take.
    pub share: usize,
}

impl Default for Deferral {
    fn default() -> Self {
        Self { share: 10 }
    }
}

/// Which tools a request has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The names of those it has.
    pub active: Vec<String>,
    /// Those it has not.
    pub deferred: Vec<Deferred>,
    /// What that saves, less what the search itself takes.
    pub saved_tokens: usize,
}

/// A tool that is not in the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deferred {
    /// Its name.
    pub name: String,
    /// What its spec would take.
    pub tokens: usize,
}

impl Deferral {
    /// Which of `specs` a request has. Built-in tools are never deferred; those of MCP servers are, all
    /// of them, when together they take more than their share of `budget`.
    pub fn plan<'a>(
        &self,
        specs: impl IntoIterator<Item = &'a ToolSpec>,
        count: impl Fn(&ToolSpec) -> usize,
        budget: usize,
    ) -> Plan {
        let mut plan = Plan::default();
        let mut names = Vec::new();
        for spec in specs {
            names.push(spec.name.clone());
            match is_deferrable(spec) {
                true => plan.deferred.push(Deferred {
                    name: spec.name.clone(),
                    tokens: count(spec),
                }),
                false => plan.active.push(spec.name.clone()),
            }
        }
        let sum: usize = plan.deferred.iter().map(|tool| tool.tokens).sum();
        if sum <= budget / 100 * self.share {
            // The order of the list is kept: another one would be another request.
            return Plan {
                active: names,
                ..Plan::default()
            };
        }
        plan.saved_tokens = sum.saturating_sub(count(&search_spec()));
        plan
    }
}

/// Whether the tool comes from a server.
fn is_deferrable(spec: &ToolSpec) -> bool {
    spec.category == crate::mcp::CATEGORY && spec.name.contains(':')
}

/// The tool that finds deferred ones. Clones share what they know.
#[derive(Clone)]
pub struct ToolSearch {
    spec: ToolSpec,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    deferred: Vec<ToolSpec>,
    /// Found, and not asked for yet.
    activated: Vec<String>,
}

impl ToolSearch {
    /// A search among these.
    pub fn new(deferred: impl IntoIterator<Item = ToolSpec>) -> Self {
        let search = Self {
            spec: search_spec(),
            state: Arc::default(),
        };
        search.set(deferred);
        search
    }

    /// Searches among these from now on.
    pub fn set(&self, deferred: impl IntoIterator<Item = ToolSpec>) {
        self.state().deferred = deferred.into_iter().collect();
    }

    /// The names of the tools that were found since this was last asked: they are to be in the
    /// following requests.
    pub fn take_activated(&self) -> Vec<String> {
        std::mem::take(&mut self.state().activated)
    }

    /// The best finds, best first.
    fn find(&self, query: &str, server: Option<&str>) -> Vec<ToolSpec> {
        let state = self.state();
        let of_server = |spec: &&ToolSpec| {
            server.is_none_or(|server| spec.name.split(':').next() == Some(server))
        };
        let candidates: Vec<&ToolSpec> = state.deferred.iter().filter(of_server).collect();
        let texts: Vec<(Vec<String>, Vec<String>)> = candidates
            .iter()
            .map(|spec| (words(&spec.name), words(&spec.description)))
            .collect();
        let mut wanted = words(query);
        wanted.dedup();
        wanted.truncate(MOST_WORDS);
        let mut scores = vec![0.0_f64; candidates.len()];
        for word in &wanted {
            let hits: Vec<f64> = texts.iter().map(|(n, d)| hit(word, n, d)).collect();
            let having = hits.iter().filter(|hit| **hit > 0.0).count();
            // A word that few tools have says more.
            let weight = (1.0 + candidates.len() as f64 / (1.0 + having as f64)).ln();
            for (score, hit) in scores.iter_mut().zip(hits) {
                *score += hit * weight;
            }
        }
        let mut ranked: Vec<(f64, &ToolSpec)> = scores
            .into_iter()
            .zip(candidates)
            .filter(|(score, _)| *score > 0.0)
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.name.cmp(&b.1.name)));
        let best = ranked.into_iter().take(MOST_FOUND);
        best.map(|(_, spec)| spec.clone()).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tool for ToolSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: &'a Map<String, Value>) -> Calling<'a> {
        Box::pin(async move {
            let text = |key: &str| arguments.get(key).and_then(Value::as_str);
            let Some(query) = text("query").filter(|query| !query.trim().is_empty()) else {
                return Outcome::failed("`query` must be a text: the words to look for");
            };
            let found = self.find(query, text("server"));
            if found.is_empty() {
                return Outcome::done("No tool fits these words. Try others, or fewer.")
                    .saying("no tool found");
            }
            let mut told = String::from("These tools can be called from now on:\n");
            for spec in &found {
                told.push_str(&format!("- {}: {}\n", spec.wire_name(), spec.description));
            }
            let names: Vec<String> = found.into_iter().map(|spec| spec.name).collect();
            let summary = format!("found {}", names.join(", "));
            let mut state = self.state();
            for name in names {
                if !state.activated.contains(&name) {
                    state.activated.push(name);
                }
            }
            Outcome::done(told).saying(summary)
        })
    }
}

/// The search's own spec.
fn search_spec() -> ToolSpec {
    ToolSpec {
        name: SEARCH.to_owned(),
        description: include_str!("../templates/tool_search.md")
            .trim()
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "Words that say what the tool should do." },
                "server": { "type": "string", "description": "Only tools of this server." },
            },
            "required": ["query"],
            "additionalProperties": false,
        }),
        category: crate::mcp::CATEGORY.to_owned(),
        effect: Effect::Reads,
    }
}

/// How well a tool fits a word: its name counts for more than its description.
fn hit(word: &str, name: &[String], description: &[String]) -> f64 {
    let best = |texts: &[String], whole: f64, begins: f64| {
        let fits = |text: &String| match text {
            text if text == word => whole,
            text if text.starts_with(word)
                || (text.len() > 3 && word.starts_with(text.as_str())) =>
            {
                begins
            }
            _ => 0.0,
        };
        texts.iter().map(fits).fold(0.0, f64::max)
    };
    best(name, 4.0, 2.0) + best(description, 1.0, 0.5)
}

/// The words of a text, in lower case; `readFile` and `read_file` are two each.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut lower = false;
    for c in text.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && lower) {
            words.push(String::new());
        }
        lower = c.is_lowercase();
        if let Some(last) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            last.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
