//! `lycosa serve`: the server process with its options from flags, environment and file.

use crate::console;
use crate::options::{Options, read_text};
use crate::process::Process;
use lua::Lua;
use std::io::IsTerminal;
use std::rc::Rc;

/// `lycosa serve --check`: looks at the options and starts nothing. Errors: the first thing that would not let a server start.
pub(crate) fn check(options: &Options) -> Result<i32, String> {
    let options = options.for_serve();
    let config = options.check()?;
    if let Some(path) = options.path("script") {
        read_text(path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    println!("the configuration is good: {}", options.summary(&config));
    Ok(0)
}

/// Runs a server until it is asked to stop. Returns the exit code. Errors: why it cannot start, or not stop cleanly.
pub(crate) fn serve(options: &Options, has_console: bool) -> Result<i32, String> {
    let options = options.for_serve();
    let mut process = Process::new(&options, true)?;
    // What can be seen to fail fails before a directory is made.
    process.host.check_addresses().map_err(|error| error.to_string())?;
    if let Some(path) = options.path("script") {
        read_text(path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    process.host.open().map_err(|error| error.to_string())?;
    Lua::opened(&options.shown());
    match options.path("script") {
        None => process.listen()?,
        Some(path) => {
            let source = read_text(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let name = path.display().to_string();
            let host = Rc::clone(&process.host);
            // Clients come when the script has made what they want, users with passwords among it.
            Lua::run_script(&name, source.into_bytes(), vec![name.clone()], move |outcome| {
                if let Err(error) = outcome.and_then(|()| host.listen_as_configured()) {
                    tracing::error!("{error}");
                    host.end_with(1);
                }
            });
        }
    }
    // In the background the kernel stops whoever reads from the terminal.
    let is_at_terminal =
        std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && runtime::terminal::is_foreground();
    if has_console && is_at_terminal {
        console::start_local(&mut process)?;
    }
    process.run()
}
