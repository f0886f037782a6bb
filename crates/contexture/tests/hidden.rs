//! Attacks 22 and 55: characters that nobody sees are shown where they are stray, and stay where writing needs them.

use contexture::text::hidden::{is_hidden, legible, reveal, stray};
use proptest::prelude::*;

use crate::properties::cases;

/// What people really write, with the hidden characters that it takes.
const WRITTEN: [(&str, &str); 41] = [
    ("ASCII", "fn main() { println!(\"{:#?}\", x); }\tok\n"),
    ("typography", "“quoted” – ‘naïve’ — 3 × 4 … café №5 €9 ½"),
    (
        "non-breaking blanks",
        "10\u{a0}000\u{202f}km\u{2009}a\u{3000}b",
    ),
    (
        "combining marks",
        "e\u{301} a\u{308} ṩ Z\u{351}a\u{34e}l\u{322}go",
    ),
    ("soft hyphens", "Donau\u{ad}dampf\u{ad}schiff\u{ad}fahrt"),
    ("Greek and Cyrillic", "Ξεσκεπάζω съешь же ещё"),
    ("Hebrew with points", "בְּרֵאשִׁית בָּרָא"),
    ("Hebrew, marks kept in order", "יְרוּשָׁלַ\u{34f}ִם"),
    ("Arabic", "السلام عليكم، كيف الحال؟ ١٢٣"),
    ("Persian", "می\u{200c}خواهم کتاب\u{200c}ها را بخوانم"),
    (
        "Persian behind a Latin word",
        "PDF\u{200c}ها و API\u{200c}ها",
    ),
    ("Urdu", "آپ کیسے ہیں"),
    (
        "Arabic, a form shown alone",
        "ه\u{200d} \u{200d}ه \u{200d}ه\u{200d}",
    ),
    ("Devanagari", "क्\u{200d}ष क्\u{200c}ष हिन्दी"),
    ("Bengali", "র\u{200d}\u{9cd}যাব ত্\u{200d} আ"),
    ("Malayalam, as it was written before", "അവന്\u{200d} പറഞ്ഞു"),
    ("Sinhala", "ශ්\u{200d}රී ලංකා ක්\u{200d}ෂ"),
    ("Kannada", "ರ\u{200d}್ಯಾಂಕ್ ರಾಜ್\u{200c}ಕುಮಾರ್"),
    ("Khmer", "ភាសា\u{200b}ខ្មែរ\u{200b}ពិរោះ"),
    ("Thai", "ภาษา\u{200b}ไทย น้ำ"),
    ("Burmese", "မြန်မာ\u{200b}ဘာသာ က\u{fe00}"),
    ("Tibetan", "བོད་སྐད།"),
    (
        "Mongolian",
        "ᠮᠣᠩᠭᠣᠯ ᠬᠠᠷ\u{180e}ᠠ ᠭ\u{180b}\u{180e}ᠠ ᠠ\u{180c}ᠢ",
    ),
    ("Phags-pa", "ꡖ\u{fe00}ꡜ\u{fe00}"),
    ("Chinese", "数据库迁移完成，ｆｕｌｌ　width。"),
    ("Japanese", "カタカナ、ひらがな。㌔ ｶﾞ"),
    (
        "Japanese, a name with its own form",
        "葛\u{e0100}城市 辻\u{e0101}さん",
    ),
    (
        "Chinese, compatibility forms",
        "㐮\u{fe00}侮\u{fe00}侮\u{fe01}，\u{fe00}。\u{fe01}",
    ),
    ("Korean", "안녕하세요 한글"),
    ("Old Korean", "\u{115f}\u{1161} ᄀ\u{1160}ᆨ 나랏〮말〯ᄊᆞ미"),
    (
        "mathematics",
        "∩\u{fe00} ⊕\u{fe00} 0\u{fe00} ≨\u{fe00} 𝒜\u{fe00}𝒜\u{fe01}",
    ),
    ("emoji", "😀👍🏽🎉🚀✅ ★ → ⌘"),
    (
        "emoji with a look",
        "❤\u{fe0f} ☎\u{fe0e} ✔\u{fe0f} ©\u{fe0f} ™\u{fe0f} ↔\u{fe0f} ㊗\u{fe0f} 〰\u{fe0f}",
    ),
    (
        "families and trades",
        "👩\u{200d}👩\u{200d}👧\u{200d}👦 👩🏽\u{200d}🚀 👨\u{200d}⚕\u{fe0f} 🧑🏿\u{200d}🤝\u{200d}🧑🏻",
    ),
    (
        "joined emoji",
        "❤\u{fe0f}\u{200d}🔥 👁\u{fe0f}\u{200d}🗨\u{fe0f} 🏳\u{fe0f}\u{200d}🌈 🏴\u{200d}☠\u{fe0f} 🐈\u{200d}⬛ 🙂\u{200d}↔\u{fe0f}",
    ),
    (
        "keycaps",
        "1\u{fe0f}\u{20e3} 0\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3} *\u{fe0f}\u{20e3} 2\u{20e3}",
    ),
    (
        "flags",
        "🇩🇪🇯🇵 🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} 🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} 🏴\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
    ),
    ("music", "𝄞 𝅘𝅥\u{1d173}𝅘𝅥𝅮\u{1d174}"),
    ("hieroglyphs", "𓀀\u{fe00}𓁐 𓊖\u{fe06}"),
    (
        "private use and tofu",
        "\u{e0b0} \u{f8ff} \u{fffd} \u{10ffff}",
    ),
    ("marks of ours", "⟨U+200B⟩ ⟨3 tag characters: \"abc\"⟩"),
];

#[test]
fn what_people_write_stays_as_it_is() {
    for (script, text) in WRITTEN {
        assert_eq!(reveal(text), None, "{script}");
        assert_eq!(legible(text), text, "{script}");
        // Inside of other text as well, and twice.
        for around in [format!("see {text} there"), format!("{text}\n{text}")] {
            assert_eq!(reveal(&around), None, "{script}");
        }
    }
    assert_eq!(reveal("\u{feff}a file"), None, "files begin so");
    assert_eq!(legible("a\r\nb\tc\n"), "a\nb\tc\n");
}

/// All hidden characters, and a few by name so that the table cannot lose them.
#[test]
fn each_hidden_character_is_shown_where_it_is_stray() {
    let named = [
        0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180b, 0x180e, 0x180f, 0x200b, 0x200c,
        0x200d, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202e, 0x2060, 0x2061, 0x2064, 0x2065,
        0x2066, 0x2069, 0x206a, 0x206f, 0x3164, 0xfe00, 0xfe0e, 0xfe0f, 0xfeff, 0xffa0, 0xfff0,
        0xfff9, 0xfffb, 0x1bca0, 0x1bca3, 0x1d173, 0x1d17a, 0xe0000, 0xe0001, 0xe0041, 0xe007f,
        0xe0080, 0xe0100, 0xe01ef, 0xe0fff,
    ];
    for code in named {
        assert!(is_hidden(char::from_u32(code).unwrap()), "{code:x}");
    }
    let hidden = (0..=0x0010_ffff).filter_map(char::from_u32);
    for c in hidden.filter(|c| is_hidden(*c)) {
        let code = u32::from(c);
        for text in [
            format!("a {c} b"),
            format!("x{c}{c}y"),
            format!("({c}"),
            format!("ok {c}"),
        ] {
            let (shown, found) = reveal(&text).unwrap_or_else(|| panic!("{code:x} in {text:?}"));
            assert!(!shown.contains(is_hidden), "{code:x}: {shown:?}");
            assert_eq!(found, text.matches(c).count(), "{code:x}");
            assert_eq!(legible(&text), shown, "{code:x}");
        }
    }
}

#[test]
fn what_needs_one_does_not_need_two() {
    for (text, found) in [
        ("❤\u{fe0f}\u{fe0f}", 1),
        ("葛\u{e0100}\u{e0101}", 1),
        ("葛 \u{e0100}", 1),
        ("a\u{e0100}b\u{fe0f}", 2),
        ("1\u{fe0f}2\u{fe0e}3", 2),
        ("می\u{200c}\u{200c}خ", 2),
        ("a\u{200c}b\u{200d}c", 2),
        ("é\u{200d}\u{200c}é", 2),
        ("👩\u{200d}x \u{200d}👩", 2),
        ("i\u{ad}g\u{ad}n\u{ad}ore", 3),
        ("a\u{ad}\u{ad}b \u{ad}c", 3),
        ("ภา\u{200b}\u{200b}ษา a\u{200b}ภ", 3),
        ("\u{115f}\u{1160}", 2),
        ("ᠠ\u{180e} \u{180b}ᠠ", 2),
        ("x\u{feff}y\u{feff}", 2),
        ("\u{feff}\u{feff}x", 1),
        ("א\u{200f}ب\u{61c}a\u{200e}", 3),
        ("🏴\u{e0067}\u{e0062}\u{e007f}", 3),
        ("🏴\u{e0075}\u{e0073}\u{e0074}\u{e0078}\u{e007f}", 5),
        ("🏳\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", 6),
    ] {
        assert_eq!(
            reveal(text).map(|(_, found)| found),
            Some(found),
            "{text:?}"
        );
    }
}

#[test]
fn the_marks_say_what_there_was() {
    let tags = |text: &str| -> String {
        let tag = |c| char::from_u32(0xe0000 + u32::from(c)).unwrap();
        text.chars().map(tag).collect()
    };
    // Any byte, as a variation selector behind one emoji.
    let selectors = |text: &str| -> String {
        let selector = |byte: u8| match byte {
            0..16 => 0xfe00 + u32::from(byte),
            _ => 0xe0100 + u32::from(byte) - 16,
        };
        text.bytes()
            .filter_map(|byte| char::from_u32(selector(byte)))
            .collect()
    };
    let shown = |text: &str| reveal(text).unwrap().0;
    assert_eq!(
        shown(&format!("a{}b", tags("send \"it\""))),
        r#"a⟨9 tag characters: "send \"it\""⟩b"#
    );
    assert_eq!(
        shown(&format!("😀{}", selectors("obey\n"))),
        "😀⟨5 variation selectors: \"obey\"⟩"
    );
    assert_eq!(shown("a\u{202e}b\u{2069}"), "a⟨U+202E⟩b⟨U+2069⟩");
    assert_eq!(shown(&"\u{200b}".repeat(1_000)), "⟨U+200B ×1000⟩");
    assert_eq!(
        legible("\u{1b}[31m\u{7}\r\u{7f}\u{9b}\0\0\r\n"),
        "⟨ESC⟩[31m⟨BEL⟩⟨CR⟩⟨DEL⟩⟨U+009B⟩⟨NUL ×2⟩\n"
    );
    // A model gets control characters as JSON has them.
    assert_eq!(reveal("\u{1b}[31m\u{9b}\0"), None);
}

/// Text in which hidden characters stand beside whatever might need them.
fn text() -> impl Strategy<Value = String> {
    let hidden: Vec<char> = (0..=0x0010_ffff)
        .filter_map(char::from_u32)
        .filter(|c| is_hidden(*c) && u32::from(*c) < 0xe0200)
        .collect();
    let common: Vec<char> = "\u{ad}\u{34f}\u{180b}\u{180e}\u{200b}\u{200c}\u{200d}\u{fe00}\u{fe0e}\u{fe0f}\u{feff}\u{e0100}\u{e0101}\u{115f}\u{1160}\u{1d173}"
        .chars()
        .collect();
    let bases: Vec<char> = "ab1#0é ❤👩🏴👩🏽♂\u{20e3}میבְक्ක්ខไកမᠠᠭ葛侮，가ꡖ∩𝒜𝄞𓀀\n\r\t\u{1b}⟨⟩"
        .chars()
        .collect();
    let one = prop_oneof![
        4 => proptest::sample::select(bases).prop_map(String::from),
        4 => proptest::sample::select(common).prop_map(String::from),
        1 => proptest::sample::select(hidden).prop_map(String::from),
        1 => proptest::sample::select(&WRITTEN[..]).prop_map(|(_, text)| text.to_owned()),
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(one, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(cases(2_000))]

    /// Once is enough, nothing else is touched, and what was counted is what is gone.
    #[test]
    fn revealing_takes_the_stray_and_nothing_else(text in text()) {
        let (shown, found) = reveal(&text).unwrap_or_else(|| (text.clone(), 0));
        prop_assert_eq!(reveal(&shown), None, "{:?}", shown);
        let hidden = |text: &str| text.chars().filter(|c| is_hidden(*c)).count();
        prop_assert_eq!(hidden(&shown) + found, hidden(&text));
        // What is seen stands there in the same order.
        let mut rest = shown.as_str();
        for c in text.chars().filter(|c| !is_hidden(*c)) {
            let at = rest.find(c);
            prop_assert!(at.is_some(), "{:?} of {:?} is not in {:?}", c, text, shown);
            rest = &rest[at.unwrap() + c.len_utf8()..];
        }
    }

    #[test]
    fn a_person_sees_all_that_is_there(text in text()) {
        let shown = legible(&text).into_owned();
        prop_assert_eq!(legible(&shown), shown.as_str());
        prop_assert!(!shown.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')));
        prop_assert_eq!(stray(&shown).count(), 0);
        // Each stray piece is where it says, and the rest is what stays.
        let mut kept = String::new();
        let mut done = 0;
        for (at, run) in stray(&text) {
            prop_assert_eq!(&text[at..at + run.len()], run);
            kept.push_str(&text[done..at]);
            done = at + run.len();
        }
        kept.push_str(&text[done..]);
        let commands = kept.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t'));
        prop_assert!(!commands);
    }
}
