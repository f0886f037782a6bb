//! Commands that an agent asks us to run: in its workspace, with a clean environment, and ended with all
//! that they started, at the latest when the agent is.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture_tools::inherit::ChildKind;
use contexture_tools::process::{Process, Program};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::files;
use super::output::Output;
use super::record::MAX_OUTPUT_BYTES;
use super::serve::Fault;

/// The most terminals at a time.
const MOST: usize = 32;
/// The most bytes of output that are kept of each; an agent may ask for fewer.
const KEPT: usize = 1 << 20;
/// A command that prints more than this is ended.
const LARGEST: u64 = 256 << 20;
/// The longest command, with its arguments and variables.
const LONGEST: usize = 128 << 10;

/// The most terminals of a call whose output is told.
const MOST_OF_CALL: usize = 4;
/// The longest id of a call whose terminals are known.
const MAX_CALL_ID_BYTES: usize = 200;

/// The terminals of a connection.
pub(super) struct Terminals {
    supervisor: Option<Vec<OsString>>,
    /// Variables by which commands find the session that they run in.
    env: Vec<(String, String)>,
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    last: u64,
    closed: bool,
    terminals: HashMap<String, Arc<Terminal>>,
    /// Those that were released, the last of them: a call may end after its terminal.
    released: VecDeque<(String, Arc<Terminal>)>,
    /// The terminals that calls under way have shown, by session and call.
    shown: VecDeque<((String, String), Vec<String>)>,
}

impl All {
    fn of(&self, session_id: &str, id: &str) -> Option<&Arc<Terminal>> {
        let released = self.released.iter().rev().find(|(known, _)| known == id);
        let terminal = self.terminals.get(id).or(released.map(|(_, one)| one))?;
        (terminal.session_id == session_id).then_some(terminal)
    }
}

struct Terminal {
    session_id: String,
    output: Arc<Mutex<Output>>,
    /// How the command ended, once it has.
    exit: watch::Receiver<Option<Value>>,
    end: watch::Sender<bool>,
    work: JoinHandle<()>,
}

impl Terminals {
    pub fn new(supervisor: Option<Vec<OsString>>, env: Vec<(String, String)>) -> Self {
        Self {
            supervisor,
            env,
            all: Mutex::default(),
        }
    }

    /// `terminal/create`.
    pub fn create(&self, session_id: &str, root: &Path, params: &Value) -> Result<Value, Fault> {
        let command = Command::read(params)?;
        let folder = files::folder(root, &params["cwd"])?;
        let limit = params["outputByteLimit"].as_u64().unwrap_or(u64::MAX);
        let limit = usize::try_from(limit).unwrap_or(KEPT).min(KEPT);
        let mut all = self.all();
        if all.closed || all.terminals.len() >= MOST {
            return Err(Fault::failed(format!(
                "there are {MOST} terminals: release one first"
            )));
        }
        let program = Program::new(ChildKind::Terminal, &command.program, &folder)
            .args(&command.args)
            .envs(OURS)
            .envs(self.env.iter().cloned())
            .envs(command.env)
            .supervisor(self.supervisor.as_deref());
        let started = Process::start_apart(&program);
        let (process, stream) =
            started.map_err(|error| Fault::failed(format!("`{}`: {error}", command.program)))?;
        let output = Arc::new(Mutex::new(Output::new(limit)));
        let (tell, exit) = watch::channel(None);
        let (end, ending) = watch::channel(false);
        let work = tokio::spawn(work(process, stream, Arc::clone(&output), ending, tell));
        all.last += 1;
        let id = format!("term-{}", all.last);
        let terminal = Terminal {
            session_id: session_id.to_owned(),
            output,
            exit,
            end,
            work,
        };
        all.terminals.insert(id.clone(), Arc::new(terminal));
        Ok(json!({ "terminalId": id }))
    }

    /// What else is asked of a terminal.
    pub async fn answer(
        &self,
        method: &str,
        session_id: &str,
        params: &Value,
    ) -> Result<Value, Fault> {
        let id = params["terminalId"].as_str().unwrap_or_default();
        let terminal = self.all().terminals.get(id).cloned();
        let terminal = terminal
            .filter(|terminal| terminal.session_id == session_id)
            .ok_or_else(|| Fault::missing("there is no such terminal"))?;
        match method {
            "terminal/output" => {
                let exit = terminal.exit.borrow().clone();
                let mut answer = terminal.output().shown();
                if let Some(exit) = exit {
                    answer["exitStatus"] = exit;
                }
                Ok(answer)
            }
            "terminal/wait_for_exit" => Ok(terminal.ended().await),
            "terminal/kill" => {
                terminal.end.send_replace(true);
                terminal.ended().await;
                Ok(json!({}))
            }
            _ => {
                {
                    let mut all = self.all();
                    all.terminals.remove(id);
                    if all.released.len() == MOST {
                        all.released.pop_front();
                    }
                    all.released
                        .push_back((id.to_owned(), Arc::clone(&terminal)));
                }
                terminal.end.send_replace(true);
                terminal.ended().await;
                terminal.output().keep(MAX_OUTPUT_BYTES);
                Ok(json!({}))
            }
        }
    }

    /// Updates that tell what the terminals printed that a call has shown, to be told before the update that ends it.
    pub fn told(&self, session_id: &str, update: &Value) -> Vec<Value> {
        let kind = update["sessionUpdate"].as_str();
        let (Some("tool_call" | "tool_call_update"), Some(call)) =
            (kind, update["toolCallId"].as_str())
        else {
            return Vec::new();
        };
        if call.len() > MAX_CALL_ID_BYTES {
            return Vec::new();
        }
        let mut all = self.all();
        let key = (session_id.to_owned(), call.to_owned());
        let at = all.shown.iter().position(|(known, _)| *known == key);
        let known = at.and_then(|at| all.shown.remove(at));
        let mut ids = known.map_or_else(Vec::new, |(_, ids)| ids);
        for piece in update["content"].as_array().into_iter().flatten() {
            if let (Some("terminal"), Some(id)) =
                (piece["type"].as_str(), piece["terminalId"].as_str())
                && ids.len() < MOST_OF_CALL
                && !ids.iter().any(|known| known == id)
                && all.of(session_id, id).is_some()
            {
                ids.push(id.to_owned());
            }
        }
        if !matches!(update["status"].as_str(), Some("completed" | "failed")) {
            if !ids.is_empty() {
                if all.shown.len() == MOST {
                    all.shown.pop_front();
                }
                all.shown.push_back((key, ids));
            }
            return Vec::new();
        }
        let terminals = ids
            .iter()
            .filter_map(|id| Some((id, all.of(session_id, id)?)));
        let tell = |(id, terminal): (&String, &Arc<Terminal>)| {
            let output =
                json!({"terminal_id": id, "data": terminal.output().end(MAX_OUTPUT_BYTES)});
            json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "_meta": {"terminal_output": output}})
        };
        terminals.map(tell).collect()
    }

    /// Ends all of them, and waits for it. There are no more afterwards.
    pub async fn end(&self) {
        let all = self.close();
        for terminal in &all {
            terminal.end.send_replace(true);
        }
        for terminal in all {
            terminal.ended().await;
        }
    }

    /// Ends all of them, without waiting for it.
    pub fn drop_all(&self) {
        for terminal in self.close() {
            terminal.work.abort();
        }
    }

    fn close(&self) -> Vec<Arc<Terminal>> {
        let mut all = self.all();
        all.closed = true;
        all.released.clear();
        all.terminals
            .drain()
            .map(|(_, terminal)| terminal)
            .collect()
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Terminal {
    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for its end, and says how it ended.
    async fn ended(&self) -> Value {
        let mut exit = self.exit.clone();
        let ended = exit.wait_for(Option::is_some).await;
        let ended = ended.ok().and_then(|exit| exit.clone());
        // Nobody tells any more: it was dropped.
        ended.unwrap_or_else(|| status(None))
    }
}

/// Reads what a command prints until it has ended or is to end, and ends what is left of it.
async fn work(
    mut process: Process,
    mut stream: pipe::Receiver,
    output: Arc<Mutex<Output>>,
    mut ending: watch::Receiver<bool>,
    tell: watch::Sender<Option<Value>>,
) {
    let mut chunk = vec![0; 16 << 10];
    let mut open = true;
    loop {
        tokio::select! {
            read = stream.read(&mut chunk), if open => match read {
                Ok(0) | Err(_) => open = false,
                Ok(read) => {
                    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
                    output.push(&chunk[..read]);
                    if output.total > LARGEST {
                        break;
                    }
                }
            },
            () = process.ended() => break,
            () = told(&mut ending) => break,
        }
    }
    let status = status(process.kill().await);
    // What it printed last is still in the pipe. Somebody who escaped may hold it open: that is not waited
    // for.
    while let Ok(read @ 1..) = stream.try_read(&mut chunk) {
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.push(&chunk[..read]);
        if output.total > LARGEST {
            break;
        }
    }
    tell.send_replace(Some(status));
}

async fn told(end: &mut watch::Receiver<bool>) {
    let _ = end.wait_for(|end| *end).await;
}

fn status(status: Option<ExitStatus>) -> Value {
    // A supervisor gives a signal as shells do.
    let code = status.and_then(|status| status.code());
    let signal = match code {
        Some(code @ 129..=192) => Some(code - 128),
        _ => status.and_then(|status| status.signal()),
    };
    match (code, signal) {
        (_, Some(signal)) => json!({"exitCode": null, "signal": name(signal)}),
        (Some(code), None) => json!({"exitCode": code, "signal": null}),
        (None, None) => json!({"exitCode": null, "signal": "SIGKILL"}),
    }
}

fn name(signal: i32) -> String {
    match signal {
        1 => "SIGHUP".to_owned(),
        2 => "SIGINT".to_owned(),
        6 => "SIGABRT".to_owned(),
        9 => "SIGKILL".to_owned(),
        11 => "SIGSEGV".to_owned(),
        13 => "SIGPIPE".to_owned(),
        15 => "SIGTERM".to_owned(),
        other => format!("signal {other}"),
    }
}

/// Nobody can turn a page.
const OURS: [(&str, &str); 3] = [("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat")];

/// Variables that make programs run others, and what such begin with.
const RUNS: &[&str] = &[
    "BASH_ENV",
    "BROWSER",
    "EDITOR",
    "ENV",
    "LESSOPEN",
    "NODE_OPTIONS",
    "PAGER",
    "PATH",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "SHELL",
    "VISUAL",
];
const RUNS_BY_BEGINNING: &[&str] = &["LD_", "DYLD_", "GIT_", "BASH_FUNC_"];

/// A command as it is run.
struct Command {
    program: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

impl Command {
    fn read(params: &Value) -> Result<Self, Fault> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let command = text(&params["command"]).unwrap_or_default();
        let list = |name: &str| params[name].as_array().cloned().unwrap_or_default();
        let args: Option<Vec<String>> = list("args").iter().map(text).collect();
        let args = args.ok_or_else(|| Fault::invalid("an argument is no text"))?;
        let env = list("env");
        let env = env
            .iter()
            .filter_map(|one| Some((text(&one["name"])?, text(&one["value"])?)))
            .filter(|(name, _)| is_harmless(name))
            .collect::<Vec<_>>();
        let variables = env.iter().flat_map(|(name, value)| [name, value]);
        let all = args.iter().chain([&command]).chain(variables);
        if command.trim().is_empty() || all.clone().any(|text| text.contains('\0')) {
            return Err(Fault::invalid("`command` is none"));
        }
        if all.map(String::len).sum::<usize>() > LONGEST {
            return Err(Fault::invalid(format!(
                "more than {LONGEST} bytes are too many"
            )));
        }
        // Most agents send a whole line for a shell; some a program and its arguments.
        if args.is_empty()
            && command.contains(|c: char| !c.is_alphanumeric() && !"/._-".contains(c))
        {
            let args = ["-c", "--", &command].map(str::to_owned).to_vec();
            let program = "/bin/sh".to_owned();
            return Ok(Self { program, args, env });
        }
        Ok(Self {
            program: command,
            args,
            env,
        })
    }
}

fn is_harmless(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let runs = RUNS.contains(&upper.as_str());
    plain
        && !runs
        && !RUNS_BY_BEGINNING
            .iter()
            .any(|begin| upper.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack 30.
    #[test]
    fn variables_that_make_programs_run_others_are_left_out() {
        for name in [
            "LD_PRELOAD",
            "GIT_SSH_COMMAND",
            "PAGER",
            "BASH_ENV",
            "A=B",
            "",
        ] {
            assert!(!is_harmless(name), "{name}");
        }
        assert!(is_harmless("RUST_LOG") && is_harmless("CI"));
    }
}
