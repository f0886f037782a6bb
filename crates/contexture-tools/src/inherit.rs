//! What programs that we start find of our environment: one table for all of them.
//!
//! Our variables hold secrets: a worker's key, a hub's, a database's password. So none of them goes to anybody whose row
//! does not name it, whoever asked for it and by whatever pattern.

use std::ffi::OsString;

/// A kind of program that we start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildKind {
    /// Somebody else's agent.
    Agent,
    /// Our own agent.
    OwnAgent,
    /// A command that an agent asks us to run.
    Terminal,
    /// An MCP server.
    McpServer,
    /// A command that is told of events.
    Hook,
    /// A provider of context.
    Provider,
    /// A program that does tasks.
    Worker,
}

/// What all of them inherit: what it takes to run, and no keys.
pub const BASE: [&str; 11] = [
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ",
    "USER",
];

/// How our own variables begin.
const OURS: &str = "CONTEXTURE_";

/// The variables by which a program finds its session.
pub const SESSION: [&str; 3] = [
    "CONTEXTURE_SESSION_TOKEN",
    "CONTEXTURE_SESSION_TOKEN_FILE",
    "CONTEXTURE_URL",
];

/// Which of our own variables each may be given. They are given, not inherited: only our own agent has them from us.
pub const TABLE: [(ChildKind, &[&str]); 7] = [
    (
        ChildKind::Agent,
        &["CONTEXTURE_SESSION_TOKEN_FILE", "CONTEXTURE_URL"],
    ),
    (
        ChildKind::OwnAgent,
        &[
            "CONTEXTURE_LOG",
            "CONTEXTURE_MODELS",
            "CONTEXTURE_SESSION_TOKEN_FILE",
            "CONTEXTURE_STORE_URL",
            "CONTEXTURE_TRUST",
            "CONTEXTURE_URL",
        ],
    ),
    // An agent may hand on its own session, by its file or its token.
    (ChildKind::Terminal, &SESSION),
    // The session's tools are an MCP server: ourselves.
    (ChildKind::McpServer, &SESSION),
    (ChildKind::Hook, &[]),
    (ChildKind::Provider, &[]),
    (
        ChildKind::Worker,
        &[
            "CONTEXTURE_TASK_ATTEMPT",
            "CONTEXTURE_TASK_CONTEXT",
            "CONTEXTURE_TASK_ID",
        ],
    ),
];

impl ChildKind {
    /// Whether it may have a variable of this name, if somebody gives it one.
    pub fn may_have(self, name: &str) -> bool {
        let row = TABLE.iter().find(|(child, _)| *child == self);
        let named = row.is_some_and(|(_, ours)| ours.contains(&name));
        named || !name.to_ascii_uppercase().starts_with(OURS)
    }
}

/// What everybody inherits of our environment.
pub fn base() -> impl Iterator<Item = (&'static str, OsString)> {
    BASE.into_iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)))
}

/// Returns true if a variable is a session's, which no program takes over from us: it is told its own, or none.
pub fn is_of_session(name: &str) -> bool {
    SESSION.contains(&name)
}

/// Whether a configuration may say `${NAME}`: what is ours is not for others, under no other name either.
pub fn may_be_named(name: &str) -> bool {
    !name.to_ascii_uppercase().starts_with(OURS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind has a row, and none has a secret that is not its own.
    #[test]
    fn nobody_has_a_secret_of_somebody_else() {
        let all = [
            ChildKind::Agent,
            ChildKind::OwnAgent,
            ChildKind::Terminal,
            ChildKind::McpServer,
            ChildKind::Hook,
            ChildKind::Provider,
            ChildKind::Worker,
        ];
        for child in all {
            assert_eq!(
                TABLE.iter().filter(|(known, _)| *known == child).count(),
                1,
                "{child:?}"
            );
            for secret in [
                "CONTEXTURE_WORKER_KEY",
                "CONTEXTURE_HUB_KEY",
                "CONTEXTURE_HUB_URL",
                "CONTEXTURE_OWNER_SECRET",
                "CONTEXTURE_ANYTHING_NEW",
                "Contexture_Worker_Key",
            ] {
                assert!(!child.may_have(secret), "{child:?} has {secret}");
            }
            assert!(child.may_have("CI"));
            let token = child.may_have("CONTEXTURE_SESSION_TOKEN");
            assert_eq!(
                token,
                matches!(child, ChildKind::Terminal | ChildKind::McpServer),
                "{child:?}"
            );
            let place = child.may_have("CONTEXTURE_SESSION_TOKEN_FILE");
            let starts_none = matches!(
                child,
                ChildKind::Hook | ChildKind::Provider | ChildKind::Worker
            );
            assert_eq!(place, !starts_none, "{child:?}");
            let database = child.may_have("CONTEXTURE_STORE_URL");
            assert_eq!(database, child == ChildKind::OwnAgent, "{child:?}");
        }
        let is_key = |name: &&str| contexture_model::names_key(name);
        assert!(!BASE.iter().any(is_key));
    }
}
