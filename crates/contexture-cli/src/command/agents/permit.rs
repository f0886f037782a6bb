//! `ctx agent permit`: what an agent asks, and the answers.

use std::fmt::Write as _;

use contexture_server::Client;
use serde_json::{Value, json};

use super::asked::{arguments, option_for};
use crate::args::Permission;
use crate::command::{print, print_json};
use crate::error::CliError;
use crate::view::{Paint, safe};

/// Answers a request; without one, lists those that wait.
pub async fn permit(
    client: &Client,
    name: &str,
    answer: Option<(&str, Permission)>,
    json: bool,
) -> Result<(), CliError> {
    let mut agent = client.call("agent.show", json!({"name": name})).await?;
    let waiting = match agent["asks"].take() {
        Value::Array(waiting) => waiting,
        _ => Vec::new(),
    };
    let Some((request, answer)) = answer else {
        return list(name, &waiting, json);
    };
    let asked = waiting.iter().find(|asked| asked["requestId"] == request);
    // One that does not wait is for the daemon to refuse.
    let option = asked.and_then(|asked| option_for(&asked["options"], answer));
    if let (Some(_), None, Permission::Allow) = (asked, option, answer) {
        return Err(CliError::NotAllowed {
            what: format!("`{}` cannot be allowed this once", safe(request)),
            hint: "its options are on the dashboard".to_owned(),
        });
    }
    let params =
        json!({"name": name, "requestId": request, "optionId": option.unwrap_or_default()});
    let mut done = client.call("agent.permit", params).await?;
    if json {
        done["requestId"] = json!(request);
        return print_json(&done);
    }
    let word = if done["allowed"] == true {
        "allowed"
    } else {
        "rejected"
    };
    let title = asked.map(|asked| safe(asked["title"].as_str().unwrap_or_default()));
    print(format!(" {word}: {}\n", title.unwrap_or_default()).as_bytes())
}

fn list(name: &str, waiting: &[Value], json: bool) -> Result<(), CliError> {
    if json {
        return print_json(&json!(waiting));
    }
    let (paint, name) = (Paint::stdout(), safe(name));
    let mut out = String::new();
    for asked in waiting {
        let text = |key: &str| safe(asked[key].as_str().unwrap_or_default());
        let (id, title) = (text("requestId"), paint.bold(&text("title")));
        let _ = writeln!(out, " {id}  {title}");
        out.push_str(&arguments(&asked["arguments"], paint));
    }
    if out.is_empty() {
        let _ = writeln!(out, " {name} asks nothing");
    } else {
        let _ = writeln!(out, " `ctx agent permit {name} REQUEST allow`, or `reject`");
    }
    print(out.as_bytes())
}
