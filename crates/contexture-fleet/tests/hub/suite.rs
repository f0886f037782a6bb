//! The promises. Each has a hub of its own, and asks it for as many handles as it needs.

use std::time::{Duration, Instant};

use contexture_fleet::hub::{HubError, MOST_BYTES};
use tokio::time::timeout;

use crate::hub::home::{
    A_WHILE, Home, SOON, asked, here, left, name, next, silent, taken, told, word,
};
use crate::hub::sending;

macro_rules! promises {
    ($home:expr, $($words:literal: $promise:path),+ $(,)?) => {
        $(
            println!($words);
            let promise = $promise(($home)());
            timeout(Duration::from_secs(90), promise).await.expect($words);
        )+
    };
}

/// All of them, in order.
pub async fn all(home: impl Fn() -> Home) {
    promises! { home,
        "what is sent reaches the one module, and no other": sending::to_one,
        "what is sent before the module opens is there when it does": sending::kept,
        "what is not acknowledged comes again, what is acknowledged never": sending::again,
        "what a reader holds does not come to it twice": sending::held,
        "two with the same id are one": sending::same_id,
        "messages of one sender stay in order": sending::in_order,
        "whoever opens again takes over": sending::take_over,
        "whoever was taken over cannot acknowledge": sending::fenced,
        "an inbox that closes leaves what it did not acknowledge": sending::closed,
        "a question is answered": answered,
        "two questions at once get their own answers": two_questions,
        "nobody answers within the patience": nobody,
        "a question waits for the module to open": question_waits,
        "a broadcast reaches every open inbox, and no later one": broadcast,
        "a broadcast waits for nobody": slow_inbox,
        "beats, cards and leaves are seen": presence,
        "who is silent says nothing": silence,
        "what is too long is refused": too_long,
        "a mailbox that is full takes no more, and others do": sending::full,
        "strange names and texts come as they went": strange,
        "1,000 messages of 10 senders to 5 modules come once each": sending::many,
        "it has been there for a while": there,
    }
}

async fn answered(home: Home) {
    let (hub, other) = (home.hub().await, home.hub().await);
    let mut inbox = hub.open(&name("a")).await.unwrap();
    let asking = tokio::spawn(async move { other.ask(&name("a"), "how?".into(), SOON).await });
    let question = asked(&mut inbox).await;
    assert_eq!(question.text, "how?");
    question.answer("so".into());
    assert_eq!(asking.await.unwrap().unwrap(), "so");
    // One that is dropped has no answer, and whoever asks need not wait for it.
    let other = home.hub().await;
    let asking = tokio::spawn(async move { other.ask(&name("a"), "why?".into(), SOON).await });
    drop(asked(&mut inbox).await);
    let none = timeout(SOON / 2, asking).await.unwrap().unwrap();
    assert_eq!(none, Err(HubError::NoAnswer { module: "a".into() }));
}

async fn two_questions(home: Home) {
    let hub = home.hub().await;
    let mut inbox = hub.open(&name("a")).await.unwrap();
    let mut asking = Vec::new();
    for n in 0..20 {
        let other = if n % 2 == 0 {
            hub.clone()
        } else {
            home.hub().await
        };
        let ask = async move { other.ask(&name("a"), n.to_string(), SOON).await };
        asking.push(tokio::spawn(ask));
    }
    let mut questions = Vec::new();
    for _ in 0..20 {
        questions.push(asked(&mut inbox).await);
    }
    for question in questions.into_iter().rev() {
        let answer = format!("to {}", question.text);
        question.answer(answer);
    }
    for (n, asking) in asking.into_iter().enumerate() {
        assert_eq!(asking.await.unwrap().unwrap(), format!("to {n}"));
    }
}

async fn nobody(home: Home) {
    let hub = home.hub().await;
    let patience = Duration::from_millis(300);
    let mut inbox = hub.open(&name("silent")).await.unwrap();
    for module in ["nobody", "silent"] {
        let start = Instant::now();
        let none = hub.ask(&name(module), "?".into(), patience).await;
        assert_eq!(
            none,
            Err(HubError::NoAnswer {
                module: module.into()
            })
        );
        assert!(
            start.elapsed() >= patience && start.elapsed() < SOON,
            "{:?}",
            start.elapsed()
        );
    }
    // An answer that comes too late goes nowhere.
    asked(&mut inbox).await.answer("late".into());
}

async fn question_waits(home: Home) {
    let (hub, other) = (home.hub().await, home.hub().await);
    let asking = tokio::spawn(async move { other.ask(&name("late"), "?".into(), SOON).await });
    tokio::time::sleep(A_WHILE).await;
    let mut inbox = hub.open(&name("late")).await.unwrap();
    asked(&mut inbox).await.answer("!".into());
    assert_eq!(asking.await.unwrap().unwrap(), "!");
}

async fn broadcast(home: Home) {
    let (hub, other) = (home.hub().await, home.hub().await);
    let mut inboxes = Vec::new();
    for (n, hub) in [&hub, &other, &hub].into_iter().enumerate() {
        inboxes.push(hub.open(&name(&format!("m{n}"))).await.unwrap());
    }
    other.broadcast("all".into()).await.unwrap();
    for inbox in &mut inboxes {
        assert_eq!(told(inbox).await, "all");
    }
    let mut later = hub.open(&name("later")).await.unwrap();
    silent(&mut later).await;
}

async fn slow_inbox(home: Home) {
    let hub = home.hub().await;
    let _slow = hub.open(&name("slow")).await.unwrap();
    let mut quick = hub.open(&name("quick")).await.unwrap();
    for n in 0..2_000 {
        let tell = hub.broadcast(n.to_string());
        timeout(SOON, tell).await.unwrap().unwrap();
        assert_eq!(told(&mut quick).await, n.to_string());
    }
}

async fn presence(home: Home) {
    let (hub, other) = (home.hub().await, home.hub().await);
    hub.beat(&name("a"), "card of a".into()).await.unwrap();
    hub.beat(&name("gone"), "card".into()).await.unwrap();
    hub.leave(&name("gone")).await.unwrap();
    let mut watch = other.watch().await.unwrap();
    assert_eq!(word(&mut watch).await, here("a", "card of a"));
    hub.beat(&name("b"), "line\nline".into()).await.unwrap();
    assert_eq!(word(&mut watch).await, here("b", "line\nline"));
    hub.beat(&name("a"), String::new()).await.unwrap();
    assert_eq!(word(&mut watch).await, here("a", ""));
    other.leave(&name("b")).await.unwrap();
    assert_eq!(word(&mut watch).await, left("b"));
    hub.beat(&name("b"), "back".into()).await.unwrap();
    assert_eq!(word(&mut watch).await, here("b", "back"));
    // Whoever leaves without having been here is no news.
    hub.leave(&name("never")).await.unwrap();
    hub.leave(&name("a")).await.unwrap();
    assert_eq!(word(&mut watch).await, left("a"));
}

async fn silence(home: Home) {
    let hub = home.hub().await;
    let mut watch = hub.watch().await.unwrap();
    for _ in 0..3 {
        hub.beat(&name("a"), "x".into()).await.unwrap();
        assert_eq!(word(&mut watch).await, here("a", "x"));
    }
    // Past the time after which a card fades, too: fading is no leave.
    assert!(timeout(Duration::from_secs(4), watch.next()).await.is_err());
}

async fn too_long(home: Home) {
    let hub = home.hub().await;
    let mut inbox = hub.open(&name("a")).await.unwrap();
    let long = "x".repeat(MOST_BYTES + 1);
    let error = Err(HubError::TooLong {
        bytes: MOST_BYTES + 1,
        most: MOST_BYTES,
    });
    assert_eq!(hub.send(&name("a"), "1", long.clone()).await, error);
    assert_eq!(hub.broadcast(long.clone()).await, error);
    assert_eq!(hub.beat(&name("a"), long.clone()).await, error);
    let asked_too_much = hub.ask(&name("a"), long.clone(), SOON).await;
    assert_eq!(asked_too_much.map(|_| ()), error);
    let (other, answer) = (home.hub().await, long.clone());
    let asking = tokio::spawn(async move { other.ask(&name("a"), "?".into(), SOON).await });
    asked(&mut inbox).await.answer(answer);
    assert_eq!(asking.await.unwrap().map(|_| ()), error);
    // The longest goes each way.
    let longest = "x".repeat(MOST_BYTES);
    hub.send(&name("a"), "1", longest.clone()).await.unwrap();
    assert!(taken(&mut inbox).await == longest);
    hub.broadcast(longest.clone()).await.unwrap();
    assert!(told(&mut inbox).await == longest);
    let mut watch = hub.watch().await.unwrap();
    hub.beat(&name("a"), longest.clone()).await.unwrap();
    assert!(word(&mut watch).await == here("a", &longest));
}

async fn strange(home: Home) {
    let hub = home.hub().await;
    let long = "é".repeat(128);
    let longer = format!("{}f", "é".repeat(127));
    let names = [
        "a.b",
        "a",
        "*",
        ">",
        "a=2Eb",
        "$JS.API",
        "_INBOX",
        "..",
        "a/../b",
        "-",
        "=",
        "A",
        "\"'\\",
        "工具-搜索",
        "\u{1f980}",
        long.as_str(),
        longer.as_str(),
    ];
    let texts = [
        "",
        "\0",
        "\r\n",
        "MSG x 1 1\r\nx\r\n",
        "{}",
        "\u{feff}\u{202e}",
        "PING\r\n",
    ];
    let mut inboxes = Vec::new();
    for module in names {
        inboxes.push(hub.open(&name(module)).await.unwrap());
    }
    let mut watch = hub.watch().await.unwrap();
    for module in names {
        for text in texts {
            // An id can be anything as well.
            hub.send(&name(module), text, format!("{module}{text}"))
                .await
                .unwrap();
        }
        hub.beat(&name(module), texts.concat()).await.unwrap();
        assert_eq!(word(&mut watch).await, here(module, &texts.concat()));
    }
    for (module, inbox) in names.iter().zip(&mut inboxes) {
        for text in texts {
            assert_eq!(taken(inbox).await, format!("{module}{text}"));
        }
        assert!(inbox.try_next().is_none());
    }
    for (n, text) in texts.into_iter().enumerate() {
        let other = hub.clone();
        let module = name(names[n]);
        let asking = tokio::spawn(async move { other.ask(&module, text.into(), SOON).await });
        let question = asked(&mut inboxes[n]).await;
        let same = question.text.clone();
        question.answer(same);
        assert_eq!(asking.await.unwrap().unwrap(), text);
    }
    for module in names {
        hub.leave(&name(module)).await.unwrap();
        assert_eq!(word(&mut watch).await, left(module));
    }
}

async fn there(home: Home) {
    let hub = home.hub().await;
    let start = Instant::now();
    let before = hub.there_for().unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let now = hub.there_for().unwrap();
    assert!(
        now > before && now <= before + start.elapsed() + Duration::from_millis(50),
        "{before:?} {now:?}"
    );
    let mut inbox = hub.open(&name("a")).await.unwrap();
    hub.send(&name("a"), "1", "x".into()).await.unwrap();
    drop(next(&mut inbox).await);
}
