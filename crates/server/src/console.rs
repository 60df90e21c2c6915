//! Consoles: beside a running server in the same process, or over the network.
//!
//! A console thread reads lines and asks the transaction thread (or the remote server) to run them; the answer is YAML.

use crate::client::Client;
use crate::process::{Process, Stop};
use lua::Lua;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Asks whether a text needs more lines. Both sides have it.
const IS_INCOMPLETE: &str = "require('console').is_incomplete";

/// Who runs what is typed.
trait Backend {
    /// Runs a text; the answer is YAML.
    fn run(&mut self, text: &str) -> Result<String, String>;
    /// True if more lines may complete the text.
    fn is_incomplete(&mut self, text: &str) -> Result<bool, String>;
}

type Request = (String, Sender<String>);

/// The transaction thread of this process.
struct Local {
    queue: Arc<Mutex<VecDeque<Request>>>,
    stop: Stop,
}

impl Backend for Local {
    fn run(&mut self, text: &str) -> Result<String, String> {
        let (sender, answer) = channel();
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back((text.to_string(), sender));
        self.stop.wake();
        answer.recv().map_err(|_| "the server has stopped".to_string())
    }

    fn is_incomplete(&mut self, text: &str) -> Result<bool, String> {
        let quoted = lua_quoted(text);
        Ok(self.run(&format!("return {IS_INCOMPLETE}({quoted})"))?.contains("- true"))
    }
}

/// A text as a Lua string.
fn lua_quoted(text: &str) -> String {
    let mut level = 0;
    while text.contains(&format!("]{}]", "=".repeat(level))) || text.ends_with(&format!("]{}", "=".repeat(level))) {
        level += 1;
    }
    let marks = "=".repeat(level);
    format!("[{marks}[\n{text}]{marks}]")
}

struct Remote {
    client: Client,
}

impl Backend for Remote {
    fn run(&mut self, text: &str) -> Result<String, String> {
        let answer = self.client.eval("return require('console').eval(...)", text)?;
        answer.as_str().map(ToString::to_string).ok_or_else(|| "the server answered no text".to_string())
    }

    fn is_incomplete(&mut self, text: &str) -> Result<bool, String> {
        // Tarantool itself has no such function: there a line is always whole.
        let source = format!("local f = {IS_INCOMPLETE} return f ~= nil and f(...)");
        Ok(self.client.eval(&source, text)?.as_bool().unwrap_or(false))
    }
}

/// Starts a console of this process on the terminal, on a thread of its own. Ctrl-D ends the process.
pub(crate) fn start_local(process: &mut Process) -> Result<(), String> {
    let queue: Arc<Mutex<VecDeque<Request>>> = Arc::default();
    let for_loop = Arc::clone(&queue);
    process.event_loop.on_turn(Box::new(move || {
        loop {
            let request = for_loop.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some((text, sender)) = request else { return };
            Lua::run_console(text, move |answer| {
                // A console that is gone needs no answer.
                let _ = sender.send(answer);
            });
        }
    }));
    let stop = process.stop.clone();
    let mut local = Local { queue, stop: stop.clone() };
    runtime::spawn_thread("console", move || {
        if let Err(error) = interact(&mut local, "lycosa") {
            eprintln!("console: {error}");
        }
        stop.request();
    })
    .map_err(|error| error.to_string())?;
    Ok(())
}

/// `lycosa console [uri]`.
pub(crate) fn connect(uri: &str, code: Option<&str>) -> Result<i32, String> {
    let client = Client::connect(uri)?;
    let name = client.address().to_string();
    let mut remote = Remote { client };
    match code {
        Some(code) => print!("{}", remote.run(code)?),
        None => interact(&mut remote, &name)?,
    }
    Ok(0)
}

fn history_file() -> Option<PathBuf> {
    Some(PathBuf::from(std::env::var_os("HOME")?).join(".lycosa_history"))
}

/// Reads and runs until the input ends.
fn interact(backend: &mut dyn Backend, name: &str) -> Result<(), String> {
    let mut editor = DefaultEditor::new().map_err(|error| error.to_string())?;
    let history = history_file();
    if let Some(path) = &history {
        // There is none at first.
        let _ = editor.load_history(path);
    }
    let mut text = String::new();
    loop {
        let prompt = if text.is_empty() { format!("{name}> ") } else { format!("{:1$}> ", "", name.len()) };
        match editor.readline(&prompt) {
            Ok(line) => {
                text.push_str(&line);
                if text.trim().is_empty() {
                    text.clear();
                    continue;
                }
                if backend.is_incomplete(&text)? {
                    text.push('\n');
                    continue;
                }
                // History is a convenience: a full disk does not end the console.
                let _ = editor.add_history_entry(&text);
                print!("{}", backend.run(&text)?);
                text.clear();
            }
            Err(ReadlineError::Interrupted) => {
                if text.is_empty() {
                    break;
                }
                text.clear();
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.to_string()),
        }
    }
    if let Some(path) = &history {
        let _ = editor.save_history(path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_can_be_quoted() {
        assert_eq!(lua_quoted("a"), "[[\na]]");
        assert_eq!(lua_quoted("a]]"), "[=[\na]]]=]");
        assert_eq!(lua_quoted("a]"), "[=[\na]]=]");
    }
}
