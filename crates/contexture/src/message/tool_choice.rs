use serde_json::{Map, Value, json};

use super::names::ToolNames;

/// Which tools the model may or must call, read from any provider's form.
pub(super) enum ToolChoice {
    Auto,
    None,
    Required,
    /// This one, by the name under which it is sent.
    Tool {
        kind: &'static str,
        name: String,
        /// And no other beside it, where the form can say so.
        alone: bool,
    },
    /// A choice that only the form knows which it is written in.
    Other(Map<String, Value>),
}

impl ToolChoice {
    /// Nothing when it names a tool that there is no spec for: the request would be refused.
    pub fn read(value: &Value, names: &ToolNames) -> Option<Self> {
        let tag = |value: &Value| match value.as_str()? {
            "auto" => Some(Self::Auto),
            "none" => Some(Self::None),
            "required" | "any" => Some(Self::Required),
            _ => None,
        };
        let Value::Object(choice) = value else {
            return tag(value);
        };
        let kind = match choice.get("type")?.as_str()? {
            "function" | "tool" => "function",
            "custom" => "custom",
            _ if choice.len() == 1 => {
                return tag(choice.get("type")?).or_else(|| Some(Self::Other(choice.clone())));
            }
            _ => return Some(Self::Other(choice.clone())),
        };
        let inner = choice.get(kind).and_then(Value::as_object);
        let own = inner.unwrap_or(choice).get("name")?.as_str()?;
        let name = names.declared(own)?.to_owned();
        let alone = choice
            .get("disable_parallel_tool_use")
            .is_some_and(|alone| alone == true);
        Some(Self::Tool { kind, name, alone })
    }

    pub fn for_responses(self) -> Option<Value> {
        match self {
            Self::Auto => Some("auto".into()),
            Self::None => Some("none".into()),
            Self::Required => Some("required".into()),
            Self::Tool { kind, name, .. } => Some(json!({"type": kind, "name": name})),
            // Anthropic's, with an option of its own.
            Self::Other(choice) => match choice.get("type")?.as_str()? {
                "auto" => Some("auto".into()),
                "any" => Some("required".into()),
                _ => Some(choice.into()),
            },
        }
    }

    pub fn for_anthropic(self) -> Option<Value> {
        match self {
            Self::Auto => Some(json!({"type": "auto"})),
            Self::None => Some(json!({"type": "none"})),
            Self::Required => Some(json!({"type": "any"})),
            Self::Tool { name, alone, .. } => Some(if alone {
                json!({"type": "tool", "name": name, "disable_parallel_tool_use": true})
            } else {
                json!({"type": "tool", "name": name})
            }),
            Self::Other(choice) => {
                matches!(choice.get("type")?.as_str()?, "auto" | "any").then(|| choice.into())
            }
        }
    }
}
