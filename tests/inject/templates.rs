//! Templates by name, and those that the user or a trusted project puts in the place of ours.

use std::path::PathBuf;

use serde_json::Value;

use crate::common::Project;

fn user(project: &Project, name: &str, text: &str) -> PathBuf {
    let folder = project.home().join(".config/contexture/templates");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{name}.md"));
    std::fs::write(&file, text).unwrap();
    file
}

fn of_project(project: &Project, name: &str, text: &str) {
    std::fs::create_dir_all(project.path().join(".contexture/templates")).unwrap();
    project.write(&format!(".contexture/templates/{name}.md"), text);
}

fn begins(project: &Project) -> Value {
    let args = [
        "inject",
        "--name",
        "ada",
        "--archetype",
        "service",
        "--json",
    ];
    project.ctx(&args).json()["systemContextAdditions"].take()
}

#[test]
fn a_template_is_listed_and_shown_by_its_name() {
    let project = Project::new();
    let text = project
        .ctx(&["templates", "show", "core-identity"])
        .success();
    assert!(text.contains("You are **{{ agentName }}**"), "{text}");
    let list = project.ctx(&["templates", "list"]).success();
    assert!(
        list.contains("tool-instructions") && list.contains("cannot be replaced"),
        "{list}"
    );
    let stderr = project
        .ctx(&["templates", "show", "core-identiti"])
        .failure(3, "no such template");
    assert!(stderr.contains("did you mean `core-identity`"), "{stderr}");
}

#[test]
fn the_users_template_stands_in_the_place_of_ours() {
    let project = Project::new();
    let file = user(
        &project,
        "core-identity",
        "I am {{ agentName }}, a {{ archetype }}.\n",
    );
    user(&project, "mode", "We are in {{ mode }} mode.\n");
    assert_eq!(begins(&project)[0], "I am ada, a service.");
    let shown = project
        .ctx(&["templates", "show", "core-identity", "--json"])
        .json();
    assert_eq!(shown["place"], file.display().to_string());
    let composed = project
        .ctx(&["compose"])
        .input(r#"{"mode":"chat","messages":[]}"#)
        .success();
    assert!(composed.starts_with("We are in CHAT mode."), "{composed}");
}

/// Attacks 42 and 45: a folder's templates count once they were shown and trusted, and not when they changed since.
#[test]
fn a_projects_template_needs_trust() {
    let project = Project::new();
    user(&project, "core-identity", "The user's.");
    of_project(&project, "core-identity", "The project's.");
    assert_eq!(begins(&project)[0], "The user's.");
    let shown = project.ctx(&["trust"]).run();
    let shown = String::from_utf8_lossy(&[shown.stdout, shown.stderr].concat()).into_owned();
    assert!(
        shown.contains(".contexture/templates/core-identity.md"),
        "{shown}"
    );
    project.ctx(&["trust", "--yes"]).success();
    assert_eq!(begins(&project)[0], "The project's.");
    of_project(&project, "core-identity", "Somebody else's.");
    assert_eq!(begins(&project)[0], "The user's.");
}

/// Attack 28: a template looks up, tests and loops, and nothing else.
#[test]
fn a_template_that_is_wrong_is_named_with_its_place() {
    for (name, text, words) in [
        ("core-identity", "{{ agentNam }}", "`agentNam` is undefined"),
        ("core-identity", "{% set a = 1 %}", "line 1"),
        ("core-identity", "{% if agentName %}", "core-identity"),
        ("core-identitee", "x", "there is no such template"),
        ("summary", "x", "cannot be replaced"),
    ] {
        let project = Project::new();
        let file = user(&project, name, text);
        let stderr = project.ctx(&["inject"]).failure(3, words);
        let place = file.file_name().unwrap().to_string_lossy().into_owned();
        assert!(stderr.contains(&place), "{stderr}");
    }
}

/// Attack 13: a project's template is a file in the project.
#[test]
fn a_projects_template_does_not_lead_out_of_it() {
    let project = Project::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "the secret").unwrap();
    std::fs::create_dir_all(project.path().join(".contexture/templates")).unwrap();
    let link = project
        .path()
        .join(".contexture/templates/core-identity.md");
    std::os::unix::fs::symlink(outside.path().join("secret"), link).unwrap();
    let inject = project.ctx(&["inject"]).env("CONTEXTURE_TRUST", "1");
    let stderr = inject.failure(3, "leads out of the project");
    assert!(!stderr.contains("the secret"));
}

/// The rules for our own agent's work can be replaced too, and get the tools that it is offered.
#[test]
fn the_agents_own_rules_can_be_replaced() {
    use crate::agent::scene::{Scene, says};
    let scene = Scene::new([says("Hello.")]);
    user(
        &scene.project,
        "how-to-work",
        "Work well{% if \"chat_send\" in tools %} and say so{% endif %}.",
    );
    scene.run("openai:gpt-4o", &["hi"]).success();
    assert!(
        scene.sent(0).contains("Work well and say so."),
        "{}",
        scene.sent(0)
    );
}
