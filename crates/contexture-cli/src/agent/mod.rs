//! From options and configuration to an agent that is ready to run.

mod approve;
mod interrupt;
mod model;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use contexture::Settings;
use contexture::entry::SessionHeader;
use contexture::prompt::ToolPolicy;
use contexture_agent::{Agent, Chat, Limits, Options, Stores, clock};
use contexture_store::{Key, Memories, Sessions, Transcripts};
use contexture_tools::approval::{Approvals, Standing};
use contexture_tools::skills::{Places, Skills};
use contexture_tools::system::{self, Project};
use contexture_tools::{Secrets, Tools, Toolset, builtin};
use serde_json::{Map, Value, json};

use self::approve::Terminal;
pub use self::interrupt::Interrupt;
pub use self::model::model;
pub use crate::args::AgentOptions;
use crate::config::{self, Config};
use crate::error::CliError;
use crate::view::Screen;
use crate::{settings, store};

/// An agent with its conversation.
pub struct Ready {
    pub agent: Agent,
    pub chat: Chat,
    pub sessions: Sessions,
    pub skills: Arc<Skills>,
    pub config: Config,
    /// What a person should know before it starts.
    pub notices: Vec<String>,
}

/// How long a person has to answer whether a tool may act.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(600);

/// Makes the agent, and opens its conversation. `kind` names a conversation that nobody named.
pub fn ready(
    options: &AgentOptions,
    kind: &str,
    dir: Option<&Path>,
    screen: &Arc<Screen>,
) -> Result<Ready, CliError> {
    let config = config::load(dir)?;
    let home = store::open(dir)?;
    let log = Arc::clone(home.sessions.log());
    let stores = Stores {
        transcripts: Transcripts::new(Arc::clone(&log)),
        memories: Memories::new(Arc::clone(&log), 200),
    };
    let model = model(options.model.as_deref(), options.base_url.as_deref())?;
    let settings = settings_for(options, &config, model.name(), model.api().wire())?;
    let key = match &options.session {
        Some(name) => Key::new(name.as_str())?,
        None => fresh(&home.sessions, kind)?,
    };
    let header = SessionHeader {
        agent: Some("contexture".to_owned()),
        cwd: Some(config.root.display().to_string()),
        ..SessionHeader::default()
    };
    let tokenizer = Arc::clone(&settings.tokenizer);
    let chat = Chat::open(&home.sessions, &key, header, settings)?;
    let trusted = true;
    let skills = Arc::new(skills(&config, trusted));
    let tools: Arc<dyn Tools> = Arc::new(builtin::tools(builtin::Stores {
        transcripts: stores.transcripts.clone(),
        memories: stores.memories.clone(),
        skills: Arc::clone(&skills),
    }));
    let cwd = std::env::current_dir().unwrap_or_else(|_| config.root.clone());
    let (sections, notices) = system::sections(&Project {
        root: &config.root,
        cwd: &cwd,
        trusted,
        skills: &skills,
        tokenizer: tokenizer.as_ref(),
        skills_tokens: SKILLS_TOKENS,
    });
    let toolset = Toolset::new(
        ToolPolicy::default(),
        approvals(options, screen),
        Secrets::from_env(),
    )
    .with(tools);
    let agent = Agent {
        model,
        tools: toolset,
        stores,
        options: Options {
            limits: Limits {
                max_steps: options.max_steps.unwrap_or(30),
                ..Limits::default()
            },
            max_injected: 120,
            sections,
            runtime_init: runtime_init(&config),
            hints: hints(),
        },
    };
    Ok(Ready {
        agent,
        chat,
        sessions: home.sessions,
        skills,
        config,
        notices: notices
            .into_iter()
            .map(|notice| format!("{}: {}", notice.place, notice.what))
            .collect(),
    })
}

/// The most tokens of the overview of skills.
const SKILLS_TOKENS: usize = 2_000;

/// The skills of the user and, where the folder is trusted, of the project.
fn skills(config: &Config, trusted: bool) -> Skills {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let own = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let own = own.or_else(|| home.as_ref().map(|home| home.join(".config")));
    let own = own.map(|own| own.join("contexture"));
    let places = Places::of_user(own.as_deref(), home.as_deref());
    Skills::discover(&match trusted {
        true => places.and_project(&config.root),
        false => places,
    })
}

/// How requests are built for this model.
pub fn settings_for(
    options: &AgentOptions,
    config: &Config,
    model: &str,
    wire: contexture::Wire,
) -> Result<Settings, CliError> {
    let mut settings = settings::for_agent(options, config, model)?;
    settings.wire = wire;
    settings.params.insert("stream".to_owned(), json!(true));
    if wire == contexture::Wire::OpenAi {
        // Without it a stream does not say what it cost.
        let usage = json!({"include_usage": true});
        settings.params.insert("stream_options".to_owned(), usage);
    }
    Ok(settings)
}

/// What is allowed from the start, and whom to ask for the rest.
fn approvals(options: &AgentOptions, screen: &Arc<Screen>) -> Approvals {
    let standing = Standing {
        all: options.allow_all,
        tools: options.allow.clone(),
        calls: None,
    };
    let approvals = Approvals::new(standing);
    match Terminal::here(screen) {
        Some(terminal) => approvals.asking(Arc::new(terminal), PATIENCE),
        None => approvals,
    }
}

/// A name that no conversation has yet: the kind, the day and the time.
fn fresh(sessions: &Sessions, kind: &str) -> Result<Key, CliError> {
    let now = clock::now();
    let digits: String = now.chars().filter(char::is_ascii_digit).take(14).collect();
    let (day, time) = digits.split_at(8.min(digits.len()));
    let plain = format!("{kind}-{day}-{time}");
    let mut key = Key::new(plain.as_str())?;
    let mut n = 2;
    while sessions.exists(&key)? {
        key = Key::new(format!("{plain}-{n}"))?;
        n += 1;
    }
    Ok(key)
}

fn runtime_init(config: &Config) -> Map<String, Value> {
    let here = std::env::current_dir().unwrap_or_else(|_| config.root.clone());
    Map::from_iter([
        (
            "workingDirectory".to_owned(),
            json!(here.display().to_string()),
        ),
        ("system".to_owned(), json!(std::env::consts::OS)),
    ])
}

/// The day, not the time: it is new once a day, and the request's beginning stays the same.
fn hints() -> Map<String, Value> {
    let day: String = clock::now().chars().take(10).collect();
    Map::from_iter([("date".to_owned(), json!(day))])
}
