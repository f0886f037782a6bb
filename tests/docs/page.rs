//! The blocks of a page of the manual.

use std::path::Path;

use crate::common::ROOT;

/// A fenced block.
pub struct Block {
    /// The page and the line of its fence, for messages.
    pub place: String,
    /// The word behind the fence.
    pub language: String,
    /// Its requirement to be run, where it says so: "```sh needs: network".
    pub needs: Option<String>,
    pub text: String,
}

/// The pages of the manual, the README first.
pub fn pages() -> Vec<String> {
    let names = std::fs::read_dir(Path::new(ROOT).join("docs")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<String> = names.filter(|name| name.ends_with(".md")).collect();
    pages.sort();
    let pages = pages.into_iter().map(|name| format!("docs/{name}"));
    ["README.md".to_owned()].into_iter().chain(pages).collect()
}

pub fn blocks(page: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (n, line) in text.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(info)) => {
                let (language, needs) = info
                    .split_once(" needs: ")
                    .map_or((info, None), |(l, n)| (l, Some(n)));
                open = Some(Block {
                    place: format!("{page}:{}", n + 1),
                    language: language.trim().to_owned(),
                    needs: needs.map(|needs| needs.trim().to_owned()),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text.push_str(&format!("{line}\n")),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{page}: a block does not end");
    blocks
}

impl Block {
    /// Its commands: all of it, or of a transcript the lines behind `$`.
    pub fn commands(&self) -> Option<String> {
        match self.language.as_str() {
            "sh" => Some(self.text.clone()),
            "console" => {
                let typed = self.text.lines().filter_map(|line| line.strip_prefix("$ "));
                Some(typed.map(|line| format!("{line}\n")).collect())
            }
            _ => None,
        }
    }

    /// Returns true if it shows commands and does not say so.
    pub fn hides_commands(&self) -> bool {
        let typed = |line: &str| {
            line.starts_with("ctx ") || line.starts_with("$ ") || line.starts_with("./ctx")
        };
        self.commands().is_none() && self.text.lines().any(typed)
    }
}
