use contexture::tokens::for_model;

#[track_caller]
fn check(vocabulary: &str, models: &[&str]) {
    for model in models {
        let tokenizer = for_model(Some(model));
        assert_eq!(tokenizer.name(), vocabulary, "{model}");
        assert_eq!(tokenizer.exact(), !vocabulary.starts_with("estimate"));
    }
}

#[test]
fn no_model_means_o200k() {
    assert_eq!(for_model(None).name(), "o200k_base");
}

#[test]
fn openai_since_gpt_4o() {
    check(
        "o200k_base",
        &[
            "gpt-4o",
            "gpt-4o-mini",
            "gpt-4o-2024-08-06",
            "chatgpt-4o-latest",
            "gpt-4.1-nano",
            "gpt-4.5-preview",
            "gpt-5",
            "gpt-5-mini",
            "gpt-5.1-codex-max",
            "gpt-oss-120b",
            "o1",
            "o1-preview",
            "o3-mini",
            "o4-mini-2025-04-16",
            "codex-mini-latest",
            "o200k_base",
            "o200k_harmony",
        ],
    );
}

#[test]
fn openai_before_gpt_4o() {
    check(
        "cl100k_base",
        &[
            "gpt-4",
            "gpt-4-turbo",
            "gpt-4-0125-preview",
            "gpt-4-32k",
            "gpt-3.5-turbo",
            "gpt-3.5-turbo-instruct",
            "gpt-35-turbo-16k",
            "text-embedding-3-small",
            "text-embedding-ada-002",
            "davinci-002",
            "cl100k_base",
        ],
    );
}

#[test]
fn providers_routers_clouds_and_case_do_not_matter() {
    check(
        "o200k_base",
        &[
            "openai:gpt-4o",
            "openai/gpt-4o",
            "OpenAI/GPT-4o",
            " gpt-4o\n",
            "openrouter/openai/gpt-4o-mini:free",
            "azure/gpt-4o",
            "azure_ai/o3-mini",
            "ollama:gpt-oss:20b",
            "bedrock/openai.gpt-oss-120b-1:0",
            "openai:o1",
        ],
    );
    check("cl100k_base", &["azure/gpt-35-turbo", "openai:gpt-4"]);
    check(
        "estimate_claude",
        &[
            "anthropic:claude-opus-4-7",
            "openrouter/anthropic/claude-opus-4.7:beta",
            "us.anthropic.claude-opus-4-7-v1:0",
            "projects/p/locations/l/publishers/anthropic/models/claude-opus-4-7@20260416",
        ],
    );
}

#[test]
fn fine_tunes_count_as_their_base() {
    check(
        "o200k_base",
        &[
            "ft:gpt-4o:org::id",
            "ft:gpt-4o-2024-08-06:org::id",
            "openai:ft:gpt-4o-mini-2024-07-18:my-org:claude-like:9abc",
            "openai/ft:gpt-4.1-nano-2025-04-14:org:suffix:id",
        ],
    );
    check(
        "cl100k_base",
        &["ft:gpt-3.5-turbo-0125:org::id", "ft:gpt-4-0613:o3:o1:id"],
    );
    check("estimate", &["ft:open-mistral-7b:gpt-4o:x", "ft:"]);
}

#[test]
fn claude_is_told_apart_by_age() {
    check(
        "estimate",
        &[
            "claude-2.1",
            "claude-instant-1.2",
            "claude-3-5-sonnet-20241022",
            "claude-3.7-sonnet",
            "anthropic.claude-3-5-sonnet-20241022-v2:0",
            "claude-opus-4-20250514",
            "claude-sonnet-4@20250514",
            "claude-opus-4-1-20250805",
            "claude-sonnet-4-5",
            "claude-haiku-4-5-20251001",
            "claude-opus-4-6",
            "anthropic/claude-opus-4.6",
        ],
    );
    check(
        "estimate_claude",
        &[
            "claude-opus-4-7",
            "claude-opus-4-10",
            "claude-opus-5",
            "claude-sonnet-5",
            "claude",
            "claude-next",
        ],
    );
}

#[test]
fn everything_else_is_estimated() {
    check(
        "estimate",
        &[
            "",
            ":",
            "gemini-2.5-pro",
            "models/gemini-3-pro-preview",
            "grok-4",
            "x-ai/grok-4-fast",
            "meta-llama/llama-4-maverick",
            "deepseek-chat",
            "qwen3-coder",
            "text-davinci-003",
            "azure/my-deployment",
            // Begin like one that is known, and are not it.
            "gpt-4.7",
            "gpt-40",
            "gpt-6",
            "o10",
            "o1x",
            "gpt-50",
        ],
    );
}
