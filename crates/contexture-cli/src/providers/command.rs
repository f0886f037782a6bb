use std::ffi::OsString;
use std::path::PathBuf;

use contexture::inject::{AgentInstanceMeta, ContextProvider, Item, Offer, ProviderCall, Traits};
use serde_json::{Value, json};

use super::program::Program;
use super::{Judge, answer};
use crate::config::ProviderConfig;

/// What a program says.
pub struct FromCommand {
    pub of: ProviderConfig,
    pub words: Vec<String>,
    pub root: PathBuf,
    pub supervisor: Option<Vec<OsString>>,
    pub judge: Judge,
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
        let mut meta = json!(meta);
        // The key by which a program knows a call.
        if let Some(meta) = meta.as_object_mut() {
            meta.shift_remove(CALL);
        }
        answer::read(self.run(&meta)?)
    }

    fn call(&self, call: &ProviderCall) -> Result<Value, String> {
        answer::content(self.run(&json!({ CALL: call }))?)
    }
}

/// The key of what is asked of a program that is to answer a call.
const CALL: &str = "call";

impl FromCommand {
    /// Runs the program with this input and returns its output.
    fn run(&self, input: &Value) -> Result<Vec<u8>, String> {
        super::still_trusted(&self.of, &self.root, self.judge)?;
        let program = Program {
            words: &self.words,
            folder: &self.root,
            supervisor: self.supervisor.as_deref(),
            timeout: self.of.timeout,
            most: self.of.max_bytes,
        };
        program.run(input.to_string().into_bytes())
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
            judge: |_| Ok(crate::trust::State::Trusted),
        };
        let offer = provider.offer(&meta()).unwrap();
        assert_eq!(offer.system_context[0].value, "\"name\":\"ada\"");
    }
}
