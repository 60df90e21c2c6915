//! Tarantool's command line: `lycosa app.lua [arguments]`, `-e CODE`, `-l MODULE`, `-i`, `-v`; also what a link named `tarantool` does.

use crate::console;
use crate::options::Options;
use crate::process::Process;
use lua::Lua;
use runtime::{fiber, reactor};
use std::io::{IsTerminal, Read};
use std::rc::Rc;

/// The version that scripts and test rigs look for.
const VERSION: &str = "Tarantool 2.11.0-0-glycosa";

const HELP: &str = "\
Usage:
  tarantool [OPTIONS] [SCRIPT [ARGS]]

Execute a Lua SCRIPT, or start an interactive session when there is none.

Options:
  -h, --help            display this help and exit
  -v, -V, --version     print program version and exit
  -e EXPR               execute string 'EXPR'
  -l NAME               require library 'NAME'
  -i                    enter interactive mode after executing 'SCRIPT'
  --                    stop handling options
  -                     execute stdin and stop handling options
";

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandLine {
    is_help: bool,
    is_version: bool,
    is_interactive: bool,
    /// `-e` and `-l` in their order, as Lua.
    before: Vec<String>,
    /// The script (`-` for standard input) and its arguments.
    script: Vec<String>,
}

/// Reads the arguments behind the program's name. Errors: an option that does not exist or lacks its value.
pub(crate) fn parse(arguments: &[String]) -> Result<CommandLine, String> {
    let mut line = CommandLine::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = |option: &str| match argument.strip_prefix(option) {
            Some("") => rest.next().cloned().ok_or_else(|| format!("option requires an argument: {option}")),
            Some(attached) => Ok(attached.to_string()),
            None => Err(String::new()),
        };
        match argument.as_str() {
            "-h" | "--help" => line.is_help = true,
            "-v" | "-V" | "--version" => line.is_version = true,
            "-i" => line.is_interactive = true,
            "--" => {
                line.script.extend(rest.cloned());
                break;
            }
            text if text.starts_with("-e") => line.before.push(value("-e")?),
            text if text.starts_with("-l") => {
                let name = value("-l")?;
                line.before.push(format!("{name} = require({name:?})"));
            }
            text if text.starts_with('-') && text != "-" => return Err(format!("unknown option '{text}'")),
            _ => {
                line.script.push(argument.clone());
                line.script.extend(rest.cloned());
                break;
            }
        }
    }
    Ok(line)
}

/// Runs a command line. Returns the exit code. Errors: an unknown option, a script that cannot be read, and those of a start.
pub(crate) fn run(arguments: &[String]) -> Result<i32, String> {
    let line = parse(arguments)?;
    if line.is_help {
        print!("{HELP}");
        return Ok(0);
    }
    if line.is_version {
        println!("{VERSION}");
        println!("Lycosa {}", env!("CARGO_PKG_VERSION"));
        return Ok(0);
    }
    let mut chunks: Vec<(String, Vec<u8>, Vec<String>)> = Vec::new();
    for code in &line.before {
        chunks.push(("=-e".to_string(), code.clone().into_bytes(), vec!["tarantool".to_string()]));
    }
    match line.script.first().map(String::as_str) {
        Some("-") => {
            let mut source = Vec::new();
            std::io::stdin().read_to_end(&mut source).map_err(|error| error.to_string())?;
            chunks.push(("=stdin".to_string(), source, line.script.clone()));
        }
        Some(path) => {
            let source = runtime::read_file(path.as_ref()).map_err(|error| format!("cannot open {path}: {error}"))?;
            chunks.push((path.to_string(), source, line.script.clone()));
        }
        None if chunks.is_empty() && !std::io::stdin().is_terminal() => {
            let mut source = Vec::new();
            std::io::stdin().read_to_end(&mut source).map_err(|error| error.to_string())?;
            chunks.push(("=stdin".to_string(), source, vec!["-".to_string()]));
        }
        None => {}
    }
    let is_interactive = line.is_interactive || chunks.is_empty();
    let mut process = Process::new(&Options::default(), false)?;
    if is_interactive {
        console::start_local(&mut process)?;
    }
    let host = Rc::clone(&process.host);
    if !chunks.is_empty() {
        run_chunks(host, chunks.into_iter(), is_interactive);
    }
    process.run()
}

/// Runs chunks one after the other. Once they are over the process stays if there is something to serve: a database, or fibers that wait for
/// sockets or for a time.
fn run_chunks(
    host: Rc<crate::process::ProcessHost>,
    mut chunks: std::vec::IntoIter<(String, Vec<u8>, Vec<String>)>,
    stays: bool,
) {
    let Some((name, source, arguments)) = chunks.next() else {
        if !stays {
            // Others that are ready run until they wait.
            fiber::spawn("end of the script", move || {
                let _ = fiber::yield_now();
                let is_waiting = reactor::watched_descriptors() > 0 || fiber::next_deadline().is_some();
                if !host.is_open() && !is_waiting {
                    host.end_with(0);
                }
            });
        }
        return;
    };
    Lua::run_script(&name, source, arguments, move |outcome| match outcome {
        Ok(()) => run_chunks(host, chunks, stays),
        Err(error) => {
            eprintln!("{}: {}", error.kind_name(), error.message());
            eprintln!("fatal error, exiting the event loop");
            host.end_with(1);
        }
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]
    use super::*;

    fn parsed(arguments: &[&str]) -> CommandLine {
        parse(&arguments.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn options_end_at_the_script() {
        let line = parsed(&["-e", "a = 1", "-lfun", "app.lua", "-i", "x"]);
        assert_eq!(line.before, ["a = 1", "fun = require(\"fun\")"]);
        assert_eq!(line.script, ["app.lua", "-i", "x"]);
        assert!(!line.is_interactive);
        assert!(parsed(&["--version"]).is_version);
        assert!(parse(&["-q".to_string()]).is_err());
        assert!(parse(&["-e".to_string()]).is_err());
    }
}
