use std::ffi::OsString;
use std::path::PathBuf;

use contexture::inject::{AgentInstanceMeta, ContextProvider, Item, Offer, Traits};

use super::answer;
use super::program::Program;
use crate::config::ProviderConfig;

/// What a program says.
pub struct FromCommand {
    pub of: ProviderConfig,
    pub words: Vec<String>,
    pub root: PathBuf,
    pub supervisor: Option<Vec<OsString>>,
}

impl ContextProvider for FromCommand {
    fn name(&self) -> &str {
        &self.of.name
    }

    fn traits(&self) -> Traits {
        super::traits(&self.of)
    }

    fn system_context(&self, meta: &AgentInstanceMeta) -> Result<Vec<Item<String>>, String> {
        Ok(self.offer(meta)?.system_context)
    }

    fn offer(&self, meta: &AgentInstanceMeta) -> Result<Offer, String> {
        let input = serde_json::to_vec(meta).map_err(|error| error.to_string())?;
        let program = Program {
            words: &self.words,
            folder: &self.root,
            supervisor: self.supervisor.as_deref(),
            timeout: self.of.timeout,
            most: self.of.max_bytes,
        };
        answer::read(program.run(input)?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::testing::{meta, of};
    use super::*;
    use crate::config::ProviderKind;

    #[test]
    fn a_program_knows_whom_it_speaks_to() {
        let words: Vec<String> = ["sh", "-c", "grep -o '\"name\":\"[a-z]*\"'"]
            .map(str::to_owned)
            .into();
        let provider = FromCommand {
            of: of(ProviderKind::Command(words.clone())),
            words,
            root: "/".into(),
            supervisor: None,
        };
        let offer = provider.offer(&meta()).unwrap();
        assert_eq!(offer.system_context[0].value, "\"name\":\"ada\"");
    }
}
