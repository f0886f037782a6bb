//! Ctrl-C, while the model reads.

use std::io::{BufRead, BufReader, Read};
use std::process::Command;

use serde_json::Value;

use crate::demo::scene::Scene;

// needs: model
#[test]
fn it_can_be_stopped_and_the_log_is_whole() {
    let Some(scene) = Scene::new() else { return };
    let mut demo = scene.ctx(&["demo", "--json"]).command().spawn().unwrap();
    let mut out = BufReader::new(demo.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let build: Value = serde_json::from_str(&line).unwrap();
    let session = build["session"].as_str().unwrap();
    let pid = demo.id().to_string();
    let told = Command::new("kill").args(["-INT", &pid]).status();
    assert!(told.unwrap().success());
    let (mut more, mut said) = (String::new(), String::new());
    out.read_to_string(&mut more).unwrap();
    let mut stderr = demo.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(1), "{said}");
    assert_eq!(more, "", "no step is told that was not done");
    assert!(said.starts_with("ctx: stopped\n"), "{said}");
    assert!(said.contains(&format!("ctx inspect {session}")), "{said}");
    let request = scene.project.entry_of(session, "request");
    assert_eq!(request["payload"]["outcome"], "cancelled");
    assert_eq!(request["payload"]["digest"], build["receipt"]["digest"]);
    let (_, said) = scene.ctx(&["replay", session, "--verify"]).ends(0);
    assert!(said.contains("made again byte for byte"), "{said}");
}
