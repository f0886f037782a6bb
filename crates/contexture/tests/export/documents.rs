//! What is in a document, and what a message's own markup can do to it.

use contexture::export::{self, Kind, Meta};
use contexture::prompt::Section;
use contexture::{Payload, Role};
use insta::assert_snapshot;
use serde_json::json;

use crate::common::scenario::Scenario;
use crate::export::{html, markdown};

/// A session in which everything happened.
fn eventful() -> Scenario {
    Scenario::new(5_000)
        .entry(Payload::Sections {
            sections: vec![Section::stable("role", "t", "You fix builds.")],
        })
        .runtime_init(json!({"cwd": "/srv"}))
        .user("Fix the build")
        .tool("call_1", "error: missing import")
        .assistant("The key is hunter2.")
        .injection(Role::User, "Build 7 failed.", "f")
        .user("Not this")
        .revert("e6")
        .branch_summary("Left is a dead end.")
        .mask("e4", "old")
        .user("Go on")
        .summary("e11", "The key is hunter2, it was said.")
        .redact("e5")
        .assistant("Done.")
        .build()
}

#[test]
fn all_that_was_said_is_there_and_nothing_that_was_taken_out() {
    let s = eventful();
    let all = export::conversation(s.view()).unwrap();
    let said: Vec<_> = all
        .said
        .iter()
        .map(|said| (said.entry.id.as_str(), said.kind, said.message.text()))
        .collect();
    let said = said
        .iter()
        .map(|(id, kind, text)| format!("{id} {kind:?} {text}\n"));
    assert_snapshot!(said.collect::<String>(), @r#"
    e1 Facts cwd: /srv
    e2 Message Fix the build
    e3 Message 
    e4 Message error: missing import
    e5 Message [redacted]
    e6 Injection(Some("test")) Build 7 failed.
    e9 BranchSummary Left is a dead end.
    e11 Message Go on
    e14 Message Done.
    "#);
    assert!(all.said.iter().all(|said| said.kind != Kind::Sections));
    assert_eq!(all.sections.len(), 1);
    for export in [
        markdown(&s),
        html(&s),
        export::openai(s.view()).unwrap().to_string(),
        export::anthropic(s.view()).unwrap().to_string(),
    ] {
        assert!(!export.contains("hunter2"), "{export}");
        assert!(!export.contains("Not this"), "{export}");
        assert!(export.contains("missing import"), "{export}");
    }
}

#[test]
fn a_redacted_call_shows_none_of_its_parts() {
    let s = Scenario::new(5_000)
        .user("Go")
        .json(json!({
            "role": "assistant",
            "content": "hunter2",
            "reasoning_content": "hunter2",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "run", "arguments": "{\"x\":\"hunter2\"}"}}],
        }))
        .result("c", "ok")
        .redact("e1")
        .build();
    assert!(!markdown(&s).contains("hunter2"));
    assert!(!html(&s).contains("hunter2"));
}

#[test]
fn a_document() {
    assert_snapshot!(markdown(&eventful()), @r#"
    # A session

    *6 messages*

    ## system · role

    You fix builds.

    ## facts of the session · `e1`

    ```
    cwd: /srv
    ```

    ## user · `e2`

    Fix the build

    ## assistant · `e3`

    Calls `read` (`call_1`):

    ```json
    {"path":"src/call_1.rs"}
    ```

    ## tool · read · `e4`

    ```
    error: missing import
    ```

    ## assistant · redacted · `e5`

    [redacted]

    ## injection · test · `e6`

    Build 7 failed.

    ## summary of another branch · `e9`

    Left is a dead end.

    *— 1 tool result above was masked for the model here: old —*

    ## user · `e11`

    Go on

    *— 4 messages above were summarised for the model here —*

    ## assistant · `e14`

    Done.
    "#);
}

#[test]
fn a_document_says_from_when_to_when() {
    let facts = |times: [&str; 2]| {
        let entries = times.map(|time| {
            let message = contexture::Message::user(time);
            contexture::Entry::message(None, time, message)
        });
        let view = contexture::View::fold(entries).unwrap();
        let document = export::markdown(&view, &Meta::default()).unwrap();
        document.lines().nth(2).unwrap().to_owned()
    };
    let one = facts(["2026-11-02T09:00:17Z", "2026-11-02T10:30:00Z"]);
    assert_eq!(one, "*2 messages · 2026-11-02 09:00:17 to 10:30:00*");
    let two = facts(["2026-11-02T09:00:17+01:00", "2026-11-03T10:30:00.5+01:00"]);
    assert_eq!(
        two,
        "*2 messages · 2026-11-02 09:00:17+01:00 to 2026-11-03 10:30:00.5+01:00*"
    );
    assert_eq!(
        facts(["1730000000", "soon"]),
        "*2 messages · 1730000000 to soon*"
    );
    assert_eq!(
        facts(["数据库迁移完成数据库迁移完成", "2026"]),
        "*2 messages · 数据库迁移完成数据库迁移完成 to 2026*"
    );
}

#[test]
fn a_message_stays_below_the_heading_over_it() {
    let texts = [
        "# One\n## Two\n###### Six\n#tag and # sign",
        "> # Quoted\n- # Listed\n1. ## Numbered",
        "Title\n===\n\nOther\n---\n\n---",
        "```sh\n# a comment\n```\nafter",
        "an <b>image</b> ![x](https://e.example/a.png) and `<code>`",
        "</details><details>",
    ];
    let mut s = Scenario::new(5_000);
    for text in texts {
        s = s.user(text);
    }
    assert_snapshot!(markdown(&s.build()), @r"
    # A session

    *6 messages*

    ## user · `e0`

    ### One
    #### Two
    ###### Six
    #tag and # sign

    ## user · `e1`

    > ### Quoted
    - ### Listed
    1. #### Numbered

    ## user · `e2`

    Title
    \===

    Other
    \---

    ---

    ## user · `e3`

    ```sh
    # a comment
    ```
    after

    ## user · `e4`

    an &lt;b>image&lt;/b> &#33;[x](https://e.example/a.png) and `<code>`

    ## user · `e5`

    &lt;/details>&lt;details>
    ");
}

#[test]
fn what_cannot_be_followed_is_fenced() {
    let texts = [
        "```\nnever closed",
        "- item\n  ```\nends early\n  ```\n# heading",
        "> ```\nafter",
        "a `span\nover` lines <b>",
        "text\n````\n```\n````` \n```",
        "    ```\n# x",
    ];
    for text in texts {
        let s = Scenario::new(5_000).user(text).build();
        let document = markdown(&s);
        let body = document.split("`e0`\n\n").nth(1).unwrap();
        let fence = body.lines().next().unwrap();
        let length = fence.len() - fence.trim_start_matches('`').len();
        assert!(fence.ends_with("text") && length >= 3, "{document}");
        let marks = "`".repeat(length);
        let inside = body.split_once('\n').unwrap().1;
        assert_eq!(
            inside.trim_end().strip_suffix(&marks).unwrap().trim_end(),
            text.trim_end()
        );
        assert!(!text.contains(&marks), "{document}");
    }
}

#[test]
fn a_title_and_names_are_text() {
    let s = Scenario::new(5_000)
        .json(json!({"role": "user", "name": "*x*\n# y <b>", "content": "hi"}))
        .build();
    let title = "<i>\n# *t* ![](http://e.example)".to_owned();
    let out = export::markdown(
        s.view(),
        &Meta {
            title,
            ..Meta::default()
        },
    )
    .unwrap();
    assert_snapshot!(out, @r"
    # &lt;i> \# \*t\* \!\[\](http://e.example)

    *1 message*

    ## user · \*x\* \# y &lt;b> · `e0`

    hi
    ");
}

#[test]
fn pictures_are_never_fetched() {
    let s = Scenario::new(50_000)
        .json(json!({"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "https://e.example/a.png"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            {"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,AAAA"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA\" onerror=\"x"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "AAAA"}},
        ]}))
        .build();
    assert!(!markdown(&s).contains("!["));
    let html = html(&s);
    let images: Vec<_> = html
        .match_indices("<img")
        .map(|(at, _)| &html[at..at + 80])
        .collect();
    assert_eq!(images.len(), 1, "{images:?}");
    assert!(
        images[0].contains("data:image&#x2f;png;base64,AAAA\""),
        "{images:?}"
    );
}

/// A link that runs something is text, however it is spelled; one that leads to a page or a file stays.
#[test]
fn links_lead_to_the_web_or_to_a_file() {
    let texts = [
        "[a](javascript:alert(1)) [b](JaVaScRiPt:x) [c](data:text/html,x) [d](vbscript:x)",
        "[a](<javascript:x>) [b](&#106;avascript:x) [c](javascript&colon;x) [d](java&Tab;script:x)",
        "![a](javascript:x) [![b](https://e.example/b.png)](javascript:x) [`c`](javascript:x)",
        "<javascript:x> <a href=\"javascript:x\">a</a> [a](\njavascript:x)",
        "[a][x] [b]\n\n[x]: javascript:x\n[b]: &#106;avascript:x 'title'\n> [y]:\n> javascript:x",
        "[^1]: javascript:x\n\nlist[0]: a value, and [note]: Well: a word",
        "[a](https://e.example/?a=1&b) [b](mailto:a@e.example) [c](../docs/a.md#b) [d](#e) [e]()",
        "[x]: https://e.example \"title\"\n\n- [f](/srv/a.txt 'title')\n",
        "`[a](javascript:x)` stays code",
        "[a\u{202e}](java\u{0}script\u{1}:x) [b](\u{1}javascript:x)",
    ];
    let mut s = Scenario::new(5_000);
    for text in texts {
        s = s.user(text).assistant(text);
    }
    let document = markdown(&s.build());
    let said = |n: usize| {
        let heading = format!("`e{}`\n\n", 2 * n);
        let (_, rest) = document.split_once(&heading).unwrap();
        rest.split("\n\n## ").next().unwrap().trim_end().to_owned()
    };
    let all: String = (0..texts.len())
        .map(|n| format!("{}\n--\n", said(n)))
        .collect();
    assert_snapshot!(all, @r##"
    [a]\(javascript:alert(1)) [b]\(JaVaScRiPt:x) [c]\(data:text/html,x) [d]\(vbscript:x)
    --
    [a]\(&lt;javascript:x>) [b]\(&#106;avascript:x) [c]\(javascript&colon;x) [d]\(java&Tab;script:x)
    --
    &#33;[a]\(javascript:x) [&#33;[b](https://e.example/b.png)]\(javascript:x) [`c`]\(javascript:x)
    --
    &lt;javascript:x> &lt;a href="javascript:x">a&lt;/a> [a]\(
    javascript:x)
    --
    [a][x] [b]

    [x]\: javascript:x
    [b]\: &#106;avascript:x 'title'
    > [y]\:
    > javascript:x
    --
    [^1]\: javascript:x

    list[0]: a value, and [note]: Well: a word
    --
    [a](https://e.example/?a=1&b) [b](mailto:a@e.example) [c](../docs/a.md#b) [d](#e) [e]()
    --
    [x]: https://e.example "title"

    - [f](/srv/a.txt 'title')
    --
    `[a](javascript:x)` stays code
    --
    [a⟨U+202E⟩]\(java⟨NUL⟩script⟨SOH⟩:x) [b]\(⟨SOH⟩javascript:x)
    --
    "##);
}
