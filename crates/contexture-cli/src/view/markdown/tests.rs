//! Tests of Markdown on a terminal: the rows of whole replies, and of replies that arrive in pieces.

use super::*;
use crate::view::width;

fn plain(width: usize) -> Paint {
    Paint {
        colour: false,
        width,
    }
}

const SAMPLE: &str = "# A plan for `ctx`\n\nFirst **read** the file, then run the *tests*: [the docs](https://e.example/docs) say how. \
    A word that isverylongandhasnoplacetobreakatallinanarrowterminal ends it.\n\n\
    1. Build\n   - with `cargo build`, which takes a while on a small machine\n   - or not\n2. Test\n\n   It runs for long.\n\n\
    > Quoted, and long enough to be wrapped in a narrow terminal.\n\n```rust\nfn main() {\n\tprintln!(\"hi\");\n}\n```\n\n\
    | name | what it does | n |\n|---|---|--:|\n| `ctx chat` | talks with a model that has tools | 1 |\n| 日本語 | wide | 20 |\n\n---\nEnd.\n";

#[test]
fn a_reply_at_eighty_columns() {
    insta::assert_snapshot!(rows(SAMPLE, plain(80)).join("\n"), @r#"
    A plan for ctx

    First read the file, then run the tests: the docs (https://e.example/docs) say
    how. A word that isverylongandhasnoplacetobreakatallinanarrowterminal ends it.

     1. Build
         • with cargo build, which takes a while on a small machine
         • or not
     2. Test

        It runs for long.

    │ Quoted, and long enough to be wrapped in a narrow terminal.

      rust
        fn main() {
            println!("hi");
        }

    name     │ what it does                      │  n
    ─────────┼───────────────────────────────────┼───
    ctx chat │ talks with a model that has tools │  1
    日本語   │ wide                              │ 20

    ────────────────────────────────────────

    End.
    "#);
}

#[test]
fn a_reply_at_forty_columns() {
    insta::assert_snapshot!(rows(SAMPLE, plain(40)).join("\n"), @r#"
    A plan for ctx

    First read the file, then run the
    tests: the docs
    (https://e.example/docs) say how. A
    word that
    isverylongandhasnoplacetobreakatallinan
    arrowterminal ends it.

     1. Build
         • with cargo build, which takes a
           while on a small machine
         • or not
     2. Test

        It runs for long.

    │ Quoted, and long enough to be wrapped
    │ in a narrow terminal.

      rust
        fn main() {
            println!("hi");
        }

    name     │ what it does            │  n
    ─────────┼─────────────────────────┼───
    ctx chat │ talks with a model that │  1
             │ has tools               │
    日本語   │ wide                    │ 20

    ───────────────────────────────────────

    End.
    "#);
}

#[test]
fn a_table_of_too_many_columns_is_shown_row_by_row() {
    let table = "|a|b|c|d|e|\n|-|-|-|-|-|\n|1|2|3|4|5|\n|6||8|9|0|\n";
    insta::assert_snapshot!(rows(table, plain(30)).join("\n"), @r"
    a: 1
    b: 2
    c: 3
    d: 4
    e: 5

    a: 6
    b:
    c: 8
    d: 9
    e: 0
    ");
}

#[test]
fn no_row_but_code_is_wider_than_the_terminal() {
    for columns in 20..110 {
        for row in rows(SAMPLE, plain(columns)) {
            let is_code = row.starts_with("    ");
            assert!(is_code || width(&row) < columns, "{columns}: {row:?}");
        }
    }
}

/// In whatever pieces it arrives: what stays is the beginning of the whole, and in the end the whole.
#[test]
fn a_reply_in_pieces_is_the_whole() {
    let long = format!("```\n{}```\nand *on*\n", "code\n".repeat(30));
    let texts = [
        SAMPLE,
        &long,
        "text\n- a\n-\n- b\n\n- c\nlazy\n\nText\n===\n[a]\n\n[b]: https://e.example\n",
        "a\n#b\n\n~~~sh\n~~~\n~~~\nx\n\n\n  - far\n    in\n\n        code\n",
        "| a |\n|-|\n| b |\n\nx\ny\n---\nz",
    ];
    for text in texts {
        let whole = rows(text, plain(60));
        for size in [1, 2, 3, 7, 19, 1_000] {
            let mut reply = Reply::default();
            let mut shown: Vec<String> = Vec::new();
            let chars: Vec<char> = text.chars().collect();
            for piece in chars.chunks(size) {
                shown.extend(reply.add(&piece.iter().collect::<String>(), plain(60)));
                assert!(whole.starts_with(&shown), "{shown:#?}\n{whole:#?}");
            }
            shown.extend(reply.end(plain(60)));
            assert_eq!(shown, whole, "{size}");
        }
    }
}

#[test]
fn a_reply_without_an_end_is_shown_all_the_same() {
    let mut reply = Reply::default();
    let mut shown = String::new();
    for text in ["```sh\n", &"x".repeat(40_000), "y\n", "z\n```\nout"] {
        shown += &reply.add(text, plain(60)).join("\n");
    }
    assert!(shown.contains('x'), "it waited for a line's end");
    shown += &reply.end(plain(60)).join("\n");
    assert_eq!(shown.matches('x').count(), 40_000);
    assert_eq!(shown.matches("sh").count(), 1);
    assert!(
        shown.contains("    z") && shown.ends_with("\nout"),
        "{}",
        &shown[40_000..]
    );
    let mut reply = Reply::default();
    let mut shown = 0;
    for _ in 0..10_000 {
        let rows = reply.add("a word and *another* ", plain(60));
        shown += rows.join(" ").matches("another").count();
    }
    shown += reply.end(plain(60)).join(" ").matches("another").count();
    assert_eq!(shown, 10_000);
}
