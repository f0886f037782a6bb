//! The manual names commands and options that are there, also in prose and in blocks that no test runs.

use std::path::Path;

use clap::Command;

/// Returns every mention of `ctx` in a page: code spans, and the lines of blocks.
fn said(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_block = false;
    let mut prose = String::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            let line = line.trim_start_matches("$ ");
            found.extend(line.starts_with("ctx ").then(|| line.to_owned()));
        } else {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    let spans = prose.split('`').skip(1).step_by(2);
    let spans = spans.map(|span| span.replace('\n', " "));
    found.extend(spans.filter(|span| span.starts_with("ctx ")));
    found
}

/// Returns the error in a command line, if it has one.
fn wrong(root: &Command, line: &str) -> Option<String> {
    let line = line.split(" # ").next().unwrap_or_default();
    let mut words = line.split_whitespace().skip(1).peekable();
    let mut command = root;
    while let Some(inner) = words.peek().and_then(|word| command.find_subcommand(word)) {
        command = inner;
        words.next();
    }
    let is_name = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    if let Some(word) = words.peek().filter(is_name)
        && command.has_subcommands()
        && !word.starts_with('-')
    {
        return Some(format!("there is no command `{word}`"));
    }
    // What follows is for another program.
    let own = words.take_while(|word| !matches!(*word, "|" | ">" | "<" | "…" | "--command"));
    let options = own.filter_map(|word| word.strip_prefix("--"));
    let mut names = options.map(|word| {
        let end = word.find(|c: char| !c.is_ascii_lowercase() && c != '-');
        &word[..end.unwrap_or(word.len())]
    });
    let known = |name: &str| {
        let mut all = command.get_arguments().chain(root.get_arguments());
        name == "help" || name == "version" || all.any(|arg| arg.get_long() == Some(name))
    };
    let odd = names.find(|name| !name.is_empty() && !known(name))?;
    Some(format!(
        "`ctx {}` has no option --{odd}",
        command.get_name()
    ))
}

#[test]
fn every_command_that_the_manual_names_is_there() {
    let root = super::command();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![folder.join("README.md"), folder.join("CONTRIBUTING.md")];
    let docs = std::fs::read_dir(folder.join("docs")).unwrap();
    pages.extend(docs.map(|entry| entry.unwrap().path()));
    let mut count = 0;
    let mut odd = Vec::new();
    for page in pages
        .iter()
        .filter(|page| page.extension().is_some_and(|end| end == "md"))
    {
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        for line in said(&std::fs::read_to_string(page).unwrap()) {
            count += 1;
            odd.extend(wrong(&root, &line).map(|why| format!("{name}: `{line}`: {why}")));
        }
    }
    assert!(odd.is_empty(), "{odd:#?}");
    assert!(count > 150, "{count} commands");
    // The check can fail.
    for line in [
        "ctx seshions list",
        "ctx sessions lst",
        "ctx build x --bugdet 3",
        "ctx agent create a --archetyp b",
    ] {
        assert!(wrong(&root, line).is_some(), "{line}");
    }
}
