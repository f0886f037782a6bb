//! `ctx agent permit`: what an agent asks, and the answers.

use std::fmt::Write as _;

use contexture_server::Client;
use serde_json::{Value, json};

use crate::args::Permission;
use crate::command::{print, print_json};
use crate::error::CliError;
use crate::view::{Paint, Question, safe};

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
        let question = Question {
            who: None,
            title: asked["title"].as_str().unwrap_or_default(),
            kind: asked["kind"].as_str(),
            arguments: Some(&asked["arguments"]),
            changed: None,
            choices: &[],
        };
        let _ = writeln!(out, " {}", text("requestId"));
        out.push_str(&question.about(paint));
    }
    if out.is_empty() {
        let _ = writeln!(out, " {name} asks nothing");
    } else {
        let _ = writeln!(out, " `ctx agent permit {name} REQUEST allow`, or `reject`");
    }
    print(out.as_bytes())
}

/// The option that gives this answer: never one for all time.
pub fn option_for(options: &Value, answer: Permission) -> Option<&str> {
    let kinds: &[&str] = match answer {
        Permission::Allow => &["allow_once"],
        Permission::Reject => &["reject_once", "reject_always"],
    };
    let options = options.as_array()?;
    let of = |kind: &&str| options.iter().find(|option| option["kind"] == **kind);
    kinds.iter().find_map(of)?["optionId"].as_str()
}
