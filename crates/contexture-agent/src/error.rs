use contexture::ContextError;
use contexture_model::ModelError;
use contexture_store::StoreError;

/// Why a run could not go on. What was logged by then is whole.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The request could not be built.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// The log could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The model did not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl AgentError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Context(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::Model(error) => error.hint().to_owned(),
        }
    }
}
