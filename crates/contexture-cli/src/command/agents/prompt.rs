use std::sync::Arc;
use std::time::Duration;

use contexture_server::Client;
use serde_json::{Value, json};

use crate::agent::Terminal;
use crate::command::print_json;
use crate::error::CliError;
use crate::fleet::stream;
use crate::output::note;
use crate::view::{Choice, Question, Screen, safe};

/// Interval at which the agent's text is drawn anew, where it has changed.
const REFRESH: Duration = Duration::from_millis(90);

/// `ctx agent prompt`: shows what the agent says and does, and puts its questions to whoever sits there.
pub async fn prompt(client: &Client, name: &str, text: &str, json: bool) -> Result<(), CliError> {
    let text = match text {
        "-" => crate::input::standard_text()?,
        text => text.to_owned(),
    };
    let screen = Arc::new(Screen::new());
    if !json {
        screen.begin();
    }
    let params = json!({"name": name, "text": text});
    let asking = stream(client, "agent.prompt", params, async |update| {
        if update["sessionUpdate"] == "permission_request" {
            if json {
                return print_json(&typed(update));
            }
            return answer(client, name, &update, &screen).await;
        }
        match json {
            true => print_json(&typed(update)),
            false => show(&screen, &update),
        }
    });
    let drawing = async {
        loop {
            tokio::time::sleep(REFRESH).await;
            screen.refresh();
        }
    };
    let done = tokio::select! {
        done = asking => done,
        // Leaving calls it off: the daemon sees that nobody waits.
        _ = tokio::signal::ctrl_c() => {
            let _ = client.call("agent.cancel", json!({"name": name})).await;
            Err(CliError::Unfinished {
                what: format!("`{name}` was interrupted"),
                hint: "what it did so far is in its session".to_owned(),
            })
        }
        () = drawing => Ok(Value::Null),
    };
    if !json {
        screen.end();
    }
    let mut done = done?;
    if json {
        done["type"] = json!("done");
        return print_json(&done);
    }
    match done["stopReason"].as_str() {
        Some("end_turn") | None => Ok(()),
        Some(reason) => {
            let ended = format!(" it ended: {}", safe(reason));
            note!("{}", screen.paint().dim(&ended));
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

fn show(screen: &Screen, update: &Value) -> Result<(), CliError> {
    let paint = screen.paint();
    let kind = update["sessionUpdate"].as_str().unwrap_or_default();
    match kind {
        "agent_message_chunk" => {
            let text = update["content"]["text"].as_str().unwrap_or_default();
            screen.say(text)?;
        }
        "tool_call" => {
            let title = safe(update["title"].as_str().unwrap_or("a tool"));
            screen.note(&[paint.dim(&format!(" · {title}"))])?;
        }
        "tool_call_update" if update["status"] == "failed" => {
            screen.note(&[paint.fg(167, "   it failed")])?;
        }
        _ => {}
    }
    Ok(())
}

/// Puts an agent's question to the person at the terminal. Without one it waits for somebody else.
async fn answer(
    client: &Client,
    name: &str,
    update: &Value,
    screen: &Arc<Screen>,
) -> Result<(), CliError> {
    let text = |key: &str| update[key].as_str();
    let title = text("title").or(text("tool")).unwrap_or("something");
    let (choices, ids) = choices(update);
    let question = Question {
        who: Some(name),
        title,
        kind: text("kind"),
        arguments: Some(&update["arguments"]),
        changed: None,
        choices: &choices,
    };
    let Some(terminal) = Terminal::here(screen) else {
        let asks = question.about(screen.paint());
        let request = safe(text("requestId").unwrap_or_default());
        let how = format!(
            "`ctx agent permit {} {request} allow`, or `reject`",
            safe(name)
        );
        screen.note(&[format!("{asks}    {how}, answers it")])?;
        return Ok(());
    };
    let chosen = terminal.choose(&question).await;
    // What is none of them is a no.
    let option = match chosen {
        Some(chosen) => ids.get(chosen).copied().unwrap_or_default(),
        None => rejection(update).unwrap_or_default(),
    };
    let answer = json!({"name": name, "requestId": update["requestId"], "optionId": option});
    if let Err(error) = client.call("agent.permit", answer).await {
        let error = safe(&CliError::from(error).to_string());
        screen.note(&[format!("   {error}")])?;
    }
    Ok(())
}

/// An option's id, kind and name.
fn options(update: &Value) -> impl Iterator<Item = (&str, &str, &str)> {
    let options = update["options"].as_array().into_iter().flatten();
    options.map(|option| {
        let text = |key: &str| option[key].as_str().unwrap_or_default();
        (text("optionId"), text("kind"), text("name"))
    })
}

/// The agent's option for a plain no.
fn rejection(update: &Value) -> Option<&str> {
    let mut options = options(update);
    options.find_map(|(id, kind, _)| (kind == "reject_once").then_some(id))
}

/// The agent's options as choices, with their ids: the usual ones under the usual keys, any other by a number.
fn choices(update: &Value) -> (Vec<Choice>, Vec<&str>) {
    let (mut choices, mut ids): (Vec<Choice>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut no = rejection(update);
    for (number, (id, kind, name)) in options(update).enumerate() {
        let number = (number + 1).to_string();
        let keys: &[&str] = match kind {
            "allow_once" => &["y", "yes", "once"],
            "allow_always" => &["a", "always"],
            "reject_always" => &["never"],
            // Enter says that.
            "reject_once" if no.take().is_some() => continue,
            _ => &[],
        };
        let taken = |choice: &Choice| keys.iter().any(|key| choice.keys.iter().any(|k| k == key));
        let keys = if keys.is_empty() || choices.iter().any(taken) {
            vec![number.as_str()]
        } else {
            keys.to_vec()
        };
        choices.push(Choice::new(&keys, name));
        ids.push(id);
    }
    (choices, ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_the_usual_keys_and_others_a_number() {
        let option =
            |id: &str, kind: &str| json!({"optionId": id, "kind": kind, "name": id.to_uppercase()});
        let update = json!({"options": [
            option("no", "reject_once"), option("yes", "allow_once"), option("always", "allow_always"),
            option("other", "allow_always"), option("odd", "maybe"), option("never", "reject_always"), option("again", "reject_once"),
        ]});
        let (choices, ids) = choices(&update);
        let keys: Vec<&str> = choices
            .iter()
            .map(|choice| choice.keys[0].as_str())
            .collect();
        assert_eq!(keys, ["y", "a", "4", "5", "never", "7"]);
        assert_eq!(ids, ["yes", "always", "other", "odd", "never", "again"]);
        assert_eq!(rejection(&update), Some("no"));
        assert_eq!(rejection(&json!({})), None);
    }
}
