use std::borrow::Cow;

use serde::Serialize;

/// One item of a body's input, as it is sent.
///
/// Items have no ids: the provider keeps nothing, and would look them up. A thought's is the
/// exception, for it is sent whole.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'a> {
    Message {
        role: &'static str,
        content: Words<'a>,
    },
    Reasoning {
        id: &'a str,
        summary: Vec<Bit<'a>>,
        encrypted_content: &'a str,
    },
    FunctionCall {
        call_id: String,
        name: String,
        arguments: Cow<'a, str>,
    },
    CustomToolCall {
        call_id: String,
        name: String,
        input: &'a str,
    },
    FunctionCallOutput {
        call_id: String,
        output: Words<'a>,
    },
    CustomToolCallOutput {
        call_id: String,
        output: Words<'a>,
    },
}

/// What is said or given back.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Words<'a> {
    Text(Cow<'a, str>),
    Bits(Vec<Bit<'a>>),
}

/// A piece of what is said.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Bit<'a> {
    InputText {
        text: Cow<'a, str>,
    },
    InputImage {
        image_url: Cow<'a, str>,
        detail: &'a str,
    },
    InputFile {
        #[serde(skip_serializing_if = "Option::is_none")]
        file_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_data: Option<String>,
    },
    SummaryText {
        text: &'a str,
    },
}
