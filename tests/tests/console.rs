//! The console in a real terminal: the sessions of `tests/terminal/console.py`; and what the command line says of what it was not meant to get.

use lycosa_tests::{binary, root};
use std::process::{Command, Output, Stdio};

#[test]
fn sessions_in_a_terminal_go_as_a_person_expects() {
    let mut command = Command::new("python3");
    command.arg(root().join("tests/terminal/console.py")).arg(binary());
    match command.stdin(Stdio::null()).output() {
        Err(error) => println!("SKIPPED: python3 cannot be started: {error}"),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            print!("{text}");
            assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

fn lycosa(arguments: &[&str], variable: Option<(&str, &str)>) -> (Output, String) {
    let mut command = Command::new(binary());
    command.args(arguments).envs(variable).stdin(Stdio::null());
    let output = command.output().expect("the binary can be started");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

#[test]
fn misspelt_commands_and_variables_name_the_nearest() {
    let (output, said) = lycosa(&["serv"], None);
    assert!(!output.status.success() && said.contains("did you mean 'lycosa serve'?"), "{said}");
    let (output, said) = lycosa(&["serve", "--check"], Some(("LYCOSA_MEMTX_MEMROY", "1GiB")));
    assert!(!output.status.success() && said.contains("did you mean LYCOSA_MEMTX_MEMORY?"), "{said}");
    let (output, said) = lycosa(&["serve", "--check"], Some(("LYCOSA_PORT", "tcp://10.0.0.1:3301")));
    assert!(output.status.success() && said.contains("LYCOSA_PORT"), "{said}");
}

#[test]
fn serve_check_says_whether_the_configuration_is_good() {
    assert!(lycosa(&["serve", "--check", "--memtx-memory", "1GiB"], None).0.status.success());
    for wrong in [
        ["--memtx-memory", "many"],
        ["--log-level", "loud"],
        ["--listen", "nowhere"],
        ["--script", "/there/is/no/such.lua"],
    ] {
        let (output, said) = lycosa(&["serve", "--check", wrong[0], wrong[1]], None);
        assert!(!output.status.success() && !said.is_empty(), "{wrong:?}: {said}");
    }
}
