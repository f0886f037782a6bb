use std::io::Write;
use std::path::Path;

use contexture::export::{self, Meta};
use contexture_store::Key;
use serde_json::json;

use crate::args::{ExportFormat, Model};
use crate::command::{print_content, print_data, print_json};
use crate::error::CliError;
use crate::output::note;
use crate::settings;
use crate::store::Home;
use crate::view::safe;

/// `ctx sessions export`.
pub fn export(
    home: &Home,
    key: &Key,
    format: ExportFormat,
    output: Option<&Path>,
    json: bool,
) -> Result<(), CliError> {
    let bytes = written(home, key, format)?;
    let Some(path) = output else {
        return match format {
            ExportFormat::Html | ExportFormat::Markdown if json => print_json(&json!({
                "session": key.as_str(),
                "content": String::from_utf8_lossy(&bytes),
            })),
            ExportFormat::Html | ExportFormat::Markdown => print_content(&bytes),
            ExportFormat::Openai | ExportFormat::Anthropic | ExportFormat::Jsonl => {
                print_data(&bytes)
            }
        };
    };
    let failed = |error| CliError::Io {
        place: path.display().to_string(),
        error,
    };
    let mut file = std::fs::File::create(path).map_err(failed)?;
    file.write_all(&bytes).map_err(failed)?;
    if json {
        return print_json(&json!({
            "session": key.as_str(),
            "file": path.display().to_string(),
            "bytes": bytes.len(),
        }));
    }
    note!(
        "{}: {} bytes",
        safe(&path.display().to_string()),
        bytes.len()
    );
    Ok(())
}

fn written(home: &Home, key: &Key, format: ExportFormat) -> Result<Vec<u8>, CliError> {
    if format == ExportFormat::Jsonl {
        let mut bytes = Vec::new();
        for record in home.sessions.records(key)? {
            bytes.extend_from_slice(record?.text().as_bytes());
            bytes.push(b'\n');
        }
        return Ok(bytes);
    }
    let view = home.load(key)?.view;
    let model = contexture::import::model(view.log().iter().map(AsRef::as_ref));
    let meta = Meta {
        title: key.to_string(),
        // A tokenizer that is not here costs the counts alone.
        tokenizer: settings::tokenizer(&Model::default(), model).ok(),
    };
    let mut text = match format {
        ExportFormat::Html => export::html(&view, &meta)?,
        ExportFormat::Markdown => export::markdown(&view, &meta)?,
        ExportFormat::Openai => export::openai(&view)?.to_string(),
        ExportFormat::Anthropic => export::anthropic(&view)?.to_string(),
        ExportFormat::Jsonl => String::new(),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text.into_bytes())
}
