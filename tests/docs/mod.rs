//! The manual is true: each command that it shows runs, with a scripted model where it takes one, and what it says of
//! settings and tests is so.
//!
//! A block "```sh" is a script, a block "```console" a transcript whose lines behind `$` are one. The blocks of a page run
//! one after another in one project (`scene`). A block that cannot run here says what it takes behind its fence, where no
//! reader sees it: "```sh needs: network". These are counted and printed.

mod page;
mod scene;
mod specs;

use std::collections::BTreeSet;

use page::{blocks, pages};
use scene::Scene;

/// Runs what a page shows.
#[track_caller]
fn runs(page: &str) {
    let all = blocks(page);
    let scene = Scene::new(page);
    let (mut ran, mut marked) = (0, 0);
    for block in &all {
        assert!(
            !block.hides_commands(),
            "{}: it shows commands; name the block `sh` or `console` behind its fence, so that they are run",
            block.place
        );
        let Some(commands) = block.commands() else {
            continue;
        };
        if let Some(needs) = block.needs.as_deref().filter(|needs| !scene.has(needs)) {
            println!("{}: not run, needs: {needs}", block.place);
            marked += 1;
            continue;
        }
        if let Err(said) = scene.run(&commands) {
            panic!(
                "{}: a command failed: mend the page, prepare what it takes in tests/docs/scene.rs, or say what it \
                 needs behind the fence (```sh needs: WHAT)\n{said}",
                block.place
            );
        }
        ran += 1;
    }
    println!("{page}: {ran} blocks ran, {marked} are marked");
    assert!(
        ran + marked > 0,
        "{page} shows no commands: take it out of tests/docs/mod.rs"
    );
}

macro_rules! run {
    ($($name:ident: $page:literal,)*) => {
        $(#[test]
        fn $name() {
            runs($page);
        })*

        /// The pages whose commands are run.
        const RUN: &[&str] = &[$($page),*];
    };
}

run! {
    readme: "README.md",
    agent: "docs/agent.md",
    build: "docs/build.md",
    chat: "docs/chat.md",
    config: "docs/config.md",
    demo: "docs/demo.md",
    fleet: "docs/fleet.md",
    models: "docs/models.md",
    pool: "docs/pool.md",
    prompts: "docs/prompts.md",
    providers: "docs/providers.md",
    sessions: "docs/sessions.md",
    skills: "docs/skills.md",
    tasks: "docs/tasks.md",
    trust: "docs/trust.md",
}

#[test]
fn every_page_that_shows_commands_is_run() {
    let shows = |page: &String| {
        let all = blocks(page);
        all.iter()
            .any(|block| block.commands().is_some() || block.hides_commands())
    };
    let expected: BTreeSet<String> = pages().into_iter().filter(shows).collect();
    let run: BTreeSet<String> = RUN.iter().map(|&page| page.to_owned()).collect();
    assert_eq!(
        expected, run,
        "add the page to `run!` in tests/docs/mod.rs, or take it out"
    );
}

/// Every `contexture.json` that the manual shows is valid.
#[test]
fn every_configuration_that_is_shown_is_right() {
    let scene = Scene::new("");
    let schema = scene.project.ctx(&["config", "schema"]).json();
    let keys = schema["properties"].as_object().unwrap();
    let mut shown = 0;
    for page in pages() {
        for block in blocks(&page)
            .into_iter()
            .filter(|block| block.language == "json")
        {
            let value: serde_json::Value = serde_json::from_str(&block.text)
                .unwrap_or_else(|error| panic!("{}: no JSON: {error}", block.place));
            let is_ours =
                |value: &serde_json::Map<_, _>| value.keys().all(|key| keys.contains_key(key));
            // What a provider's program prints has lists where the configuration has objects.
            let servers = &value["mcpServers"];
            if !value.as_object().is_some_and(is_ours) || servers.is_array() {
                continue;
            }
            scene.project.write("contexture.json", &block.text);
            let (_, said) = scene.project.ctx(&["config", "show"]).ends(0);
            assert!(said.is_empty(), "{}: {said}", block.place);
            shown += 1;
        }
    }
    assert!(shown > 3, "{shown} blocks");
}

/// The checks of this file can fail.
#[test]
fn a_command_that_fails_is_named() {
    let scene = Scene::new("");
    let said = scene
        .run("ctx schema\nctx build no-such-file\nctx schema")
        .unwrap_err();
    assert!(said.contains("failed: ctx build no-such-file"), "{said}");
    assert!(said.contains("no-such-file: No such file"), "{said}");
    assert!(scene.run("ctx buidl chat.json | cat").is_err());
    let block = |language: &str, text: &str| page::Block {
        place: String::new(),
        language: language.to_owned(),
        needs: None,
        text: text.to_owned(),
    };
    let shown = block("console", "$ ctx demo\nan answer\n$ ctx doctor\n");
    assert_eq!(shown.commands().as_deref(), Some("ctx demo\nctx doctor\n"));
    assert!(block("", "ctx demo\n").hides_commands() && !block("", "a/folder\n").hides_commands());
}
