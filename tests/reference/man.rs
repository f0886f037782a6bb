//! Manual pages: one for each command, with what its help says.

use crate::common::Project;

#[test]
fn each_command_has_a_page_with_its_options_and_examples() {
    let project = Project::new();
    let first = project.ctx(&["man"]).success();
    assert!(first.contains(".TH ctx 1"), "{first}");
    project.ctx(&["man", "pages"]).success();
    let page =
        |name: &str| std::fs::read_to_string(project.path().join("pages").join(name)).unwrap();
    assert_eq!(page("ctx.1"), first);
    let build = page("ctx-build.1");
    for part in ["\\-\\-budget", "\\-\\-all", "ctx build chat.json"] {
        assert!(build.contains(part), "{part}: {build}");
    }
    assert!(page("ctx-agent-create.1").contains("ctx agent create"));
    assert!(
        !build.contains("EXTRA") && build.contains(".SH EXAMPLES\n  ctx build"),
        "{build}"
    );
    let count = std::fs::read_dir(project.path().join("pages"))
        .unwrap()
        .count();
    assert!(count > 70, "{count} pages");
}
