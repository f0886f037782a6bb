//! A program that says something and ends: with a clean environment, in a group of its own, for so
//! long and so much, and ended with all that it started.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use contexture_tools::inherit;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// How long a supervisor has to end what it watches.
const GRACE: Duration = Duration::from_secs(3);
/// How much of what it says on its standard error is shown.
const SAID: usize = 300;

/// What is run.
pub struct Program<'a> {
    pub words: &'a [String],
    pub folder: &'a Path,
    /// The command that ends it, and what it started, when we are gone.
    pub supervisor: Option<&'a [OsString]>,
    pub timeout: Duration,
    pub most: usize,
}

impl Program<'_> {
    /// What it says on its standard output.
    pub fn run(&self, input: Vec<u8>) -> Result<Vec<u8>, String> {
        let until = Instant::now() + self.timeout;
        let mut running = Running {
            child: self.start()?,
            supervised: self.supervisor.is_some(),
        };
        let child = &mut running.child;
        if let Some(mut stdin) = child.stdin.take() {
            // One that does not read is no failure.
            std::thread::spawn(move || stdin.write_all(&input));
        }
        let output = read(child.stdout.take(), self.most as u64 + 1);
        let errors = read(child.stderr.take(), 64 << 10);
        let late = || format!("it did not answer within {} ms", self.timeout.as_millis());
        let left = until.saturating_duration_since(Instant::now());
        let output = output.recv_timeout(left).map_err(|_| late())?;
        if output.len() > self.most {
            return Err(format!("it said more than {} bytes", self.most));
        }
        let status = loop {
            let ended = running
                .child
                .try_wait()
                .map_err(|error| error.to_string())?;
            match ended {
                Some(status) => break status,
                None if Instant::now() > until => return Err(late()),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        if status.success() {
            return Ok(output);
        }
        let said = errors.recv_timeout(Duration::from_millis(200));
        let said = String::from_utf8_lossy(&said.unwrap_or_default()).into_owned();
        let last: Vec<char> = said.trim().chars().rev().take(SAID).collect();
        let last: String = last.into_iter().rev().collect();
        Err(match last.is_empty() {
            true => format!("it ended with {status}"),
            false => format!("it ended with {status}: {}", last.replace('\n', " / ")),
        })
    }

    fn start(&self) -> Result<Child, String> {
        let Some((program, args)) = self.words.split_first() else {
            return Err("there is nothing to run".to_owned());
        };
        if !self.exists(program) {
            return Err(format!("there is no program `{program}`"));
        }
        let mut command = match self.supervisor {
            Some([first, before @ ..]) => {
                let mut command = Command::new(first);
                command.args(before);
                command.arg(std::process::id().to_string());
                command.arg("--").arg(program);
                command
            }
            _ => Command::new(program),
        };
        command.args(args).env_clear();
        command
            .envs(inherit::base())
            .current_dir(self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("`{program}` cannot be started: {error}"))
    }

    /// A supervisor could only say so too late.
    fn exists(&self, program: &str) -> bool {
        if program.contains('/') {
            return self.folder.join(program).is_file();
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    }
}

/// A program under way. Dropping it ends it, and all that it started.
struct Running {
    child: Child,
    supervised: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) else {
            return;
        };
        let over = |child: &mut Child| matches!(child.try_wait(), Ok(Some(_)) | Err(_));
        if self.supervised {
            // One that has left has seen to it already.
            if over(&mut self.child) {
                return;
            }
            let _ = kill_process(pid, Signal::TERM);
            let until = Instant::now() + GRACE;
            while Instant::now() < until && !over(&mut self.child) {
                std::thread::sleep(Duration::from_millis(10));
            }
        } else {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads up to `most` bytes of an output, elsewhere.
fn read(output: Option<impl Read + Send + 'static>, most: u64) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(output) = output {
            let _ = output.take(most).read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn sh(script: &str, timeout: Duration) -> Result<String, String> {
        let words = ["sh", "-c", script].map(str::to_owned);
        let program = Program {
            words: &words,
            folder: Path::new("/"),
            supervisor: None,
            timeout,
            most: 1_000,
        };
        let output = program.run(b"the input".to_vec())?;
        Ok(String::from_utf8(output).unwrap())
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn it_reads_its_input_and_its_output_is_heard() {
        assert_eq!(sh("cat; echo; pwd", LONG).unwrap(), "the input\n/\n");
        assert_eq!(sh("exec <&-; echo deaf", LONG).unwrap(), "deaf\n");
    }

    #[test]
    fn how_it_failed_is_said() {
        let why = sh("echo 'no such luck' >&2; exit 3", LONG).unwrap_err();
        assert!(
            why.contains("exit status: 3") && why.contains("no such luck"),
            "{why}"
        );
        let words = ["no-such-program-here".to_owned()];
        let program = Program {
            words: &words,
            folder: Path::new("/"),
            supervisor: None,
            timeout: LONG,
            most: 10,
        };
        assert!(program.run(Vec::new()).unwrap_err().contains("no program"));
    }

    /// Attack 34: endless output, and one that does not end with what it started.
    #[test]
    fn time_and_size_are_bounded() {
        let began = Instant::now();
        assert!(
            sh("yes", LONG)
                .unwrap_err()
                .contains("more than 1000 bytes")
        );
        let short = Duration::from_millis(300);
        assert!(sh("sleep 600", short).unwrap_err().contains("300 ms"));
        // Its child holds the output open.
        assert!(
            sh("sleep 600 & echo hi", short)
                .unwrap_err()
                .contains("300 ms")
        );
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    /// Attack 30: nothing of ours but what is needed.
    #[test]
    fn the_environment_is_clean() {
        let names = sh("env | cut -d= -f1", LONG).unwrap();
        let shells = ["PWD", "OLDPWD", "SHLVL", "_"];
        for name in names.lines() {
            assert!(
                inherit::BASE.contains(&name) || shells.contains(&name),
                "{name}"
            );
        }
    }
}
