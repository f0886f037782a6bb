use std::io::IsTerminal;

use contexture_server::Client;
use serde_json::{Value, json};

use super::asked::arguments;
use crate::command::{print, print_json};
use crate::error::CliError;
use crate::fleet::stream;
use crate::output::{self, note, tell};
use crate::view::{Paint, Pieces, safe, safe_lines};

/// `ctx agent prompt`: shows what the agent says and does, and puts its questions to whoever sits there.
pub async fn prompt(client: &Client, name: &str, text: &str, json: bool) -> Result<(), CliError> {
    let text = match text {
        "-" => crate::input::standard_text()?,
        text => text.to_owned(),
    };
    let mut shown = Shown {
        open: false,
        pieces: Pieces::default(),
        paint: Paint::stderr(),
    };
    let params = json!({"name": name, "text": text});
    let asking = stream(client, "agent.prompt", params, async |update| {
        if update["sessionUpdate"] == "permission_request" {
            if json {
                print_json(&typed(update.clone()))?;
            }
            return answer(client, name, &update, json).await;
        }
        match json {
            true => print_json(&typed(update)),
            false => shown.update(&update),
        }
    });
    let mut done = tokio::select! {
        done = asking => done?,
        // Leaving calls it off: the daemon sees that nobody waits.
        _ = tokio::signal::ctrl_c() => {
            let _ = client.call("agent.cancel", json!({"name": name})).await;
            return Err(CliError::Unfinished {
                what: format!("`{name}` was interrupted"),
                hint: "what it did so far is in its session".to_owned(),
            });
        }
    };
    if json {
        done["type"] = json!("done");
        return print_json(&done);
    }
    shown.close()?;
    match done["stopReason"].as_str() {
        Some("end_turn") | None => Ok(()),
        Some(reason) => {
            note!(
                "{}",
                shown.paint.dim(&format!(" it ended: {}", safe(reason)))
            );
            Ok(())
        }
    }
}

/// An update with its kind in the place where our streams have it.
fn typed(mut update: Value) -> Value {
    let kind = match update.as_object_mut() {
        Some(update) => update.shift_remove("sessionUpdate"),
        None => None,
    };
    let mut line = json!({"type": kind});
    if let (Some(line), Value::Object(update)) = (line.as_object_mut(), update) {
        line.extend(update);
    }
    line
}

struct Shown {
    /// Whether a line of text has no end yet.
    open: bool,
    /// The end of the last piece of it.
    pieces: Pieces,
    paint: Paint,
}

impl Shown {
    fn update(&mut self, update: &Value) -> Result<(), CliError> {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        match kind {
            "agent_message_chunk" => {
                let text = update["content"]["text"].as_str().unwrap_or_default();
                self.say(text)
            }
            "tool_call" => {
                self.close()?;
                let title = safe(update["title"].as_str().unwrap_or("a tool"));
                note!("{}", self.paint.dim(&format!(" · {title}")));
                Ok(())
            }
            "tool_call_update" if update["status"] == "failed" => {
                self.close()?;
                note!("{}", self.paint.fg(167, "   it failed"));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn say(&mut self, text: &str) -> Result<(), CliError> {
        let text = safe_lines(&self.pieces.add(text));
        self.put(&text)
    }

    fn put(&mut self, text: &str) -> Result<(), CliError> {
        if let Some(last) = text.chars().next_back() {
            self.open = last != '\n';
        }
        print(text.as_bytes())
    }

    fn close(&mut self) -> Result<(), CliError> {
        let rest = safe_lines(&self.pieces.end());
        self.put(&rest)?;
        if std::mem::take(&mut self.open) {
            print(b"\n")?;
        }
        Ok(())
    }
}

/// Puts an agent's question to the person at the terminal. Without one it waits for somebody else.
async fn answer(client: &Client, name: &str, update: &Value, json: bool) -> Result<(), CliError> {
    let title = safe(update["title"].as_str().unwrap_or("something"));
    let paint = Paint::stderr();
    let about = arguments(&update["arguments"], paint);
    if json || !std::io::stdin().is_terminal() || !output::notes_are_seen() {
        if !json {
            let (name, request) = (safe(name), &update["requestId"]);
            let request = safe(request.as_str().unwrap_or_default());
            note!(" {} {name} asks: {title}", paint.fg(179, "?"));
            tell(&about);
            note!("   `ctx agent permit {name} {request} allow`, or `reject`, answers it");
        }
        return Ok(());
    }
    let options: Vec<&Value> = update["options"].as_array().into_iter().flatten().collect();
    note!(" {} {title}", paint.fg(179, "?"));
    tell(&about);
    for (n, option) in options.iter().enumerate() {
        note!(
            "   {} {}",
            n + 1,
            safe(option["name"].as_str().unwrap_or_default())
        );
    }
    tell("   ");
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    let line = line.await.ok().and_then(Result::ok).unwrap_or_default();
    let chosen = line.trim().parse::<usize>().ok();
    let chosen = chosen.and_then(|n| options.get(n.wrapping_sub(1)));
    // What is none of them is a no.
    let option = chosen
        .and_then(|option| option["optionId"].as_str())
        .unwrap_or_default();
    let answer = json!({"name": name, "requestId": update["requestId"], "optionId": option});
    match client.call("agent.permit", answer).await {
        Ok(_) => Ok(()),
        Err(error) => {
            note!("   {}", safe(&CliError::from(error).to_string()));
            Ok(())
        }
    }
}
