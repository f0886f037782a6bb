//! A real model, small as it is, behind llama.cpp's own server: it speaks all three forms.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::scene::Scene;

/// The server, until it is dropped.
struct Llama {
    child: Child,
    url: String,
}

impl Llama {
    fn start() -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        if !root.join("target/model/stamp").is_file() {
            println!("skipped: the model is not installed; ./test does that");
            return None;
        }
        let mut child = Command::new(root.join("target/model/bin/python"))
            .arg(root.join("tests/counterparts/serve_model.py"))
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
        Some(Self {
            child,
            url: format!("{url}/v1"),
        })
    }
}

impl Drop for Llama {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// needs: model
#[test]
fn a_real_model_answers_in_every_form_and_its_requests_can_be_made_again() {
    let Some(llama) = Llama::start() else { return };
    let scene = Scene::new([]);
    for provider in ["openai", "openai-responses", "anthropic"] {
        let model = format!("{provider}:smollm2");
        let run = |text: &str| {
            let args = [
                "run",
                text,
                "--json",
                "--model",
                &model,
                "--base-url",
                &llama.url,
            ];
            let limits = ["--budget", "8000", "--reserve", "64", "--session", provider];
            scene.ctx(&[args.as_slice(), &limits].concat()).run()
        };
        for text in ["Say hello.", "Say it again."] {
            let output = run(text);
            let stdout = String::from_utf8(output.stdout).unwrap();
            let done: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
            // It may talk until it is cut off: a small model does.
            let ended = done["ended"].as_str().unwrap();
            assert!(["answered", "length"].contains(&ended), "{model}: {done}");
            assert!(
                !done["text"].as_str().unwrap().is_empty(),
                "{model}: {done}"
            );
            assert!(
                done["usage"]["inputTokens"].as_u64().unwrap() > 0,
                "{model}: {done}"
            );
            assert!(
                done["usage"]["outputTokens"].as_u64().unwrap() > 0,
                "{model}: {done}"
            );
        }
        let verified = scene.ctx(&["replay", provider, "--verify"]).success();
        assert!(verified.contains("2 request"), "{verified}");
    }
}
