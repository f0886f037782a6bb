//! A model that runs in the process: its requests are counted to the token, and so is what it holds of
//! them.

use std::sync::Arc;

use contexture::build::{BuildInput, Built, ContextManager, Session, Settings, Wire};
use contexture::diff::{Diff, Side};
use contexture::entry::RequestRecord;
use contexture::replay::{replay, verify};
use contexture::tokens::{Tokenizer, count};
use contexture::{ContextConfig, ContextError, Entry, Message, Payload, Role};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

use crate::common::chatml::{ChatMl, Engine};
use crate::properties::history::{DIGEST, How, Op, Story, how, op, plain, reply, story};
use crate::properties::{cases, log};

fn settings(how: &How) -> Settings {
    Settings {
        tokenizer: Arc::new(ChatMl),
        wire: Wire::OpenAi,
        ..how.settings()
    }
}

/// Holds a request's numbers against the tokens that the engine reads.
fn check_count(how: &How, built: &Built<'_>, read: usize) {
    let tokens = built.stats().input_tokens;
    assert_eq!(tokens, read);
    assert_eq!(
        tokens,
        count::request(&ChatMl, built.messages(), built.tools())
    );
    assert!(tokens <= how.config.max_input_tokens - how.config.reserved_output);
    let receipt = built.receipt();
    assert_eq!(receipt.budget.used, tokens);
    let items: usize = receipt.items.iter().map(|item| item.tokens).sum();
    let frame = ChatMl.frame(built.messages().next());
    assert_eq!(items + ChatMl.tools(built.tools()) + frame, tokens);
    for (row, spec) in receipt.tools.iter().zip(built.tools()) {
        assert_eq!(row.tokens, ChatMl.tool(spec));
    }
}

/// What happens while the model thinks, and what it says.
type Answer = (Vec<Op>, Option<Message>);

/// A session, the engine that answers it, and what each of its requests came to.
struct Room {
    session: Session,
    engine: Engine,
    /// Each request's record: what the engine had of it, and the request itself.
    requests: Vec<(usize, Side)>,
}

impl Room {
    /// Logs an entry. Where the story itself says that a request went out, it did, as the log stood.
    fn log(&mut self, entry: Entry) {
        let view = self.session.view();
        if view.position(&entry.id).is_some() {
            self.session.append([entry]).unwrap();
            return;
        }
        self.hear(&entry);
        if let Payload::Request(record) = &entry.payload
            && record.digest == DIGEST
        {
            self.send();
        }
        self.session.append([entry]).unwrap();
    }

    /// Whatever an assistant says right behind a request's record, the engine said.
    fn hear(&mut self, entry: &Entry) {
        let last = self.session.view().log().last();
        let Some(last) = last.filter(|last| matches!(last.payload, Payload::Request(_))) else {
            return;
        };
        if let Payload::Message { message } = &entry.payload
            && message.role == Role::Assistant
            && entry.parent_id.as_ref().is_none_or(|id| *id == last.id)
        {
            self.engine.say(message);
        }
    }

    fn send(&mut self) {
        let built = self.session.current().unwrap();
        let (had, _) = self.engine.read(built.body());
        assert_eq!(built.shared_prefix_tokens(), had);
        self.requests.push((had, Side::of(&built)));
    }
}

fn live(how: &How, story: &Story, answers: &[Answer]) -> Room {
    let settings = settings(how);
    let mut room = Room {
        session: Session::new(settings.clone()).unwrap(),
        engine: Engine::default(),
        requests: Vec::new(),
    };
    for ((ops, seed), (meanwhile, said)) in story.steps.iter().zip(answers) {
        for op in ops {
            for entry in op.entries(room.session.view()) {
                room.log(entry);
            }
        }
        let mut fresh = Session::open(settings.clone(), log(&room.session)).unwrap();
        let built = match fresh.build(seed.turn()) {
            Ok(built) => built,
            Err(ContextError::Overflow(overflow)) => {
                let parts: usize = overflow.parts.iter().map(|(_, size)| size).sum();
                assert_eq!(parts, overflow.needed, "{overflow}");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        // What a turn brings may be the reply, too.
        if let Some(first) = built.entries_to_append().next() {
            room.hear(first);
        }
        let (had, all) = room.engine.read(built.body());
        check_count(how, &built, all);
        assert_eq!(
            built.shared_prefix_tokens(),
            had,
            "a session opened just now"
        );
        let built = room.session.build(seed.turn()).unwrap();
        assert_eq!(built.shared_prefix_tokens(), had);
        assert_eq!(built.receipt().cache.shared_prefix_tokens, had);
        room.requests.push((had, Side::of(&built)));
        answer(&mut room, meanwhile, said.as_ref());
    }
    room
}

/// The request is recorded, with what others wrote meanwhile before it and the reply behind it.
fn answer(room: &mut Room, meanwhile: &[Op], said: Option<&Message>) {
    let at = room.session.view().tail().cloned();
    let meanwhile = meanwhile.iter().filter(|_| at.is_some());
    for op in meanwhile.filter(|op| !matches!(op, Op::Entry(Payload::Request(_)))) {
        for entry in op.entries(room.session.view()) {
            room.session.append([entry]).unwrap();
        }
    }
    let tail = room.session.view().tail().cloned();
    let record = Payload::Request(RequestRecord {
        at: at.filter(|at| Some(at) != tail.as_ref()),
        ..room.session.record()
    });
    room.log(Entry::derived(tail.as_ref(), "", record));
    if let Some(said) = said {
        let tail = room.session.view().tail().cloned();
        room.log(Entry::message(tail.as_ref(), "", said.clone()));
    }
}

fn answers() -> impl Strategy<Value = Vec<Answer>> {
    let meanwhile = prop_oneof![3 => Just(Vec::new()), 1 => vec(op(), 1..3)];
    vec((meanwhile, weighted(0.9, reply())), 4)
}

proptest! {
    #![proptest_config(cases(600))]

    /// A request has the tokens that the engine reads, and the engine has had those of them that the
    /// receipt says: in a session that goes on, in one opened just now, in one made again, and by the
    /// diff of it and the one before.
    #[test]
    fn an_engine_reads_what_was_counted(how in how(), story in story(op().boxed()), answers in answers()) {
        let Room { session, requests, .. } = live(&how, &story, &answers);
        let mut again = Vec::new();
        verify(|_| settings(&how), log(&session), |step, _| {
            again.push(step.shared_prefix_tokens);
            Ok(())
        }).unwrap();
        let had: Vec<usize> = requests.iter().map(|(had, _)| *had).collect();
        prop_assert_eq!(again, had);
        for pair in requests.windows(2) {
            let [(_, a), (had, b)] = pair else { unreachable!() };
            let diff = Diff::between(session.view(), a, b);
            prop_assert_eq!(diff.prefix.shared_tokens, *had);
            let sum = diff.prefix.shared_tokens + diff.rebilled_tokens + diff.new_tokens;
            prop_assert_eq!(sum, diff.b.input_tokens);
        }
    }

    /// So it is when a transcript is lived through again.
    #[test]
    fn an_engine_has_what_a_replay_says(messages in vec(plain(), 1..20), budget in 100..1_500_usize, compactor in any::<bool>()) {
        let how = How {
            config: ContextConfig { max_input_tokens: budget, ..ContextConfig::default() },
            compactor,
            exact: true,
            wire: Wire::OpenAi,
        };
        let input = BuildInput::from_messages(messages.concat());
        let entries = input.session_entries.clone();
        let mut engine = Engine::default();
        let lived = replay(settings(&how), input, |step, built| {
            let (had, all) = engine.read(built.body());
            assert_eq!((step.shared_prefix_tokens, step.input_tokens), (had, all));
            let entry = entries.iter().find(|entry| entry.id == step.entry_id);
            if let Some(Payload::Message { message }) = entry.map(|entry| &entry.payload) {
                engine.say(message);
            }
            Ok(())
        });
        prop_assert!(matches!(lived, Ok(_) | Err(ContextError::Overflow(_))));
    }

    /// A transcript is counted as the request of its messages is.
    #[test]
    fn a_manager_counts_as_the_engine_does(messages in vec(reply(), 0..5)) {
        let settings = Settings { tokenizer: Arc::new(ChatMl), ..Settings::default() };
        let manager = ContextManager::new(settings).unwrap();
        let read = ChatMl.prompt(&mut messages.iter(), &[]).unwrap().len();
        let invited = ChatMl.frame(Some(&Message::system(""))) - 1;
        prop_assert_eq!(manager.estimate_tokens(&messages), read + invited);
    }
}
