//! The page: one file, nothing that runs, nothing that is fetched.

use contexture::{Message, Payload};
use proptest::prelude::*;
use serde_json::json;

use crate::common::scenario::Scenario;
use crate::export::html;

/// Each tag of the page with its attributes, as a browser would read them.
pub fn tags(html: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let name_end = rest.find(|c: char| c.is_whitespace() || c == '>').unwrap();
        let name = rest[..name_end].to_owned();
        rest = &rest[name_end..];
        let mut attributes = Vec::new();
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix('>') {
                rest = after;
                break;
            }
            let end = rest.find(['=', '>', ' ']).unwrap();
            let key = rest[..end].to_owned();
            rest = &rest[end..];
            let mut value = String::new();
            if let Some(after) = rest.strip_prefix("=\"") {
                let end = after.find('"').unwrap();
                value = after[..end].to_owned();
                rest = &after[end + 1..];
            }
            attributes.push((key, value));
        }
        tags.push((name, attributes));
    }
    tags
}

/// Nothing but what the template has, and no address but the page's own.
#[track_caller]
pub fn check_inert(html: &str) {
    const TAGS: [&str; 44] = [
        "!doctype",
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "h1",
        "p",
        "span",
        "details",
        "summary",
        "code",
        "main",
        "aside",
        "a",
        "pre",
        "article",
        "h2",
        "b",
        "i",
        "time",
        "div",
        "img",
        "br",
        "nav",
        "h3",
        "h4",
        "h5",
        "h6",
        "ol",
        "ul",
        "li",
        "blockquote",
        "hr",
        "table",
        "tr",
        "th",
        "td",
        "strong",
        "em",
        "del",
        "small",
    ];
    const ATTRIBUTES: [&str; 13] = [
        "html",
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "id",
        "href",
        "src",
        "alt",
        "rel",
        "start",
    ];
    const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];
    for (name, attributes) in tags(html) {
        assert!(TAGS.contains(&name.trim_start_matches('/')), "{name}");
        for (key, value) in attributes {
            assert!(
                ATTRIBUTES.contains(&key.as_str()) || key == "open",
                "{name} {key}"
            );
            match key.as_str() {
                // A link that a person may follow; nothing is fetched for it.
                "href" => assert!(
                    value.starts_with("#entry-")
                        || SCHEMES.iter().any(|scheme| value.starts_with(scheme)),
                    "{value}"
                ),
                "src" => assert!(value.starts_with("data:image&#x2f;"), "{value}"),
                _ => {}
            }
        }
    }
    let (_, style) = html.split_once("<style>").unwrap();
    let (style, _) = style.split_once("</style>").unwrap();
    assert!(!style.contains("url(") && !style.contains("@import"));
}

const HOSTILE: [&str; 16] = [
    "<script>alert(1)</script>",
    "</pre></article></main><script src=https://e.example/x.js></script>",
    "<svg onload=alert(1)><a xlink:href=\"javascript:alert(1)\">x</a></svg>",
    "\" onmouseover=\"alert(1)",
    "' onfocus='alert(1)' autofocus='",
    "</style><style>*{background:url(https://e.example/x)}</style>",
    "<!-- <img src=x onerror=alert(1)>",
    "[x](javascript:alert(1)) <a href=javascript:alert(1)>x</a>",
    "{{ title }} {% for x in items %} {{ style|safe }}",
    "&lt;script&gt; &amp;amp; &#60;b&#62;",
    "[x](https://e.example/\"onclick=\"a) <https://e.example/'><b> ![i](https://e.example/i.png \"t\" onload=x)",
    "```\" onclick=x <b>\n</pre></div><script>x</script>\n```\n\n| <b> |\n|---|\n| <img src=x> |\n",
    "[a]: javascript:x \"t\"\n\n[a] [b](java&#115;cript:x) [c](data:text/html,x) [d](//e.example) [e](#entry-e0)",
    "&#27;[2J &#x202e; &lt;script&gt; &#60;script&#62; <script\n>x</script\n>",
    "\u{202e}txt.exe\u{2066}\u{200b}\u{feff}\u{e0041}",
    "\u{0}\u{7}\u{1b}[31m\u{1b}]8;;https://e.example\u{7}link\u{1b}]8;;\u{7}\r\u{9b}",
];

fn hostile(text: &str) -> Scenario {
    let call = json!({"id": text, "type": "function", "function": {"name": text, "arguments": json!({text: text}).to_string()}});
    let mut s = Scenario::new(90_000)
        .entry(Payload::Sections {
            sections: vec![contexture::prompt::Section::stable(text, text, text)],
        })
        .tools(&[text], &[])
        .runtime_init(json!({text: text}))
        .json(json!({"role": "user", "name": text, "content": [
            {"type": "text", "text": text},
            {"type": "thinking", "thinking": text},
            {"type": "image_url", "image_url": {"url": text}},
            {"type": "image_url", "image_url": {"url": format!("data:{text}")}},
            {"type": "file", "file": {"filename": text}},
            {"type": text, text: text},
        ]}))
        .json(json!({"role": "assistant", "content": text, text: text, "tool_calls": [call]}))
        .message(Message::tool_result(text, text))
        .injection(contexture::Role::User, text, text)
        .branch_summary(text)
        .mask("e5", text)
        .user("Go on")
        .summary("e9", text)
        .build();
    s = s.user(text).build();
    s
}

#[test]
fn a_page_is_inert_whatever_is_in_it() {
    for text in HOSTILE {
        let page = html(&hostile(text));
        check_inert(&page);
        let bad = |c: &char| {
            (c.is_control() && !matches!(c, '\n' | '\t'))
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
        };
        assert_eq!(page.chars().find(bad), None, "{text:?}");
    }
}

#[test]
fn a_page_says_what_it_may_not_do() {
    let page = html(&Scenario::new(5_000).user("hi").build());
    let policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
    let at = page.find("http-equiv=\"Content-Security-Policy\"").unwrap();
    assert!(page[at..].starts_with(&format!(
        "http-equiv=\"Content-Security-Policy\" content=\"{policy}"
    )));
    // Before anything that it is to hold for.
    assert!(at < page.find("<style>").unwrap());
    assert!(page.contains("prefers-color-scheme: dark"));
    assert!(page.contains("id=\"entry-e0\""));
}

#[test]
fn a_page_says_where_something_was_hidden_from_the_model() {
    let s = Scenario::new(5_000)
        .user("One")
        .tool("c", "two")
        .mask("e2", "old")
        .user("Three")
        .summary("e4", "Counted to two.")
        .build();
    let page = html(&s);
    assert!(page.contains("1 tool result above was masked for the model here: old"));
    assert!(page.contains("<a href=\"#entry-e2\">e2</a>"));
    assert!(page.contains("3 messages above were summarised for the model here"));
    assert!(page.contains("Counted to two."));
    // What was undone did not happen.
    let page = html(&s.revert("e5").revert("e3").build());
    assert!(!page.contains("for the model here") && !page.contains("Counted"));
}

proptest! {
    #[test]
    fn any_text_is_inert(text in "[<>&\"'`=/ a-z!{}%\\-\\n\\[\\]()#|*_~:.1]{0,60}") {
        check_inert(&html(&hostile(&format!("x{text}"))));
    }
}

/// Markdown is rendered, code is set apart, and what costs how much is said.
#[test]
fn a_page_is_a_pleasure_to_read() {
    let text = "# Plan\n\nRun `ls`, **then** see [docs](https://e.example/a).\n\n```sh\nls -l\n```\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n";
    let s = Scenario::new(5_000)
        .user("First <b>question</b>")
        .assistant(text)
        .user("Second question")
        .assistant("Done.")
        .build();
    let page = html(&s);
    for needle in [
        "<h3>Plan</h3>",
        "<p>Run <code>ls</code>, <strong>then</strong> see <a rel=\"noreferrer noopener\" href=\"https://e.example/a\">docs</a><small> (https://e.example/a)</small>.</p>",
        "<div class=\"code\"><p>sh</p><pre>\nls -l\n</pre></div>",
        "<td class=\"right\">2</td>",
        "<li><a href=\"#entry-e0\">First &lt;b&gt;question&lt;&#x2f;b&gt;</a></li>",
        "<li><a href=\"#entry-e2\">Second question</a></li>",
    ] {
        assert!(page.contains(needle), "no {needle} in {page}");
    }
    assert!(!page.contains("token"), "none was counted: {page}");
    let counted = |tokenizer: std::sync::Arc<dyn contexture::tokens::Tokenizer>| {
        let meta = contexture::export::Meta {
            tokenizer: Some(tokenizer),
            ..crate::export::meta()
        };
        contexture::export::html(s.view(), &meta).unwrap()
    };
    let page = counted(contexture::tokens::for_model(Some("gpt-4o")));
    assert!(
        page.contains("<span class=\"cost\">7 tokens</span>"),
        "{page}"
    );
    assert!(page.contains("tokens (o200k_base)</span>"), "{page}");
    let page = counted(contexture::tokens::for_model(Some("claude-opus-4-7")));
    assert!(page.contains("<span class=\"cost\">≤ "), "{page}");
}
