mod machine;

use std::path::Path;

use contexture_store::doctor::{self, Checkup, Finding};
use contexture_store::{Kind, Log, ProjectLog, Stream};
use serde_json::{Value, json};

use super::{print, print_json};
use crate::args::Doctor;
use crate::config;
use crate::error::CliError;
use crate::store::{self, Home};
use crate::view::{Paint, plural, safe};

/// `ctx doctor`.
pub fn doctor(options: &Doctor, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let home = store::open(dir)?;
    let mut all = match &home.files {
        Some(files) => check(files)?,
        None => doctor::check(home.sessions.log())?,
    };
    let mut repairs = Vec::new();
    if options.fix {
        repairs = repair(&home, &mut all)?;
    }
    for (stream, finding) in doctor::check_forks(&home.sessions)? {
        if let Some(checkup) = all.iter_mut().find(|checkup| checkup.stream == stream) {
            // What cannot be read was said already.
            if checkup.findings.is_empty() {
                checkup.findings.push(finding);
            }
        }
    }
    let machine = machine::checks(&config::load(dir)?);
    if json {
        let mut report = as_json(&all, &repairs);
        report["machine"] = machine::as_json(&machine);
        print_json(&report)?;
    } else {
        let paint = Paint::stdout();
        print(in_words(&all, &repairs, paint).as_bytes())?;
        print(machine::in_words(&machine, paint).as_bytes())?;
    }
    let open: Vec<&Finding> = all.iter().flat_map(|checkup| &checkup.findings).collect();
    let is_broken = |check: &&machine::Check| check.state == machine::State::Broken;
    let broken = machine.iter().filter(is_broken).count();
    if open.is_empty() && broken == 0 {
        return Ok(());
    }
    let fixable = open
        .iter()
        .filter(|finding| finding.remedy.is_some())
        .count();
    Err(CliError::Unhealthy {
        what: format!("{} found", plural(open.len() + broken, "problem")),
        hint: match fixable {
            0 => "these need a person".to_owned(),
            n if n == open.len() + broken => {
                "`ctx doctor --fix` repairs them, and keeps a backup".to_owned()
            }
            n => format!("`ctx doctor --fix` repairs {n} of them, and keeps a backup"),
        },
    })
}

/// Looks at what lies with the project, and at what lies with the user.
fn check(files: &ProjectLog) -> Result<Vec<Checkup>, CliError> {
    let mut all = doctor::check_files(files.data(), &Kind::DATA)?;
    if let Some(acting) = files.acting() {
        all.extend(doctor::check_files(acting, &Kind::ACTING)?);
    }
    Ok(all)
}

/// A stream that was repaired: what was wrong, and where it is kept as it was.
struct Repaired {
    stream: Stream,
    findings: Vec<Finding>,
    backup: String,
}

fn repair(home: &Home, all: &mut [Checkup]) -> Result<Vec<Repaired>, CliError> {
    let Some(files) = &home.files else {
        return Ok(Vec::new());
    };
    let mut repaired = Vec::new();
    let can_be = |finding: &Finding| finding.remedy.is_some();
    for checkup in all
        .iter_mut()
        .filter(|checkup| checkup.findings.iter().any(can_be))
    {
        let stream = &checkup.stream;
        let own = files.is_own(stream)?;
        if let Some(repair) = doctor::repair(files.home(stream.kind)?, stream)? {
            if own {
                files.claim_repaired(stream)?;
            }
            let (mended, left) = std::mem::take(&mut checkup.findings)
                .into_iter()
                .partition(|finding| finding.remedy.is_some());
            checkup.findings = left;
            checkup.records = repair.records;
            repaired.push(Repaired {
                stream: checkup.stream.clone(),
                findings: mended,
                backup: repair.backup,
            });
        }
    }
    Ok(repaired)
}

fn in_words(all: &[Checkup], repairs: &[Repaired], paint: Paint) -> String {
    let mut out = String::new();
    let mut say = |stream: &Stream, finding: &Finding, remedy: Option<&str>| {
        let line = finding
            .line
            .map(|line| format!(", line {line}"))
            .unwrap_or_default();
        let head = format!("{stream}{line}");
        out.push_str(&format!(
            "{}\n  {}\n",
            paint.bold(&safe(&head)),
            safe(&finding.what)
        ));
        if let Some(remedy) = remedy {
            out.push_str(&format!("  {}\n", paint.dim(remedy)));
        }
    };
    for repair in repairs {
        for finding in &repair.findings {
            say(
                &repair.stream,
                finding,
                Some(&format!("repaired; as it was: {}", safe(&repair.backup))),
            );
        }
    }
    for checkup in all {
        for finding in &checkup.findings {
            let remedy = finding
                .remedy
                .as_ref()
                .map(|remedy| format!("--fix: {remedy}"));
            say(&checkup.stream, finding, remedy.as_deref());
        }
    }
    let count = |kind: Kind| {
        all.iter()
            .filter(|checkup| checkup.stream.kind == kind)
            .count()
    };
    let records: usize = all.iter().map(|checkup| checkup.records).sum();
    out.push_str(&format!(
        "{}, {}, {}: {}\n",
        plural(count(Kind::Session), "session"),
        plural(count(Kind::Chat), "chat"),
        plural(count(Kind::Memory), "execution memory"),
        plural(records, "sound entry"),
    ));
    out
}

fn as_json(all: &[Checkup], repairs: &[Repaired]) -> Value {
    let finding = |finding: &Finding| json!({ "line": finding.line, "what": finding.what, "remedy": finding.remedy });
    let name =
        |stream: &Stream| json!({ "kind": stream.kind.as_str(), "key": stream.key.as_str() });
    json!({
        "streams": all.iter().map(|checkup| json!({
            "stream": name(&checkup.stream),
            "entries": checkup.records,
            "findings": checkup.findings.iter().map(finding).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "repaired": repairs.iter().map(|repair| json!({
            "stream": name(&repair.stream),
            "backup": repair.backup,
            "findings": repair.findings.iter().map(finding).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}
