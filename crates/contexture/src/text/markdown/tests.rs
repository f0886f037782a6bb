//! Tests of the Markdown reader: the blocks of a text, and the safety of hostile ones.

use super::*;

/// The tree in a line for each block.
fn shape(text: &str) -> String {
    let mut out = String::new();
    for (block, _) in read(text) {
        write(&block, 0, &mut out);
    }
    out
}

fn write(block: &Block, depth: usize, out: &mut String) {
    let pad = "  ".repeat(depth);
    let line = |line: &Line| {
        let spans = line.iter().map(|span| {
            let mut text = span.text.replace('\n', "⏎");
            let style = span.style;
            for (holds, mark) in [
                (style.code, "`"),
                (style.strong, "**"),
                (style.emphasis, "*"),
                (style.struck, "~"),
            ] {
                if holds {
                    text = format!("{mark}{text}{mark}");
                }
            }
            if style.aside {
                text = format!("‹{text}›");
            }
            match &span.link {
                Some(to) => format!("[{text}→{to}]"),
                None => text,
            }
        });
        spans.collect::<String>()
    };
    match block {
        Block::Heading(level, text) => out.push_str(&format!("{pad}h{level} {}\n", line(text))),
        Block::Paragraph(text) => out.push_str(&format!("{pad}p {}\n", line(text))),
        Block::Code(info, text) => {
            let text = text.replace('\n', "⏎");
            out.push_str(&format!("{pad}code {info:?} {text}\n"));
        }
        Block::Quote(blocks) => {
            out.push_str(&format!("{pad}quote\n"));
            blocks.iter().for_each(|block| write(block, depth + 1, out));
        }
        Block::List(first, items) => {
            out.push_str(&format!("{pad}list {first:?}\n"));
            for item in items {
                out.push_str(&format!("{pad} -\n"));
                item.iter().for_each(|block| write(block, depth + 1, out));
            }
        }
        Block::Table(columns, rows) => {
            out.push_str(&format!("{pad}table {columns:?}\n"));
            for row in rows {
                let cells: Vec<String> = row.iter().map(line).collect();
                out.push_str(&format!("{pad}  {}\n", cells.join(" | ")));
            }
        }
        Block::Rule => out.push_str(&format!("{pad}rule\n")),
    }
}

#[test]
fn what_people_write() {
    let text = "# Title\n\nA *word*, **two** and `code`,\nnext line.\n\n- one\n- two\n  1. inner\n- [x] done\n\n> said\n\n\
                ```rust\nfn main() {}\n```\n\n| a | b |\n|---|--:|\n| 1 | ~~2~~ |\n\n---\n[t](https://e.example/x) \
                <https://e.example>\n";
    insta::assert_snapshot!(shape(text), @r#"
    h1 Title
    p A *word*, **two** and `code`,⏎next line.
    list None
     -
      p one
     -
      p two
      list Some(1)
       -
        p inner
     -
      p ☑ done
    quote
      p said
    code Some("rust") fn main() {}⏎
    table [Left, Right]
      a | b
      1 | ~2~
    rule
    p [t→https://e.example/x]‹ (https://e.example/x)› [https://e.example→https://e.example]
    "#);
}

#[test]
fn what_would_act_or_disappear_is_text() {
    let text = "<script>x</script>\n\n<b>y</b> <!-- z --> ![i](https://e.example/i.png \"t\")\n\n\
                [a](javascript:x) [b](&#106;avascript:x) [c](//e.example) [d](../a.md)\n\n\
                [//]: # (secret)\n[//]: # (again)\n\n> [q]: javascript:x\n\n- one\n\n  [l]: data:x\n- two\n\n&#x1b;[1m&#x202e;\n\n\
                | a |\n|---|\n| 1 | 2 |\n";
    insta::assert_snapshot!(shape(text), @r"
    p <script>x</script>
    p <b>y</b> <!-- z --> [image: i‹ (https://e.example/i.png) “t”›]
    p a‹ (javascript:x)› b‹ (javascript:x)› c‹ (//e.example)› d‹ (../a.md)›
    p [//]: # (secret)⏎[//]: # (again)
    quote
      p > [q]: javascript:x
    list None
     -
      p one
      p [l]: data:x
     -
      p two
    p ⟨ESC⟩[1m⟨U+202E⟩
    code None | a |⏎|---|⏎| 1 | 2 |⏎
    ");
}

#[test]
fn nesting_is_bounded_and_nothing_is_lost() {
    for text in [
        format!("{}deep", ">".repeat(50_000)),
        format!("{}deep", "- ".repeat(20_000)),
        format!("{}deep{}", "*".repeat(20_000), "*".repeat(20_000)),
        format!("{}deep", "[".repeat(20_000)),
    ] {
        let shape = shape(&text);
        assert!(shape.contains("deep"), "{}", shape.len());
        assert!(
            shape
                .lines()
                .all(|line| !line.starts_with(&"  ".repeat(MAX_SEEN)))
        );
    }
}

/// More levels than the tree may have.
const MAX_SEEN: usize = 14;

#[test]
fn blocks_say_where_they_stand() {
    let text = "one\n\n[x]: y\n\n- a\n- b\n\n```\ncode\n";
    let parts: Vec<&str> = read(text)
        .into_iter()
        .map(|(_, at)| text[at].trim_end())
        .collect();
    assert_eq!(parts, ["one", "[x]: y", "- a\n- b", "```\ncode"]);
}

proptest::proptest! {
    /// Whatever its markup does, a text keeps its letters, in order.
    #[test]
    fn no_letter_is_lost(text in "[a-d*_`#>|\\-\\n \\[\\]()!<:.0-2~+=/\\\\]{0,80}") {
        let letters = |text: &str| text.chars().filter(|c| matches!(c, 'a'..='d')).collect::<String>();
        let mut shown = String::new();
        for (block, _) in read(&text) {
            said(&block, &mut shown);
        }
        let shown = letters(&shown);
        let mut rest = shown.chars();
        proptest::prop_assert!(letters(&text).chars().all(|c| rest.any(|known| known == c)), "{text:?}: {shown:?}");
    }
}

/// All that a block says.
fn said(block: &Block, out: &mut String) {
    let mut line = |line: &Line| line.iter().for_each(|span| out.push_str(&span.text));
    match block {
        Block::Heading(_, text) | Block::Paragraph(text) => line(text),
        Block::Code(info, text) => {
            out.push_str(info.as_deref().unwrap_or_default());
            out.push_str(text);
        }
        Block::Quote(blocks) => blocks.iter().for_each(|block| said(block, out)),
        Block::List(_, items) => items.iter().flatten().for_each(|block| said(block, out)),
        Block::Table(_, rows) => rows.iter().flatten().for_each(line),
        Block::Rule => {}
    }
}
