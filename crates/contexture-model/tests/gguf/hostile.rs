//! Files that somebody made to do harm, or that broke on their way.

use std::io::{Cursor, Read, Seek, SeekFrom};

use contexture_model::gguf::{Fault, Header};
use proptest::prelude::*;

use crate::gguf::read;
use crate::gguf::writer::{Gguf, Value, claim, text};

/// Files that have something of everything.
fn files() -> Vec<Gguf> {
    let experts = Gguf::of("qwen3moe")
        .with("qwen3moe.expert_count", Value::U32(8))
        .with("qwen3moe.expert_used_count", Value::U32s(vec![2, 3]));
    let many = Gguf::llama()
        .with("general.small", Value::U8(1))
        .with("general.large", Value::U64(1))
        .with("general.part", Value::F32(1.0))
        .with(
            "general.tags",
            Value::Texts(vec![b"a".to_vec(), Vec::new()]),
        )
        .with("tokenizer.chat_template.tool_use", text("{{ tools }}"));
    vec![Gguf::llama(), experts, many]
}

/// That whatever is read could be handed on.
fn check(bytes: &[u8]) {
    let Ok(header) = read(bytes) else { return };
    for tensor in &header.tensors {
        assert!(tensor.offset + tensor.bytes <= bytes.len() as u64);
    }
    assert!(header.weight_bytes() <= bytes.len() as u64);
    assert_eq!(header.head_count.len(), header.block_count as usize);
    header.parameters();
    header.kv_bytes_per_token();
}

#[test]
fn every_truncation_is_an_error() {
    for file in files() {
        let bytes = file.bytes();
        let header = file.header().len();
        read(&bytes).unwrap();
        for len in 0..bytes.len() {
            let error = read(&bytes[..len]).unwrap_err();
            let Fault::Truncated { missing } = error.fault else {
                panic!("{len}: {error}");
            };
            // In the data it is known how much is missing; in the header, what the next part needs.
            match len >= header {
                true => assert_eq!(missing, (bytes.len() - len) as u64),
                false => assert!(missing > 0 && missing <= (bytes.len() - len) as u64),
            }
        }
    }
}

#[test]
fn every_byte_of_a_header_may_be_any_other() {
    for file in files() {
        let bytes = file.bytes();
        for at in 0..file.header().len() {
            for other in [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1, bytes[at] ^ 0x40] {
                let mut changed = bytes.clone();
                changed[at] = other;
                check(&changed);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        check(&bytes);
        check(&[b"GGUF\x03\0\0\0", &bytes[..]].concat());
        let counted = [&b"GGUF\x03\0\0\0\x02\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0"[..], &bytes].concat();
        check(&counted);
    }

    #[test]
    fn a_file_that_was_changed_is_read_or_refused(
        which in 0..3usize,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        numbers in proptest::collection::vec((any::<prop::sample::Index>(), 0..64u32), 0..3),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let file = &files()[which];
        let header = file.header().len();
        let mut bytes = file.bytes();
        for (at, byte) in changes {
            bytes[at.index(header)] = byte;
        }
        // Powers of two, where lengths and counts may stand.
        for (at, power) in numbers {
            let at = at.index(header - 8);
            bytes[at..at + 8].copy_from_slice(&(1u64 << power).to_le_bytes());
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        check(&bytes);
    }
}

/// A small file with large claims takes no memory. The system counts what was reserved, used or not.
#[cfg(target_os = "linux")]
#[test]
fn claims_reserve_nothing() {
    let peak = || -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmPeak:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let file = Gguf::llama();
    let tokens = |count: u64| {
        let strings = [&8u32.to_le_bytes()[..], &claim(count)].concat();
        file.clone()
            .with("tokenizer.ggml.tokens", Value::Raw(9, strings))
    };
    read(&file.bytes()).unwrap();
    let before = peak();
    for power in 10..64 {
        let claimed = 1u64 << power;
        let mut counted = file.clone();
        counted.key_count = Some(claimed);
        let mut listed = file.clone();
        listed.tensor_count = Some(claimed);
        let layers = [&4u32.to_le_bytes()[..], &claim(claimed)].concat();
        for file in [
            counted,
            listed,
            tokens(claimed),
            file.clone().and(b"x", Value::Raw(8, claim(claimed))),
            file.clone()
                .with("general.name", Value::Raw(8, claim(claimed))),
            file.clone()
                .with("llama.attention.head_count", Value::Raw(9, layers)),
        ] {
            let mut bytes = file.bytes();
            bytes.truncate(1_024);
            // Whatever the file's length is said to be.
            for len in [bytes.len() as u64, 1 << 26, u64::MAX] {
                Header::read(&mut Cursor::new(&bytes), len).unwrap_err();
            }
        }
    }
    let more = peak() - before;
    assert!(more < 100 << 10, "{more} KiB");
}

/// Long arrays that nobody asks for, and keys without end: the first are skipped, the second end.
#[test]
fn what_is_kept_has_a_bound() {
    let numbers = Value::U32s(vec![7; 4 << 20]);
    let header = read(&Gguf::llama().with("general.numbers", numbers).bytes()).unwrap();
    assert!(header.keys.contains_key("general.numbers"));

    let layers = Value::U32s(vec![7; 17 << 20]);
    let error = read(
        &Gguf::llama()
            .with("llama.attention.head_count", layers)
            .bytes(),
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("it has 17,825,792 numbers for 2 layers"),
        "{error}"
    );

    let mut file = Gguf::llama();
    for n in 0..500_000u32 {
        file = file.and(format!("k{n}").as_bytes(), Value::U8(0));
    }
    let error = read(&file.bytes()).unwrap_err();
    assert!(matches!(error.fault, Fault::TooLarge(_)), "{error}");
    assert!(
        error
            .to_string()
            .ends_with("the header would take more than 67,108,864 bytes of memory")
    );

    let long = |key, bytes| Gguf::llama().with(key, Value::Text(vec![b'x'; bytes]));
    let much = [
        (
            long("tokenizer.chat_template", (1 << 20) + 1),
            "a string has 1,048,577 bytes, and 1,048,576 are possible",
        ),
        (
            long("tokenizer.huggingface.json", 65 << 20),
            "the header would take more than 67,108,864 bytes of memory",
        ),
    ];
    for (file, words) in much {
        let error = read(&file.bytes()).unwrap_err().to_string();
        assert!(error.ends_with(words), "{error}");
    }
    read(&long("tokenizer.huggingface.json", 60 << 20).bytes()).unwrap();

    let many = Gguf::llama().with(
        "tokenizer.ggml.merges",
        Value::Texts(vec![Vec::new(); (4 << 20) + 1]),
    );
    let error = read(&many.bytes()).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("it has 4,194,305 strings, and 4,194,304 are possible"),
        "{error}"
    );
}

/// A file that fails, or shrinks, while it is read.
#[test]
fn a_file_that_fails_is_an_error() {
    struct Failing(Cursor<Vec<u8>>, u64);
    impl Read for Failing {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            match self.1 {
                0 => Err(std::io::Error::other("the disk is gone")),
                left => {
                    let most = into.len().min(left as usize);
                    let count = self.0.read(&mut into[..most])?;
                    self.1 -= count as u64;
                    Ok(count)
                }
            }
        }
    }
    impl Seek for Failing {
        fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
            self.0.seek(to)
        }
    }
    let bytes = Gguf::llama().bytes();
    for until in 0..Gguf::llama().header().len() as u64 {
        let mut failing = Failing(Cursor::new(bytes.clone()), until);
        let error = Header::read(&mut failing, bytes.len() as u64).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("it cannot be read: the disk is gone"),
            "{error}"
        );
        let mut short = Cursor::new(&bytes[..until as usize]);
        let error = Header::read(&mut short, bytes.len() as u64).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("it became shorter while it was read"),
            "{error}"
        );
    }
}
