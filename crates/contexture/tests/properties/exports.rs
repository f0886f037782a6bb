//! Nothing that was said is missing from an export, whatever happened to it.

use contexture::build::Session;
use contexture::export::{self, Kind, Meta};
use contexture::message::openai;
use contexture::{Message, Payload};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common;
use crate::properties::history::{growing_op, how, op, plain, story};
use crate::properties::{anthropic, cases};

/// A page's text as it is shown.
fn unescaped(html: &str) -> String {
    let known = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#x2f;", "/"),
        ("&amp;", "&"),
    ];
    let replace = |text: String, (from, to): (&str, &str)| text.replace(from, to);
    known.into_iter().fold(html.to_owned(), replace)
}

/// A page without its tags.
fn without_tags(html: &str) -> String {
    let mut parts = html.split('<');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once('>').map_or("", |(_, behind)| behind)
    })
}

/// The letters of a text. Digits may be the numbers of a list.
fn letters(text: &str) -> Vec<char> {
    text.chars().filter(|c| c.is_alphabetic()).collect()
}

/// Returns true if all of `part` is in `whole`, in order.
fn follows(whole: &[char], part: &[char]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|c| rest.any(|known| known == c))
}

/// Whether it is shown as it is.
fn is_plain(text: &str) -> bool {
    let plain =
        |c: char| c == '\n' || c == '\t' || c.is_ascii_graphic() || c == ' ' || c.is_alphanumeric();
    !text.trim().is_empty() && text.chars().all(plain)
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn nothing_that_was_said_is_missing(how in how(), story in story(growing_op().boxed())) {
        let mut session = Session::new(how.settings()).unwrap();
        for (ops, seed) in &story.steps {
            for op in ops {
                let entries = op.entries(session.view());
                session.append(entries).unwrap();
            }
            let _ = session.build(seed.turn());
        }
        let view = session.view();
        let all = export::conversation(view).unwrap();
        let redacted = |id| view.log().iter().any(|entry| matches!(&entry.payload, Payload::Redaction(target) if target.entry_id == id));
        // The order of the log, and every message of it.
        let mut said = all.said.iter().filter(|said| said.kind == Kind::Message);
        let page = export::html(view, &Meta::default()).unwrap();
        let document = export::markdown(view, &Meta::default()).unwrap();
        for entry in view.log() {
            let Payload::Message { message } = &entry.payload else { continue };
            let said = said.next().unwrap();
            prop_assert_eq!(&said.entry.id, &entry.id);
            if redacted(entry.id.clone()) {
                prop_assert_eq!(said.message.text(), "[redacted]");
                continue;
            }
            prop_assert_eq!(said.message.as_ref(), message);
            if let contexture::Content::Text(text) = &message.content && is_plain(text) {
                // Its markup is rendered; every letter is there, in order.
                let place = format!("id=\"entry-{}\"", entry.id);
                let (_, article) = page.split_once(&place).unwrap();
                let (article, _) = article.split_once("</article>").unwrap();
                let shown = letters(&unescaped(&without_tags(article)));
                prop_assert!(text.contains('&') || follows(&shown, &letters(text)), "{:?}", text);
                // Where its markup does nothing, it is there as it was written.
                let is_word = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '.' | '/');
                if text.chars().all(is_word) {
                    prop_assert!(document.contains(text.trim_end()), "{:?}", text);
                }
            }
        }
        prop_assert!(said.next().is_none());
    }

    /// Whatever came in, what goes out is valid, and a document can be written.
    #[test]
    fn every_form_is_valid(story in story(op().boxed()), how in how()) {
        let mut session = Session::new(how.settings()).unwrap();
        for (ops, seed) in &story.steps {
            for op in ops {
                let entries = op.entries(session.view());
                session.append(entries).unwrap();
            }
            let _ = session.build(seed.turn());
        }
        let view = session.view();
        let chat = export::openai(view).unwrap();
        common::check_pairs("export", chat["messages"].as_array().unwrap());
        let mut body = export::anthropic(view).unwrap();
        let body = body.as_object_mut().unwrap();
        // In the order in which the API caches, which is the one that a body has.
        let order = ["tools", "system", "messages"].map(|key| (key, body.shift_remove(key)));
        prop_assert!(body.is_empty());
        body.insert("max_tokens".to_owned(), 1.into());
        for (key, value) in order {
            body.extend(value.map(|value| (key.to_owned(), value)));
        }
        anthropic::check_body(&serde_json::to_vec(body).unwrap());
        export::html(view, &Meta::default()).unwrap();
        export::markdown(view, &Meta::default()).unwrap();
    }

    #[test]
    fn a_clean_conversation_comes_back(messages in vec(plain(), 0..12)) {
        let mut messages: Vec<Message> = messages.concat();
        messages.retain(|message| message.role.as_str() == "tool" || !message.is_empty());
        let mut session = Session::new(Default::default()).unwrap();
        let input = contexture::build::BuildInput::from_messages(messages.iter().cloned());
        session.append(input.session_entries).unwrap();
        let chat = export::openai(session.view()).unwrap();
        let wanted: Vec<_> = messages.iter().map(openai::shown).collect();
        prop_assert_eq!(chat["messages"].as_array().unwrap(), &wanted);
    }
}
