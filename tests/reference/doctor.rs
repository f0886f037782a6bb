//! `ctx doctor` on the machine: keys, sandbox, models, daemon.

use serde_json::Value;

use crate::common::Project;

fn check(report: &Value, name: &str) -> Value {
    let mut all = report["machine"].as_array().unwrap().iter();
    all.find(|check| check["check"] == name).unwrap().clone()
}

#[test]
fn keys_are_named_and_never_shown() {
    let project = Project::new();
    let key = "sk-of-the-tests-1234567890";
    let doctor = || {
        project
            .ctx(&["doctor", "--json"])
            .env("OPENAI_API_KEY", key)
            .env("ANTHROPIC_API_KEY", "")
    };
    let text = doctor().success();
    assert!(!text.contains("1234567890"), "{text}");
    let keys = check(&doctor().json(), "keys");
    assert_eq!(
        keys["says"],
        "ANTHROPIC_API_KEY is not set, OPENAI_API_KEY is set"
    );
    assert_eq!(keys["state"], "fine");
    // A model that needs the one that is missing.
    let config = project.home().join(".config/contexture");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("contexture.json"), r#"{"model":"anthropic:m"}"#).unwrap();
    let keys = check(&doctor().json(), "keys");
    assert_eq!(keys["state"], "warning");
    assert_eq!(keys["hint"], "`anthropic:m` needs ANTHROPIC_API_KEY");
    // People see the same.
    let shown = doctor_in_words(&project);
    for name in ["keys", "sandbox", "models", "daemon"] {
        assert!(shown.lines().any(|line| line.starts_with(name)), "{shown}");
    }
}

fn doctor_in_words(project: &Project) -> String {
    project.ctx(&["doctor"]).success()
}

#[test]
fn a_damaged_model_fails_and_a_missing_one_does_not() {
    let project = Project::new();
    let models = project.home().join("models");
    let doctor = || {
        project
            .ctx(&["doctor", "--json"])
            .env("CONTEXTURE_MODELS", models.to_str().unwrap())
    };
    let none = check(&doctor().json(), "models");
    assert_eq!(
        (none["state"].as_str(), none["says"].as_str()),
        (Some("fine"), Some("none on this machine"))
    );
    std::fs::create_dir_all(&models).unwrap();
    std::fs::write(models.join("odd.gguf"), "no model").unwrap();
    std::fs::write(models.join("odd.json"), "{}").unwrap();
    let (stdout, stderr) = doctor().ends(1);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(check(&report, "models")["state"], "broken", "{stdout}");
    assert!(stderr.contains("1 problem found"), "{stderr}");
}
