//! Attacks 8 and 53: a token in whatever spelling, in whatever pieces, is masked behind its first eight digits.

mod agents;

use std::time::{Duration, Instant};

use contexture::inject::Archetype;
use contexture_fleet::tokens::{LIFE, Token, Tokens};
use contexture_tools::secrets::mask::{hide, hide_in};
use contexture_tools::{MaskedStream, Secrets};
use proptest::prelude::*;
use serde_json::json;

/// Writes a digit by its place.
type Spell = fn(usize, char) -> String;

/// Ways to write a token so that a reader recognises it. Each is given its digits.
const SPELLINGS: [(&str, Spell); 17] = [
    ("plain", |_, c| c.to_string()),
    ("upper case", |_, c| c.to_uppercase().to_string()),
    ("both cases", |n, c| match n % 2 {
        0 => c.to_uppercase().to_string(),
        _ => c.to_string(),
    }),
    ("URL", |_, c| format!("%{:02x}", u32::from(c))),
    ("URL, capitals", |_, c| {
        format!("%{:02X}", u32::from(c.to_ascii_uppercase()))
    }),
    ("URL in a URL", |_, c| format!("%25{:02x}", u32::from(c))),
    ("URL here and there", |n, c| match n % 3 {
        0 => format!("%{:02x}", u32::from(c)),
        _ => c.to_string(),
    }),
    ("JSON", |_, c| format!("\\u{:04x}", u32::from(c))),
    ("JSON in JSON", |_, c| format!("\\\\u{:04X}", u32::from(c))),
    ("JavaScript", |_, c| format!("\\x{:02x}", u32::from(c))),
    ("braces", |_, c| format!("\\u{{{:x}}}", u32::from(c))),
    ("HTML", |_, c| format!("&#{};", u32::from(c))),
    ("HTML, base 16", |_, c| format!("&#x{:x};", u32::from(c))),
    ("wide", |_, c| {
        char::from_u32(u32::from(c) + 0xFEE0).unwrap().to_string()
    }),
    ("dashes", |n, c| {
        if n % 4 == 0 && n > 0 {
            format!("-{c}")
        } else {
            c.to_string()
        }
    }),
    ("lines", |n, c| {
        if n % 16 == 0 && n > 0 {
            format!("\\n  {c}")
        } else {
            c.to_string()
        }
    }),
    ("invisible", |n, c| {
        if n > 0 {
            format!("\u{200B}{c}")
        } else {
            c.to_string()
        }
    }),
];

fn spelled(digits: &str, spell: Spell, from: usize) -> String {
    let digits = digits.chars().enumerate();
    digits.map(|(n, c)| spell(from + n, c)).collect()
}

fn fleet() -> (Tokens, Token) {
    let tokens = Tokens::new(LIFE).unwrap();
    // Others must not get in the way.
    for n in 0..20 {
        let _ = tokens
            .generate("other", &n.to_string(), Archetype::Repo)
            .unwrap();
    }
    let (token, _) = tokens.generate("bot", "s", Archetype::Repo).unwrap();
    (tokens, token)
}

/// What a reader of the pieces sees.
fn streamed(tokens: &Tokens, pieces: &[&str]) -> String {
    let mut stream = MaskedStream::default();
    let mut out = String::new();
    for piece in pieces {
        let shown = stream.push(tokens, (), piece);
        out.extend(shown.into_iter().map(|(_, text)| text));
    }
    let rest = stream.finish(tokens);
    out.extend(rest.into_iter().map(|(_, text)| text));
    out
}

/// A text with the token in it, and what is left of it.
fn text_and_masked(token: &Token, spell: Spell) -> (String, String) {
    let token = token.reveal();
    let whole = spelled(token, spell, 0);
    let shown = spelled(&token[..8], spell, 0);
    (
        format!("Bad cafe, is 1: {whole} the end, a"),
        format!("Bad cafe, is 1: {shown}… the end, a"),
    )
}

#[test]
fn every_spelling_is_masked_at_every_cut() {
    for (name, spell) in SPELLINGS {
        let (tokens, token) = fleet();
        let (text, masked) = text_and_masked(&token, spell);
        assert_eq!(hide(&tokens, &text), masked, "{name}");
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let pieces = [&text[..at], &text[at..]];
            assert_eq!(streamed(&tokens, &pieces), masked, "{name}, cut at {at}");
        }
        let all: Vec<String> = text.chars().map(String::from).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        assert_eq!(streamed(&tokens, &all), masked, "{name}, one by one");
    }
}

proptest! {
    #[test]
    fn any_pieces_show_the_same(
        cuts in proptest::collection::vec(0..600_usize, 0..12),
        which in 0..SPELLINGS.len(),
        before in "[ -~é]{0,20}",
    ) {
        let (tokens, token) = fleet();
        let (text, masked) = text_and_masked(&token, SPELLINGS[which].1);
        // What stands before must not be read as a part of it.
        let (text, masked) = (format!("{before}. zz {text}"), format!("{before}. zz {masked}"));
        let mut cuts: Vec<usize> = cuts.into_iter().map(|at| text.floor_char_boundary(at)).collect();
        cuts.sort_unstable();
        cuts.extend([text.len()]);
        let (mut from, mut pieces) = (0, Vec::new());
        for at in cuts {
            pieces.push(&text[from..at]);
            from = at;
        }
        prop_assert_eq!(streamed(&tokens, &pieces), masked);
    }

    /// Ordinary text comes through at once and as it is.
    #[test]
    fn ordinary_text_is_neither_changed_nor_held_back(pieces in proptest::collection::vec(".{0,30}|[0-9a-f %&\\\\u-]{0,90}", 0..8)) {
        let (tokens, _) = fleet();
        let mut stream = MaskedStream::default();
        for piece in &pieces {
            let shown: String = stream.push(&tokens, (), piece).into_iter().map(|(_, text)| text).collect();
            prop_assert_eq!(&shown, piece);
        }
        prop_assert!(stream.finish(&tokens).is_empty());
    }
}

#[test]
fn what_was_cut_lacks_half_at_least() {
    let (tokens, token) = fleet();
    let (whole, shown) = (token.reveal(), token.shown());
    for end in 32..64 {
        let text = format!("title: {}", &whole[..end]);
        assert_eq!(hide(&tokens, &text), format!("title: {shown}…"), "{end}");
        assert_eq!(
            streamed(&tokens, &[&text]),
            format!("title: {shown}…"),
            "{end}"
        );
    }
    assert_eq!(hide(&tokens, &whole[..31]), &whole[..31]);
    // Other digits of the same length are not.
    let other: String = format!("{}{}", &whole[..8], "0".repeat(56));
    assert_eq!(hide(&tokens, &other), other);
    let twice = format!("{}{whole}{whole}", "0".repeat(64));
    assert_eq!(
        hide(&tokens, &twice),
        format!("{}{shown}…{shown}…", "0".repeat(64))
    );
}

#[test]
fn keys_of_objects_are_masked_too() {
    let (tokens, token) = fleet();
    let (whole, shown) = (token.reveal(), token.shown());
    let mut value =
        json!({"a": [{whole: whole.to_uppercase()}, 1], "b": {"c": format!("x{whole}")}});
    hide_in(&tokens, &mut value);
    let masked = format!("{shown}…");
    let upper = format!("{}…", shown.to_uppercase());
    assert_eq!(
        value,
        json!({"a": [{masked.as_str(): upper}, 1], "b": {"c": format!("x{masked}")}})
    );
}

#[test]
fn a_token_that_ended_is_still_masked_and_secrets_of_the_same_kind_too() {
    let (tokens, token) = fleet();
    assert_eq!(tokens.revoke_agent("bot"), 1);
    let masked = format!("{}…", token.shown());
    assert_eq!(hide(&tokens, token.reveal()), masked);
    let secret = "0123456789abcdef".repeat(4);
    assert_eq!(hide(&tokens, &secret), secret);
    tokens.mask_too(&secret);
    assert_eq!(hide(&tokens, &secret), "01234567…");
}

/// Attack 36: what an agent says may be made to be hard to look through.
#[test]
fn hostile_text_takes_no_longer_than_other_text() {
    let (tokens, token) = fleet();
    let keys = Secrets::of(["aaaaaaaaaaaaaaaa!".to_owned()]);
    let begun = Instant::now();
    for piece in [
        "\\",
        "%",
        "%25",
        "&",
        "&#",
        "&#x6",
        "0",
        "a ",
        "\\u",
        token.shown(),
        "ａ",
    ] {
        let text = piece.repeat((1 << 18) / piece.len());
        let mask = (&tokens, &keys);
        assert_eq!(hide(&mask, &text), text);
        let mut stream = MaskedStream::default();
        let mut shown = 0;
        for at in (0..text.len()).step_by(piece.len() << 10) {
            let end = text.len().min(at + (piece.len() << 10));
            let pieces = stream.push(&mask, (), &text[at..end]);
            shown += pieces.iter().map(|(_, text)| text.len()).sum::<usize>();
            assert!(
                end - shown < 2_048,
                "{piece}: {} bytes are held back",
                end - shown
            );
        }
    }
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
}
