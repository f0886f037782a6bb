//! What only a hub on a server can get wrong.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use contexture_fleet::hub::{Hub, HubError, NatsHub};

use crate::hub::home::{Home, name, options, silent, taken};
use crate::nats_server::NatsServer;

const PASSWORD: &str = "s3cret/p@ss";

async fn refusal(url: &str) -> HubError {
    let start = Instant::now();
    let Err(error) = NatsHub::connect(options(url, "0")).await else {
        panic!("{url} was accepted");
    };
    assert!(
        start.elapsed() < Duration::from_secs(30),
        "{:?}",
        start.elapsed()
    );
    let shown = format!("{error} {error:?} {}", error.hint());
    println!("{error}: {}", error.hint());
    for secret in ["s3cret", "wr0ng"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    error
}

// needs: nats
#[tokio::test]
async fn users_passwords_and_tokens_open_and_nothing_else_does() {
    let Some(server) = NatsServer::with(&["-js", "--user", "ann", "--pass", PASSWORD]) else {
        return;
    };
    let at = format!("127.0.0.1:{}", server.port());
    let right = format!("nats://ann:s3cret%2Fp%40ss@{at}");
    let hub = NatsHub::connect(options(&right, "0")).await.unwrap();
    hub.beat(&name("a"), "x".into()).await.unwrap();
    for wrong in ["ann:wr0ng@", "wr0ng@", "", "bob:s3cret%2Fp%40ss@"] {
        let error = refusal(&format!("nats://{wrong}{at}")).await;
        assert!(
            matches!(&error, HubError::Refused { why } if why.contains(&at)),
            "{error}"
        );
    }
    let Some(server) = NatsServer::with(&["-js", "--auth", "s3cret-token"]) else {
        return;
    };
    let at = format!("127.0.0.1:{}", server.port());
    let right = options(&format!("nats://s3cret-token@{at}"), "0");
    NatsHub::connect(right).await.unwrap();
    assert!(!refusal(&format!("nats://wr0ng@{at}")).await.may_pass());
}

// needs: nats
#[tokio::test]
async fn what_the_server_forbids_is_said_in_its_words() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules");
    let users = r#"users: [
        {user: all, password: s3cret}
        {user: none, password: s3cret, permissions: {publish: "else.>"}}
        {user: few, password: s3cret, permissions: {publish: {deny: "ctx.*.to.desk"}}}
    ]"#;
    fs::write(&rules, format!("authorization {{ {users} }}")).unwrap();
    let Some(server) = NatsServer::with(&["-js", "-c", &rules.to_string_lossy()]) else {
        return;
    };
    let url = |user: &str| format!("nats://{user}:s3cret@127.0.0.1:{}", server.port());
    NatsHub::connect(options(&url("all"), "0")).await.unwrap();
    let error = refusal(&url("none")).await;
    let forbidden = |error: &HubError| matches!(error, HubError::Refused { why } if why.contains("Permissions Violation"));
    assert!(forbidden(&error), "{error}");
    let few = NatsHub::connect(options(&url("few"), "0")).await.unwrap();
    few.send(&name("a"), "1", "1".into()).await.unwrap();
    let error = few.send(&name("desk"), "1", "1".into()).await.unwrap_err();
    assert!(forbidden(&error), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_soon() {
    let socket = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let at = socket.local_addr().unwrap();
    // It accepts, and never says a word.
    let error = refusal(&format!("nats://ann:s3cret@{at}")).await;
    assert!(
        matches!(&error, HubError::Away { why } if why.contains(&at.to_string())),
        "{error}"
    );
    drop(socket);
    let error = refusal(&format!("nats://ann:s3cret@{at}")).await;
    assert!(
        matches!(&error, HubError::Away { why } if why.contains("refused")),
        "{error}"
    );
    let error = refusal("http://ann:s3cret@127.0.0.1").await;
    assert!(matches!(error, HubError::Refused { .. }), "{error}");
    let missing = contexture_fleet::hub::NatsOptions {
        credentials: Some("no/such/file".into()),
        ..options("nats://127.0.0.1", "0")
    };
    let Err(error) = NatsHub::connect(missing).await else {
        panic!();
    };
    assert!(error.to_string().contains("no/such/file"), "{error}");
    let Err(error) = NatsHub::connect(options("nats://127.0.0.1", "a.b")).await else {
        panic!();
    };
    assert!(error.to_string().contains("namespace"), "{error}");
}

// needs: nats
#[tokio::test]
async fn a_server_without_jetstream_is_said_to_be_one() {
    let Some(server) = NatsServer::with(&[]) else {
        return;
    };
    let error = refusal(&server.url()).await;
    assert!(
        matches!(&error, HubError::Away { why } if why.contains("JetStream")),
        "{error}"
    );
}

// needs: nats
#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (key, certificate) = (folder.path().join("key"), folder.path().join("certificate"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        ])
        .args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        println!("skipped: openssl is not installed");
        return;
    }
    let (key, certificate) = (key.to_string_lossy(), certificate.to_string_lossy());
    let more = ["-js", "--tls", "--tlscert", &certificate, "--tlskey", &key];
    let Some(server) = NatsServer::with(&more) else {
        return;
    };
    for scheme in ["nats", "tls"] {
        let error = refusal(&format!(
            "{scheme}://ann:s3cret@localhost:{}",
            server.port()
        ))
        .await;
        assert!(
            matches!(&error, HubError::Away { why } if why.contains("certificate")),
            "{error}"
        );
    }
}

// needs: nats
#[tokio::test]
async fn namespaces_do_not_meet() {
    let Some(server) = NatsServer::get() else {
        return;
    };
    let (one, other) = (Home::nats(&server.url()), Home::nats(&server.url()));
    let (one, other) = (one.hub().await, other.hub().await);
    let mut inbox = one.open(&name("a")).await.unwrap();
    other.send(&name("a"), "1", "x".into()).await.unwrap();
    other.broadcast("x".into()).await.unwrap();
    other.beat(&name("a"), "x".into()).await.unwrap();
    silent(&mut inbox).await;
    let mut watch = one.watch().await.unwrap();
    let word = tokio::time::timeout(Duration::from_millis(300), watch.next()).await;
    assert!(word.is_err(), "{word:?}");
}

// needs: nats
#[tokio::test]
async fn what_no_hub_wrote_does_no_harm() {
    let Some(server) = NatsServer::get() else {
        return;
    };
    let hub = NatsHub::connect(options(&server.url(), "0")).await.unwrap();
    let mut inbox = hub.open(&name("a")).await.unwrap();
    let mut watch = hub.watch().await.unwrap();
    let stranger = async_nats::connect(server.url()).await.unwrap();
    let say = |subject: &'static str, bytes: &'static [u8]| {
        let stranger = stranger.clone();
        async move { stranger.publish(subject, bytes.into()).await.unwrap() }
    };
    // A question that cannot be answered, cards of others, of nobody, and of no text.
    say("ctx.0.ask.a", b"?").await;
    say("$KV.CTX_0.a", b"b\nI am b").await;
    say("$KV.CTX_0.a", b"no line break").await;
    say("$KV.CTX_0.a", b"\xff\n\xff").await;
    say("$KV.CTX_0.a.b.c", b"a\nx").await;
    say("ctx.0.to.a", b"no id \xff").await;
    assert_eq!(taken(&mut inbox).await, "no id \u{fffd}");
    hub.beat(&name("a"), "card".into()).await.unwrap();
    assert_eq!(
        crate::hub::home::word(&mut watch).await,
        crate::hub::home::here("a", "card")
    );
    silent(&mut inbox).await;
}

// needs: nats
#[tokio::test]
async fn a_consumer_that_somebody_removed_is_made_again() {
    let Some(server) = NatsServer::get() else {
        return;
    };
    let hub = NatsHub::connect(options(&server.url(), "0")).await.unwrap();
    let mut inbox = hub.open(&name("a")).await.unwrap();
    let stranger = async_nats::connect(server.url()).await.unwrap();
    let jetstream = async_nats::jetstream::new(stranger);
    jetstream.delete_stream("CTX_0").await.unwrap();
    jetstream.delete_key_value("CTX_0").await.unwrap();
    hub.send(&name("a"), "1", "1".into()).await.unwrap();
    assert_eq!(taken(&mut inbox).await, "1");
    hub.beat(&name("a"), "card".into()).await.unwrap();
}

// needs: nats
#[tokio::test]
async fn what_is_in_hand_is_not_sent_over_the_wire_again() {
    let Some(server) = NatsServer::get() else {
        return;
    };
    let hub = NatsHub::connect(options(&server.url(), "0")).await.unwrap();
    let mut inbox = hub.open(&name("a")).await.unwrap();
    hub.send(&name("a"), "1", "1".into()).await.unwrap();
    let work = crate::hub::home::sent(&mut inbox).await;
    // Longer than a reader may be silent.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let stranger = async_nats::connect(server.url()).await.unwrap();
    let jetstream = async_nats::jetstream::new(stranger);
    let ask = |what: &'static str| {
        let jetstream = jetstream.clone();
        async move {
            jetstream
                .request::<_, _, serde_json::Value>(what, &())
                .await
                .unwrap()
        }
    };
    let list = ask("CONSUMER.LIST.CTX_0").await;
    let consumer = &list["consumers"][0];
    assert_eq!(
        (&consumer["num_ack_pending"], &consumer["num_redelivered"]),
        (&1.into(), &0.into())
    );
    // It leaves nothing behind.
    work.ack().await.unwrap();
    drop(inbox);
    let start = Instant::now();
    while ask("CONSUMER.LIST.CTX_0").await["total"] != 0 {
        assert!(start.elapsed() < crate::hub::home::SOON);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let info = ask("STREAM.INFO.CTX_0").await;
    assert_eq!(info["state"]["messages"], 0);
}
