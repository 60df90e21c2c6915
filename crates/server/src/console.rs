//! Consoles: beside a running server in the same process, or over the network; typed at, or given what to run.
//!
//! A console thread reads lines and asks the transaction thread (or the remote server) to run them; Lua's `console` module makes the text of
//! the answer. The editor stays open from line to line, so that what is typed or pasted ahead is kept.

use crate::options::read_text;
use crate::process::{Process, Stop};
use clap::{Args, ValueEnum};
use lua::Lua;
use runtime::signals::{INTERRUPT, handle_signals};
use runtime::{Randomness, SystemRandomness, terminal};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Editor, Helper};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tools::client::{Client, Patience, Target};

/// Does what a console asks for on a server; Tarantool's own has less.
const REQUEST: &str = "\
local console = require('console')
local kind, text, form, name = ...
if console.request then return console.request(kind, text, form, name) end
if kind == 'incomplete' then
    local chunk, reason = loadstring('return ' .. text)
    if not chunk then chunk, reason = loadstring(text) end
    return (not chunk and reason:sub(-7) == \"'<eof>'\") and 'yes' or 'no', false
end
if kind ~= 'run' then return '', false end
local answer = console.eval(text)
return answer, answer:sub(1, 13) == '---\\n- error: '";
/// An answer of a script that takes longer is given up, unless `--timeout` says otherwise.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(60);
/// Number of consecutive terminal errors after which the console ends.
const INPUT_ERRORS_MAX: u32 = 5;
/// What runs in the console of a process goes by this name.
const LOCAL_NAME: &str = "local";

const HELP: &str = "\
Type Lua: it runs in the server, and the console prints what it returns.
  \\spaces                      the names of your spaces
  box.space.NAME:select()       rows
  box.cfg  box.info  box.stat() options, state, statistics
  \\help  help  ?                this text
  \\set output yaml|lua|table    how results are printed (json and csv as well)
  \\q                            end the console, as Ctrl-D does
Tab completes names. A statement may span several lines. Ctrl-C clears the line, or cancels the running statement.
";
/// What those learn who type words that other consoles know.
const NO_SUCH_WORD: &str = "This is Lua: box.space.NAME:select() shows rows. \\help shows more, \\q ends.\n";
/// What `\\spaces` runs.
const SPACES: &str = "\
local names = {}
for _, row in box.space._vspace:pairs(512, {iterator = 'GE'}) do names[#names + 1] = row.name or row[3] end
return names";

/// `lycosa console`.
#[derive(Args)]
pub(crate) struct Options {
    /// [tcp://][user[:password]@]host:port[?transport=ssl&...], port, or path of a unix socket; write %40 for @ in user and password
    #[arg(default_value = "127.0.0.1:3301")]
    uri: String,
    /// Run this instead of reading from the terminal; may be repeated
    #[arg(short, value_name = "LUA")]
    execute: Vec<String>,
    /// Run a file (- for standard input) before any -e; may be repeated
    #[arg(short, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// How results are printed
    #[arg(long, value_enum, default_value = "yaml")]
    output: Form,
    /// Print each result as a JSON value on a line; the same as --output json
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// Print rows as comma-separated values with a header; the same as --output csv
    #[arg(long, conflicts_with_all = ["output", "json"])]
    csv: bool,
    /// Seconds to wait for a connection, and for each answer [default: 10 to connect; 60 for answers with -e, -f or a pipe, no limit on a terminal]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
}

/// How results look.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Yaml,
    Lua,
    Table,
    Json,
    Csv,
}

impl Form {
    /// Its name in Lua's `console`.
    fn name(self) -> &'static str {
        match self {
            Form::Yaml => "yaml",
            Form::Lua => "lua",
            Form::Table => "table",
            Form::Json => "json",
            Form::Csv => "csv",
        }
    }
}

/// Who runs what is typed.
trait Backend {
    /// Asks `require('console').request`: the text, and whether it is an error. Errors: nobody answers.
    fn ask(&mut self, kind: &str, text: &str, form: &str) -> Result<(String, bool), String>;

    /// True if more lines may complete the text.
    fn is_incomplete(&mut self, text: &str) -> bool {
        // Who cannot be asked says so when the text is run.
        self.ask("incomplete", text, "").is_ok_and(|(answer, _)| answer == "yes")
    }
}

type Request = ([String; 4], Sender<(String, bool)>);

/// The transaction thread of this process.
struct Local {
    queue: Arc<Mutex<VecDeque<Request>>>,
    stop: Stop,
}

impl Backend for Local {
    fn ask(&mut self, kind: &str, text: &str, form: &str) -> Result<(String, bool), String> {
        let (sender, answer) = channel();
        let request = [kind, text, form, LOCAL_NAME].map(ToString::to_string);
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back((request, sender));
        self.stop.wake();
        answer.recv().map_err(|_| "the server has stopped".to_string())
    }
}

/// A server over the network. A connection that is lost is made again.
struct Remote {
    target: Target,
    patience: Patience,
    client: Option<Client>,
    /// What runs there goes by this name.
    name: String,
}

impl Remote {
    fn open(target: Target, patience: Patience) -> Result<Self, String> {
        let client = Client::open(&target, patience.clone())?;
        let name = format!("{:016x}", SystemRandomness.next_u64());
        Ok(Remote { target, patience, client: Some(client), name })
    }

    /// The connection, made again if it was lost.
    fn client(&mut self) -> Result<&mut Client, String> {
        if self.client.as_ref().is_none_or(|client| !client.is_alive()) {
            self.client = None;
            let client = Client::open(&self.target, self.patience.clone())?;
            eprintln!("connected to {} again", self.target.address);
            self.client = Some(client);
        }
        self.client.as_mut().ok_or_else(|| "not connected".to_string())
    }

    /// Ends what the connection that was given up had begun, over another one.
    fn cancel(&self) {
        let patience = Patience { timeout: Some(Duration::from_secs(2)), interrupted: None };
        if let Ok(mut client) = Client::open(&self.target, patience) {
            // Somebody who does not want the answer has no use for this one.
            let _ = client.eval_all(REQUEST, &["cancel", "", "", &self.name]);
        }
    }

    fn is_interrupted(&self) -> bool {
        self.patience.interrupted.as_ref().is_some_and(|flag| flag.swap(false, Ordering::AcqRel))
    }
}

impl Backend for Remote {
    fn ask(&mut self, kind: &str, text: &str, form: &str) -> Result<(String, bool), String> {
        // A Ctrl-C of before was for something else.
        self.is_interrupted();
        let name = self.name.clone();
        let outcome = self.client()?.eval_all(REQUEST, &[kind, text, form, &name]);
        match outcome {
            Ok(Ok(values)) => {
                let text = values.first().and_then(Value::as_str).unwrap_or_default().to_string();
                Ok((text, values.get(1).and_then(Value::as_bool).unwrap_or(false)))
            }
            Ok(Err(error)) => Err(error),
            Err(error) => {
                self.client = None;
                if self.is_interrupted() {
                    self.cancel();
                    return Err("cancelled".to_string());
                }
                let unknown = if kind == "run" { "; whether it ran is not known" } else { "" };
                Err(format!("{}: {error}{unknown}", self.target.address))
            }
        }
    }
}

/// Starts a console of this process on the terminal, on a thread of its own. Ctrl-D ends the process, an error of the terminal only the console.
/// Errors: the thread cannot be started.
pub(crate) fn start_local(process: &mut Process) -> Result<(), String> {
    let queue: Arc<Mutex<VecDeque<Request>>> = Arc::default();
    let for_loop = Arc::clone(&queue);
    let for_interrupts = process.stop.clone();
    process.event_loop.on_turn(Box::new(move || {
        if for_interrupts.take_interrupt() {
            let request = ["cancel", "", "", LOCAL_NAME].map(ToString::to_string);
            Lua::run_console(request, |_, _| {});
        }
        loop {
            let request = for_loop.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some((request, sender)) = request else { return };
            Lua::run_console(request, move |answer, is_error| {
                // A console that is gone needs no answer.
                let _ = sender.send((answer, is_error));
            });
        }
    }));
    let stop = process.stop.clone();
    stop.set_console(true);
    runtime::spawn_thread("console", move || {
        let local = Local { queue, stop: stop.clone() };
        print_out("Lua console, as the administrator: \\help shows what to type; \\q or Ctrl-D stops the server\n");
        match interact(Rc::new(RefCell::new(local)), "lycosa", Form::Yaml) {
            Ok(()) => stop.request(),
            Err(error) => {
                stop.set_console(false);
                tracing::error!("the console has ended: {error}; the server goes on");
            }
        }
    })
    .map_err(|error| error.to_string())?;
    Ok(())
}

/// `lycosa console`. Returns the exit code. Errors: an option is wrong, nobody answers, the terminal cannot be read.
pub(crate) fn connect(options: &Options) -> Result<i32, String> {
    let is_typed = options.execute.is_empty() && options.file.is_empty() && std::io::stdin().is_terminal();
    let form = match (options.json, options.csv) {
        (true, _) => Form::Json,
        (_, true) => Form::Csv,
        _ => options.output,
    };
    let timeout = match options.timeout {
        None => (!is_typed).then_some(SCRIPT_TIMEOUT),
        Some(seconds) => {
            let wrong = || format!("--timeout: '{seconds}' is no time to wait");
            Some(Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero()).ok_or_else(wrong)?)
        }
    };
    let target = Target::parse(&options.uri)?.with_password(|user| {
        if !std::io::stdin().is_terminal() {
            return None;
        }
        eprint!("password of {user}: ");
        let password = terminal::read_hidden_line();
        eprintln!();
        password.ok()
    });
    let name = target.address.clone();
    if !is_typed {
        let patience = Patience { timeout, interrupted: None };
        return run_given(&mut Remote::open(target, patience)?, options, form);
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    let for_signals = Arc::clone(&interrupted);
    handle_signals(&[INTERRUPT], move |_| for_signals.store(true, Ordering::Release))
        .map_err(|error| error.to_string())?;
    let remote = Remote::open(target, Patience { timeout, interrupted: Some(interrupted) })?;
    interact(Rc::new(RefCell::new(remote)), &name, form)?;
    Ok(0)
}

/// Runs what the command line says, or else standard input. The first error ends it with status 1.
fn run_given(remote: &mut Remote, options: &Options, form: Form) -> Result<i32, String> {
    let mut texts = Vec::new();
    let standard_input = || {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text).map_err(|error| error.to_string())
    };
    for path in &options.file {
        let text = match path.to_str() {
            Some("-") => standard_input()?,
            _ => read_text(path).map_err(|error| format!("{}: {error}", path.display()))?,
        };
        // A first line for the shell is not Lua.
        texts.push(if text.starts_with('#') { format!("--{text}") } else { text });
    }
    texts.extend(options.execute.iter().cloned());
    if options.file.is_empty() && options.execute.is_empty() {
        texts = statements(&standard_input()?, |text| remote.is_incomplete(text));
    }
    for text in texts {
        let (answer, is_error) = remote.ask("run", &text, form.name())?;
        if is_error && form != Form::Yaml {
            eprint!("{answer}");
        } else {
            print_out(&answer);
        }
        if is_error {
            return Ok(1);
        }
    }
    Ok(0)
}

/// Prints an answer. A closed output is no reason to end a server.
fn print_out(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Cuts a text at the ends of lines into statements that are whole. What remains at the end stands alone, whole or not.
fn statements(text: &str, mut is_incomplete: impl FnMut(&str) -> bool) -> Vec<String> {
    let mut list = Vec::new();
    let mut statement = String::new();
    for line in text.lines() {
        if statement.is_empty() && line.trim().is_empty() {
            continue;
        }
        if !statement.is_empty() {
            statement.push('\n');
        }
        statement.push_str(line);
        if is_command(&statement) || !is_incomplete(&statement) {
            list.push(std::mem::take(&mut statement));
        }
    }
    if !statement.is_empty() {
        list.push(statement);
    }
    list
}

/// True for what the console itself understands.
fn is_command(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('\\') || matches!(text, "help" | "help()" | "?") || is_foreign(text)
}

/// True for what other consoles understand, and what is no Lua.
fn is_foreign(text: &str) -> bool {
    let lower = text.trim_end_matches(';').to_ascii_lowercase();
    let mut words = lower.split_whitespace();
    let (first, second) = (words.next().unwrap_or(""), words.next());
    let is_name = second.is_some_and(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '*'));
    match first {
        "exit" | "quit" => second.is_none(),
        "show" | "select" | "insert" | "update" | "delete" | "describe" | "use" => is_name,
        _ => false,
    }
}

/// True if a line must not be kept in a file.
fn is_secret(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["passw", "secret", "chap-sha1"].iter().any(|word| text.contains(word))
}

/// What the editor asks while a line is typed.
struct Asker {
    backend: Rc<RefCell<dyn Backend>>,
}

impl Validator for Asker {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let mut backend = self.backend.borrow_mut();
        let list = statements(context.input(), |text| backend.is_incomplete(text));
        let is_incomplete = list.last().is_some_and(|last| !is_command(last) && backend.is_incomplete(last));
        Ok(if is_incomplete { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Completer for Asker {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = line.get(..position).unwrap_or(line);
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':');
        let start =
            before.rfind(|c| !is_name(c)).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let names = self.backend.borrow_mut().ask("complete", &before[start..], "");
        let names = names.map(|(text, _)| text.lines().map(ToString::to_string).collect()).unwrap_or_default();
        Ok((start, names))
    }
}

impl Hinter for Asker {
    type Hint = String;
}
impl Highlighter for Asker {}
impl Helper for Asker {}

fn history_file() -> Option<PathBuf> {
    Some(PathBuf::from(std::env::var_os("HOME")?).join(".lycosa_history"))
}

/// Reads and runs until the input ends. Errors: the terminal cannot be read any more.
fn interact(backend: Rc<RefCell<dyn Backend>>, name: &str, form: Form) -> Result<(), String> {
    let config = Config::builder().completion_type(CompletionType::List).auto_add_history(false).build();
    let mut editor: Editor<Asker, FileHistory> = Editor::with_config(config).map_err(|error| error.to_string())?;
    editor.set_helper(Some(Asker { backend: Rc::clone(&backend) }));
    let history = history_file();
    if let Some(path) = &history {
        // There is none at first.
        let _ = editor.load_history(path);
    }
    let form = Cell::new(form);
    let prompt = format!("{name}> ");
    let mut errors = 0;
    let ended = 'lines: loop {
        match editor.readline(&prompt) {
            Ok(text) => {
                errors = 0;
                if !text.trim().is_empty() && !is_secret(&text) {
                    // History is a convenience: a full disk does not end the console.
                    let _ = editor.add_history_entry(text.trim_end());
                }
                // What was pasted may be several statements.
                let list = statements(&text, |text| backend.borrow_mut().is_incomplete(text));
                for statement in list {
                    let text = match is_command(&statement).then(|| obey(statement.trim(), &form)) {
                        Some(Obeyed::End) => break 'lines Ok(()),
                        Some(Obeyed::Done) => continue,
                        Some(Obeyed::Run(text)) => text,
                        None => &statement,
                    };
                    match backend.borrow_mut().ask("run", text, form.get().name()) {
                        Ok((answer, _)) => print_out(&answer),
                        Err(error) => print_out(&format!("---\n- error: {}\n...\n", Value::from(error))),
                    }
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break Ok(()),
            Err(error) => {
                errors += 1;
                if errors >= INPUT_ERRORS_MAX {
                    break Err(error.to_string());
                }
            }
        }
    };
    if let Some(path) = &history {
        let _ = editor.save_history(path);
    }
    ended
}

/// What came of a command of the console's own.
enum Obeyed {
    Done,
    /// The server is to run this.
    Run(&'static str),
    /// The console is to end.
    End,
}

/// Does what the console itself understands.
fn obey(command: &str, form: &Cell<Form>) -> Obeyed {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words[..] {
        ["\\q" | "\\quit"] => return Obeyed::End,
        ["\\spaces"] => return Obeyed::Run(SPACES),
        ["\\set", "output", wanted, ..] => {
            let wanted = wanted.trim_end_matches([',', ';']);
            match Form::from_str(wanted, true) {
                Ok(wanted) => form.set(wanted),
                Err(_) => print_out("the forms are: yaml, lua, table, json, csv\n"),
            }
        }
        ["\\help" | "\\h" | "\\?" | "help" | "help()" | "?"] => print_out(HELP),
        _ if is_foreign(command) => print_out(NO_SUCH_WORD),
        _ => print_out("unknown command: \\help lists the commands\n"),
    }
    Obeyed::Done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_lines_are_cut_into_statements() {
        let is_incomplete = |text: &str| text.matches("do").count() > text.matches("end").count();
        let cut = |text: &str| statements(text, is_incomplete);
        assert_eq!(cut("a = 1\n\nb = 2"), ["a = 1", "b = 2"]);
        assert_eq!(
            cut("for i = 1, 2 do\n  f(i)\nend\n\\set output lua\nc"),
            ["for i = 1, 2 do\n  f(i)\nend", "\\set output lua", "c"]
        );
        assert_eq!(cut("while 1 do\n"), ["while 1 do"]);
    }

    #[test]
    fn lines_with_passwords_are_not_kept() {
        assert!(is_secret("box.schema.user.create('me', {passWORD = 'x'})"));
        assert!(is_secret("box.schema.user.passwd('x')"));
        assert!(!is_secret("box.space.books:select()"));
    }

    #[test]
    fn words_of_other_consoles_are_told_from_lua() {
        for text in ["exit", "quit;", "SELECT * FROM t", "show tables", "use db"] {
            assert!(is_command(text), "{text}");
        }
        for text in ["select = 1", "exit()", "update(1)", "show", "quit = 1", "insert { 1 }", "delete"] {
            assert!(!is_command(text), "{text}");
        }
    }
}
