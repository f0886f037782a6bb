use contexture::ContextError;
use contexture::tokens::{FileTokenizer, Tokenizer};
use serde_json::{Value, json};

/// A byte-pair vocabulary of the letters of `hello` and three merges.
fn tiny() -> Value {
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [{
            "id": 9, "content": "hehe", "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true,
        }],
        "normalizer": null,
        "pre_tokenizer": {
            "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true,
        },
        "post_processor": null,
        "decoder": {
            "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true,
        },
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            "vocab": {
                "h": 0, "e": 1, "l": 2, "o": 3, "Ġ": 4, "he": 5, "ll": 6, "hell": 7, "hello": 8,
            },
            "merges": ["h e", "l l", "he ll", "hell o"],
        },
    })
}

#[track_caller]
fn refused(bytes: &[u8]) {
    let error = FileTokenizer::from_json("models/tokenizer.json", bytes).unwrap_err();
    let ContextError::InvalidInput { place, what, hint } = &error else {
        panic!("{error}");
    };
    assert_eq!(place, "models/tokenizer.json");
    assert!(what.starts_with("is no tokenizer that can be read"));
    // What was read is not repeated at length.
    assert!(what.len() < 400, "{what}");
    assert!(hint.contains("tokenizer.json"));
}

#[test]
fn a_tiny_vocabulary_counts_exactly() {
    let tokenizer = FileTokenizer::from_json("tiny", tiny().to_string().as_bytes()).unwrap();
    assert_eq!((tokenizer.name(), tokenizer.exact()), ("tiny", true));
    for (text, tokens) in [
        ("", 0),
        ("hello", 1),
        ("hell", 1),
        ("hel", 2),
        ("hello hello", 3),
        ("oh", 2),
    ] {
        assert_eq!(tokenizer.count(text), tokens, "{text:?}");
    }
}

#[test]
fn special_tokens_in_text_are_text() {
    let tokenizer = FileTokenizer::from_json("tiny", tiny().to_string().as_bytes()).unwrap();
    assert_eq!(tokenizer.count("hehe"), 2);
}

#[test]
fn text_without_tokens_is_bounded_by_its_bytes() {
    let tokenizer = FileTokenizer::from_json("tiny", tiny().to_string().as_bytes()).unwrap();
    for text in ["xyz", "hello, wörld", "日本語", "\0\u{7f}"] {
        assert!(tokenizer.count(text) <= text.len(), "{text:?}");
    }
}

#[test]
fn what_is_no_tokenizer_is_refused() {
    refused(b"");
    refused(b"{}");
    refused(b"[]");
    refused(b"null");
    refused(b"not json");
    refused(b"\xff\xfe\x00");
    refused(br#"{"model":{"type":"BPE"}}"#);
    refused(br#"{"version":"1.0","model":{"type":"Magic","vocab":{}}}"#);
}

#[test]
fn every_truncation_is_refused() {
    let whole = tiny().to_string();
    for end in 0..whole.len() {
        refused(&whole.as_bytes()[..end.min(whole.len() - 1)]);
    }
}

#[test]
fn broken_fields_never_panic() {
    for (pointer, value) in [
        ("/model/merges", json!(["h zzz"])),
        ("/model/merges", json!([["h"]])),
        ("/model/merges", json!(7)),
        ("/model/vocab", json!({})),
        ("/model/vocab", json!({"a": -1})),
        ("/model/vocab", json!({"a": 4_294_967_295_u32})),
        ("/model/vocab", json!({"a": 0, "b": 0})),
        (
            "/pre_tokenizer",
            json!({"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": false}),
        ),
        ("/added_tokens", json!([{"id": 0}])),
        ("/normalizer", json!({"type": "None such"})),
    ] {
        let mut broken = tiny();
        *broken.pointer_mut(pointer).unwrap() = value;
        // Refused or read, but never a panic, and a count that is a count.
        if let Ok(tokenizer) = FileTokenizer::from_json("broken", broken.to_string().as_bytes()) {
            assert!(tokenizer.count("hello hello") <= 11, "{pointer}");
        }
    }
}

#[test]
fn ten_megabytes_of_garbage_are_refused() {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    refused(&(0..10 << 20).map(|_| next()).collect::<Vec<_>>());
    refused(&vec![b'['; 10 << 20]);
    refused(&vec![b'{'; 10 << 20]);
    refused(&vec![b' '; 10 << 20]);
    refused(&vec![0; 10 << 20]);
}
