//! The supervisor that the tests start agents with, as `ctx` has it as a hidden command.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    contexture_tools::supervise::run(&args)
}
