//! The tool policy, enforced.
//!
//! A policy that is only printed is a request. The same one filters the tools that a model is
//! offered, and is asked again when the model calls one, because a model can call what it was
//! never offered.

use std::fmt;

use serde_json::Value;

use super::options::ToolPolicy;

/// Whether a tool may be used, and which rule decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// There is no allow list, and no deny list has it.
    Unrestricted,
    /// `allowedTools` has it.
    AllowedTool,
    /// `allowedCategories` has this category of it.
    AllowedCategory(String),
    /// `deniedTools` has it.
    DeniedTool,
    /// `deniedCategories` has this category of it.
    DeniedCategory(String),
    /// `allowedTools` is empty, so there is nothing to allow.
    NothingAllowed,
    /// There is an allow list, and none has it.
    NotAllowed,
    /// Its spec gives no name, so there is nothing that a list could allow or a model could call.
    Nameless,
}

impl Verdict {
    /// Whether the tool may be used.
    pub fn is_allowed(&self) -> bool {
        match self {
            Self::Unrestricted | Self::AllowedTool | Self::AllowedCategory(_) => true,
            Self::DeniedTool
            | Self::DeniedCategory(_)
            | Self::NothingAllowed
            | Self::NotAllowed
            | Self::Nameless => false,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unrestricted => f.write_str("no rule restricts it"),
            Self::AllowedTool => f.write_str("it is in allowedTools"),
            Self::AllowedCategory(name) => {
                write!(f, "its category `{name}` is in allowedCategories")
            }
            Self::DeniedTool => f.write_str("it is in deniedTools"),
            Self::DeniedCategory(name) => write!(f, "its category `{name}` is in deniedCategories"),
            Self::NothingAllowed => f.write_str("allowedTools is empty"),
            Self::NotAllowed => f.write_str("no allow list has it"),
            Self::Nameless => f.write_str("it has no name"),
        }
    }
}

/// The tools that are left, and those that are not.
#[derive(Debug, Clone, PartialEq)]
pub struct Filtered {
    /// The specs that may be offered, in their order and unchanged.
    pub kept: Vec<Value>,
    /// What was taken out, in its order.
    pub removed: Vec<Removed>,
}

/// A tool that was taken out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Its name; empty if its spec gives none.
    pub name: String,
    /// The rule that took it out.
    pub verdict: Verdict,
}

impl ToolPolicy {
    /// Whether `tool`, which belongs to `category` if to any, may be used.
    ///
    /// 1. What a deny list has is denied, whatever any allow list says.
    /// 2. With no allow list at all, the rest is allowed.
    /// 3. An empty `allowedTools` allows nothing. It says "no tool", and no other list widens that.
    /// 4. Otherwise a tool must be in `allowedTools` by its name or in `allowedCategories` by its
    ///    category. The two lists add up, each naming tools in its own way; a list that is absent
    ///    adds nothing once the other is there.
    ///
    /// Names are compared exactly. A tool without a category is in none.
    pub fn allows(&self, tool: &str, category: Option<&str>) -> Verdict {
        let has = |list: &Option<Vec<String>>, name: &str| {
            list.as_ref()
                .is_some_and(|names| names.iter().any(|n| n == name))
        };
        if has(&self.denied_tools, tool) {
            return Verdict::DeniedTool;
        }
        if let Some(category) = category.filter(|c| has(&self.denied_categories, c)) {
            return Verdict::DeniedCategory(category.to_owned());
        }
        match (&self.allowed_tools, &self.allowed_categories) {
            (None, None) => return Verdict::Unrestricted,
            (Some(none), _) if none.is_empty() => return Verdict::NothingAllowed,
            _ => {}
        }
        if has(&self.allowed_tools, tool) {
            return Verdict::AllowedTool;
        }
        match category.filter(|c| has(&self.allowed_categories, c)) {
            Some(category) => Verdict::AllowedCategory(category.to_owned()),
            None => Verdict::NotAllowed,
        }
    }

    /// The tool specs that may be offered to a model, each judged by the category that it states
    /// itself (`category`, beside its name or beside `function`).
    ///
    /// Specs are OpenAI's, nested or flat. Where they come from somebody who gains by lying about
    /// the category, use [`ToolPolicy::filter_by`].
    pub fn filter(&self, specs: Vec<Value>) -> Filtered {
        self.judge(specs, |spec, _| stated_category(spec).map(str::to_owned))
    }

    /// The same, with the category of each name as the host knows it.
    pub fn filter_by(
        &self,
        specs: Vec<Value>,
        category: impl Fn(&str) -> Option<String>,
    ) -> Filtered {
        self.judge(specs, |_, name| category(name))
    }

    fn judge(
        &self,
        specs: Vec<Value>,
        category: impl Fn(&Value, &str) -> Option<String>,
    ) -> Filtered {
        let mut kept = Vec::with_capacity(specs.len());
        let mut removed = Vec::new();
        for spec in specs {
            let name = name(&spec).unwrap_or_default().to_owned();
            let verdict = match name.as_str() {
                "" => Verdict::Nameless,
                name => self.allows(name, category(&spec, name).as_deref()),
            };
            if verdict.is_allowed() {
                kept.push(spec);
            } else {
                removed.push(Removed { name, verdict });
            }
        }
        Filtered { kept, removed }
    }
}

/// The name that a model would call the tool by. A tool that the provider runs, such as
/// `{"type":"web_search"}`, has only its type.
fn name(spec: &Value) -> Option<&str> {
    let function = spec.get("function").unwrap_or(spec);
    let own_type = || {
        spec.get("type")
            .and_then(Value::as_str)
            .filter(|t| *t != "function")
    };
    function
        .get("name")
        .and_then(Value::as_str)
        .or_else(own_type)
}

fn stated_category(spec: &Value) -> Option<&str> {
    let beside = |value: &Value| value.get("category").and_then(Value::as_str).is_some();
    [Some(spec), spec.get("function")]
        .into_iter()
        .flatten()
        .find(|value| beside(value))
        .and_then(|value| value.get("category")?.as_str())
}

#[cfg(test)]
mod tests;
