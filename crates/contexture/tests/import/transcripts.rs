//! What a build reads is read here too, with what stands around the messages.

use contexture::import::{Imported, Source};
use contexture::{Payload, View};
use serde_json::json;

use crate::import::shape;

#[track_caller]
fn read(bytes: impl AsRef<[u8]>) -> Imported {
    let imported = Imported::read(bytes.as_ref()).unwrap();
    assert_eq!(imported.source, Source::Transcript);
    assert_eq!(imported.skipped, []);
    imported
}

#[test]
fn a_request_body_keeps_its_tools_its_model_and_its_parameters() {
    let tool =
        json!({"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}});
    let body = json!({
        "model": "gpt-5",
        "messages": [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Hi"}],
        "tools": [tool],
        "temperature": 0.5,
        "x_trace": {"id": 7},
    });
    let imported = read(body.to_string());
    let view = View::fold(imported.entries.clone()).unwrap();
    assert_eq!(view.tools(), [tool]);
    assert_eq!(view.model(), Some("gpt-5"));
    assert_eq!(
        shape::history(&imported),
        "00 system \"Be terse.\"\n01 user \"Hi\"\n"
    );
    let Payload::Custom(first) = &imported.entries[0].payload else {
        panic!("{:?}", imported.entries[0]);
    };
    assert_eq!(
        first["fields"],
        json!({"temperature": 0.5, "x_trace": {"id": 7}})
    );
    let kept: Vec<_> = imported.kept.keys().map(String::as_str).collect();
    assert_eq!(kept, ["transcript.temperature", "transcript.x_trace"]);
}

#[test]
fn an_input_object_keeps_what_its_turn_brings() {
    let input = json!({
        "systemPrompt": "Be terse.",
        "sessionEntries": [{"role": "user", "content": "One"}],
        "inputMessages": [{"role": "user", "content": "Two"}],
        "runtimeInitData": {"cwd": "/home/ana/project"},
        "runtimeHints": {"time": "noon"},
        "now": "2026-01-01T00:00:00Z",
        "config": {"maxInputTokens": 9000},
    });
    let imported = read(input.to_string());
    let view = View::fold(imported.entries.clone()).unwrap();
    assert_eq!(view.sections()[0].text, "Be terse.");
    assert_eq!(view.runtime_init().unwrap()["cwd"], "/home/ana/project");
    assert_eq!(view.hints().unwrap()["time"], "noon");
    assert_eq!(
        shape::history(&imported),
        "00 user \"One\"\n01 hints\n02 user \"Two\"\n"
    );
    assert_eq!(imported.kept["transcript.config"], 1);
}

#[test]
fn messages_and_entries_are_read_as_they_are() {
    let lines =
        "{\"role\":\"user\",\"content\":\"Hi\"}\n{\"role\":\"assistant\",\"content\":\"Yes?\"}\n";
    assert_eq!(shape::types(&read(lines)), "message×2");
    let array = "[{\"role\":\"user\",\"content\":\"Hi\"}]";
    assert_eq!(shape::types(&read(array)), "message");
    let log = "{\"id\":\"a\",\"parentId\":\"before\",\"type\":\"custom\",\"payload\":{\"n\":1}}\n\
               {\"id\":\"b\",\"parentId\":\"a\",\"type\":\"message\",\"payload\":{\"message\":{\"role\":\"user\",\"content\":\"Hi\"}}}";
    assert_eq!(shape::types(&read(log)), "custom message");
}

#[test]
fn what_would_not_fold_is_refused() {
    let log = "{\"id\":\"a\",\"type\":\"custom\",\"payload\":{}}\n\
               {\"id\":\"b\",\"parentId\":\"x\",\"type\":\"custom\",\"payload\":{}}";
    let error = Imported::read(log.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("parent"), "{error}");
}

#[test]
fn a_bad_line_of_ours_is_an_error() {
    let lines = "{\"role\":\"user\",\"content\":\"Hi\"}\n{\"role\":\"assistant\",\"con\n";
    let error = Imported::read(lines.as_bytes()).unwrap_err();
    assert!(error.to_string().starts_with("line 2"), "{error}");
}
