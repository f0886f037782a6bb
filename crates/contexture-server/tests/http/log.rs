use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::common::*;

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Attacks 6 and 8: the log has the method, who asked and what came of it, and no secret and no content.
#[tokio::test]
async fn the_log_names_the_call_and_not_what_is_in_it() {
    let written = Written::default();
    let writer = written.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let server = server().await;
    let token = server.fake.token("bot", "s");
    let link = server.sign_ins.link().unwrap();
    let code = link.split_once("#sign-in=").unwrap().1.to_owned();
    let page = server.page().await;
    server.call(&page, "echo", json!({})).await;
    server.exchange(&link).send().await.unwrap();
    let frame = server.frame("bot").await;
    server.get(&frame).send().await.unwrap();
    let ticket = frame.rsplit_once('/').unwrap().1;
    let content = json!({"text": "private-words", "echoed": token});
    server.call(&token, "echo", content.clone()).await;
    server.call(&token, "private-method", content.clone()).await;
    server.call(OWNER, "fail", content).await;
    server.call(&token, "panic", json!({})).await;
    server.call("0123", "echo", json!({})).await;
    server
        .get(&format!("/events?token={token}&agent=private-words"))
        .send()
        .await
        .unwrap();
    let log = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    // What other libraries say at their lowest level is theirs; ours is what a log has by default.
    let ours: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("contexture_server"))
        .collect();
    let has = |parts: &[&str]| {
        ours.iter()
            .any(|line| parts.iter().all(|part| line.contains(part)))
    };
    assert!(
        has(&[
            "method=\"echo\"",
            "caller=\"session\"",
            "agent=\"bot\"",
            "ms=",
            "outcome=\"ok\""
        ]),
        "{log}"
    );
    assert!(
        has(&[
            "method=\"fail\"",
            "caller=\"owner\"",
            "outcome=\"too_large\""
        ]),
        "{log}"
    );
    assert!(
        has(&["method=\"unknown\"", "outcome=\"no_method\""]),
        "{log}"
    );
    for secret in [token.as_str(), OWNER, &code, &page, ticket, "private"] {
        let told: Vec<&&str> = ours.iter().filter(|line| line.contains(secret)).collect();
        assert!(told.is_empty(), "{told:?}");
    }
}
