//! Any two requests of any session can be compared.

use contexture::build::{Session, Turn};
use contexture::diff::{Diff, Side};
use contexture::entry::RequestRecord;
use contexture::{Entry, Payload, Receipt};
use proptest::prelude::*;

use crate::properties::cases;
use crate::properties::history::{How, Story, how, op, story};

/// Every request of the story, with its receipt and the request before it, by number.
struct Lived {
    session: Session,
    sides: Vec<Side>,
    built: Vec<(Option<usize>, usize, Receipt)>,
}

fn live(how: &How, story: &Story) -> Lived {
    let mut session = Session::new(how.settings()).unwrap();
    let (mut sides, mut built) = (Vec::new(), Vec::new());
    let mut last = None;
    for (ops, seed) in &story.steps {
        for op in ops {
            for entry in op.entries(session.view()) {
                let new = session.view().position(&entry.id).is_none();
                if matches!(entry.payload, Payload::Request(_)) && new {
                    sides.push(Side::of(&session.current().unwrap()));
                    last = Some(sides.len() - 1);
                }
                session.append([entry]).unwrap();
            }
        }
        let Ok(request) = session.build(Turn {
            overflow: false,
            ..seed.turn()
        }) else {
            continue;
        };
        sides.push(Side::of(&request));
        built.push((last, sides.len() - 1, request.receipt()));
        last = Some(sides.len() - 1);
        let sent = Payload::Request(RequestRecord::default());
        session
            .append([Entry::derived(session.view().tail(), "", sent)])
            .unwrap();
    }
    Lived {
        session,
        sides,
        built,
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn any_two_requests_can_be_compared(how in how(), story in story(op().boxed())) {
        let Lived { session, sides, built } = live(&how, &story);
        let view = session.view();
        for (i, a) in sides.iter().enumerate() {
            let same = Diff::between(view, a, a);
            prop_assert_eq!((same.prefix.shared_tokens, same.prefix.broken_by), (same.b.input_tokens, None));
            prop_assert!(same.added.is_empty() && same.removed.is_empty() && same.changed.is_empty());
            for b in &sides[i + 1..] {
                let there = Diff::between(view, a, b);
                let back = Diff::between(view, b, a);
                for diff in [&there, &back] {
                    let sum = diff.prefix.shared_tokens + diff.rebilled_tokens + diff.new_tokens;
                    prop_assert_eq!(sum, diff.b.input_tokens);
                    if let Some(broken) = &diff.prefix.broken_by
                        && let Some(cause) = &broken.cause
                    {
                        let at = view.position(cause).unwrap();
                        prop_assert!((a.log_len()..b.log_len()).contains(&at), "{:?}", broken);
                    }
                }
                prop_assert_eq!(&there.added, &back.removed);
                prop_assert_eq!(&there.removed, &back.added);
                prop_assert_eq!(there.changed.len(), back.changed.len());
                prop_assert_eq!(there.prefix.shared_items, back.prefix.shared_items);
                let whole = |diff: &Diff| diff.prefix.broken_by.is_none();
                if whole(&there) && whole(&back) {
                    prop_assert_eq!(&there.a.digest, &there.b.digest);
                }
            }
        }
        // What the receipts said of each request and the one before it.
        for (last, this, receipt) in &built {
            let Some(last) = *last else { continue };
            let diff = Diff::between(view, &sides[last], &sides[*this]);
            prop_assert_eq!(diff.prefix.broken_by.is_some(), receipt.cache.first_change.is_some());
            if how.exact {
                prop_assert_eq!(diff.prefix.shared_tokens, receipt.cache.shared_prefix_tokens);
            }
            // All that is in one and not in the other is in the log between the two, or hidden by it.
            if let Some(broken) = &diff.prefix.broken_by {
                prop_assert!(broken.cause.is_some(), "{:?}", broken);
            }
        }
    }
}
