//! What is read of models that are as they should be, and which kinds of models are refused.

use std::io::Write;

use contexture_model::gguf::{Fault, Header, ValueKind, ValueType};

use crate::gguf::writer::{Gguf, TOKENS, Value, text};
use crate::gguf::{read, refused};

#[test]
fn a_small_model_is_read_with_its_values() {
    for version in [2, 3] {
        let mut file = Gguf::llama()
            .with("tokenizer.chat_template.tool_use", text("{{ tools }}"))
            .with(
                "general.tags",
                Value::Texts(vec![b"a".to_vec(), vec![0xff]]),
            )
            .with("tokenizer.ggml.eot_token_id", Value::U32(3));
        file.version = version;
        let header = read(&file.bytes()).unwrap();
        assert_eq!(header.version, version);
        assert_eq!(header.architecture, "llama");
        assert_eq!(header.name.as_deref(), Some("Small one"));
        assert_eq!(header.file_type, Some(2));
        assert_eq!(header.context_length, 4096);
        assert_eq!(header.block_count, 2);
        assert_eq!(header.embedding_length, 64);
        assert_eq!(header.head_count, [4, 4]);
        assert_eq!(header.head_count_kv, [2, 2]);
        assert_eq!((header.key_length, header.value_length), (16, 16));
        assert_eq!(header.expert_count, 0);
        assert_eq!(header.chat_template.as_deref(), Some("{{ messages }}"));
        assert_eq!(header.chat_templates["tool_use"], "{{ tools }}");
        assert_eq!(header.chat_templates.len(), 1);
        let tokenizer = &header.tokenizer;
        assert_eq!(tokenizer.model, "gpt2");
        assert_eq!(tokenizer.pre.as_deref(), Some("smollm"));
        assert_eq!(tokenizer.tokens, TOKENS as u32);
        assert_eq!(
            [tokenizer.bos, tokenizer.eos, tokenizer.eot],
            [Some(1), Some(2), Some(3)]
        );
        assert_eq!([tokenizer.add_bos, tokenizer.add_eos], [Some(true), None]);
        assert_eq!(header.keys.len(), file.keys.len());
        assert_eq!(
            header.keys["general.tags"],
            ValueKind::Array(ValueType::Text, 2)
        );
        assert_eq!(header.keys["general.name"], ValueKind::One(ValueType::Text));

        let first = &header.tensors[0];
        assert_eq!(first.name, "token_embd.weight");
        assert_eq!(first.dimensions, [64, 12]);
        assert_eq!(first.type_name, "q4_0");
        assert_eq!(first.bytes, 432);
        assert_eq!(
            first.offset,
            (file.header().len() as u64).next_multiple_of(32)
        );
        assert_eq!(header.tensors[1].offset, first.offset + 448);
        assert_eq!(header.parameters(), 64 * 12 + 64 + 64 * 64);
        assert_eq!(header.weight_bytes(), 432 + 256 + 8192);
        // Two layers of two heads with a key and a value of 16 numbers, of two bytes each.
        assert_eq!(header.kv_bytes_per_token(), 2 * 2 * (16 + 16) * 2);
    }
}

#[test]
fn keys_come_in_any_order() {
    let mut file = Gguf::llama();
    file.keys.reverse();
    let header = read(&file.bytes()).unwrap();
    assert_eq!(header, read(&Gguf::llama().bytes()).unwrap());
}

#[test]
fn layers_may_differ() {
    let file = Gguf::of("deci")
        .with("deci.attention.head_count", Value::U32s(vec![8, 0]))
        .with("deci.attention.head_count_kv", Value::U32s(vec![4, 0]))
        .with("deci.attention.key_length", Value::U32(10))
        .with("deci.attention.value_length", Value::U32(6));
    let header = read(&file.bytes()).unwrap();
    assert_eq!(header.head_count, [8, 0]);
    assert_eq!(header.head_count_kv, [4, 0]);
    assert_eq!(header.kv_bytes_per_token(), 4 * (10 + 6) * 2);

    // Of three layers the second attends, and the others only remember.
    let file = Gguf::of("qwen35")
        .with("qwen35.block_count", Value::U32(3))
        .with("qwen35.attention.head_count_kv", Value::U32s(vec![1, 2, 4]))
        .with("qwen35.full_attention_interval", Value::U32(2));
    let header = read(&file.bytes()).unwrap();
    assert_eq!(header.kv_bytes_per_token(), 2 * (16 + 16) * 2);

    let file = Gguf::of("rwkv7")
        .with("rwkv7.wkv.head_size", Value::U32(8))
        .without("rwkv7.attention.head_count");
    let header = read(&file.bytes()).unwrap();
    assert_eq!(header.head_count, [0, 0]);
    assert_eq!(header.kv_bytes_per_token(), 0);
}

#[test]
fn a_file_may_be_aligned_otherwise_and_longer_than_its_tensors() {
    for alignment in [32, 64, 4096] {
        let mut file = Gguf::llama().with("general.alignment", Value::U32(alignment));
        file.alignment = alignment.into();
        let mut bytes = file.bytes();
        read(&bytes).unwrap();
        bytes.extend([7; 100]);
        read(&bytes).unwrap();
    }
}

#[test]
fn a_name_cannot_reach_out_of_its_line() {
    let file = Gguf::llama().with("general.name", text("red \u{1b}[31m\n"));
    let name = read(&file.bytes()).unwrap().name;
    assert_eq!(name.as_deref(), Some("red \u{fffd}[31m\u{fffd}"));
}

#[test]
fn models_that_do_not_write_text_are_refused() {
    let words = |what: &str, architecture: &str| {
        format!(
            "it is {what} (\"{architecture}\"), and only models that write text, token by token, can be used"
        )
    };
    for (architecture, what) in [
        ("bert", "an encoder"),
        ("clip", "an encoder"),
        ("nomic-bert-moe", "an encoder"),
        ("t5", "a model with an encoder before its decoder"),
        ("eagle3", "a draft for another model"),
        ("llada", "a diffusion model"),
        ("wavtokenizer-dec", "a part of a model for sound"),
    ] {
        refused([(Gguf::of(architecture), &words(what, architecture))]);
    }
    refused([
        (
            Gguf::of("gptj"),
            "its architecture \"gptj\" is not known to this version",
        ),
        (
            Gguf::llama().with("general.architecture", text("llama\n")),
            "its architecture \"llama\\n\" is not known to this version",
        ),
        (
            Gguf::llama().with("general.type", text("adapter")),
            "key \"general.type\": it is \"adapter\", and only a whole model can be used",
        ),
        (
            Gguf::llama().with("split.count", Value::U16(3)),
            "it is one of 3 files that make up the model",
        ),
    ]);
    let error = read(&Gguf::of("gptj").bytes()).unwrap_err();
    assert!(error.hint().contains("a newer version may know it"));
}

#[test]
fn a_file_is_named_in_its_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let of_file = || Header::of_file(&path).map_err(|error| (error.to_string(), error.fault));
    let shown = path.display();

    let missing = of_file().unwrap_err();
    assert!(matches!(missing.1, Fault::Unreadable(_)), "{missing:?}");
    assert!(
        missing
            .0
            .starts_with(&format!("{shown}: it cannot be read: ")),
        "{missing:?}"
    );

    let bytes = Gguf::llama().bytes();
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&bytes).unwrap();
    assert_eq!(of_file().unwrap(), read(&bytes).unwrap());

    file.set_len(bytes.len() as u64 - 1_234).unwrap();
    let short = of_file().unwrap_err().0;
    let words = "the file ends 1,234 bytes early: was it downloaded completely?";
    assert_eq!(short, format!("{shown}: {words}"));

    let folder = Header::of_file(folder.path()).unwrap_err();
    assert_eq!(folder.fault, Fault::NotAFile);
    assert!(
        folder.to_string().ends_with(": it is not a regular file"),
        "{folder}"
    );
}

/// Opening a pipe that nobody writes to would wait for ever.
#[cfg(unix)]
#[test]
fn a_pipe_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.gguf");
    let made = std::process::Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .unwrap();
    assert!(made.success());
    assert_eq!(Header::of_file(&pipe).unwrap_err().fault, Fault::NotAFile);
}
