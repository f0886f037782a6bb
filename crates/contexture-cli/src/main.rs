//! `ctx`: Contexture at the terminal.
//!
//! Nothing lives here that a library could need: the commands read, call the core, and show.

mod agent;
mod args;
mod command;
mod config;
mod error;
mod fleet;
mod input;
mod models;
mod output;
mod providers;
mod schema;
mod session;
mod settings;
mod skills;
mod state;
mod store;
mod telemetry;
mod trust;
mod user;
mod view;
mod work;

use std::process::ExitCode;

use args::{Args, Command};
use error::CliError;
use output::note;

fn main() -> ExitCode {
    // Before anything is opened or started.
    if let Err(error) = contexture_tools::descriptors::keep_inherited() {
        note!("warning: programs that are started may inherit open files: {error}");
    }
    let args = match args::parse(std::env::args_os()) {
        Ok(args) => args,
        Err(error) => return error::usage(&error),
    };
    if let Command::Supervise { args } = &args.command {
        return contexture_tools::supervise::run(args);
    }
    if let Command::TryModel { file } = &args.command {
        return match agent::local::try_here(file) {
            Ok(()) => ExitCode::SUCCESS,
            Err(what) => {
                note!("{}", view::safe(&what));
                ExitCode::from(3)
            }
        };
    }
    let json = args.json;
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads us has seen enough: `ctx build … | head` is no failure.
        Err(CliError::Pipe) => ExitCode::SUCCESS,
        Err(error) => error::report(&error, json),
    }
}

fn run(args: Args) -> Result<(), CliError> {
    let Args { json, dir, command } = args;
    match command {
        Command::Run(options) => command::run(&options, json, dir.as_deref()),
        Command::Chat(options) => command::chat(&options, json, dir.as_deref()),
        Command::Acp(options) => command::acp(&options, dir.as_deref()),
        Command::Demo(options) => command::demo(&options, json, dir.as_deref()),
        Command::Build(options) => match options.all {
            true => command::build_all(&options.build, json, dir.as_deref()),
            false => command::build(&options.build, json, dir.as_deref()),
        },
        Command::Update(options) => command::update(&options, json, dir.as_deref()),
        Command::Tokens(options) => command::tokens(&options, json),
        Command::Compose(options) => command::compose(&options, json),
        Command::AgentContext(options) => command::agent_context(&options, json, dir.as_deref()),
        Command::Pool(what) => command::pool(what, json, dir.as_deref()),
        Command::Task(what) => command::task(&what, json, dir.as_deref()),
        Command::Worker(options) => command::worker(&options, json, dir.as_deref()),
        Command::Orchestrate(options) => command::orchestrate(&options, json, dir.as_deref()),
        Command::Sessions(what) => command::sessions(what, json, dir.as_deref()),
        Command::Import(options) => command::import(&options, json, dir.as_deref()),
        Command::Inspect(options) => command::inspect(&options, json, dir.as_deref()),
        Command::Diff(options) => command::diff(&options, json, dir.as_deref()),
        Command::Doctor(options) => command::doctor(&options, json, dir.as_deref()),
        Command::Replay(options) => command::replay(&options, json, dir.as_deref()),
        Command::Serve(options) => match &options.command {
            Some(command) => command::serve_link(command, json, dir.as_deref()),
            None => command::serve(&options, json, dir.as_deref()),
        },
        Command::Agent(what) => command::agents(&what, json, dir.as_deref()),
        Command::Canvas(what) => command::canvas(&what, json, dir.as_deref()),
        Command::Skills(what) => command::skills(&what, json, dir.as_deref()),
        Command::Model(what) => command::model(&what, json),
        Command::Trust(options) => command::trust(&options, json, dir.as_deref()),
        Command::Mcp(what) => command::mcp(&what, json, dir.as_deref()),
        Command::Tool(what) => command::tool(&what, json, dir.as_deref()),
        Command::Inject(options) => command::inject(&options, json, dir.as_deref()),
        // Handled before: their exit code is that of another program.
        Command::Supervise { .. } | Command::TryModel { .. } => Ok(()),
        Command::Config(what) => command::config(&what, json, dir.as_deref()),
        Command::Schema(options) => command::schema(&options, json),
        Command::Events(options) => command::events(&options, json, dir.as_deref()),
        Command::Man(options) => command::man(&options),
        Command::Completions { shell } => command::completions(shell),
    }
}
