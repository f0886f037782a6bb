//! Models on this machine, in this process.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_model::gguf::Header;
use contexture_model::local::{LocalError, LocalModel, LocalOptions, Vocabulary, window};
use contexture_model::{Model, weights};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::config::LocalConfig;
use crate::error::CliError;
use crate::models::{self, Reader};

/// Sees to it that the model of this name is here, where it can be pulled.
pub async fn fetched(name: &str) -> Result<(), CliError> {
    let here = models::shelf()?.get(name)?.is_some();
    if !here && weights::known(name).is_some() {
        models::fetch(name, false).await?;
    }
    Ok(())
}

/// The model of this name, ready to answer. `spec` is what requests call it.
pub fn open(spec: &str, name: &str, limits: LocalConfig) -> Result<Arc<dyn Model>, CliError> {
    let weights = models::here(name)?;
    let model = LocalModel::open(spec, &weights.path, options(limits)).map_err(wrong)?;
    Ok(Arc::new(model))
}

/// The tokenizer of the model of this name, and its window.
pub fn reader(spec: &str, name: &str, limits: LocalConfig) -> Result<Reader, CliError> {
    let weights = models::here(name)?;
    let header = Header::of_file(&weights.path).map_err(|error| wrong(error.into()))?;
    let vocabulary = Vocabulary::open(spec, &weights.path).map_err(wrong)?;
    Ok(Reader {
        tokenizer: Arc::new(vocabulary),
        window: Some(window(&header, options(limits))),
    })
}

fn options(limits: LocalConfig) -> LocalOptions {
    LocalOptions {
        threads: limits.threads,
        window: limits.window,
        ..LocalOptions::default()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err gives it")]
fn wrong(error: LocalError) -> CliError {
    let (what, hint) = (error.to_string(), error.hint());
    match error {
        LocalError::Memory { .. } => CliError::Unfinished { what, hint },
        _ => CliError::BadModel { what, hint },
    }
}

/// Loads a file and has it say a word, in a process of its own: what a file can do to the engine, it
/// does to that one.
pub fn tried(path: &Path) -> Result<(), CliError> {
    // What is wrong with most files is found without the engine, and said better.
    Header::of_file(path).map_err(|error| wrong(error.into()))?;
    let failed = |what: String| CliError::BadModel {
        what: format!("{}: {what}", path.display()),
        hint: "take another file of this model; the engine cannot work with this one".to_owned(),
    };
    let us = std::env::current_exe()?;
    let mut child = Command::new(us)
        .arg("__try-model")
        .arg(path)
        // The engine finds its drivers by its environment; what a file makes of it finds no keys there.
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| {
            let name = name.to_string_lossy();
            !contexture_model::names_key(&name) && !name.starts_with("CONTEXTURE_")
        }))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let began = Instant::now();
    while child.try_wait()?.is_none() {
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(format!(
                "nothing came of it in {} s",
                PATIENCE.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output()?;
    match output.status.code() {
        Some(0) => Ok(()),
        Some(_) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(failed(said.trim().to_owned()))
        }
        None => Err(failed(format!("the engine ends on it ({})", output.status))),
    }
}

/// The other side of [`tried`].
pub fn try_here(path: &Path) -> Result<(), String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let header = Header::of_file(path).map_err(|e| said(&e))?;
    // The file is mapped and may be read once more; beside that, what any model of the size takes.
    let most = header
        .weight_bytes()
        .saturating_mul(3)
        .saturating_add(6 << 30);
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    setrlimit(Resource::As, limit).map_err(|e| said(&e))?;
    let options = LocalOptions {
        window: Some(512),
        threads: Some(1),
        ..LocalOptions::default()
    };
    let model = LocalModel::open("tried", path, options).map_err(|e| said(&e))?;
    let body = br#"{"messages":[{"role":"user","content":"Hi"}],"max_tokens":1}"#;
    let runtime = crate::command::runtime().map_err(|e| said(&e))?;
    let answered = runtime.block_on(model.call(body.to_vec(), &mut |_| {}));
    answered.map(drop).map_err(|e| said(&e))
}

/// How long a file may take to say a word.
const PATIENCE: Duration = Duration::from_secs(300);
