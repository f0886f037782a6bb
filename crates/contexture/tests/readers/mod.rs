//! Everything that a build reads: each shape, each way to be wrong with its place, and nothing lost
//! between reading and writing.

mod hostile;
mod lossless;
mod shapes;
mod wrong;

use contexture::Payload;
use contexture::build::BuildInput;

#[track_caller]
fn read(text: &str) -> BuildInput {
    BuildInput::read(text.as_bytes()).unwrap()
}

/// The error, as a user sees it.
#[track_caller]
fn refused(bytes: impl AsRef<[u8]>) -> String {
    let error = BuildInput::read(bytes.as_ref()).expect_err("it is read");
    assert_eq!(error.code(), "ContextInvalidInput");
    format!("{error}\n{}", error.hint())
}

fn texts(input: &BuildInput) -> Vec<String> {
    let messages = input.session_entries.iter().map(|e| match &e.payload {
        Payload::Message { message } => message.text().into_owned(),
        other => other.type_name().to_owned(),
    });
    messages.collect()
}
