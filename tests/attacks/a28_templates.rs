//! 28: what looks like a template in a file or a name is plain text.

use crate::common::Project;

#[test]
fn a_skill_is_no_template() {
    let project = Project::new();
    let folder = project.path().join(".home/.agents/skills/t");
    std::fs::create_dir_all(&folder).unwrap();
    let sly = "{{env.KEY}} {{token}} {{ name }} {% for x in y %} {# gone? #}";
    let text = format!("---\nname: t\ndescription: \"{sly}\"\n---\n{sly}\n");
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
    let shown = project
        .ctx(&["skills", "show", "t", "--json"])
        .env("KEY", "secret")
        .json();
    let content = shown["content"].as_str().unwrap();
    assert_eq!(shown["description"], sly);
    assert_eq!(content.matches(sly).count(), 2, "{content}");
    assert!(!content.contains("secret"));
}
