//! Attack 35: whatever is not clearly a permission is a denial.

use std::time::Duration;

use contexture_fleet::acp::Answer;
use serde_json::{Value, json};

use crate::acp::common::*;

fn selected(id: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": id}})
}

#[tokio::test]
async fn the_host_is_asked_and_its_answer_told() {
    let scene = Scene::new("permission").answering(Answer::Selected("yes".to_owned()));
    scene.once("x").await.unwrap();
    assert_eq!(scene.host.told(), [selected("yes")]);
    let asks = scene.host.asks.lock().unwrap();
    let [ask] = asks.as_slice() else {
        panic!("{asks:?}");
    };
    assert_eq!(
        (ask.session_id.as_str(), ask.title.as_str()),
        ("s-1", "rm -rf build")
    );
    assert_eq!(ask.kind.as_deref(), Some("execute"));
    assert_eq!(ask.tool_call["rawInput"]["command"], "rm");
    let kinds: Vec<&str> = ask
        .options
        .iter()
        .map(|choice| choice.kind.as_str())
        .collect();
    assert_eq!(kinds, ["allow_once", "reject_once"]);
}

#[tokio::test]
async fn an_unknown_choice_is_a_denial() {
    for id in ["YES", "", "allow_once"] {
        let scene = Scene::new("permission").answering(Answer::Selected(id.to_owned()));
        scene.once("x").await.unwrap();
        assert_eq!(scene.host.told(), [selected("no")], "{id}");
    }
}

#[tokio::test]
async fn no_answer_is_a_denial_after_a_while() {
    let scene =
        Scene::new("permission").with(|launch| launch.longest_ask = Duration::from_millis(300));
    scene.once("x").await.unwrap();
    assert_eq!(scene.host.told(), [selected("no")]);
}

#[tokio::test]
async fn a_question_ends_with_its_turn() {
    let scene = Scene::new("permission");
    let (connection, id) = scene.started().await;
    let prompt = connection.prompt(&id, text_blocks("x"));
    let call_off = async {
        until("it asks", || !scene.host.asks.lock().unwrap().is_empty()).await;
        connection.cancel(&id);
    };
    let (ended, ()) = within(async { tokio::join!(prompt, call_off) }).await;
    assert_eq!(ended.unwrap().stop_reason, "cancelled");
    assert_eq!(
        scene.host.told(),
        [json!({"outcome": {"outcome": "cancelled"}})]
    );
}
