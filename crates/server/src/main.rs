//! `lycosa`: the command line. Each command is a module; this page only chooses.

mod files;
mod logging;
mod options;
mod serve;

use clap::{Parser, Subcommand};
use options::Options;
use std::path::PathBuf;
use std::process::ExitCode;

/// Latencies are steadier and blocks smaller than with the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A database server that takes Tarantool's place: rows in memory, every acknowledged write on disk.
#[derive(Parser)]
#[command(version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a server
    Serve {
        /// TOML file with the same options
        #[arg(long, env = "LYCOSA_CONFIG")]
        config: Option<PathBuf>,
        #[command(flatten)]
        options: Box<Options>,
    },
    /// Print the rows of a log or snapshot
    Cat {
        /// An .xlog or .snap file
        file: PathBuf,
        /// One JSON object a line instead of YAML
        #[arg(long)]
        json: bool,
        /// Rows of system spaces too
        #[arg(long)]
        show_system: bool,
    },
    /// Read every block of the logs and snapshots of a directory
    Check {
        /// The data directory
        dir: PathBuf,
        /// A JSON array instead of lines
        #[arg(long)]
        json: bool,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve { config, options } => match config {
            Some(path) => options.with_file(&path).and_then(|options| serve::serve(&options)),
            None => serve::serve(&options),
        },
        Command::Cat { file, json, show_system } => files::cat(&file, json, show_system),
        Command::Check { dir, json } => files::check(&dir, json),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lycosa: {error}");
            ExitCode::FAILURE
        }
    }
}
