//! The table of settings in `docs/config.md`, made from the table of keys.

use std::path::Path;

use serde_json::Value;

use super::key::{Key, Kind, Precedence, Trust};
use super::keys::keys;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");
const HEAD: &str =
    "| key | takes | default | trust | user and project | |\n|---|---|---|---|---|---|\n";

fn table() -> String {
    let rows: String = keys().iter().map(row).collect();
    format!("{HEAD}{rows}")
}

fn row(key: &Key) -> String {
    let takes = match &key.kind {
        Kind::Integer(range) => format!("{} to {}", range.least, range.most),
        Kind::Switch => "`true`, `false`".to_owned(),
        Kind::Text => "text".to_owned(),
        Kind::Choice(choices, _) => {
            let choices: Vec<String> = choices.iter().map(|one| format!("`{one}`")).collect();
            choices.join(", ")
        }
        Kind::Texts => "texts".to_owned(),
        Kind::Object => "an object".to_owned(),
        Kind::Objects => "objects".to_owned(),
    };
    let default = match &key.default {
        Value::Null => String::new(),
        Value::String(text) => format!("`{text}`"),
        value => format!("`{value}`"),
    };
    let trust = match key.trust {
        Trust::Free => "",
        Trust::ToRaise => "to raise it",
        Trust::Needed => "yes",
    };
    let both = match key.precedence {
        Precedence::Project => "the project's",
        Precedence::User => "the user's",
        Precedence::Smaller => "the smaller",
        Precedence::Off => "off",
        Precedence::First => "the first of these",
        Precedence::Own => "both",
    };
    let about = key.about.replace('|', "\\|");
    format!(
        "| `{}` | {takes} | {default} | {trust} | {both} | {about} |\n",
        key.path
    )
}

/// With `CONTEXTURE_BLESS=1` it writes the page's table instead.
#[test]
fn the_page_of_settings_is_what_the_table_of_keys_says() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let start = page
        .find(HEAD)
        .expect("docs/config.md has the table's head");
    let length = page[start..]
        .find("\n\n")
        .map_or(page.len() - start, |end| end + 1);
    let shown = &page[start..start + length];
    let table = table();
    if shown == table {
        return;
    }
    if std::env::var_os("CONTEXTURE_BLESS").is_some() {
        let mended = page.replacen(shown, &table, 1);
        return std::fs::write(Path::new(PAGE), mended).unwrap();
    }
    let odd = table.lines().find(|line| !shown.contains(line));
    panic!("docs/config.md: run this test with CONTEXTURE_BLESS=1; for example it lacks {odd:?}");
}
