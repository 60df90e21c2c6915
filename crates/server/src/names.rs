//! Names that were meant: what is nearest to a misspelt command or variable.

use crate::options::VARIABLE_PREFIX as PREFIX;
use clap::CommandFactory;

/// Variables that other parts of the product read.
const OTHER_VARIABLES: &[&str] = &["LYCOSA_PASSWORD", "LYCOSA_BIN", "LYCOSA_CLIENTS_DIR"];

/// The number of letters to put in, take out, or change.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let change = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The name nearest to a misspelt one, if one is near: at most a third of the letters are wrong.
pub(crate) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let found = names.map(|name| (distance(wrong, name), name)).min()?;
    (found.0 <= (wrong.chars().count() / 3).max(1)).then_some(found.1)
}

/// Looks at the variables of the environment. Errors: one is almost the name of an option. Another one that is not known gets a line on
/// standard error: whatever runs the server may have variables of its own (Kubernetes has `LYCOSA_PORT` for a service of that name).
pub(crate) fn check_variables() -> Result<(), String> {
    let command = crate::Cli::command();
    let options = command.get_subcommands().flat_map(clap::Command::get_arguments);
    let mut known: Vec<String> = options.filter_map(|option| Some(option.get_env()?.to_str()?.to_string())).collect();
    known.extend(OTHER_VARIABLES.iter().map(ToString::to_string));
    for (name, _) in std::env::vars_os() {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
        if known.iter().any(|known| known == name) {
            continue;
        }
        match nearest(&name[PREFIX.len()..], known.iter().map(|known| &known[PREFIX.len()..])) {
            Some(meant) => {
                return Err(format!("there is no option for the variable {name}; did you mean {PREFIX}{meant}?"));
            }
            None => eprintln!("lycosa: there is no option for the variable {name}: it is ignored"),
        }
    }
    Ok(())
}

/// Says that a value which was refused comes from the environment, if it does.
pub(crate) fn blame_variable(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue};
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let flag = option.split_whitespace().next()?.trim_start_matches("--");
    let is_given = std::env::args().any(|argument| argument.split('=').next() == Some(&format!("--{flag}")));
    let command = crate::Cli::command();
    let mut options = command.get_subcommands().flat_map(clap::Command::get_arguments);
    let variable = options.find(|option| option.get_long() == Some(flag))?.get_env()?.to_str()?.to_string();
    (!is_given && std::env::var_os(&variable).is_some())
        .then(|| format!("the value comes from the variable {variable} of the environment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_the_one_that_was_meant() {
        let verbs = ["serve", "console", "check", "cat"];
        assert_eq!(nearest("serv", verbs.into_iter()), Some("serve"));
        assert_eq!(nearest("consoel", verbs.into_iter()), Some("console"));
        assert_eq!(nearest("dance", verbs.into_iter()), None);
        assert_eq!(distance("MEMTX_MEMROY", "MEMTX_MEMORY"), 2);
        assert_eq!(distance("", "abc"), 3);
    }
}
