//! Sizes and shapes that nobody means well with.

use crate::readers::read;
use crate::readers::refused;
use crate::readers::texts;
use contexture::json as strict;
use insta::assert_snapshot;

#[test]
fn a_line_beyond_the_limit_is_refused() {
    let mut line = br#"{"role":"user","content":""#.to_vec();
    line.resize(strict::MAX_BYTES + 1, b'a');
    assert_snapshot!(refused(&line), @"
    line 1: longer than 64 MiB
    split the document, or keep such data in a file and refer to it by path
    ");
    let mut lines = b"{\"role\":\"user\"}\n".to_vec();
    lines.append(&mut line);
    assert_snapshot!(refused(&lines), @"
    line 2: longer than 64 MiB
    split the document, or keep such data in a file and refer to it by path
    ");
}

#[test]
fn hostile_json_is_refused() {
    let deep = |open: &str, close: &str, n: usize| open.repeat(n) + &close.repeat(n);
    assert_snapshot!(refused(deep("[", "]", 100_000)), @"
    line 1, column 128: recursion limit exceeded
    nesting is limited to 128 levels
    ");
    assert_snapshot!(refused(deep("{\"a\":", "}", 100_000)), @"
    line 1, column 636: recursion limit exceeded
    nesting is limited to 128 levels
    ");
    assert_snapshot!(refused("{\"role\":\"user\"}\n".to_owned() + &deep("[", "]", 100_000)), @"
    line 2, column 1: trailing characters
    the input must be valid JSON in UTF-8, each key once in its object
    ");
    assert_snapshot!(refused(r#"{"role":"user","content":"a","role":"system"}"#), @"
    line 1, column 35: the key `role` stands twice
    the input must be valid JSON in UTF-8, each key once in its object
    ");
    assert_snapshot!(refused(r#"{"role":"user","content":"a","x":{"y":[{"k":1,"k":2}]}}"#), @"
    line 1, column 49: the key `k` stands twice
    the input must be valid JSON in UTF-8, each key once in its object
    ");
    assert_snapshot!(refused(r#"{"role":"user","content":"a","n":1e400}"#), @"
    line 1, column 38: number out of range
    the input must be valid JSON in UTF-8, each key once in its object
    ");
    assert_snapshot!(refused(r#"{"role":"user","content":"\ud800"}"#), @"
    line 1, column 33: unexpected end of hex escape
    the input must be valid JSON in UTF-8, each key once in its object
    ");
    assert_snapshot!(refused(b"{\"role\":\"user\",\"content\":\"\xff\xfe\"}"), @"
    line 1, column 27: invalid unicode code point
    the input must be valid JSON in UTF-8, each key once in its object
    ");
    assert_snapshot!(refused(b"\xff"), @"
    line 1, column 1: expected value
    the input must be valid JSON in UTF-8, each key once in its object
    ");
    assert_snapshot!(refused("{\"role\":\"user\",\"content\":\"a\nb\"}"), @r"
    line 2, column 0: control character (\u0000-\u001F) found while parsing a string
    the input must be valid JSON in UTF-8, each key once in its object
    ");
}

#[test]
fn a_pair_of_surrogates_is_one_character() {
    assert_eq!(
        texts(&read(r#"{"role":"user","content":"\ud83e\udd80"}"#)),
        ["🦀"]
    );
}
