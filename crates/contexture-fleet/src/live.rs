//! The sessions that are under way, and what each of them may use. This record decides, never what a
//! caller says of itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use contexture::inject::{Archetype, ToolDefinition};
use contexture_tools::schema::{Schema, SchemaError};
use serde_json::{Map, Value};

use crate::tokens::Grant;
use crate::{RpcError, Why};

/// Tools that come and go during a session.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolDelta {
    /// Tools that come.
    #[serde(default)]
    pub add: Vec<ToolDefinition>,
    /// The names of those that go.
    #[serde(default)]
    pub remove: Vec<String>,
    /// Why.
    pub reason: String,
}

/// What a change came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The names of tools that came.
    pub add: Vec<String>,
    /// And of those that went.
    pub remove: Vec<String>,
}

/// The sessions that are under way.
#[derive(Default)]
pub struct Live {
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    sessions: HashMap<Name, Arc<Tools>>,
    /// At how many sessions those are looked for whose tokens are gone.
    sweep_at: usize,
}

type Name = (String, String);

/// The tools of a session. Schemas are read when a tool is first used: most sessions use few.
struct Tools {
    archetype: Archetype,
    all: Vec<(ToolDefinition, OnceLock<Result<Schema, SchemaError>>)>,
}

impl Tools {
    fn new(archetype: Archetype, all: Vec<ToolDefinition>) -> Self {
        let all = all.into_iter().map(|tool| (tool, OnceLock::new()));
        Self {
            archetype,
            all: all.collect(),
        }
    }
}

impl Live {
    /// A session begins, with these tools. Those that `counts` says no to are forgotten at times.
    pub fn begin(
        &self,
        grant: &Grant,
        tools: Vec<ToolDefinition>,
        counts: impl Fn(&str, &str) -> bool,
    ) {
        let name = (grant.agent().to_owned(), grant.session_id().to_owned());
        let tools = Arc::new(Tools::new(grant.archetype(), tools));
        let mut book = self.lock();
        if book.sessions.len() >= book.sweep_at {
            book.sessions
                .retain(|(agent, session), _| counts(agent, session));
            book.sweep_at = (2 * book.sessions.len()).max(1_024);
        }
        book.sessions.insert(name, tools);
    }

    /// All sessions of an agent end.
    pub fn end(&self, agent: &str) {
        self.lock().sessions.retain(|(of, _), _| of != agent);
    }

    /// What a session may use.
    pub fn tools(&self, grant: &Grant) -> Vec<ToolDefinition> {
        let Some(tools) = self.of(grant) else {
            return Vec::new();
        };
        let allowed = tools.all.iter().map(|(tool, _)| tool);
        let allowed = allowed.filter(|tool| tool.scope.has(grant.archetype()));
        allowed.cloned().collect()
    }

    /// The tool that a session wants to use, by its name or by the method behind it, with arguments that
    /// its schema allows. One that is not there and one that is not allowed are the same answer.
    pub fn find(
        &self,
        grant: &Grant,
        wanted: &str,
        arguments: &Map<String, Value>,
    ) -> Result<ToolDefinition, RpcError> {
        let refused = || {
            RpcError::new(
                Why::NotAllowed,
                format!("this session has no tool `{}`", clipped(wanted)),
            )
            .hint("`ctx tool list` shows those that it has")
        };
        let tools = self.of(grant).ok_or_else(refused)?;
        let (tool, schema) = tools
            .all
            .iter()
            .find(|(tool, _)| tool.name == wanted || tool.rpc_method == wanted)
            .filter(|(tool, _)| tool.scope.has(grant.archetype()))
            .ok_or_else(refused)?;
        let checked = match schema.get_or_init(|| Schema::compile(&tool.parameters)) {
            Ok(schema) => schema.check(arguments),
            Err(error) => Err(format!("its schema is of no use: {error}")),
        };
        checked.map_err(|what| {
            let hint = contexture::prompt::signature(&tool.name, &tool.parameters);
            RpcError::new(Why::Invalid, format!("{}: {what}", tool.name)).hint(hint)
        })?;
        Ok(tool.clone())
    }

    /// Changes the tools of a session: what its archetype is not allowed does not come, and a name that
    /// is there is not taken by another tool. Gives what came and went, and the tools from now on.
    pub fn change(
        &self,
        agent: &str,
        session_id: &str,
        delta: &ToolDelta,
    ) -> Result<(Changed, Vec<ToolDefinition>), RpcError> {
        let mut book = self.lock();
        let name = (agent.to_owned(), session_id.to_owned());
        let tools = book.sessions.get_mut(&name).ok_or_else(|| {
            RpcError::new(Why::NotFound, format!("`{agent}` has no such session"))
        })?;
        let archetype = tools.archetype;
        let known = tools.all.iter().map(|(tool, _)| tool.clone());
        let (goes, mut all): (Vec<_>, Vec<_>) =
            known.partition(|tool| delta.remove.contains(&tool.name));
        let mut add = Vec::new();
        for tool in delta.add.iter().cloned() {
            if !tool.scope.has(archetype) {
                return Err(RpcError::new(
                    Why::NotAllowed,
                    format!(
                        "`{}` is for scope {}, and `{agent}` is a {}",
                        tool.name,
                        tool.scope.as_str(),
                        archetype.as_str()
                    ),
                ));
            }
            if all.iter().any(|known| known.name == tool.name) {
                let what = format!("this session has a tool `{}` already", tool.name);
                return Err(RpcError::new(Why::Conflict, what).hint("remove it in the same change"));
            }
            add.push(tool.name.clone());
            all.push(tool);
        }
        *tools = Arc::new(Tools::new(archetype, all.clone()));
        let changed = Changed {
            add,
            remove: goes.into_iter().map(|tool| tool.name).collect(),
        };
        Ok((changed, all))
    }

    fn of(&self, grant: &Grant) -> Option<Arc<Tools>> {
        let name = (grant.agent().to_owned(), grant.session_id().to_owned());
        self.lock().sessions.get(&name).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The beginning of what somebody sent.
pub(crate) fn clipped(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(60).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use contexture::inject::{Scope, canvas_tools};
    use serde_json::json;

    use super::*;
    use crate::tokens::{LIFE, Tokens};

    fn session(archetype: Archetype) -> (Live, Arc<Grant>) {
        let live = Live::default();
        let tokens = Tokens::new(LIFE).unwrap();
        let (_, grant) = tokens.generate("bot", "s", archetype).unwrap();
        live.begin(&grant, canvas_tools(), |_, _| true);
        (live, grant)
    }

    fn why(found: Result<ToolDefinition, RpcError>) -> Option<Why> {
        found.err().map(|error| error.why)
    }

    /// Attack 3: what the token's own record says is what counts, also where a session has more.
    #[test]
    fn scope_is_decided_here() {
        let html = Map::from_iter([("html".to_owned(), json!("<p>"))]);
        let (live, service) = session(Archetype::Service);
        assert_eq!(why(live.find(&service, "canvas_update", &html)), None);
        assert_eq!(
            why(live.find(&service, "internal.canvasUpdate", &html)),
            None
        );
        let (live, repo) = session(Archetype::Repo);
        let refused = live.find(&repo, "canvas_update", &html).unwrap_err();
        let unknown = live.find(&repo, "canvas_updat0", &html).unwrap_err();
        assert_eq!(refused.why, Why::NotAllowed);
        let same = |error: &RpcError| error.message.replace("updat0", "update");
        assert_eq!(same(&refused), same(&unknown), "neither says which it is");
        assert!(live.tools(&repo).is_empty());
    }

    #[test]
    fn arguments_are_held_to_the_schema() {
        let (live, grant) = session(Archetype::Service);
        for arguments in [json!({}), json!({"html": 1}), json!({"html": "", "x": 1})] {
            let arguments = arguments.as_object().unwrap();
            let found = live.find(&grant, "canvas_update", arguments);
            assert_eq!(why(found), Some(Why::Invalid), "{arguments:?}");
        }
    }

    #[test]
    fn tools_come_and_go() {
        let (live, grant) = session(Archetype::Service);
        let change = |delta: Value| {
            let delta: ToolDelta = serde_json::from_value(delta).unwrap();
            live.change("bot", "s", &delta)
        };
        let tool = |name: &str, scope: &str| json!({"name": name, "description": "", "parameters": {}, "rpcMethod": "x", "scope": scope});
        let names = || -> Vec<String> {
            live.tools(&grant)
                .into_iter()
                .map(|tool| tool.name)
                .collect()
        };
        let changed = change(
            json!({"add": [tool("look", "all")], "remove": ["canvas_clear", "none"], "reason": "r"}),
        );
        let expected = Changed {
            add: vec!["look".into()],
            remove: vec!["canvas_clear".into()],
        };
        assert_eq!(changed.unwrap().0, expected);
        assert_eq!(names(), ["canvas_update", "look"]);
        // Attack 25: nothing takes the place of a tool that is there, and nothing comes of a change
        // that is refused.
        let shadow = json!({"add": [tool("new", "all"), tool("look", "all")], "reason": "r"});
        assert_eq!(change(shadow).unwrap_err().why, Why::Conflict);
        let above = json!({"add": [tool("rule", "employee")], "reason": "r"});
        assert_eq!(change(above).unwrap_err().why, Why::NotAllowed);
        assert_eq!(names(), ["canvas_update", "look"]);
        assert!(Scope::All.has(Archetype::Repo));
        live.end("bot");
        assert!(names().is_empty());
    }
}
