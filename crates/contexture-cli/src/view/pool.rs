use std::fmt::Write as _;

use contexture::pool::{Pool, Resource, Status, Summary};

use super::{Paint, clip, plural, safe, thousands};

/// The resources, one a line.
pub fn resources(pool: &Pool, paint: Paint) -> String {
    let ids = widest(pool.resources().map(|resource| resource.id().as_str()));
    let mut out = String::new();
    let head = format!(
        " {:<ids$}  {:<12}  {:<9}  can",
        "resource", "type", "status"
    );
    let _ = writeln!(out, "{}", paint.dim(&head));
    for resource in pool.resources() {
        let id = resource.id().as_str();
        let pad = " ".repeat(ids.saturating_sub(super::width(id)));
        let kind = paint.dim(&format!("{:<12}", resource.kind().as_str()));
        let status = format!("{:<9}", resource.status().as_str());
        let status = match resource.status() {
            Status::Available => paint.fg(71, &status),
            Status::Error => paint.fg(167, &status),
            Status::Released => paint.dim(&status),
            Status::Deployed | Status::Busy | Status::Blocked => paint.fg(173, &status),
        };
        let line = format!(
            " {}{pad}  {kind}  {status}  {}",
            paint.bold(id),
            about(resource)
        );
        let _ = writeln!(out, "{}", clip(line.trim_end(), paint.width));
    }
    let _ = writeln!(out, " {}", paint.dim(&numbers(&pool.summary())));
    out
}

/// The catalog, a capability a line.
pub fn catalog(pool: &Pool, paint: Paint) -> String {
    let summary = pool.summary();
    let entries = &summary.capability_catalog;
    let names = widest(entries.iter().map(|entry| entry.capability().as_str()));
    let mut out = String::new();
    let head = format!(
        " {:<names$}  {:>9}  {:>7}  resources",
        "capability", "available", "total"
    );
    let _ = writeln!(out, "{}", paint.dim(&head));
    for entry in entries {
        let name = entry.capability().as_str();
        let pad = " ".repeat(names.saturating_sub(super::width(name)));
        let free = entry.available_count();
        let colour = if free == 0 { 173 } else { 71 };
        let ids: Vec<&str> = entry.best(20).map(|id| id.as_str()).collect();
        let line = format!(
            " {}{pad}  {}  {:>7}  {}",
            paint.bold(name),
            paint.fg(colour, &format!("{:>9}", thousands(free))),
            thousands(entry.resource_count()),
            ids.join(", ")
        );
        let _ = writeln!(out, "{}", clip(line.trim_end(), paint.width));
    }
    let _ = writeln!(out, " {}", paint.dim(&numbers(&summary)));
    out
}

/// The task that it works for, and what it can do and only claims.
fn about(resource: &Resource) -> String {
    let mut words = Vec::new();
    if let Some(task) = resource.task() {
        words.push(format!("[{}]", safe(task)));
    }
    let (can, declared) = (resource.can(), resource.declared());
    let own = declared.keys().filter_map(|kind| can.get_key_value(kind));
    let given = can.iter().filter(|(kind, _)| !declared.contains_key(*kind));
    for (kind, level) in own.chain(given) {
        words.push(format!("{kind}:{}", level.get()));
    }
    let claims = declared.keys().filter(|kind| !can.contains_key(*kind));
    words.extend(claims.map(|kind| format!("{kind} (no tools)")));
    if let (Status::Error, Some(error)) = (resource.status(), resource.last_error()) {
        words.push(format!("— {}", safe(error)));
    }
    words.join(" ")
}

fn numbers(summary: &Summary<'_>) -> String {
    let mut out = plural(summary.total_resources, "resource");
    for (count, what) in [
        (summary.available, "available"),
        (summary.busy, "busy"),
        (summary.error, "in error"),
        (summary.released, "out of service"),
    ] {
        if count > 0 {
            let _ = write!(out, " · {} {what}", thousands(count));
        }
    }
    out
}

fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(super::width).max().unwrap_or(0).clamp(10, 40)
}
