//! Which tools a request has: all, or, where their specs would take too much of the budget, those that
//! were found.

use std::collections::HashSet;
use std::sync::Arc;

use contexture::View;
use contexture::entry::DeferredTool;
use contexture::tokens::Tokenizer;
use contexture_tools::deferred::{Deferral, Plan, ToolSearch};
use contexture_tools::{Offer, Tool, ToolSpec, Toolset};

/// The tools of a run, step by step.
pub(crate) struct Offers {
    search: ToolSearch,
    /// What there was when this was last looked at, before anything was deferred.
    all: Offer,
    found: HashSet<String>,
    /// What is offered now.
    pub now: Offer,
    /// What is not.
    pub deferred: Vec<DeferredTool>,
}

impl Offers {
    /// The tools that the log has already were found before: they stay.
    pub(crate) fn new(view: &View) -> Self {
        let name = |spec: &serde_json::Value| Some(spec["function"]["name"].as_str()?.to_owned());
        Self {
            search: ToolSearch::new([]),
            all: Offer::default(),
            found: view.tools().iter().filter_map(name).collect(),
            now: Offer::default(),
            deferred: Vec::new(),
        }
    }

    /// Looks again. Whether the request's tools are others now.
    pub(crate) fn refresh(
        &mut self,
        tools: &Toolset,
        tokenizer: &dyn Tokenizer,
        budget: usize,
    ) -> bool {
        let all = tools.offer();
        let found = self.search.take_activated();
        if all.same(&self.all) && found.is_empty() && !self.all.tools().is_empty() {
            return false;
        }
        self.all = all.clone();
        let specs = all.tools().iter().map(|tool| tool.spec());
        self.found.extend(found.iter().filter_map(|name| {
            let spec = specs.clone().find(|spec| spec.name == *name)?;
            Some(spec.wire_name())
        }));
        let cost = |spec: &ToolSpec| tokenizer.tool(&spec.to_value());
        // Who may not search would not find what is left out.
        let search: Arc<dyn Tool> = Arc::new(self.search.clone());
        let plan = match tools.allows(&search) {
            true => Deferral::default().plan(specs, cost, budget),
            false => Plan::default(),
        };
        let hidden: Vec<_> = plan
            .deferred
            .iter()
            .filter_map(|tool| {
                let spec = all
                    .tools()
                    .iter()
                    .find(|t| t.spec().name == tool.name)?
                    .spec();
                (!self.found.contains(&spec.wire_name())).then_some((tool, spec))
            })
            .collect();
        self.deferred = hidden
            .iter()
            .map(|(tool, _)| DeferredTool {
                name: tool.name.clone(),
                tokens: tool.tokens,
            })
            .collect();
        self.search
            .set(hidden.iter().map(|(_, spec)| (*spec).clone()));
        let names: HashSet<String> = hidden.iter().map(|(tool, _)| tool.name.clone()).collect();
        self.now = match names.is_empty() {
            true => all,
            false => all.deferring(names, search),
        };
        true
    }
}
