use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use super::{print, print_content, print_json, runtime};
use crate::args::Canvas;
use crate::error::CliError;
use crate::fleet::reach;
use crate::view::safe;

/// `ctx canvas`.
pub fn canvas(what: &Canvas, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    runtime()?.block_on(async {
        let fleet = reach(dir)?;
        match what {
            Canvas::Show { name } => {
                let canvas = fleet.call("canvas.get", json!({"agent": name})).await?;
                match json {
                    true => print_json(&canvas),
                    false => print_content(canvas["html"].as_str().unwrap_or_default().as_bytes()),
                }
            }
            Canvas::List => {
                let mut all = fleet.call("canvas.list", json!({})).await?;
                let all = all["canvases"].take();
                if json {
                    return print_json(&all);
                }
                let mut out = String::new();
                for canvas in all.as_array().into_iter().flatten() {
                    let text = |key: &str| safe(canvas[key].as_str().unwrap_or_default());
                    let (name, at) = (text("agentName"), text("updatedAt"));
                    let _ = writeln!(out, " {name:<20} {at}  {}", text("title"));
                }
                if out.is_empty() {
                    out.push_str(" nobody shows anything\n");
                }
                print(out.as_bytes())
            }
        }
    })
}
