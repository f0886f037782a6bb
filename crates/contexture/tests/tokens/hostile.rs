//! Text that is made to be slow: megabytes in which no two tokens must part.

use contexture::tokens::{Bpe, Estimate, Tokenizer};

fn whole(bpe: Bpe, text: &str) -> usize {
    tiktoken::get_encoding(bpe.name()).unwrap().count(text)
}

/// `bytes` bytes of what `alphabet` holds, in no order.
fn random(alphabet: &str, bytes: usize) -> String {
    let alphabet: Vec<char> = alphabet.chars().collect();
    let mut state = 7_u32;
    let mut text = String::with_capacity(bytes + 4);
    while text.len() < bytes {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push(alphabet[(state >> 16) as usize % alphabet.len()]);
    }
    text
}

fn hostile(bytes: usize) -> Vec<String> {
    let repeated = |part: &str| part.repeat(bytes / part.len());
    vec![
        repeated("a"),
        repeated("="),
        repeated(" "),
        repeated("\n"),
        repeated("\r\n"),
        repeated("\t"),
        repeated("ab"),
        repeated("e\u{301}"),
        repeated("👨‍👩‍👧‍👦"),
        random("abcdefghijklmnopqrstuvwxyz", bytes),
        random("ABCDEFGHIJKLMNOPQRSTUVWXYZ", bytes),
        random("!#$%&()*+,-./:;<=>?@[]^_{|}~", bytes),
        random("的一是不了人我在有他这为之大来以个中上们", bytes),
        random("กขคงจชซญดตถทธนบปผฝพฟมยรลวศสห", bytes),
        random("абвгдежзийклмнопрстуфхцчшщъыьэюя", bytes),
    ]
}

#[test]
fn a_forced_cut_never_counts_less() {
    for bpe in [Bpe::O200k, Bpe::Cl100k] {
        for text in hostile(300_000) {
            let (count, whole) = (bpe.count(&text), whole(bpe, &text));
            assert!(count >= whole, "{count} < {whole}: {text:.20}");
            assert!(count <= whole + 5 * 8, "{count} > {whole}: {text:.20}");
        }
    }
}

#[test]
fn long_text_of_this_world_counts_exactly() {
    let base64 = "QWxsIHRoYXQgaXMgZ29sZCBkb2VzIG5vdCBnbGl0dGVy8J+YgC9hK2I5";
    for part in [
        "The quick brown fox jumps over the lazy dog's back, doesn't it?  Yes.\n\n",
        "    if (x != null) {\n\t\treturn foo(bar[0], \"baz\");\r\n    }\n\n",
        "{\"a\":1,\"b\":[true,null,\"c\\n\"]},",
        "var a=function(b,c){return b?c:d.e(f)||{}};",
        "我们今天去学校学习中文，然后回家吃饭。",
        "日本語の文章には空白がありません。",
        "Привет, мир. Как дела?\n",
        "नमस्ते दुनिया। ",
        "-\n/ *\n/path/to\n//comment\n",
        "x  y   z \n \n  w",
        "'s 't don't WE'LL he'D\n",
        base64,
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n",
    ] {
        let text = part.repeat(200_000 / part.len());
        for bpe in [Bpe::O200k, Bpe::Cl100k] {
            assert_eq!(bpe.count(&text), whole(bpe, &text), "{part:?}");
        }
    }
}

#[test]
fn just_above_and_below_the_limit() {
    for bytes in [65_535, 65_536, 65_537, 131_072] {
        for text in [random("abcdefghij", bytes), random("é中😀", bytes)] {
            let count = Bpe::O200k.count(&text);
            let whole = whole(Bpe::O200k, &text);
            assert!(count >= whole);
            assert!(text.len() > 65_536 || count == whole);
        }
    }
}

#[test]
fn estimates_survive_them() {
    for text in hostile(100_000) {
        let bound = Estimate.count(&text);
        assert!(bound >= Bpe::O200k.count(&text).min(text.len()));
        assert!(bound <= text.len() + 1);
    }
}
