//! Beginnings and keys that are refused.

use crate::gguf::writer::{Gguf, Value, claim, text, tokens};
use crate::gguf::{read, refused, refused_bytes};

#[test]
fn only_gguf_of_versions_2_and_3_is_read() {
    let version = |version| {
        let mut file = Gguf::llama();
        file.version = version;
        file
    };
    let words =
        |n| format!("it is written in version {n} of GGUF, and versions 2 and 3 can be read");
    let big = "it is written for big-endian machines, and only little-endian files can be read";
    refused([
        (version(0), &words(0)),
        (version(1), &words(1)),
        (version(4), &words(4)),
        (version(3u32.swap_bytes()), big),
        (version(2u32.swap_bytes()), big),
    ]);
    refused_bytes(
        b"<!DOCTYPE html>",
        "it is not a GGUF file: it begins with \"<!DO\"",
    );
    refused_bytes(
        b"\x1b\"",
        "it is not a GGUF file: it begins with \"\\x1b\\\"\"",
    );
    refused_bytes(
        b"GGU",
        "the file ends 4 bytes early: was it downloaded completely?",
    );
    refused_bytes(
        b"",
        "the file ends 4 bytes early: was it downloaded completely?",
    );
}

#[test]
fn what_is_wrong_with_a_key_is_said() {
    for (file, words) in [
        (Gguf::llama().and(b"", Value::U8(0)), "its name is empty"),
        (
            Gguf::llama().and(b"a\xff", Value::U8(0)),
            "its name is not valid UTF-8",
        ),
        (
            Gguf::llama().and(b"a\nb", Value::U8(0)),
            "its name has a control character",
        ),
        (
            Gguf::llama().and(&[b'x'; 65_536], Value::U8(0)),
            "a string has 65,536 bytes, and 65,535 are possible",
        ),
        (
            Gguf::llama().and(b"general.name", Value::U8(0)),
            "it is there twice",
        ),
        (
            Gguf::llama().and(b"x", Value::Raw(13, vec![0; 8])),
            "its type has the number 13, which no type has",
        ),
        (
            Gguf::llama().and(b"x", Value::Bool(2)),
            "a bool is 0 or 1, and this is 2",
        ),
        (
            Gguf::llama().and(b"x", Value::Text(vec![0xc3])),
            "a string is not valid UTF-8",
        ),
        (
            Gguf::llama().and(
                b"x",
                Value::Raw(9, [&9u32.to_le_bytes()[..], &[0; 16]].concat()),
            ),
            "it is an array of arrays",
        ),
        (
            Gguf::llama().with("tokenizer.ggml.tokens", Value::Texts(Vec::new())),
            "it has no tokens",
        ),
        (
            Gguf::llama().with(
                "tokenizer.ggml.tokens",
                Value::Texts(vec![b"a".to_vec(), b"b".to_vec(), b"a".to_vec()]),
            ),
            "tokens 0 and 2 are the same",
        ),
        (
            Gguf::llama().with(
                "tokenizer.ggml.tokens",
                Value::Texts(vec![Vec::new(), b"[EMPTY_0]".to_vec()]),
            ),
            "tokens 0 and 1 are the same",
        ),
        (
            Gguf::llama().with(
                "tokenizer.ggml.tokens",
                Value::Texts(vec![vec![b'x'; 70_000]]),
            ),
            "a string has 70,000 bytes, and 65,535 are possible",
        ),
    ] {
        let error = read(&file.bytes()).expect_err(words).to_string();
        assert!(error.starts_with("key "), "{error}");
        assert!(error.contains(" (byte "), "{error}");
        assert!(error.ends_with(&format!("): {words}")), "{error}");
    }
    // Tokens may be any bytes, and empty.
    let odd = (0..12).map(|n| if n == 3 { Vec::new() } else { vec![0xff, n] });
    read(
        &Gguf::llama()
            .with("tokenizer.ggml.tokens", Value::Texts(odd.collect()))
            .bytes(),
    )
    .unwrap();
}

#[test]
fn a_key_in_a_message_is_short_and_harmless() {
    let file = Gguf::llama().and("\u{202e}x".repeat(500).as_bytes(), Value::Bool(2));
    let error = read(&file.bytes()).unwrap_err().to_string();
    assert!(
        error.len() < 1_000 && error.contains('…') && !error.contains('\u{202e}'),
        "{error}"
    );
}

#[test]
fn keys_that_every_model_has_must_be_there() {
    for key in [
        "general.architecture",
        "llama.context_length",
        "llama.block_count",
        "llama.embedding_length",
        "llama.attention.head_count",
        "tokenizer.ggml.model",
    ] {
        refused([(
            Gguf::llama().without(key),
            &format!("key \"{key}\": it is missing"),
        )]);
    }
    refused([(
        Gguf::llama().without("tokenizer.ggml.tokens"),
        "key \"tokenizer.ggml.tokens\": it is missing: the file has no vocabulary",
    )]);
}

#[test]
fn keys_have_the_types_that_the_engine_asks_for() {
    refused([
        (
            Gguf::llama().with("llama.block_count", Value::U64(2)),
            "key \"llama.block_count\": its value is u64, not u32",
        ),
        (
            Gguf::llama().with("general.architecture", Value::U32(2)),
            "key \"general.architecture\": its value is u32, not str",
        ),
        (
            Gguf::llama().with("tokenizer.ggml.add_bos_token", Value::I32(1)),
            "key \"tokenizer.ggml.add_bos_token\": its value is i32, not bool",
        ),
        (
            Gguf::llama().with("llama.context_length", Value::U32s(vec![1, 2])),
            "key \"llama.context_length\": its value is array of 2 u32, not u32",
        ),
        (
            Gguf::llama().with("llama.attention.head_count_kv", Value::F32(2.0)),
            "key \"llama.attention.head_count_kv\": its value is f32, not u32, nor an array of them",
        ),
        (
            Gguf::llama().with("llama.attention.head_count_kv", Value::U32s(vec![2; 3])),
            "key \"llama.attention.head_count_kv\": it has 3 numbers for 2 layers",
        ),
        (
            Gguf::llama().with("llama.attention.head_count_kv", Value::U32s(vec![2; 600])),
            "key \"llama.attention.head_count_kv\": it has 600 numbers for 2 layers",
        ),
        (
            Gguf::llama().with("tokenizer.ggml.tokens", Value::U32s(vec![1])),
            "key \"tokenizer.ggml.tokens\": its value is array of 1 u32",
        ),
        (
            Gguf::llama().with("general.alignment", Value::U32(48)),
            "key \"general.alignment\": it is 48, and not a power of two up to 1,048,576",
        ),
        (
            Gguf::llama().with("general.alignment", Value::U32(0)),
            "key \"general.alignment\": it is 0, and not a power of two up to 1,048,576",
        ),
    ]);
}

#[test]
fn tokens_that_the_engine_adds_are_in_the_vocabulary() {
    let id = |name: &str, id| {
        Gguf::llama().with(&format!("tokenizer.ggml.{name}_token_id"), Value::U32(id))
    };
    let key = |name: &str, what: &str| format!("key \"tokenizer.ggml.{name}_token_id\": {what}");
    for name in ["bos", "eos", "eot"] {
        refused([(
            id(name, 12),
            &key(name, "it is 12, and there are 12 tokens"),
        )]);
        read(&id(name, 11).bytes()).unwrap();
    }
    // Without a name for it, this tokenizer takes token 11.
    let unnamed = Gguf::llama().without("tokenizer.ggml.bos_token_id");
    read(&unnamed.bytes()).unwrap();
    let few = unnamed.with("tokenizer.ggml.tokens", tokens(8));
    let few = few.first(|t| (t.dimensions, t.bytes) = (vec![64, 8], 8 * 36));
    let gemma = Gguf::llama()
        .with("tokenizer.ggml.model", text("gemma4"))
        .with("tokenizer.ggml.add_bos_token", Value::Bool(0))
        .without("tokenizer.ggml.bos_token_id");
    let begins = key("bos", "it is missing, and every text begins with it");
    let ends = Gguf::llama()
        .with("tokenizer.ggml.model", text("rwkv"))
        .with("tokenizer.ggml.add_eos_token", Value::Bool(1))
        .without("tokenizer.ggml.eos_token_id");
    refused([
        (few, begins.as_str()),
        (gemma, &begins),
        (
            ends,
            &key("eos", "it is missing, and every text ends with it"),
        ),
        (
            Gguf::llama().with("tokenizer.ggml.model", text("none")),
            "key \"tokenizer.ggml.model\": \"none\" is no tokenizer that this version knows",
        ),
    ]);
}

#[test]
fn claims_are_checked_before_anything_is_read() {
    let count = |keys, tensors| {
        let mut file = Gguf::llama();
        (file.key_count, file.tensor_count) = (keys, tensors);
        file
    };
    let too_large =
        |bytes: &str| format!("it claims {bytes} more bytes, and a header has 134,217,728 at most");
    refused([
        (
            count(Some(1 << 60), None),
            &too_large("16,140,901,064,495,857,763"),
        ),
        (
            count(None, Some(u64::MAX)),
            &too_large("18,446,744,073,709,551,615"),
        ),
    ]);
    let error = read(&count(Some(100_000), None).bytes())
        .unwrap_err()
        .to_string();
    assert!(error.contains("bytes early"), "{error}");

    let strings = |count: u64| [&8u32.to_le_bytes()[..], &claim(count)].concat();
    for (value, words) in [
        (
            Value::Raw(8, claim(1 << 60)),
            too_large("1,152,921,504,606,846,976"),
        ),
        (
            Value::Raw(9, strings(1 << 60)),
            too_large("9,223,372,036,854,775,808"),
        ),
        (
            Value::Raw(9, strings(1 << 62)),
            too_large("18,446,744,073,709,551,615"),
        ),
    ] {
        let error = read(&Gguf::llama().and(b"x", value).bytes())
            .unwrap_err()
            .to_string();
        assert!(error.ends_with(&words), "{error}");
    }
}
