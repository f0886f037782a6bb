//! Tests of how agents are started: keys, arguments, and variables that are set for them.
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
