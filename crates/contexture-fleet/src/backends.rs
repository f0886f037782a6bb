//! The agents that are known by name: how each is started, what it may know of our environment, and how
//! system context reaches it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use contexture::inject::McpServerStdio;
use contexture::text::nearest;
use contexture_tools::inherit::{ChildKind, is_of_session};
use contexture_tools::secrets::mask::Mask;
use serde_json::{Map, Value, json};

use crate::acp::{AcpError, AgentFacts, Begin, Connection, Host, Launch};

/// An agent that is known by name.
#[derive(Debug, Clone, Copy)]
pub struct Backend {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Its program; for the native one, ours.
    pub program: &'static str,
    /// Its arguments.
    pub args: &'static [&'static str],
    /// What older versions take instead.
    pub older_args: Option<&'static [&'static str]>,
    /// The variables of our environment that it inherits beside those that all do. A star at the end
    /// stands for any ending. Other agents' keys are not passed on.
    pub inherits: &'static [&'static str],
    /// Variables that it is started with, whatever ours are. They have it ask before it acts, so that whoever is
    /// to answer is asked.
    pub sets: &'static [(&'static str, &'static str)],
    /// More arguments for a folder that the user trusts.
    pub trusted_args: &'static [&'static str],
    /// Files that it obeys in a trusted folder beside what `ctx trust` shows.
    pub obeys: &'static [&'static str],
    /// True if it asks before it acts at all.
    pub asks: bool,
    /// How system context reaches it.
    pub channel: Channel,
    /// How it is installed.
    pub install: &'static str,
    /// Advice for where it is installed and does not start.
    pub advice: Option<&'static str>,
    /// Ways to sign in that need nobody, and the variable that each takes.
    pub sign_in: &'static [(&'static str, &'static str)],
}

/// How system context reaches an agent. Not as an argument: anybody on the machine can read those, and
/// there is a token in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// In `_meta.systemPrompt.append` of the session's beginning.
    Meta,
    /// In the protocol's own field, where the agent says that it takes it; else in front of the next prompt.
    Prompt,
}

/// What every agent inherits: where its files are, and how the network is reached.
const ALL_INHERIT: &[&str] = &[
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Keys of model providers, for agents that speak with many of them.
const PROVIDERS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "DEEPSEEK_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "OLLAMA_HOST",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_HOST",
    "OPENROUTER_API_KEY",
    "XAI_API_KEY",
];

/// The agent that is ours.
pub const NATIVE: &str = "native";

/// The table.
pub const BACKENDS: &[Backend] = &[
    Backend {
        name: NATIVE,
        about: "Contexture's own agent",
        program: "ctx",
        args: &["acp"],
        older_args: None,
        inherits: &["CONTEXTURE_*", "RUST_LOG"],
        sets: &[],
        trusted_args: &[],
        obeys: &[],
        asks: true,
        channel: Channel::Meta,
        install: "it comes with Contexture",
        advice: None,
        sign_in: &[],
    },
    Backend {
        name: "claude-code",
        about: "Claude Code, through its adapter",
        program: "claude-agent-acp",
        args: &[],
        older_args: None,
        inherits: &[
            "ANTHROPIC_*",
            "CLAUDE_*",
            "ENABLE_TOOL_SEARCH",
            "IS_SANDBOX",
            "MAX_THINKING_TOKENS",
        ],
        sets: &[],
        trusted_args: &[],
        obeys: &[],
        asks: true,
        channel: Channel::Meta,
        install: "npm install -g @agentclientprotocol/claude-agent-acp, on Node 22",
        advice: Some(
            "as root, Claude Code starts only with IS_SANDBOX=1 in the daemon's environment",
        ),
        sign_in: &[],
    },
    Backend {
        name: "codex",
        about: "OpenAI's Codex, through its adapter",
        program: "codex-acp",
        args: &[],
        older_args: None,
        inherits: &["CODEX_*", "OPENAI_API_KEY", "OPENAI_BASE_URL"],
        // Otherwise a model reviews what it does, and nobody is asked.
        sets: &[("INITIAL_AGENT_MODE", "workspace-write")],
        trusted_args: &[],
        obeys: &[],
        asks: true,
        channel: Channel::Prompt,
        install: "npm install -g @agentclientprotocol/codex-acp",
        advice: None,
        sign_in: &[
            ("api-key", "OPENAI_API_KEY"),
            ("api-key", "CODEX_API_KEY"),
            ("openai-api-key", "OPENAI_API_KEY"),
            ("codex-api-key", "CODEX_API_KEY"),
        ],
    },
    Backend {
        name: "gemini",
        about: "Google's Gemini CLI",
        program: "gemini",
        args: &["--acp"],
        older_args: Some(&["--experimental-acp"]),
        inherits: &["GEMINI_*", "GOOGLE_*"],
        sets: &[],
        // Where it does not trust a folder, it leaves out the session's MCP servers without a word.
        trusted_args: &["--skip-trust"],
        obeys: &[".gemini", ".env", "GEMINI.md"],
        asks: true,
        channel: Channel::Prompt,
        install: "npm install -g @google/gemini-cli",
        advice: None,
        sign_in: &[
            ("gemini-api-key", "GEMINI_API_KEY"),
            ("vertex-ai", "GOOGLE_API_KEY"),
        ],
    },
    Backend {
        name: "cursor",
        about: "Cursor's CLI agent",
        program: "cursor-agent",
        args: &["acp"],
        older_args: None,
        inherits: &["CURSOR_*"],
        sets: &[],
        trusted_args: &[],
        obeys: &[],
        asks: true,
        channel: Channel::Prompt,
        install: "see https://cursor.com/docs/cli, then sign in with cursor-agent login",
        advice: None,
        sign_in: &[
            ("cursor_login", "CURSOR_API_KEY"),
            ("cursor_login", "CURSOR_AUTH_TOKEN"),
        ],
    },
    Backend {
        name: "opencode",
        about: "opencode",
        program: "opencode",
        args: &["acp"],
        older_args: None,
        inherits: &["OPENCODE_*"],
        sets: &[(
            "OPENCODE_PERMISSION",
            r#"{"bash":"ask","edit":"ask","external_directory":"ask","webfetch":"ask"}"#,
        )],
        trusted_args: &[],
        obeys: &[],
        asks: true,
        channel: Channel::Prompt,
        install: "npm install -g opencode-ai",
        advice: None,
        sign_in: &[],
    },
    Backend {
        name: "goose",
        about: "goose",
        program: "goose",
        args: &["acp"],
        older_args: None,
        inherits: &["GOOSE_*"],
        sets: &[("GOOSE_MODE", "approve")],
        trusted_args: &[],
        obeys: &[],
        asks: true,
        channel: Channel::Prompt,
        install: "see the installation page of goose, or npm install -g @aaif/goose",
        advice: None,
        sign_in: &[],
    },
    Backend {
        name: "pi",
        about: "pi, through its adapter; it asks nobody, and does not connect to the session's MCP servers",
        program: "pi-acp",
        args: &[],
        older_args: None,
        inherits: &["PI_*"],
        sets: &[],
        trusted_args: &[],
        obeys: &[],
        asks: false,
        channel: Channel::Prompt,
        install: "npm install -g @earendil-works/pi-coding-agent pi-acp, on Node 22",
        advice: Some("pi-acp starts `pi`, which takes Node 22.19 or newer"),
        sign_in: &[],
    },
];

/// Those that speak with any provider, and so have the keys of many.
const MANY_PROVIDERS: &[&str] = &[NATIVE, "opencode", "goose", "pi"];

/// The agent of this name.
pub fn backend(name: &str) -> Option<&'static Backend> {
    BACKENDS.iter().find(|backend| backend.name == name)
}

/// What is to be started.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// The name of a backend. Any name will do where there is a command.
    pub backend: &'a str,
    /// A command in the place of the backend's.
    pub command: &'a [String],
    /// More arguments of a native agent: what answers.
    pub native_args: &'a [String],
    /// Where the agent works.
    pub workspace: &'a Path,
    /// True if the user trusts that folder.
    pub trusted: bool,
    /// What it is told, in order.
    pub system_context: &'a [String],
    /// The MCP servers that it connects to.
    pub mcp_servers: &'a [McpServerStdio],
    /// Variables of its environment.
    pub env: BTreeMap<String, String>,
    /// More names of ours that it inherits.
    pub inherits: &'a [String],
    /// Our own program, which the native agent is.
    pub own: Option<PathBuf>,
    /// What ends it when we are gone.
    pub supervisor: Option<Vec<OsString>>,
}

impl<'a> Wanted<'a> {
    /// An agent in a workspace.
    pub fn new(backend: &'a str, workspace: &'a Path) -> Self {
        Self {
            backend,
            command: &[],
            native_args: &[],
            workspace,
            trusted: false,
            system_context: &[],
            mcp_servers: &[],
            env: BTreeMap::new(),
            inherits: &[],
            own: None,
            supervisor: None,
        }
    }
}

/// How an agent is started, and how its session begins.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How it is started.
    pub launch: Launch,
    /// How it is started where it is an older version, which ends at once otherwise.
    pub older: Option<Launch>,
    /// How its session begins.
    pub begin: Begin,
}

/// There is no such backend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no backend `{name}`")]
pub struct UnknownBackend {
    /// The name.
    pub name: String,
}

impl UnknownBackend {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        let known: Vec<&str> = BACKENDS.iter().map(|backend| backend.name).collect();
        let all = known.join(", ");
        match nearest(&self.name, &known) {
            Some(near) => format!("did you mean `{near}`? There are {all}, and any other command"),
            None => format!("there are {all}, and any other command"),
        }
    }
}

/// Finds out how an agent is started and what it is told.
pub fn plan(wanted: Wanted<'_>) -> Result<Plan, UnknownBackend> {
    let known = backend(wanted.backend);
    // A command of somebody's is not ours, whatever it is called.
    let kind = match known {
        Some(known) if known.name == NATIVE && wanted.command.is_empty() => ChildKind::OwnAgent,
        _ => ChildKind::Agent,
    };
    let ours = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut env = inherited(kind, known, wanted.inherits, ours);
    env.extend(wanted.env);
    let sets = known.map_or(&[][..], |known| known.sets);
    env.extend(
        sets.iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    );
    let mut launch = Launch {
        kind,
        env,
        supervisor: wanted.supervisor,
        ..Launch::new("", wanted.workspace)
    };
    match (wanted.command, known) {
        ([program, args @ ..], _) => {
            launch.program.clone_from(program);
            launch.args = args.to_vec();
        }
        ([], Some(known)) => {
            launch.args = owned(known.args);
            if known.name == NATIVE {
                launch.args.extend_from_slice(wanted.native_args);
            }
            if wanted.trusted {
                launch.args.extend(owned(known.trusted_args));
            }
            launch.program = match wanted.own {
                Some(own) if known.name == NATIVE => own.display().to_string(),
                _ => known.program.to_owned(),
            };
        }
        ([], None) => {
            return Err(UnknownBackend {
                name: wanted.backend.to_owned(),
            });
        }
    }
    let own_command = !wanted.command.is_empty();
    let mut older = None;
    if let Some(known) = known {
        launch.install = Some(known.install.to_owned()).filter(|_| !own_command);
        let has = |variable: &str| launch.env.contains_key(variable);
        let ways = known.sign_in.iter().filter(|(_, variable)| has(variable));
        launch.sign_in = ways.map(|(method, _)| (*method).to_owned()).collect();
        let args = known.older_args.filter(|_| !own_command);
        older = args.map(|args| Launch {
            args: owned(args),
            ..launch.clone()
        });
    }
    let mut plan = Plan {
        launch,
        older,
        begin: Begin {
            mcp_servers: wanted.mcp_servers.to_vec(),
            ..Begin::default()
        },
    };
    let pieces: Vec<&str> = wanted.system_context.iter().map(String::as_str).collect();
    let context = joined(&pieces);
    if !context.is_empty() {
        let channel = known.map_or(Channel::Prompt, |known| known.channel);
        plan.tell(context, channel);
    }
    Ok(plan)
}

impl Plan {
    /// With what recognises secrets in what the agent says.
    #[must_use]
    pub fn masked(mut self, mask: &Arc<dyn Mask>) -> Self {
        self.launch.mask = Arc::clone(mask);
        if let Some(older) = &mut self.older {
            older.mask = Arc::clone(mask);
        }
        self
    }

    fn tell(&mut self, text: String, channel: Channel) {
        match channel {
            Channel::Meta => {
                let append = json!({ "append": text });
                let meta = Map::from_iter([("systemPrompt".to_owned(), append)]);
                self.begin.meta = Some(meta);
            }
            Channel::Prompt => self.begin.system_prompt = Some(text),
        }
    }

    /// Now that it is known what the agent takes: what it does not take at the beginning of a session goes in front
    /// of a prompt.
    pub fn settle(&mut self, facts: &AgentFacts) {
        self.begin.system_prompt.take_if(|_| !facts.system_prompt);
    }

    /// Returns true if the agent is told its context as its session begins.
    pub fn tells_at_beginning(&self) -> bool {
        self.begin.meta.is_some() || self.begin.system_prompt.is_some()
    }

    /// Starts the agent, an older version of it in its own way, and settles how it is told.
    pub async fn connect(&mut self, host: Arc<dyn Host>) -> Result<Connection, AcpError> {
        let first = Connection::launch(self.launch.clone(), Arc::clone(&host)).await;
        let connection = match (first, self.older.take()) {
            (Err(AcpError::Ended { .. }), Some(older)) => {
                self.launch = older.clone();
                Connection::launch(older, host).await
            }
            (first, _) => first,
        }?;
        self.settle(connection.agent());
        Ok(connection)
    }
}

/// System context as a block of a prompt, for an agent that has no other place for it.
pub fn in_prompt(pieces: &[&str]) -> Value {
    let template = include_str!("../templates/host-context.md");
    // Nothing that is told may end what is told.
    let told = joined(pieces).replace("</host-context", "&lt;/host-context");
    let whole = template.trim_end().replace("{{context}}", &told);
    json!({"type": "text", "text": whole})
}

fn joined(pieces: &[&str]) -> String {
    let pieces = pieces.iter().map(|text| text.trim());
    let pieces: Vec<&str> = pieces.filter(|text| !text.is_empty()).collect();
    pieces.join("\n\n")
}

/// What an agent inherits of these variables.
fn inherited(
    kind: ChildKind,
    known: Option<&Backend>,
    more: &[String],
    ours: impl Iterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    let many = known.is_some_and(|known| MANY_PROVIDERS.contains(&known.name));
    let mut patterns: Vec<&str> = ALL_INHERIT.to_vec();
    patterns.extend(known.map_or(&[][..], |known| known.inherits));
    patterns.extend(if many { PROVIDERS } else { &[] });
    patterns.extend(more.iter().map(String::as_str));
    let takes = |name: &str| {
        let fits = |pattern: &&str| match pattern.strip_suffix('*') {
            Some(beginning) => !beginning.is_empty() && name.starts_with(beginning),
            None => name == *pattern,
        };
        kind.may_have(name) && !is_of_session(name) && patterns.iter().any(fits)
    };
    ours.filter(|(name, _)| takes(name)).collect()
}

fn owned(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn vars(names: &[&str]) -> impl Iterator<Item = (String, String)> {
        let all = names
            .iter()
            .map(|name| ((*name).to_owned(), "x".to_owned()));
        all.collect::<Vec<_>>().into_iter()
    }

    /// Attack 6: a key reaches the agent that it is for, and our own secrets none.
    #[test]
    fn keys_reach_the_agent_that_they_are_for() {
        let ours = [
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "CONTEXTURE_SESSION_TOKEN",
            "CONTEXTURE_SESSION_TOKEN_FILE",
            "CONTEXTURE_URL",
            "CONTEXTURE_WORKER_KEY",
            "CONTEXTURE_HUB_KEY",
            "CONTEXTURE_HUB_URL",
            "CONTEXTURE_MODELS",
            "CONTEXTURE_STORE_URL",
            "HTTPS_PROXY",
        ];
        let has = |name: &str| -> Vec<String> {
            let kind = match name {
                NATIVE => ChildKind::OwnAgent,
                _ => ChildKind::Agent,
            };
            inherited(kind, backend(name), &[], vars(&ours))
                .into_keys()
                .collect()
        };
        assert_eq!(has("claude-code"), ["ANTHROPIC_API_KEY", "HTTPS_PROXY"]);
        assert_eq!(has("codex"), ["HTTPS_PROXY", "OPENAI_API_KEY"]);
        assert_eq!(has("gemini"), ["GEMINI_API_KEY", "HTTPS_PROXY"]);
        assert_eq!(has("somebody"), ["HTTPS_PROXY"]);
        assert_eq!(
            has(NATIVE),
            [
                "ANTHROPIC_API_KEY",
                "CONTEXTURE_MODELS",
                "CONTEXTURE_STORE_URL",
                "GEMINI_API_KEY",
                "HTTPS_PROXY",
                "OPENAI_API_KEY",
            ]
        );
        // Somebody else's program is not ours by a name, and what is ours is not to be had by asking.
        let asked = ["CONTEXTURE_*".to_owned(), "CONTEXTURE_HUB_KEY".to_owned()];
        for known in [backend(NATIVE), None] {
            let some = inherited(ChildKind::Agent, known, &asked, vars(&ours));
            assert!(!some.keys().any(|name| name.starts_with("CONTEXTURE_")));
        }
        let more = ["GITHUB_TOKEN".to_owned(), "*".to_owned()];
        let some = inherited(ChildKind::Agent, None, &more, vars(&ours));
        assert_eq!(
            some.into_keys().collect::<Vec<_>>(),
            ["GITHUB_TOKEN", "HTTPS_PROXY"]
        );
    }

    /// Attack 6: whoever makes an agent, what is ours stays here.
    #[test]
    fn no_backend_inherits_what_is_ours() {
        let ours = [
            "CONTEXTURE_WORKER_KEY",
            "CONTEXTURE_HUB_KEY",
            "CONTEXTURE_HUB_URL",
            "CONTEXTURE_OWNER_SECRET",
            "CONTEXTURE_SESSION_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "PATH_OF_SOMEBODY",
        ];
        for known in BACKENDS {
            let kind = match known.name {
                NATIVE => ChildKind::OwnAgent,
                _ => ChildKind::Agent,
            };
            let asked = ours.map(str::to_owned);
            let asked = &asked[..5];
            for more in [&[][..], asked] {
                let has = inherited(kind, Some(known), more, vars(&ours));
                assert!(has.is_empty(), "{}: {has:?}", known.name);
            }
        }
    }

    /// Whoever is to answer is asked, whatever the daemon's own environment says.
    #[test]
    fn what_makes_an_agent_ask_is_not_overridden() {
        for known in BACKENDS {
            let mut wanted = Wanted::new(known.name, Path::new("/"));
            for (name, _) in known.sets {
                wanted.env.insert((*name).to_owned(), "auto".to_owned());
            }
            let plan = plan(wanted).unwrap();
            for (name, value) in known.sets {
                assert_eq!(plan.launch.env[*name], *value, "{}", known.name);
            }
        }
        let sets = |name: &str| backend(name).unwrap().sets;
        assert_eq!(sets("codex"), [("INITIAL_AGENT_MODE", "workspace-write")]);
        assert_eq!(sets("goose"), [("GOOSE_MODE", "approve")]);
    }

    #[test]
    fn gemini_trusts_the_folders_that_the_user_trusts() {
        let args = |trusted: bool| {
            let wanted = Wanted {
                trusted,
                ..Wanted::new("gemini", Path::new("/"))
            };
            plan(wanted).unwrap().launch.args
        };
        assert_eq!(args(false), ["--acp"]);
        assert_eq!(args(true), ["--acp", "--skip-trust"]);
    }

    #[test]
    fn system_context_goes_the_way_that_the_agent_takes() {
        let context = [
            "You are a.".to_owned(),
            "  ".to_owned(),
            "There is b.".to_owned(),
        ];
        let of = |backend: &'static str| {
            let wanted = Wanted {
                system_context: &context,
                ..Wanted::new(backend, Path::new("/"))
            };
            plan(wanted).unwrap()
        };
        let claude = of("claude-code");
        let meta = Value::Object(claude.begin.meta.clone().unwrap());
        assert_eq!(
            meta,
            json!({"systemPrompt": {"append": "You are a.\n\nThere is b."}})
        );
        assert!(claude.tells_at_beginning() && claude.begin.system_prompt.is_none());

        let mut old = of("codex");
        let mut new = old.clone();
        old.settle(&AgentFacts::default());
        assert!(!old.tells_at_beginning());
        let block = in_prompt(&["You are a.", "  ", "There is b.</host-context>"]);
        let block = block["text"].as_str().unwrap();
        assert!(block.contains("\nYou are a.\n\nThere is b.&lt;/host-context>\n"));
        new.settle(&AgentFacts {
            system_prompt: true,
            ..AgentFacts::default()
        });
        assert!(new.tells_at_beginning());
        assert_eq!(
            new.begin.system_prompt.as_deref(),
            Some("You are a.\n\nThere is b.")
        );
    }

    #[test]
    fn a_command_stands_for_any_agent() {
        let command = ["mine".to_owned(), "--acp".to_owned()];
        let wanted = Wanted {
            command: &command,
            ..Wanted::new("whatever", Path::new("/"))
        };
        let plan = plan(wanted).unwrap();
        assert_eq!(
            (plan.launch.program.as_str(), &plan.launch.args[..]),
            ("mine", &command[1..])
        );
        assert_eq!(plan.launch.install, None);

        let error = super::plan(Wanted::new("claude_code", Path::new("/"))).unwrap_err();
        assert!(
            error.hint().contains("did you mean `claude-code`"),
            "{}",
            error.hint()
        );
    }

    #[test]
    fn names_in_the_table_are_its_keys() {
        for backend in BACKENDS {
            let same = BACKENDS.iter().filter(|other| other.name == backend.name);
            assert_eq!(same.count(), 1, "{}", backend.name);
        }
        assert!(MANY_PROVIDERS.iter().all(|name| backend(name).is_some()));
    }
}
