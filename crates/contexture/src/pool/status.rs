use serde::Serialize;

/// What a resource is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It is free to take work now.
    #[default]
    Available,
    /// A task has it, and has not begun.
    Deployed,
    /// It works on its task.
    Busy,
    /// Its task waits for something, and keeps it.
    Blocked,
    /// It failed, and takes no work until it has recovered.
    Error,
    /// It is out of service, by somebody's will.
    Released,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Available,
        Self::Deployed,
        Self::Busy,
        Self::Blocked,
        Self::Error,
        Self::Released,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Deployed => "deployed",
            Self::Busy => "busy",
            Self::Blocked => "blocked",
            Self::Error => "error",
            Self::Released => "released",
        }
    }

    /// The status of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether a task has it.
    pub fn is_held(self) -> bool {
        matches!(self, Self::Deployed | Self::Busy | Self::Blocked)
    }

    /// Whether it will take work, now or when its task is done: what the catalog counts.
    pub fn is_in_service(self) -> bool {
        self == Self::Available || self.is_held()
    }
}
