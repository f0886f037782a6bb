use std::sync::LazyLock;

use proptest::prelude::*;
use reqwest::StatusCode;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::common::*;

static SERVER: LazyLock<(Runtime, Server)> = LazyLock::new(|| {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(server());
    (runtime, server)
});

/// What looks like a request, more or less.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let value = prop_oneof![
        Just("null".to_owned()),
        Just("\"2.0\"".to_owned()),
        Just("\"echo\"".to_owned()),
        Just("{}".to_owned()),
        Just("[]".to_owned()),
        Just("1e5".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        ".*".prop_map(|text| Value::String(text).to_string()),
    ];
    let key = prop_oneof![
        Just("jsonrpc"),
        Just("id"),
        Just("method"),
        Just("params"),
        Just("x")
    ];
    let object = prop::collection::vec((key, value), 0..6).prop_map(|fields| {
        let fields: Vec<String> = fields
            .iter()
            .map(|(key, value)| format!("\"{key}\":{value}"))
            .collect();
        format!("{{{}}}", fields.join(","))
    });
    let many =
        prop::collection::vec(object.clone(), 0..5).prop_map(|all| format!("[{}]", all.join(",")));
    prop_oneof![object, many].prop_map(String::into_bytes)
}

fn is_response(said: &Value) -> bool {
    let one = |said: &Value| {
        said["jsonrpc"] == "2.0"
            && said.get("id").is_some()
            && said.get("result").is_some() != said.get("error").is_some()
    };
    match said {
        Value::Array(all) => !all.is_empty() && all.iter().all(one),
        said => one(said),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever comes, the answer is one of JSON-RPC or an error of HTTP, and the server lives.
    #[test]
    fn any_bytes_get_an_answer(body in prop_oneof![prop::collection::vec(any::<u8>(), 0..200), nearly()]) {
        let (runtime, server) = &*SERVER;
        let (status, text) = runtime.block_on(async {
            let reply = server.post(OWNER, body).send().await.unwrap();
            (reply.status(), reply.text().await.unwrap())
        });
        match status {
            StatusCode::OK => prop_assert!(is_response(&serde_json::from_str(&text).unwrap()), "{}", text),
            StatusCode::NO_CONTENT => prop_assert_eq!(text, ""),
            status => prop_assert!(status.is_client_error(), "{} {}", status, text),
        }
    }

    /// Nor does any head of a request bring it down.
    #[test]
    fn any_head_gets_an_answer(head in prop::collection::vec(any::<u8>(), 0..300), name in "[a-z-]{1,12}", value in ".*") {
        let (runtime, server) = &*SERVER;
        let known = format!("POST /rpc HTTP/1.1\r\nhost: {}\r\n{name}: {value}\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}", server.address);
        let mut bytes = head;
        bytes.extend_from_slice(b"\r\n\r\n\r\n");
        let (odd, nearly) = runtime.block_on(async {
            (tokio::time::timeout(LONG, cut(server, &bytes)).await, cut(server, known.as_bytes()).await)
        });
        let odd = odd.expect("it hangs");
        prop_assert!(odd.is_empty() || odd.starts_with("HTTP/1.1 4"), "{}", odd);
        prop_assert!(nearly.is_empty() || nearly.starts_with("HTTP/1.1 4"), "{}", nearly);
    }
}

/// What is said to bytes behind which nothing comes.
async fn cut(server: &Server, bytes: &[u8]) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(&server.address)
        .await
        .unwrap();
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    String::from_utf8_lossy(&said).into_owned()
}
