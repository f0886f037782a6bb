//! `ctx pool` and `ctx agent-context`, as a script and as a person sees them.

mod commands;
mod context;

use crate::common::Project;

/// A project with three resources, one of which claims more than its tools allow.
fn project() -> Project {
    let project = Project::new();
    let add = |args: &[&str]| {
        let all = [&["pool", "add"][..], args].concat();
        project.ctx(&all).success();
    };
    add(&[
        "research",
        "--capability",
        "web_search:8",
        "--capability",
        "report_generation:7",
    ]);
    add(&[
        "coder",
        "--capability",
        "file_ops:5",
        "--capability",
        "shell_exec",
        "--deny-tool",
        "shell_exec",
    ]);
    add(&[
        "scheduler-1",
        "--type",
        "tool",
        "--name",
        "The clock",
        "--capability",
        "schedule_task:8",
    ]);
    project
}
