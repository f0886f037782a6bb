//! A model that runs in the process: what it is told and what it holds is known to the token.

use contexture::entry::{Mask, RequestRecord};
use contexture::prompt::Section;
use contexture::tokens::Tokenizer;
use contexture::{EntryId, Message, Payload};
use insta::assert_snapshot;

use crate::common::chatml::ChatMl;
use crate::common::scenario::Scenario;

/// What invites the model to answer: all of a request that it never holds.
const INVITATION: usize = 4;

/// A first request, and one with `reply` and a question behind it.
fn asked_twice(reply: Message) -> (usize, Scenario) {
    let first = Scenario::new(1_000)
        .local()
        .system("You are terse.")
        .user("How many legs has a spider?")
        .build();
    let told = first.receipt().budget.used - INVITATION;
    let then = first.sent(None).message(reply).user("And a fly?");
    (told, then)
}

fn shared(scenario: &Scenario) -> usize {
    scenario.receipt().cache.shared_prefix_tokens
}

#[test]
fn a_model_without_a_system_message_is_told_its_own() {
    let alone = Scenario::new(1_000).local().user("Hello").build();
    let told = Scenario::new(1_000)
        .local()
        .system("You are a helpful assistant.")
        .user("Hello")
        .build();
    let used = |s: &Scenario| s.receipt().budget.used;
    assert_eq!(used(&alone), used(&told));
    let items = |s: &Scenario| s.receipt().items.iter().map(|i| i.tokens).sum::<usize>();
    assert_eq!(items(&alone), ChatMl.message(&Message::user("Hello")));
    assert_eq!(used(&told) - items(&told), 1 + INVITATION);
}

#[test]
fn the_reply_is_held_with_the_request() {
    let reply = Message::assistant("Eight.");
    let (told, s) = asked_twice(reply.clone());
    let s = s.build();
    assert_eq!(shared(&s), told + ChatMl.message(&reply));
    assert_snapshot!(s.cache(), @"30 shared");
    // The same again is held but for the invitation, and so is what begins it.
    let whole = s.receipt().budget.used;
    let s = s.sent(None).build();
    assert_eq!(shared(&s), whole - INVITATION);
    let s = s.revert("e1").build();
    assert_eq!(shared(&s), told);
    assert_eq!(s.receipt().budget.used, told + INVITATION);
}

#[test]
fn a_reply_that_is_cut_is_held_up_to_the_cut() {
    let reply = Message::assistant("Eight legs, as all arachnids have, and no wings.");
    let (told, s) = asked_twice(reply);
    let cut = Mask {
        entry_ids: vec![EntryId::from("e3")],
        reason: "test".to_owned(),
        keep_bytes: Some(16),
    };
    let s = s.entry(Payload::Mask(cut)).build();
    assert_snapshot!(s.messages()[2].text(), @"
    Eight le
    [… 32 bytes cut …]
    o wings.
    ");
    // The invitation stands before the reply now, and two fours of it before the cut.
    assert_eq!(shared(&s), told + INVITATION + 2);
}

#[test]
fn what_others_say_is_no_reply() {
    // A user's message, an assistant's on another branch, and one behind the reply.
    let (told, s) = asked_twice(Message::user("Eight."));
    assert_eq!(shared(&s.build()), told);
    let first = |s: Scenario| s.local().user("One").build();
    let told = first(Scenario::new(1_000)).receipt().budget.used - INVITATION;
    let s = first(Scenario::new(1_000)).sent(None);
    let s = s.assistant("1").after("e0").build();
    assert_eq!(shared(&s), told);
    let s = first(Scenario::new(1_000)).sent(None);
    let s = s.assistant("1").assistant("one").build();
    assert_eq!(shared(&s), told + ChatMl.message(&Message::assistant("1")));
}

#[test]
fn another_model_holds_nothing() {
    let other = RequestRecord {
        model: Some("other".to_owned()),
        ..RequestRecord::default()
    };
    let s = Scenario::new(1_000).local().user("One").build();
    let s = s.entry(Payload::Request(other)).assistant("1").build();
    assert_eq!(shared(&s), 0);
}

#[test]
fn the_request_is_held_as_it_was_made() {
    let s = Scenario::new(1_000).local().user("One").build();
    let told = s.receipt().budget.used - INVITATION;
    let record = RequestRecord {
        at: Some(EntryId::from("e0")),
        ..RequestRecord::default()
    };
    // While the model thinks, somebody says more.
    let s = s
        .user("Two")
        .entry(Payload::Request(record))
        .assistant("1")
        .build();
    // Both go on with a message, but not of the same role.
    assert_eq!(shared(&s), told + 1);
}

#[test]
fn only_what_the_model_reads_again_is_billed_again() {
    let stable = |name: &str, text: &str| Section::stable(name, "test", text);
    let persona = stable("persona", "You are a patient teacher of zoology.");
    let s = Scenario::new(1_000)
        .local()
        .user("How many legs has a spider?")
        .sections(&[persona.clone(), stable("rules", "Answer in one word.")])
        .turn_tools(&["look", "read"])
        .build();
    let a = s.side();
    let s = s.sent(None).assistant("Eight.").user("And a fly?").build();
    let grown = s.diff(&a, &s.side());
    assert_eq!(grown.prefix.shared_tokens, shared(&s));
    assert_eq!(grown.rebilled_tokens, 0);
    // The persona stands before what changed: it is held. Tools and messages are behind it.
    let b = s.side();
    let s = s
        .sent(None)
        .sections(&[persona, stable("rules", "Answer in a sentence.")])
        .build();
    let changed = s.diff(&b, &s.side());
    assert_eq!(changed.prefix.shared_tokens, shared(&s));
    let messages = [
        Message::user("How many legs has a spider?"),
        Message::assistant("Eight."),
        Message::user("And a fly?"),
    ];
    let messages: usize = messages.iter().map(|m| ChatMl.message(m)).sum();
    let tools: usize = s.receipt().tools.iter().map(|tool| tool.tokens).sum();
    assert_eq!(changed.rebilled_tokens, tools + messages);
    // Tools stand behind the whole system message, and the first is the same.
    let c = s.side();
    let s = s.sent(None).turn_tools(&["look"]).build();
    let fewer = s.diff(&c, &s.side());
    assert_eq!(fewer.prefix.shared_tokens, shared(&s));
    assert_eq!(fewer.rebilled_tokens, messages);
    assert_eq!(fewer.new_tokens, 2 + INVITATION);
}
