//! The tools that there are now, what a model is offered of them, and the one way to call one.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use contexture::prompt::{ToolPolicy, Verdict};
use contexture::text::nearest;
use contexture::{ToolCall, json};
use futures_util::FutureExt;
use serde_json::{Map, Value};

use crate::approval::{Approvals, Decision};
use crate::schema::Schema;
use crate::{Effect, Outcome, Secrets, Tool};

/// Where tools come from. Some sources change while they are used: an MCP server comes late, or goes.
pub trait Tools: Send + Sync {
    /// What there is now, in an order that does not change by itself.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// What a person should know that happened to them since this was last asked.
    fn news(&self) -> Vec<String>;
}

impl Tools for Vec<Arc<dyn Tool>> {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.clone()
    }

    fn news(&self) -> Vec<String> {
        Vec::new()
    }
}

/// All that an agent can do, and the rules for it.
pub struct Toolset {
    sources: Vec<Arc<dyn Tools>>,
    policies: Vec<ToolPolicy>,
    approvals: Approvals,
    secrets: Secrets,
    holds: Option<BTreeSet<String>>,
}

/// The tools at one moment.
#[derive(Clone, Default)]
pub struct Offer {
    tools: Vec<Arc<dyn Tool>>,
    by_name: HashMap<String, usize>,
    /// Those that can be called and are not shown, by their names toward people.
    deferred: HashSet<String>,
    /// What there is and is not offered, with the reason.
    pub left_out: Vec<LeftOut>,
}

/// A tool that is not offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name toward people.
    pub name: String,
    /// Why not.
    pub why: String,
}

impl Toolset {
    /// These tools under these rules.
    pub fn new(policy: ToolPolicy, approvals: Approvals, secrets: Secrets) -> Self {
        Self {
            sources: Vec::new(),
            policies: vec![policy],
            approvals,
            secrets,
            holds: None,
        }
    }

    /// With another policy, which must allow a tool as well.
    pub fn within(mut self, policy: ToolPolicy) -> Self {
        self.policies.push(policy);
        self
    }

    /// With these alone, by their names or by those that they have at their servers: what an agent was granted.
    pub fn holding(self, names: Option<BTreeSet<String>>) -> Self {
        Self {
            holds: names,
            ..self
        }
    }

    /// With these tools too, behind those that are there.
    pub fn with(mut self, source: Arc<dyn Tools>) -> Self {
        self.sources.push(source);
        self
    }

    /// What hides keys.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// What there is now: as the policy allows, and each name once. Of two that a model could not tell
    /// apart, the earlier stays, so that nobody can take a known tool's place.
    pub fn offer(&self) -> Offer {
        let mut offer = Offer::default();
        for tool in self.sources.iter().flat_map(|source| source.tools()) {
            let spec = tool.spec();
            let verdict = self.verdict(&tool);
            let wire = spec.wire_name();
            let why = if !verdict.is_allowed() {
                verdict.to_string()
            } else if !self.holds(&spec.name) {
                "it was not granted".to_owned()
            } else if let Some(&known) = offer.by_name.get(&wire) {
                let known = &offer.tools[known].spec().name;
                format!("a model could not tell it from `{known}`")
            } else {
                offer.by_name.insert(wire, offer.tools.len());
                offer.tools.push(tool);
                continue;
            };
            let name = spec.name.clone();
            offer.left_out.push(LeftOut { name, why });
        }
        offer
    }

    fn holds(&self, name: &str) -> bool {
        let bare = name.split_once(':').map_or(name, |(_, bare)| bare);
        let holds = |names: &BTreeSet<String>| names.contains(name) || names.contains(bare);
        self.holds.as_ref().is_none_or(holds)
    }

    /// What happened to the tools since this was last asked.
    pub fn news(&self) -> Vec<String> {
        self.sources
            .iter()
            .flat_map(|source| source.news())
            .collect()
    }

    /// Runs a call, as far as it may. Whatever goes wrong is the answer to the call: a model can go on
    /// from that.
    pub async fn call(&self, offer: &Offer, call: &ToolCall) -> Outcome {
        let outcome = match self.checked(offer, call).await {
            Ok((tool, arguments)) => {
                // One that panics must not take the conversation with it.
                match AssertUnwindSafe(tool.call(&arguments)).catch_unwind().await {
                    Ok(outcome) => outcome.judged(),
                    Err(_) => Outcome::failed(format!("{} broke down", tool.spec().name)),
                }
            }
            Err(why) => Outcome::failed(why),
        };
        self.secrets.hide_in(outcome)
    }

    /// The tool and its arguments, once everything is as it should be.
    async fn checked(
        &self,
        offer: &Offer,
        call: &ToolCall,
    ) -> Result<(Arc<dyn Tool>, Map<String, Value>), String> {
        let tool = offer
            .find(&call.name)
            .ok_or_else(|| offer.unknown(&call.name))?;
        let spec = tool.spec();
        // Asked again here, because a model can call what it was never offered.
        let verdict = self.verdict(tool);
        if !verdict.is_allowed() {
            return Err(format!("{} is not allowed: {verdict}", spec.name));
        }
        // Whoever holds many tools may look for them.
        if !self.holds(&spec.name) && spec.name != crate::deferred::SEARCH {
            return Err(format!("{} is not allowed: it was not granted", spec.name));
        }
        let arguments = arguments(&call.arguments)?;
        // A schema that cannot be used allows every object: whoever offers the tool said so already.
        let checked = match Schema::compile(&spec.parameters) {
            Ok(schema) => schema.check(&arguments),
            Err(_) => Ok(()),
        };
        checked.map_err(|what| format!("{} does not take these arguments: {what}", spec.name))?;
        if spec.effect == Effect::Acts
            && let Decision::Denied(why) = self.approvals.decide(spec, &arguments).await
        {
            return Err(why);
        }
        Ok((Arc::clone(tool), arguments))
    }

    /// Whether every policy lets this tool be offered.
    pub fn allows(&self, tool: &Arc<dyn Tool>) -> bool {
        self.verdict(tool).is_allowed()
    }

    fn verdict(&self, tool: &Arc<dyn Tool>) -> Verdict {
        let spec = tool.spec();
        let mut verdict = Verdict::Unrestricted;
        for policy in &self.policies {
            verdict = policy.allows(&spec.name, Some(&spec.category));
            if !verdict.is_allowed() {
                break;
            }
        }
        verdict
    }
}

impl Offer {
    /// The same tools, of which these are not shown before `search` has found them. Who knows one from
    /// before can call it.
    pub fn deferring(mut self, deferred: HashSet<String>, search: Arc<dyn Tool>) -> Self {
        self.by_name
            .entry(search.spec().wire_name())
            .or_insert(self.tools.len());
        self.tools.push(search);
        self.deferred = deferred;
        self
    }

    /// The specs as a request has them.
    pub fn specs(&self) -> Vec<Value> {
        self.tools
            .iter()
            .filter(|tool| !self.deferred.contains(&tool.spec().name))
            .map(|tool| tool.spec().to_value())
            .collect()
    }

    /// The tools, in order.
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// The tool that a model calls by this name.
    pub fn find(&self, wire_name: &str) -> Option<&Arc<dyn Tool>> {
        self.by_name.get(wire_name).map(|&at| &self.tools[at])
    }

    /// Whether it has the very same tools.
    pub fn same(&self, other: &Self) -> bool {
        let pairs = self.tools.iter().zip(&other.tools);
        self.tools.len() == other.tools.len()
            && self.deferred == other.deferred
            && pairs.into_iter().all(|(a, b)| Arc::ptr_eq(a, b))
    }

    fn unknown(&self, name: &str) -> String {
        let known: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
        match nearest(name, &known) {
            Some(near) => format!("There is no tool `{name}`. Did you mean `{near}`?"),
            None => format!("There is no tool `{name}`."),
        }
    }
}

/// The arguments of a call. None at all is an empty object: some models say nothing when a tool takes
/// nothing.
fn arguments(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    json::from_text(text)
        .map_err(|error| format!("The arguments are no JSON object: {error}. Send one object."))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use crate::approval::Standing;
    use crate::{Calling, ToolSpec};

    struct Look(ToolSpec);

    impl Tool for Look {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn call<'a>(&'a self, _: &'a Map<String, Value>) -> Calling<'a> {
            Box::pin(async { Outcome::done("seen") })
        }
    }

    fn toolset(policy: ToolPolicy) -> Toolset {
        let spec = ToolSpec {
            name: "look".into(),
            description: "looks".into(),
            parameters: json!({"type": "object"}),
            category: "test".into(),
            effect: Effect::Reads,
        };
        let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(Look(spec))];
        Toolset::new(
            policy,
            Approvals::new(Standing::default()),
            Secrets::default(),
        )
        .with(Arc::new(tools))
    }

    #[test]
    fn every_policy_must_allow_a_tool() {
        let naming = |name: &str| ToolPolicy {
            allowed_tools: Some(vec![name.to_owned()]),
            ..ToolPolicy::default()
        };
        let of_category = |name: &str| ToolPolicy {
            allowed_categories: Some(vec![name.to_owned()]),
            ..ToolPolicy::default()
        };
        for (first, second, offered) in [
            (naming("look"), of_category("test"), 1),
            (naming("look"), ToolPolicy::default(), 1),
            (naming("look"), naming("other"), 0),
            (of_category("other"), naming("look"), 0),
        ] {
            let tools = toolset(first).within(second);
            assert_eq!(tools.offer().specs().len(), offered);
        }
    }

    #[tokio::test]
    async fn what_was_offered_under_other_rules_is_judged_again_at_the_call() {
        let free = toolset(ToolPolicy::default());
        let strict = toolset(ToolPolicy {
            denied_categories: Some(vec!["test".into()]),
            ..ToolPolicy::default()
        });
        let call = ToolCall::new("c", "look", "{}");
        assert!(strict.offer().tools().is_empty());
        assert!(!free.call(&free.offer(), &call).await.failed);
        let refused = strict.call(&free.offer(), &call).await;
        assert!(refused.failed);
        assert!(refused.summary.contains("deniedCategories"), "{refused:?}");
    }

    #[tokio::test]
    async fn what_was_not_granted_is_neither_offered_nor_called() {
        let all = toolset(ToolPolicy::default());
        let holding = |name: &str| {
            toolset(ToolPolicy::default()).holding(Some(BTreeSet::from([name.to_owned()])))
        };
        assert_eq!(holding("look").offer().tools().len(), 1);
        let other = holding("other");
        assert_eq!(other.offer().left_out[0].why, "it was not granted");
        let call = ToolCall::new("c", "look", "{}");
        let refused = other.call(&all.offer(), &call).await;
        assert!(
            refused.failed && refused.summary.contains("not granted"),
            "{refused:?}"
        );
        // By the name that it has at its server, too.
        let names = BTreeSet::from(["read".to_owned()]);
        let holds = toolset(ToolPolicy::default()).holding(Some(names));
        assert!(holds.holds("fs:read") && !holds.holds("fs:write"));
    }
}
