//! Scripts of `tests/counterparts`, run by the Python that has the SDKs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// The Python that has the SDKs, where it is installed.
pub struct Python(PathBuf);

/// What is wrong with a body; nothing where all is well.
pub type Errors = Vec<String>;

impl Python {
    pub fn find() -> Option<Self> {
        let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/counterparts");
        let folder = std::env::var_os("CONTEXTURE_COUNTERPARTS").map_or(usual, PathBuf::from);
        if !folder.join("stamp").is_file() {
            println!("skipped: the SDKs are not installed; ./test does that");
            return None;
        }
        Some(Self(folder.join("venv/bin/python")))
    }

    /// Holds each body against the SDK's types and the provider's rules.
    #[track_caller]
    pub fn check(&self, bodies: &[(&str, Value)]) -> Vec<Errors> {
        let asked = bodies
            .iter()
            .map(|(wire, body)| json!({"wire": wire, "body": body}));
        let told = self.run("check_requests.py", &[], asked);
        assert_eq!(told.len(), bodies.len());
        let errors = told.into_iter().map(|told| {
            let errors: Errors = serde_json::from_value(told["errors"].clone()).unwrap();
            assert_eq!(told["ok"], errors.is_empty());
            errors
        });
        errors.collect()
    }

    /// Every body is right; the shortest that are not are shown.
    #[track_caller]
    pub fn accepts(&self, what: &str, bodies: &[(&str, Value)]) {
        self.accepts_all_but(what, bodies, |_, _| false);
    }

    /// The same, where some errors on a wire are known and told elsewhere.
    #[track_caller]
    pub fn accepts_all_but(
        &self,
        what: &str,
        bodies: &[(&str, Value)],
        known: impl Fn(&str, &str) -> bool,
    ) {
        let mut checked = self.check(bodies);
        for ((wire, _), errors) in std::iter::zip(bodies, &mut checked) {
            errors.retain(|error| !known(wire, error));
        }
        let mut wrong: Vec<_> = std::iter::zip(bodies, checked)
            .filter(|(_, errors)| !errors.is_empty())
            .map(|((wire, body), errors)| (body.to_string(), *wire, errors))
            .collect();
        wrong.sort_by_key(|(body, ..)| body.len());
        println!("{what}: {} bodies, {} wrong", bodies.len(), wrong.len());
        for (body, wire, errors) in wrong.iter().take(5) {
            println!("{wire}: {errors:#?}\n{}", clip(body));
        }
        let left: Vec<_> = wrong
            .iter()
            .map(|(_, wire, errors)| (wire, errors))
            .collect();
        assert!(left.is_empty(), "{what}: {left:?}");
    }

    /// Runs a script, one JSON document a line in, one a line out.
    #[track_caller]
    pub fn run(
        &self,
        script: &str,
        args: &[&str],
        input: impl IntoIterator<Item = Value>,
    ) -> Vec<Value> {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/counterparts");
        let mut child = Command::new(&self.0)
            // Nothing is written beside the scripts.
            .arg("-B")
            .arg(scripts.join(script))
            .args(args)
            .env("NO_PROXY", "127.0.0.1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input: String = input.into_iter().map(|line| format!("{line}\n")).collect();
        let feeder = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap().unwrap();
        assert!(output.status.success(), "{script} failed");
        let told = String::from_utf8(output.stdout).unwrap();
        told.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn clip(text: &str) -> String {
    text.chars().take(4_000).collect()
}
