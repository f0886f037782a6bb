//! The table of agents that are known by name: how each is started, which variables it inherits and is given, and
//! how context reaches it.

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
pub(super) const ALL_INHERIT: &[&str] = &[
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
pub(super) const PROVIDERS: &[&str] = &[
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
pub(super) const MANY_PROVIDERS: &[&str] = &[NATIVE, "opencode", "goose", "pi"];

/// The agent of this name.
pub fn backend(name: &str) -> Option<&'static Backend> {
    BACKENDS.iter().find(|backend| backend.name == name)
}
