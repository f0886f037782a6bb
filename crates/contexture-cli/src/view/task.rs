use std::fmt::Write as _;

use serde_json::Value;

use super::{Paint, clip, safe, safe_lines, thousands};

/// Tasks, one a line, parts below their wholes.
pub fn tasks(all: &[Value], paint: Paint) -> String {
    let known = |id: &Value| all.iter().any(|task| task["id"] == *id);
    let mut out = String::new();
    for task in all.iter().filter(|task| !known(&task["parent"])) {
        below(task, all, 0, paint, &mut out);
    }
    out
}

fn below(task: &Value, all: &[Value], depth: usize, paint: Paint, out: &mut String) {
    let _ = writeln!(out, "{}", task_line(task, depth, paint));
    for part in all.iter().filter(|part| part["parent"] == task["id"]) {
        below(part, all, depth + 1, paint, out);
    }
}

/// A task in a line.
pub fn task_line(task: &Value, depth: usize, paint: Paint) -> String {
    let text = |key: &str| safe(task[key].as_str().unwrap_or_default());
    let state = text("state");
    let padded = format!("{state:<10}");
    let colour = match state.as_str() {
        "done" => 71,
        "failed" => 167,
        "blocked" => 179,
        "dispatched" | "running" => 75,
        _ => 245,
    };
    let who = match task["executor"].as_str() {
        Some(who) if !matches!(state.as_str(), "queued" | "blocked") => format!(" {}", safe(who)),
        _ => String::new(),
    };
    let attempt = match task["attempt"].as_u64() {
        Some(n) if n > 1 => format!(" (attempt {n})"),
        _ => String::new(),
    };
    let about = match state.as_str() {
        "blocked" | "failed" | "cancelled" => text("why"),
        "done" => first_line(&text("result")),
        _ => first_line(&text("description")),
    };
    let line = format!(
        " {}{:<10} {}{who}{attempt}  {}",
        "  ".repeat(depth),
        paint.bold(&text("id")),
        paint.fg(colour, &padded),
        paint.dim(&about)
    );
    clip(line.trim_end(), paint.width)
}

/// A task, with all that is known of it.
pub fn task(task: &Value, paint: Paint) -> String {
    let mut out = format!("{}\n", task_line(task, 0, paint));
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(out, " {}  {value}", paint.dim(&format!("{name:<10}")));
        }
    };
    let text = |key: &str| safe(task[key].as_str().unwrap_or_default());
    let list = |key: &str, field: Option<&str>| {
        let all = task[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let one = |value: &Value| {
            let value = field.map_or(value, |field| &value[field]);
            safe(value.as_str().unwrap_or_default())
        };
        all.iter().map(one).collect::<Vec<String>>().join(", ")
    };
    row("task", &text("description"));
    row("requires", &list("requires", Some("capability")));
    row("parent", &text("parent"));
    row("parts", &list("parts", None));
    row("resources", &list("resources", None));
    row("missing", &list("missing", None));
    row("why", &text("why"));
    let used = &task["used"];
    let tokens = used["tokens"].as_u64().unwrap_or_default();
    let cost = used["costMicros"].as_u64().unwrap_or_default();
    let of = match task["limits"]["maxTokens"].as_u64() {
        Some(most) => format!(" of {}", thousands(most as usize)),
        None => String::new(),
    };
    if tokens > 0 || !of.is_empty() {
        let cost = if cost > 0 {
            format!(", {}", dollars(cost))
        } else {
            String::new()
        };
        row(
            "used",
            &format!("{}{of} tokens{cost}", thousands(tokens as usize)),
        );
    }
    if let Some(result) = task["result"].as_str() {
        let _ = write!(out, "\n{}\n", safe_lines(result.trim_end()));
    }
    out
}

/// Millionths of a dollar.
pub fn dollars(micros: u64) -> String {
    format!("${:.4}", micros as f64 / 1e6)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
