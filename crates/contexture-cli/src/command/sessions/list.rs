use std::io::{BufWriter, Write};

use contexture_store::Key;
use serde_json::{Value, json};

use crate::command::{print, print_json};
use crate::error::CliError;
use crate::store::Home;
use crate::view::{self, Paint};
use contexture_agent::clock::rfc3339;

/// `ctx sessions list`.
pub fn list(home: &Home, json: bool) -> Result<(), CliError> {
    let mut all = home.sessions.list()?;
    all.sort_by(|a, b| {
        b.updated
            .cmp(&a.updated)
            .then_with(|| a.stream.cmp(&b.stream))
    });
    if json {
        let all = all.iter().map(|info| {
            json!({
                "session": info.stream.key.as_str(),
                "bytes": info.bytes,
                "updated": info.updated.map(rfc3339),
            })
        });
        return print_json(&Value::Array(all.collect()));
    }
    if all.is_empty() {
        eprintln!(
            "no sessions yet: `ctx sessions append NAME` or `ctx sessions import NAME FILE` makes one"
        );
        return Ok(());
    }
    print(view::sessions(&all, Paint::stdout()).as_bytes())
}

/// `ctx sessions show`.
pub fn show(home: &Home, key: &Key, json: bool) -> Result<(), CliError> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    if json {
        // As they were written, so that nothing is lost on the way.
        for record in home.sessions.records(key)? {
            writeln!(out, "{}", record?.text())?;
        }
        return Ok(out.flush()?);
    }
    let loaded = home.load(key)?;
    view::entries(&loaded, Paint::stdout(), &mut out)?;
    Ok(out.flush()?)
}
