//! `lycosa`: the command line. `serve` and `console` are modules here, the other commands those of `tools`; this page only chooses.

#[allow(dead_code, reason = "`tools` needs more of it")]
mod console;
mod logging;
mod names;
mod options;
mod options_page;
mod process;
mod script;
mod serve;

use clap::{Parser, Subcommand};
use options::Options;
use std::path::PathBuf;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: runtime::Allocator = runtime::Allocator;

/// A database server that takes Tarantool's place: rows in memory, every acknowledged write on disk.
///
/// `lycosa SCRIPT.lua [ARGS]` runs a script as `tarantool` does, with its options -e, -l, -i; through a link named `tarantool` the program behaves wholly like it.
#[derive(Parser)]
#[command(name = "lycosa", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a server
    Serve {
        /// TOML file with options by the same names
        #[arg(long, env = "LYCOSA_CONFIG")]
        config: Option<PathBuf>,
        /// No console on the terminal. In the background there is none anyway
        #[arg(long)]
        no_console: bool,
        /// Only check the configuration: the status is 0 if it is good
        #[arg(long)]
        check: bool,
        #[command(flatten)]
        options: Box<Options>,
    },
    /// List the options of `serve` with their defaults
    Options(options_page::PageOptions),
    /// Run Lua on a server, typed or from files
    Console(console::Options),
    /// Print the rows of logs, snapshots and runs
    Cat(tools::cat::Options),
    /// Read every block of every log, snapshot and run of a directory
    Check(tools::check::Options),
    /// Copy the files of a running or stopped server into an empty directory
    Backup(tools::backup::Options),
    /// Put load on a server and measure how fast it answers
    Bench(Box<tools::bench::Options>),
    /// Kill and starve a server on this machine's disk, and check that it keeps its promises
    Torture(Box<tools::torture::Options>),
}

/// What the first argument may be; anything else is a script.
const COMMANDS: &[&str] = &["serve", "options", "console", "cat", "check", "backup", "bench", "torture", "help"];

/// The first argument is one of our own commands or a wish for help.
fn is_own_command(argument: &str) -> bool {
    COMMANDS.contains(&argument) || matches!(argument, "--help" | "-h" | "--version")
}

/// True for a word that is neither a command nor a file.
fn is_unknown_word(argument: &str) -> bool {
    argument.chars().all(|c| c.is_ascii_alphabetic()) && !PathBuf::from(argument).exists()
}

/// True if the program was started by the name `tarantool`.
fn is_link(arguments: &[String]) -> bool {
    let name = arguments.first().map(PathBuf::from).unwrap_or_default();
    name.file_name().is_some_and(|name| name == "tarantool")
}

/// True if the command line is to be read as Tarantool's.
fn is_tarantool_style(arguments: &[String]) -> bool {
    if is_link(arguments) {
        return true;
    }
    arguments.get(1).is_some_and(|first| !is_own_command(first))
}

fn run() -> Result<i32, String> {
    let arguments: Vec<String> = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    if is_tarantool_style(&arguments) {
        if let Some(wrong) = arguments.get(1)
            && !is_link(&arguments)
            && is_unknown_word(wrong)
        {
            return Err(match names::nearest(wrong, COMMANDS.iter().copied()) {
                Some(meant) => format!("there is no command and no script '{wrong}'; did you mean 'lycosa {meant}'?"),
                None => format!("there is no command and no script '{wrong}'; 'lycosa help' lists the commands"),
            });
        }
        return script::run(&arguments[1..]);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Whatever becomes of what is printed.
            let _ = error.print();
            if let Some(hint) = names::blame_variable(&error) {
                eprintln!("lycosa: {hint}");
            }
            return Ok(error.exit_code());
        }
    };
    match cli.command {
        Command::Serve { config, no_console, check, options } => {
            names::check_variables()?;
            let options = match config {
                Some(path) => options.with_file(&path)?,
                None => *options,
            };
            if check { serve::check(&options) } else { serve::serve(&options, !no_console) }
        }
        Command::Options(options) => Ok(options_page::print(&options)),
        Command::Console(options) => console::connect(&options),
        Command::Cat(options) => tools::cat::run(&options),
        Command::Check(options) => tools::check::run(&options),
        Command::Backup(options) => tools::backup::run(&options),
        Command::Bench(options) => tools::bench::run(&options),
        Command::Torture(options) => tools::torture::run(&options),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code.rem_euclid(256) as u8),
        Err(error) => {
            eprintln!("lycosa: {error}");
            ExitCode::FAILURE
        }
    }
}
