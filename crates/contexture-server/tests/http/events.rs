use serde_json::{Value, json};

use crate::common::*;

/// Reads this many events: id, type, data.
async fn some(server: &Server, path: &str, many: usize) -> Vec<(String, String, Value)> {
    let mut reply = server.get(path).bearer_auth(OWNER).send().await.unwrap();
    assert_eq!(reply.status(), 200);
    read(&mut reply, many).await
}

async fn read(reply: &mut reqwest::Response, many: usize) -> Vec<(String, String, Value)> {
    let mut text = String::new();
    while text.matches("\n\n").count() < many {
        let chunk = tokio::time::timeout(LONG, reply.chunk()).await.unwrap();
        text += &String::from_utf8_lossy(&chunk.unwrap().expect("the stream ended"));
    }
    let field = |event: &str, name: &str| {
        let mut lines = event.lines().filter_map(|line| line.strip_prefix(name));
        lines.next().unwrap_or_default().to_owned()
    };
    let events = text.split("\n\n").filter(|event| event.contains("data: "));
    let read = events.map(|event| {
        let data = serde_json::from_str(&field(event, "data: ")).unwrap();
        (field(event, "id: "), field(event, "event: "), data)
    });
    read.take(many).collect()
}

#[tokio::test]
async fn the_owner_hears_what_happens_and_what_happened_since() {
    let server = server().await;
    for agent in ["a", "b", "c"] {
        server.tell(agent);
    }
    let all = some(&server, "/events?after=1", 2).await;
    let short: Vec<_> = all
        .iter()
        .map(|(id, kind, data)| (id.as_str(), kind.as_str(), &data["agent"]))
        .collect();
    assert_eq!(
        short,
        [
            ("2", "agent:state", &json!("b")),
            ("3", "agent:state", &json!("c"))
        ]
    );
    assert_eq!(all[0].2["type"], json!("agent:state"));
    // Where a browser was counts more than where it began.
    let back = server
        .get("/events?after=0")
        .header("last-event-id", "2")
        .bearer_auth(OWNER);
    let mut back = back.send().await.unwrap();
    assert_eq!(read(&mut back, 1).await[0].0, "3");
    server.tell("d");
    assert_eq!(read(&mut back, 1).await[0].0, "4");
    for wrong in ["/events?after=x", "/events?after=-1"] {
        let reply = server.get(wrong).bearer_auth(OWNER).send().await.unwrap();
        assert_eq!(reply.status(), 400);
    }
}

#[tokio::test]
async fn events_are_chosen_by_agent_and_by_type() {
    let server = server().await;
    server.tell("a");
    server.tell("b");
    server
        .fake
        .bus
        .tell(contexture_fleet::Event::CanvasChanged {
            agent: "b".to_owned(),
            title: None,
            bytes: 3,
        });
    assert_eq!(some(&server, "/events?after=0&agent=b", 1).await[0].0, "2");
    assert_eq!(
        some(&server, "/events?after=0&type=canvas:", 1).await[0].0,
        "3"
    );
    assert_eq!(
        some(&server, "/events?after=0&agent=b&type=canvas", 1).await[0].0,
        "3"
    );
}

#[tokio::test]
async fn whoever_was_away_for_long_is_told_how_much_was_missed() {
    let server = server().await;
    for _ in 0..1_030 {
        server.tell("a");
    }
    let all = some(&server, "/events?after=1", 2).await;
    assert_eq!(
        (all[0].1.as_str(), &all[0].2),
        ("missed", &json!({"missed": 5}))
    );
    assert_eq!(all[1].0, "7");
}
