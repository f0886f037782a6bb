//! What an agent sends, at the door: split updates keep what belongs to them, and questions can still be answered.

use contexture::inject::Archetype;
use contexture_fleet::acp::{Answer, Begin, Launch};
use contexture_fleet::tokens::{LIFE, Tokens};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::acp::common::{Scene, Spy, text_blocks, within};

/// An agent of `agent.py` that says what it is told, where its token is known.
async fn told(script: Value, spy: &Arc<Spy>, tokens: &Arc<Tokens>) -> (String, String) {
    let tokens = Arc::clone(tokens);
    let mut scene = Scene::new("script").with(|launch: &mut Launch| launch.mask = tokens);
    scene.host = Arc::clone(spy);
    let connection = scene.launch().await.unwrap();
    let id = within(connection.new_session(Begin::default()))
        .await
        .unwrap();
    let ended = within(connection.prompt(&id, text_blocks(script)))
        .await
        .unwrap();
    within(connection.stop()).await;
    (ended.stop_reason, connection.ended().await)
}

fn chunk(kind: &str, id: &str, text: &str) -> Value {
    json!({"update": {"sessionUpdate": kind, "messageId": id, "content": {"type": "text", "text": text}}})
}

#[tokio::test]
async fn a_token_in_pieces_is_masked_and_pieces_stay_with_their_messages() {
    let tokens = Arc::new(Tokens::new(LIFE).unwrap());
    let (token, _) = tokens.generate("bot", "s", Archetype::Repo).unwrap();
    let (whole, shown) = (token.reveal(), token.shown());
    let (said, thought) = ("agent_message_chunk", "agent_thought_chunk");
    let upper = whole.to_uppercase();
    let spy = Arc::new(Spy::default());
    let script = json!([
        chunk(said, "m1", &format!("It is {}", &whole[..20])),
        chunk(thought, "t1", &format!("Not {}", &upper[..9])),
        chunk(said, "m2", &format!("{} and", &whole[20..])),
        chunk(thought, "t1", &upper[9..]),
        chunk(said, "m3", &format!(" half: {}", &whole[..40])),
        {"update": {"sessionUpdate": "tool_call", "toolCallId": whole, "title": whole, "rawInput": {whole: [upper]}}},
        chunk(said, "m4", &format!("{} rest", &whole[40..])),
        {"stop": whole},
    ]);
    let (reason, ended) = told(script, &spy, &tokens).await;
    assert_eq!(reason, format!("{shown}…"));
    assert_eq!(ended, "it was stopped");
    let masked = format!("{shown}…");
    let updates: Vec<Value> = spy
        .updates
        .lock()
        .unwrap()
        .iter()
        .map(|(_, update)| update.clone())
        .collect();
    let all = json!(updates).to_string();
    assert!(!all.to_lowercase().contains(&whole[..33]), "{all}");
    let of = |id: &str| -> String {
        let of = updates.iter().filter(|update| update["messageId"] == id);
        of.map(|update| update["content"]["text"].as_str().unwrap())
            .collect()
    };
    assert_eq!(of("m1"), format!("It is {masked}"));
    assert_eq!(of("m2"), " and");
    assert_eq!(of("t1"), format!("Not {}…", shown.to_uppercase()));
    assert_eq!(of("m3"), format!(" half: {masked}"));
    let call = updates
        .iter()
        .find(|update| update["sessionUpdate"] == "tool_call")
        .unwrap();
    assert_eq!(
        (&call["title"], &call["toolCallId"]),
        (&json!(masked), &json!(masked))
    );
    assert_eq!(
        call["rawInput"],
        json!({masked.as_str(): [format!("{}…", shown.to_uppercase())]})
    );
    let places: Vec<usize> = ["m3", "m4"]
        .iter()
        .filter_map(|id| {
            updates
                .iter()
                .rposition(|update| update["messageId"] == *id)
        })
        .collect();
    let at = updates
        .iter()
        .position(|update| update["sessionUpdate"] == "tool_call")
        .unwrap();
    assert!(
        places[0] < at && at < places[1],
        "what was held back comes before the call"
    );
}

#[tokio::test]
async fn a_question_with_a_token_in_it_is_asked_without_and_answered() {
    let tokens = Arc::new(Tokens::new(LIFE).unwrap());
    let (token, _) = tokens.generate("bot", "s", Archetype::Repo).unwrap();
    let (whole, masked) = (token.reveal(), format!("{}…", token.shown()));
    let spy = Arc::new(Spy::default());
    *spy.answer.lock().unwrap() = Some(Answer::Selected("option-2".to_owned()));
    let options = json!([
        {"optionId": "no", "name": "No", "kind": "reject_once"},
        {"optionId": whole, "name": format!("Yes, {}", whole.to_uppercase()), "kind": "allow_once"},
    ]);
    let script = json!([
        {"ask": "session/request_permission", "params": {"toolCall": {"toolCallId": "c", "title": whole, "rawInput": {whole: 1}}, "options": options}},
    ]);
    let _ = told(script, &spy, &tokens).await;
    let ask = spy.asks.lock().unwrap()[0].clone();
    assert_eq!(ask.title, masked);
    assert_eq!(ask.tool_call["rawInput"], json!({masked.as_str(): 1}));
    assert_eq!(
        ask.options[1].name,
        format!("Yes, {}…", token.shown().to_uppercase())
    );
    assert_eq!(ask.options[1].id, "option-2");
    // The agent hears the id that it gave.
    let told = &spy.told()[0];
    assert_eq!(
        *told,
        json!({"outcome": {"outcome": "selected", "optionId": masked}})
    );
}

#[tokio::test]
async fn the_last_words_of_an_agent_are_masked() {
    let tokens = Arc::new(Tokens::new(LIFE).unwrap());
    let (token, _) = tokens.generate("bot", "s", Archetype::Repo).unwrap();
    let mask = Arc::clone(&tokens);
    let scene = Scene::new("script").with(|launch: &mut Launch| launch.mask = mask);
    for (script, before) in [
        (
            json!([{"die": format!("{} {}", "x".repeat(580), token.reveal())}]),
            "",
        ),
        (json!([{"die": format!("no: {}", token.reveal())}]), "no: "),
    ] {
        let (connection, id) = scene.started().await;
        let error = within(connection.prompt(&id, text_blocks(script)))
            .await
            .unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains(&format!("{before}{}…", token.shown())),
            "{said}"
        );
        assert!(
            !said.contains(&token.reveal()[..32]) && !said.contains(&token.reveal()[32..]),
            "{said}"
        );
    }
}
