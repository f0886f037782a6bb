use serde_json::Value;

use super::bounded;

/// What an agent says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentFacts {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Whether it can take up an earlier session.
    pub load_session: bool,
    /// Whether it takes images in a prompt.
    pub image: bool,
    /// Whether it takes audio in a prompt.
    pub audio: bool,
    /// Whether it takes resources in a prompt, and not only links to them.
    pub embedded_context: bool,
    /// Whether a session can begin with text for its system prompt.
    pub system_prompt: bool,
    /// How one signs in to it.
    pub auth_methods: Vec<AuthMethod>,
}

/// A way to sign in to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthMethod {
    /// Its id.
    pub id: String,
    /// Its name, for people.
    pub name: String,
}

/// The most ways to sign in that are kept.
const MOST: usize = 16;

impl AgentFacts {
    /// Reads the answer to `initialize`. What is not there, or is something else, is as if it were not said.
    pub(super) fn read(answer: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(|text| bounded(text, 80));
        let can = &answer["agentCapabilities"];
        let yes = |value: &Value| value.as_bool().unwrap_or(false);
        let methods = answer["authMethods"].as_array().into_iter().flatten();
        let method = |value: &Value| {
            let id = text(&value["id"])?;
            let name = text(&value["name"]).unwrap_or_else(|| id.clone());
            Some(AuthMethod { id, name })
        };
        Self {
            name: text(&answer["agentInfo"]["name"]),
            version: text(&answer["agentInfo"]["version"]),
            load_session: yes(&can["loadSession"]),
            image: yes(&can["promptCapabilities"]["image"]),
            audio: yes(&can["promptCapabilities"]["audio"]),
            embedded_context: yes(&can["promptCapabilities"]["embeddedContext"]),
            system_prompt: can["sessionCapabilities"]["systemPrompt"].is_object(),
            auth_methods: methods.filter_map(method).take(MOST).collect(),
        }
    }
}
