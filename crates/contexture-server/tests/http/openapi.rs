use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use contexture_fleet::Service;
use serde_json::Value;

use crate::common::*;

#[tokio::test]
async fn it_describes_every_method() {
    let server = server().await;
    let (status, said) = said(server.get("/openapi.json").send().await.unwrap()).await;
    assert_eq!((status, said["openapi"].as_str()), (200, Some("3.1.0")));
    let schemas = &said["components"]["schemas"];
    let choices = schemas["Request"]["oneOf"].as_array().unwrap();
    let own = ["serve.link", "serve.signOut", "canvas.frame"];
    assert_eq!(choices.len(), server.fake.methods().len() + own.len());
    for name in own {
        let request = &schemas[format!("{name}.request")];
        assert_eq!(request["properties"]["method"]["const"], name);
    }
    for method in server.fake.methods() {
        let request = &schemas[format!("{}.request", method.name)];
        assert_eq!(request["properties"]["method"]["const"], method.name);
        assert_eq!(request["properties"]["params"], method.params);
        assert!(schemas.get(format!("{}.result", method.name)).is_some());
    }
    refers(&said, &said);
}

/// Whatever is referred to is there.
fn refers(all: &Value, value: &Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(to)) = fields.get("$ref") {
                let to = to.strip_prefix('#').unwrap();
                assert!(all.pointer(to).is_some(), "{to}");
            }
            fields.values().for_each(|value| refers(all, value));
        }
        Value::Array(values) => values.iter().for_each(|value| refers(all, value)),
        _ => {}
    }
}

// needs: sdks
#[tokio::test]
async fn a_validator_takes_it() {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/counterparts");
    let folder = std::env::var_os("CONTEXTURE_COUNTERPARTS").map_or(usual, PathBuf::from);
    let validator = folder.join("venv/bin/openapi-spec-validator");
    if !validator.is_file() {
        eprintln!("skipped: the validator is not installed; ./test does that");
        return;
    }
    let server = server().await;
    let text = server
        .get("/openapi.json")
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    std::fs::write(file.path(), &text).unwrap();
    let check = |path: &Path| {
        let mut command = Command::new(&validator);
        command.arg("--schema").arg("3.1").arg(path);
        command.stdin(Stdio::null()).output().unwrap()
    };
    let done = check(file.path());
    assert!(done.status.success(), "{done:?}");
    // It would have said so.
    std::fs::write(file.path(), text.replace("\"responses\"", "\"response\"")).unwrap();
    assert!(!check(file.path()).status.success());
}
