//! Every word that the shell says to a model, in one place.

use serde_json::{Value, json};

use super::sandbox::Sandbox;

pub const NAME: &str = "exec_shell";
pub const CATEGORY: &str = "shell";

pub const DEFAULT_TIMEOUT: u64 = 30;
pub const LONGEST_TIMEOUT: u64 = 600;

/// What the tool does. It follows from the options, so that the model does not have to find out.
pub fn description(network: bool) -> String {
    let network = if network {
        "The network can be reached."
    } else {
        "There is no network."
    };
    format!(
        "Runs a command with /bin/sh in the project's folder and returns its exit code, stdout and \
         stderr. Commands can write in the project and in $TMPDIR only, and not in .git/hooks, \
         .git/config, .contexture or contexture.json. They cannot read credentials and histories. \
         {network} There is no terminal and no input. Whatever still runs when the command ends is ended; $TMPDIR is removed. Long output is cut \
         in the middle, and the cut names a file with all of it."
    )
}

pub fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "description": "What to run, as one would type it into a shell.",
                "minLength": 1,
            },
            "timeoutSeconds": {
                "type": "integer",
                "description": "After so many seconds the command is ended.",
                "minimum": 1,
                "maximum": LONGEST_TIMEOUT,
                "default": DEFAULT_TIMEOUT,
            },
            "cwd": {
                "type": "string",
                "description": "The folder to run in, inside the project. Default: the project's root.",
            },
        },
        "required": ["command"],
        "additionalProperties": false,
    })
}

pub const NO_OUTPUT: &str = "(no output)";

pub const UNSANDBOXED: &str = "note: ran without a sandbox, none works here: credentials, other files and the network \
                               were not protected";

/// Said once, by the first command.
pub fn gaps(sandbox: Sandbox) -> String {
    format!(
        "note: the sandbox is {sandbox} alone, which cannot prevent all: {}. With bubblewrap installed, it could",
        sandbox.gaps().join("; ")
    )
}

pub fn exited(code: i32) -> String {
    format!("exit code: {code}")
}

pub fn killed(signal: i32) -> String {
    format!("ended by signal {signal}")
}

pub fn timed_out(seconds: u64) -> String {
    format!("timed out after {seconds} s, and was ended")
}

pub fn too_many(limit: usize) -> String {
    format!("had more than {limit} processes, and was ended")
}

pub fn too_much(bytes: u64) -> String {
    format!("printed more than {bytes} bytes, and was ended")
}

pub fn left_running(count: usize) -> String {
    match count {
        1 => "note: 1 process was still running, and was ended".to_owned(),
        n => format!("note: {n} processes were still running, and were ended"),
    }
}

pub fn still_running(count: usize) -> String {
    format!("warning: {count} processes could not be ended")
}

pub fn put_back(what: &str, kept: &str) -> String {
    format!(
        "warning: {what} is protected; it was put back as it was, what the command made of it is {kept}"
    )
}

pub fn not_put_back(what: &str, why: &str) -> String {
    format!("warning: {what} is protected and was changed, and could not be put back: {why}")
}

/// The most settings that are named.
const MAX_NAMED: usize = 8;

pub fn cleaned(what: &str, dropped: &[String], kept: &str) -> String {
    let named: Vec<&str> = dropped.iter().take(MAX_NAMED).map(String::as_str).collect();
    let more = if dropped.len() > MAX_NAMED {
        ", …"
    } else {
        ""
    };
    format!(
        "warning: {what} is only kept as far as it makes git run nothing and read nothing elsewhere; taken out: {}{more}. \
         The file as it was is {kept}",
        named.join(", ")
    )
}

pub fn neutral(what: &str, kept: &str) -> String {
    format!("warning: {what} would be run by git; it was taken out, and is {kept} now")
}

pub fn not_neutral(what: &str, why: &str) -> String {
    format!("warning: {what} makes git run programs, and could not be taken out: {why}")
}

pub fn not_looked_into(what: &str) -> String {
    format!(
        "warning: {what} was changed and cannot be read; whether git would run something there is not known"
    )
}

pub fn looked_too_long(what: &str) -> String {
    format!(
        "warning: the project has too many folders to look through all of them for what git would run; {what} is one \
         that was left out"
    )
}

pub fn mode_put_back(what: &str, made: u32, was: u32) -> String {
    format!(
        "warning: the permissions of {what} were changed to {made:03o}; they were put back to {was:03o}"
    )
}

pub fn mode_not_put_back(what: &str, made: u32, was: u32, why: &str) -> String {
    format!(
        "warning: the permissions of {what} were changed from {was:03o} to {made:03o}, and could not be put back: {why}"
    )
}

pub fn closed(what: &str) -> String {
    format!(
        "note: nothing new can be made right in {what}: this sandbox cannot hide the credentials in there otherwise; \
         bubblewrap could"
    )
}

pub fn cut(bytes: u64, file: &str) -> String {
    format!("[… {bytes} bytes cut here; all of it is in {file} …]")
}

pub fn cut_and_lost(bytes: u64, why: &str) -> String {
    format!("[… {bytes} bytes cut here; they could not be kept: {why} …]")
}
