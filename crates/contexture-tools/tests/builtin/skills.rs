//! `skills_list` and `skills_load`.

use std::sync::Arc;

use contexture_tools::skills::{Places, Skills};
use serde_json::json;

use crate::builtin::scene::Scene;

fn scene(names: &[&str], body: &str) -> Scene {
    let mut scene = Scene::new();
    let user = scene.folder.path().join("skills");
    for name in names {
        let folder = user.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!("---\nname: {name}\ndescription: For {name} work.\n---\n{body}\n");
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
    }
    let places = Places {
        project: None,
        user: vec![user],
    };
    scene.stores.skills = Arc::new(Skills::discover(&places));
    scene
}

#[tokio::test]
async fn skills_are_listed_a_line_each() {
    let scene = scene(&["pdf", "deploy"], "x");
    let answer = Scene::works(&scene.call("skills_list", json!({})).await);
    assert_eq!(answer, "deploy: For deploy work.\npdf: For pdf work.");
    let none = Scene::new();
    let answer = Scene::works(&none.call("skills_list", json!({})).await);
    assert_eq!(answer, "There are no skills here.");
}

#[tokio::test]
async fn a_skill_is_loaded_once_as_the_system() {
    let scene = scene(&["pdf"], "Use {{token}} and {% if x %}.");
    let answer = Scene::works(&scene.call("skills_load", json!({ "name": "pdf" })).await);
    assert!(answer.contains("user/pdf"));
    let (role, content) = scene.injected();
    assert_eq!(role, "system");
    // Attack 28: a skill is no template.
    assert!(
        content.ends_with("\n\nUse {{token}} and {% if x %}."),
        "{content}"
    );
    assert!(content.starts_with("# Skill: pdf\nFor pdf work.\n"));
    let again = Scene::works(
        &scene
            .call("skills_load", json!({ "name": "user/pdf" }))
            .await,
    );
    assert!(again.contains("loaded already (duplicate)"));
    assert!(scene.run.take_injections().is_empty());
}

#[tokio::test]
async fn a_skill_is_found_by_id_name_or_part() {
    let scene = scene(&["pdf", "pdf-forms", "deploy"], "x");
    for (wanted, id) in [
        ("user/pdf-forms", "user/pdf-forms"),
        ("pdf", "user/pdf"),
        ("form", "user/pdf-forms"),
        ("DEPL", "user/deploy"),
    ] {
        let answer = Scene::works(&scene.call("skills_load", json!({ "name": wanted })).await);
        assert!(answer.contains(id), "{wanted}: {answer}");
    }
    let both = Scene::fails(&scene.call("skills_load", json!({ "name": "df" })).await);
    assert!(both.contains("user/pdf, user/pdf-forms"), "{both}");
    for none in ["zebra", "", "../pdf"] {
        Scene::fails(&scene.call("skills_load", json!({ "name": none })).await);
    }
}

#[tokio::test]
async fn a_run_that_injected_enough_is_told_so() {
    let mut scene = scene(&["pdf"], "x");
    scene.run = Scene::injecting(0).run;
    let answer = Scene::fails(&scene.call("skills_load", json!({ "name": "pdf" })).await);
    assert!(answer.contains("(limit_reached)"));
}
