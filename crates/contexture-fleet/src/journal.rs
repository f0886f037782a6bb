//! Writes what happened to the log, and tells those commands that asked for it.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use contexture_store::{Expected, Key, Kind, Log, Record, Stream};
use contexture_tools::inherit;
use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::Semaphore;

use crate::{Bus, Event, Happened, Subscription};

/// How many events are written at once.
const BATCH: usize = 256;
/// How many hooks run at once.
const AT_ONCE: usize = 4;

/// Writes events to the log, a stream a day, until the bus ends. What an agent says word by word is in its
/// session's log, and not here a second time.
pub async fn write(mut events: Subscription, log: Arc<dyn Log>, process: String) {
    while let Some(first) = events.next().await {
        let mut batch = vec![first];
        while batch.len() < BATCH {
            match events.next().now_or_never() {
                Some(Some(next)) => batch.push(next),
                _ => break,
            }
        }
        let missed = events.missed();
        let (log, process) = (Arc::clone(&log), process.clone());
        let written = tokio::task::spawn_blocking(move || append(&*log, &process, &batch, missed));
        if let Ok(Err(error)) = written.await {
            tracing::error!(%error, "events could not be logged");
        }
    }
}

fn append(
    log: &dyn Log,
    process: &str,
    batch: &[Arc<Happened>],
    missed: u64,
) -> Result<(), contexture_store::StoreError> {
    let told = batch
        .iter()
        .filter(|happened| !matches!(happened.event, Event::AgentUpdate { .. }));
    let mut records: Vec<(String, Value)> = Vec::new();
    for happened in told {
        let mut value = json!(happened);
        value["id"] = json!(format!("{process}-{}", happened.id));
        records.push((happened.at.chars().take(10).collect(), value));
    }
    if let (Some(last), 1..) = (batch.last(), missed) {
        let value = json!({"id": format!("{process}-{}-missed", last.id), "at": last.at,
            "type": "missed", "count": missed});
        records.push((last.at.chars().take(10).collect(), value));
    }
    for day in records.chunk_by(|a, b| a.0 == b.0) {
        let stream = Stream::new(Kind::Events, Key::new(day[0].0.as_str())?);
        let lines = day
            .iter()
            .map(|(_, value)| Record::new(value))
            .collect::<Result<Vec<_>, _>>()?;
        log.append(&stream, Expected::Any, &lines)?;
    }
    Ok(())
}

/// A command that is told of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Of which: a type, or the beginning of one with `*` behind it.
    pub event: String,
    /// The program and its arguments. It reads the event as JSON on its standard input.
    pub command: Vec<String>,
    /// How long it may take.
    pub patience: Duration,
}

impl Hook {
    fn wants(&self, event: &Event) -> bool {
        match self.event.strip_suffix('*') {
            Some(beginning) => event.name().starts_with(beginning),
            None => event.name() == self.event,
        }
    }
}

/// Runs hooks until the bus ends. They are started with our environment but for keys, in `folder`.
pub async fn hooks(mut events: Subscription, hooks: Vec<Hook>, folder: PathBuf, bus: Arc<Bus>) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(happened) = events.next().await {
        // A hook that fails at each failure of a hook would never end.
        if matches!(happened.event, Event::HookFailed { .. }) {
            continue;
        }
        for hook in hooks.iter().filter(|hook| hook.wants(&happened.event)) {
            let Ok(place) = Arc::clone(&room).acquire_owned().await else {
                return;
            };
            let (hook, happened) = (hook.clone(), Arc::clone(&happened));
            let (folder, bus) = (folder.clone(), Arc::clone(&bus));
            tokio::spawn(async move {
                if let Err(why) = run(&hook, &happened, &folder).await {
                    bus.tell(Event::HookFailed {
                        event: happened.event.name().to_owned(),
                        command: hook.command.join(" "),
                        why,
                    });
                }
                drop(place);
            });
        }
    }
}

async fn run(hook: &Hook, happened: &Happened, folder: &PathBuf) -> Result<(), String> {
    let Some((program, args)) = hook.command.split_first() else {
        return Err("it has no command".to_owned());
    };
    let mut child = Command::new(program)
        .args(args)
        .current_dir(folder)
        .env_clear()
        .envs(inherit::base())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| error.to_string())?;
    let group = child
        .id()
        .and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
    let mut stdin = child.stdin.take();
    let line = json!(happened).to_string();
    let told = async {
        if let Some(stdin) = &mut stdin {
            // It need not listen.
            let _ = stdin.write_all(line.as_bytes()).await;
        }
        drop(stdin.take());
        child.wait().await
    };
    let ended = tokio::time::timeout(hook.patience, told).await;
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    match ended {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("it ended with {status}")),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!(
            "it did not end within {} ms",
            hook.patience.as_millis()
        )),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use contexture_store::{FileLog, FileOptions, From};

    use super::*;

    fn state(agent: &str) -> Event {
        Event::AgentState {
            agent: agent.to_owned(),
            state: "running".to_owned(),
            why: None,
        }
    }

    #[tokio::test]
    async fn what_happened_is_in_the_log_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let log = Arc::new(FileLog::new(folder.path(), FileOptions::default()));
        let bus = Bus::default();
        let events = bus.subscribe(None);
        for n in 0..600 {
            bus.tell(state(&n.to_string()));
        }
        bus.tell(Event::AgentUpdate {
            agent: "a".into(),
            session_id: "s".into(),
            update: json!({}),
        });
        drop(bus);
        write(events, log.clone(), "p".into()).await;
        let day = log.list(Kind::Events).unwrap().remove(0).stream;
        let kept = log.read(&day, From::Start).unwrap();
        let agents: Vec<String> = kept
            .map(|record| {
                record.unwrap().value().unwrap()["agent"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        let all: Vec<String> = (0..600).map(|n| n.to_string()).collect();
        assert_eq!(agents, all);
    }

    #[tokio::test]
    async fn a_hook_reads_its_event_and_one_that_hangs_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let bus = Arc::new(Bus::default());
        let of = |event: &str, command: &str, patience| Hook {
            event: event.to_owned(),
            command: ["sh", "-c", command].map(str::to_owned).to_vec(),
            patience: Duration::from_millis(patience),
        };
        let all = vec![
            of("agent:*", "cat > seen.new; mv seen.new seen", 5_000),
            of("agent:state", "sleep 600 & sleep 600", 50),
            of("canvas:changed", "touch wrong", 5_000),
        ];
        let running = hooks(
            bus.subscribe(None),
            all,
            folder.path().to_owned(),
            Arc::clone(&bus),
        );
        let running = tokio::spawn(running);
        let mut heard = bus.subscribe(None);
        bus.tell(state("bot"));
        let failed = loop {
            if let Event::HookFailed { why, .. } = &heard.next().await.unwrap().event {
                break why.clone();
            }
        };
        assert!(failed.contains("50 ms"), "{failed}");
        let seen = loop {
            match std::fs::read_to_string(folder.path().join("seen")) {
                Ok(seen) => break seen,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        let seen: Value = serde_json::from_str(&seen).unwrap();
        assert_eq!(
            (&seen["type"], &seen["agent"]),
            (&json!("agent:state"), &json!("bot"))
        );
        assert!(!folder.path().join("wrong").exists());
        running.abort();
    }
}
