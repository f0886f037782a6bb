use contexture_agent::clock::rfc3339;
use contexture_model::gguf::Header;
use contexture_model::weights::{KNOWN, Known, Shelf, Stock, Taken, Weights, WeightsError};
use indicatif::DecimalBytes;
use serde_json::{Value, json};

use super::{print, print_json, runtime};
use crate::agent::local;
use crate::args::Models;
use crate::error::CliError;
use crate::models::{self, DEFAULT};
use crate::view::{Bar, Paint, safe, thousands};

/// `ctx model`.
pub fn model(what: &Models, json: bool) -> Result<(), CliError> {
    let shelf = models::shelf()?;
    match what {
        Models::List => list(&shelf, json),
        Models::Pull { name } => pull(&shelf, name.as_deref().unwrap_or(DEFAULT), json),
        Models::Add {
            name,
            file,
            force,
            untried,
        } => {
            let taken = match force {
                true => Taken::Replace,
                false => Taken::Refuse,
            };
            if !untried {
                local::tried(file)?;
            }
            let mut bar = Bar::new(name, json);
            let added = shelf.add(name, file, taken, &mut |progress| bar.show(&progress));
            bar.end();
            done(&added?, "added", json)
        }
        Models::Show { name } => {
            let weights = shelf
                .get(name)?
                .ok_or_else(|| WeightsError::Missing { name: name.clone() })?;
            show(&weights, json)
        }
        Models::Rm { name } => {
            shelf.remove(name)?;
            match json {
                true => print_json(&json!({ "removed": name })),
                false => print(format!("removed: {}\n", safe(name)).as_bytes()),
            }
        }
    }
}

fn pull(shelf: &Shelf, name: &str, json: bool) -> Result<(), CliError> {
    models::known(name)?;
    if let Ok(Some(weights)) = shelf.get(name) {
        return done(&weights, "already here", json);
    }
    let weights = runtime()?.block_on(models::fetch(name, json))?;
    done(&weights, "pulled", json)
}

fn list(shelf: &Shelf, json: bool) -> Result<(), CliError> {
    let Stock { whole, damaged } = shelf.list()?;
    let here = |name: &str| whole.iter().any(|weights| weights.name == name);
    let missing: Vec<_> = KNOWN.iter().filter(|known| !here(known.name)).collect();
    if json {
        let damaged = damaged.iter().map(|damaged| {
            json!({ "name": damaged.name, "reason": damaged.what, "hint": damaged.hint() })
        });
        let available = missing.iter().map(|known| {
            json!({
                "name": known.name,
                "about": known.about,
                "bytes": known.bytes,
                "license": known.license,
                "tools": known.tools,
                "sources": known.sources(),
                "fetchedBytes": shelf.partial(known),
            })
        });
        return print_json(&json!({
            "folder": shelf.folder().display().to_string(),
            "models": whole.iter().map(about).collect::<Vec<_>>(),
            "damaged": damaged.collect::<Vec<_>>(),
            "available": available.collect::<Vec<_>>(),
        }));
    }
    let paint = Paint::stdout();
    let mut out = String::new();
    let widest = whole.iter().map(|weights| weights.name.len()).max();
    for weights in &whole {
        let room = widest.unwrap_or_default() - weights.name.len();
        let size = format!("{:>9}", DecimalBytes(weights.bytes).to_string());
        let mut rest = vec![size];
        rest.extend(kind(weights).map(|kind| safe(&kind)));
        rest.extend(known_by(weights).map(|known| known.license.to_owned()));
        rest.push(paint.dim(&safe(&weights.source)));
        let (name, gap) = (paint.bold(&weights.name), " ".repeat(room));
        out.push_str(&format!("{name}{gap}  {}\n", rest.join("  ")));
    }
    for damaged in &damaged {
        let what = safe(&format!("damaged: {}: {}", damaged.name, damaged.what));
        out.push_str(&format!("{}\n", paint.fg(1, &what)));
        out.push_str(&format!("  {}\n", paint.dim(&safe(&damaged.hint()))));
    }
    if whole.is_empty() && damaged.is_empty() {
        out.push_str("no models yet\n");
    }
    for known in missing {
        let size = DecimalBytes(known.bytes);
        let tools = if known.tools {
            CALLS_TOOLS
        } else {
            NO_TOOL_FORM
        };
        let what = format!("{size}, {}, {tools}, {}", known.about, known.license);
        out.push_str(&format!("`ctx model pull {}`: {what}\n", known.name));
        let partial = shelf.partial(known);
        if partial > 0 {
            let here = format!("{} of it are here already", DecimalBytes(partial));
            out.push_str(&format!("  {}\n", paint.dim(&here)));
        }
    }
    out.push_str("`ctx model add NAME FILE.gguf`: any other\n");
    print(out.as_bytes())
}

fn show(weights: &Weights, json: bool) -> Result<(), CliError> {
    if json {
        return print_json(&about(weights));
    }
    let paint = Paint::stdout();
    let mut lines = vec![
        ("name", weights.name.clone()),
        ("file", weights.path.display().to_string()),
        ("size", DecimalBytes(weights.bytes).to_string()),
        ("sha256", weights.sha256.clone()),
        ("from", weights.source.clone()),
        ("added", rfc3339(weights.added)),
    ];
    lines.extend(kind(weights).map(|kind| ("kind", kind)));
    lines.extend(known_by(weights).map(|known| ("licence", known.license.to_owned())));
    let lines = lines.iter().map(|(key, value)| {
        let key = paint.dim(&format!("{key:<7}"));
        format!("{key}  {}\n", safe(value))
    });
    print(lines.collect::<String>().as_bytes())
}

/// What became of a model.
fn done(weights: &Weights, what: &str, json: bool) -> Result<(), CliError> {
    if json {
        let mut about = about(weights);
        about["outcome"] = json!(what);
        return print_json(&about);
    }
    let size = DecimalBytes(weights.bytes);
    let path = safe(&weights.path.display().to_string());
    print(format!("{what}: {} ({size}, {path})\n", weights.name).as_bytes())
}

/// What the file says of itself, in a few words; none where it says nothing that makes sense.
fn kind(weights: &Weights) -> Option<String> {
    let header = Header::of_file(&weights.path).ok()?;
    let context = thousands(header.context_length as usize);
    let tools = if header.knows_tools() {
        CALLS_TOOLS
    } else {
        NO_TOOL_FORM
    };
    Some(format!(
        "{}, {context} tokens  {tools}",
        header.architecture
    ))
}

/// The words for a model that was trained to call tools. One that was not is told how in its instructions.
const CALLS_TOOLS: &str = "calls tools";
const NO_TOOL_FORM: &str = "no tool form";

/// The known model that a file is.
fn known_by(weights: &Weights) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.sha256 == weights.sha256)
}

fn about(weights: &Weights) -> Value {
    let header = Header::of_file(&weights.path).ok();
    let header = header.as_ref();
    json!({
        "name": weights.name,
        "bytes": weights.bytes,
        "sha256": weights.sha256,
        "source": weights.source,
        "addedAt": rfc3339(weights.added),
        "path": weights.path.display().to_string(),
        "architecture": header.map(|header| &header.architecture),
        "contextLength": header.map(|header| header.context_length),
        "parameters": header.map(Header::parameters),
        "tools": header.map(Header::knows_tools),
        "license": known_by(weights).map(|known| known.license),
    })
}
