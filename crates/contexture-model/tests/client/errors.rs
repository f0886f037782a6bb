use contexture_model::{Endpoint, ModelError, Secret};
use serde_json::json;

/// What providers answer, and what it means. By code where there is one.
#[test]
fn errors_are_told_apart_by_their_codes() {
    let kind = |error: &ModelError| match error {
        ModelError::Overflow { .. } => "overflow",
        ModelError::RateLimited { .. } => "rate",
        ModelError::Auth { .. } => "auth",
        ModelError::Quota { .. } => "quota",
        ModelError::Invalid { .. } => "invalid",
        ModelError::Transient { .. } => "transient",
        _ => "other",
    };
    let cases = [
        (
            400,
            json!({"error": {"code": "context_length_exceeded", "type": "invalid_request_error", "message": "too long"}}),
            "overflow",
        ),
        (
            400,
            json!({"error": {"code": 400, "type": "exceed_context_size_error", "message": "x", "n_prompt_tokens": 9000, "n_ctx": 8192}}),
            "overflow",
        ),
        (
            413,
            json!({"type": "error", "error": {"type": "request_too_large", "message": "x"}}),
            "overflow",
        ),
        (
            400,
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
            "overflow",
        ),
        // A code beats the words.
        (
            400,
            json!({"error": {"code": "invalid_value", "type": "invalid_request_error", "message": "say nothing of the context window"}}),
            "invalid",
        ),
        (
            404,
            json!({"error": {"code": "model_not_found", "message": "x"}}),
            "invalid",
        ),
        (
            401,
            json!({"error": {"code": "invalid_api_key", "message": "x"}}),
            "auth",
        ),
        (
            403,
            json!({"type": "error", "error": {"type": "permission_error", "message": "x"}}),
            "auth",
        ),
        (
            429,
            json!({"error": {"code": "rate_limit_exceeded", "message": "x"}}),
            "rate",
        ),
        (
            429,
            json!({"error": {"code": "insufficient_quota", "message": "x"}}),
            "quota",
        ),
        (
            529,
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}),
            "transient",
        ),
        (500, json!("<html>oops</html>"), "transient"),
        (418, json!(null), "invalid"),
    ];
    for (status, body, wanted) in cases {
        let error = ModelError::of_status(status, None, body.to_string().as_bytes());
        assert_eq!(kind(&error), wanted, "{status} {body}");
    }
    let Some(limit) = (match ModelError::of_status(
        400,
        None,
        br#"{"error":{"type":"exceed_context_size_error","n_ctx":8192}}"#,
    ) {
        ModelError::Overflow { limit, .. } => limit,
        _ => None,
    }) else {
        panic!("no limit");
    };
    assert_eq!(limit, 8192);
    let page = ModelError::of_status(502, None, b"<html><body>Bad gateway</body></html>");
    assert_eq!(page.to_string(), "the provider failed: status 502");
}

#[test]
fn specs_are_read_and_bad_ones_refused_with_a_remedy() {
    let parse = |spec: &str, url: Option<&str>| {
        Endpoint::parse(spec, url).map(|e| (e.to_string(), e.url()))
    };
    let url = |spec: &str, base: Option<&str>| parse(spec, base).unwrap();
    assert_eq!(
        url("openai:gpt-5", None),
        (
            "openai:gpt-5".into(),
            "https://api.openai.com/v1/chat/completions".into()
        )
    );
    assert_eq!(
        url("anthropic:claude-x", None).1,
        "https://api.anthropic.com/v1/messages"
    );
    assert_eq!(
        url("ollama:qwen3:8b", None),
        (
            "ollama:qwen3:8b".into(),
            "http://127.0.0.1:11434/v1/chat/completions".into()
        )
    );
    assert_eq!(
        url("qwen3:8b", Some("http://localhost:8080/v1/")),
        (
            "openai:qwen3:8b".into(),
            "http://localhost:8080/v1/chat/completions".into()
        )
    );
    for (spec, base, says) in [
        ("gpt-5", None, "names no provider"),
        ("openai:", None, "names no model"),
        ("openai:m", Some("localhost:80"), "must begin with http"),
        (
            "openai:m",
            Some("https://me:secret@host/v1"),
            "a key has no place",
        ),
        ("openai:m", Some("nonsense"), "is no address"),
    ] {
        let error = Endpoint::parse(spec, base).err().unwrap().to_string();
        assert!(error.contains(says) && !error.contains("secret"), "{error}");
    }
    // A key does not travel in the clear.
    let endpoint = Endpoint::parse("openai:m", Some("http://example.org/v1"));
    assert!(endpoint.is_ok() || std::env::var("OPENAI_API_KEY").is_ok());
    let _ = Secret::from("x");
}
