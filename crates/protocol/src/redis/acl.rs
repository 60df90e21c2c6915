//! `ACL`: users are those of the whole server, with what this door allows them in Redis' words. Who may do everything has the right to read and write the
//! spaces; who may do less has [rules](super::rules), and rights only where they allow no more than those.
//!
//! All of it is done with the rights of who asks: who may not change users is told so by the database.

use super::allowed::{OWN_USER, renew};
use super::call::Call;
use super::commands::{all_categories, all_names, categories_of};
use super::failure::{Failure, Outcome};
use super::refusals;
use super::rules::{Denied, RULE_BYTES_MAX, Rules, joined, name_of};
use super::scripts::{help, unknown_subcommand};
use super::table::find;
use database::Context;
use runtime::fiber;
use tuple::msgpack::{self, Kind, Reader};

const SOURCE: &str = include_str!("acl.lua");
/// Bits of a random password, as in Redis.
const PASSWORD_BITS_MAX: i64 = 4096;

/// What a user may do, as far as this door is concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct User {
    has_password: bool,
    is_on: bool,
    rules: Rules,
    /// A password that it is to get.
    password: Option<Vec<u8>>,
}

enum Value {
    Text(Vec<u8>),
    Bool(bool),
}

/// Runs the script with the rights of who asks, whatever rules it has. Returns what it returns.
fn ask(call: &Call<'_>, words: &[&[u8]]) -> Outcome<Vec<Value>> {
    call.go_into_fiber()?;
    let context = fiber::local::<Context>().ok_or("ERR ACL is for clients")?;
    let mut arguments = Vec::new();
    msgpack::encode_array(&mut arguments, words.len() as u32);
    words.iter().for_each(|word| msgpack::encode_str(&mut arguments, word));
    let mut out = Vec::new();
    let before = context.acting();
    call.database.act_for_session(&context);
    let asked = match call.database.check_execute_universe(&context) {
        Ok(()) => call.database.eval(&context, SOURCE, &arguments, &mut out).map_err(Failure::from),
        Err(_) => Err("NOPERM users are for those who have the right to execute the universe: log in as one of them, as admin is (AUTH admin <password>)".into()),
    };
    context.act_again(before);
    let count = asked?;
    let mut reader = Reader::new(&out);
    let mut values = Vec::new();
    for _ in 0..count {
        values.push(match reader.kind() {
            Ok(Kind::Str) => Value::Text(reader.read_str().unwrap_or_default().to_vec()),
            Ok(Kind::Bool) => Value::Bool(reader.read_bool().unwrap_or(false)),
            _ => return Err("ERR users cannot be read".into()),
        });
    }
    Ok(values)
}

fn get(call: &Call<'_>, name: &[u8]) -> Outcome<Option<User>> {
    let values = ask(call, &[b"get", name])?;
    let is = |at: usize| matches!(values.get(at), Some(Value::Bool(true)));
    let Some(Value::Text(text)) = values.get(6) else { return Ok(None) };
    let rules = if is(5) { Rules::of_text(text) } else { Rules::of_grants(is(3), is(4)) };
    Ok(Some(User { has_password: is(1), is_on: is(2), rules, password: None }))
}

fn all(call: &Call<'_>) -> Outcome<Vec<String>> {
    let values = ask(call, &[b"all", b""])?;
    let name = |value| match value {
        Value::Text(name) => Some(String::from_utf8_lossy(&name).into_owned()),
        Value::Bool(_) => None,
    };
    Ok(values.into_iter().filter_map(name).collect())
}

fn refused(rule: &str, why: &str) -> Failure {
    format!("ERR Error in ACL SETUSER modifier '{rule}': {why}").into()
}

fn too_long() -> Failure {
    format!("ERR the rules of a user have at most {RULE_BYTES_MAX} bytes").into()
}

/// Changes a user by one rule.
fn apply(user: &mut User, rule: &[u8]) -> Outcome {
    if let Some(password) = rule.strip_prefix(b">") {
        if password.is_empty() {
            return Err(refused(">", "a password has at least one character"));
        }
        user.password = Some(password.to_vec());
        return Ok(());
    }
    let shown = || String::from_utf8_lossy(rule).into_owned();
    match rule.to_ascii_lowercase().as_slice() {
        b"on" => user.is_on = true,
        b"off" => user.is_on = false,
        b"sanitize-payload" | b"skip-sanitize-payload" => {}
        b"reset" => *user = User { has_password: user.has_password, ..User::default() },
        b"nopass" | b"resetpass" => {
            return Err(refused(&shown(), "a user has one password here: '>' with a new one replaces it"));
        }
        [b'<' | b'#' | b'!', ..] => {
            return Err(refused(
                &shown(),
                "a user has one password here, of which no hash is taken: '>' with a new one replaces it",
            ));
        }
        _ => user.rules.apply(rule).map_err(|why| refused(&shown(), why))?,
    }
    Ok(())
}

fn set(call: &mut Call<'_>) -> Outcome {
    let name = call.args[2];
    if name.is_empty() || name.iter().any(|byte| *byte <= b' ' || *byte == 127) {
        return Err("ERR Usernames can't contain spaces or null characters".into());
    }
    if std::str::from_utf8(name).is_err() {
        return Err("ERR the name of a user is a text in UTF-8".into());
    }
    if name == b"admin" {
        return Err("ERR the user 'admin' may do everything, and has no rules".into());
    }
    // What is too long is not worth reading.
    let is_rule = |word: &&&[u8]| !word.starts_with(b">");
    let bytes: usize = call.args[3..].iter().filter(is_rule).map(|word| word.len() + 1).sum();
    if bytes > RULE_BYTES_MAX {
        return Err(too_long());
    }
    let mut user = get(call, name)?.unwrap_or_default();
    let words = joined(&call.args[3..])
        .map_err(|open| Failure::from(format!("ERR Unmatched parenthesis in acl selector starting at '{open}'.")))?;
    words.iter().try_for_each(|rule| apply(&mut user, rule))?;
    if name == OWN_USER.as_bytes() && !user.is_on {
        // Every connection begins as this user, that of an administrator, too.
        return Err("ERR the user 'redis' is everybody who has not logged in yet, and stays on: take its rules away (resetkeys resetchannels -@all), or listen with auth=required".into());
    }
    let yes = |is: bool| if is { b"yes".as_slice() } else { b"no".as_slice() };
    let password = user.password.clone().unwrap_or_default();
    let (reads, writes) = user.rules.grants();
    let text = if user.rules.are_all() { Vec::new() } else { user.rules.text() };
    if text.len() > RULE_BYTES_MAX {
        return Err(too_long());
    }
    ask(call, &[b"set", name, &password, yes(user.is_on), yes(reads), yes(writes), &text])?;
    renew(call.shared, call.database);
    call.reply().ok();
    Ok(())
}

fn show(call: &mut Call<'_>, name: &[u8]) -> Outcome {
    let Some(user) = get(call, name)? else {
        call.reply().null();
        return Ok(());
    };
    let lists = user.rules.shown();
    let mut reply = call.reply();
    reply.map(6);
    reply.text("flags");
    reply.set(1);
    reply.text(if user.is_on { "on" } else { "off" });
    reply.text("passwords");
    // The proof that the database keeps is of no use to who sees it.
    reply.array(usize::from(user.has_password));
    if user.has_password {
        reply.text("(kept)");
    }
    for (number, list) in lists.iter().enumerate() {
        if number == 1 {
            reply.text("selectors");
            reply.array(lists.len() - 1);
        }
        if number > 0 {
            reply.map(3);
        }
        reply.text("commands");
        reply.text(&list.commands);
        reply.text("keys");
        reply.bulk(&list.keys);
        reply.text("channels");
        reply.bulk(&list.channels);
    }
    if lists.len() == 1 {
        reply.text("selectors");
        reply.array(0);
    }
    Ok(())
}

/// A user as a line of Redis' files.
fn line(name: &str, user: &User) -> Vec<u8> {
    let begin = format!("user {name} {} ", if user.is_on { "on" } else { "off" });
    [begin.as_bytes(), &user.rules.text()].concat()
}

/// Tells whether a user might run a command.
fn dryrun(call: &mut Call<'_>) -> Outcome {
    let (name, args) = (call.args[2], &call.args[3..]);
    let shown = String::from_utf8_lossy(name).into_owned();
    let user = get(call, name)?.ok_or_else(|| Failure::from(format!("ERR User '{shown}' not found")))?;
    let Some(spec) = find(args[0]) else {
        return Err(format!("ERR Command '{}' not found", String::from_utf8_lossy(args[0])).into());
    };
    if !spec.takes(args.len()) {
        return Err(super::dispatch::wrong_count(spec.name).into());
    }
    let no = "This user has no permissions to";
    match user.rules.check(spec, args) {
        Ok(()) => call.reply().ok(),
        Err(Denied::Command) => {
            let text = format!("{no} run the '{}' command", name_of(spec, args));
            call.reply().text(&text);
        }
        Err(Denied::Key(at)) => {
            let text = [format!("{no} access the '").as_bytes(), args[at], b"' key"].concat();
            call.reply().bulk(&text);
        }
        Err(Denied::Channel(at)) => {
            let text = [format!("{no} access the '").as_bytes(), args[at], b"' channel"].concat();
            call.reply().bulk(&text);
        }
    }
    Ok(())
}

const HELP: &[&str] = &[
    "ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CAT [<category>]",
    "    Returns categories, or the commands of one.",
    "DELUSER <username> [<username> ...]",
    "    Drops users.",
    "DRYRUN <username> <command> [<arg> ...]",
    "    Tells whether a user might run a command.",
    "GETUSER <username>",
    "    Describes a user.",
    "GENPASS [<bits>]",
    "    Returns a random password.",
    "LIST",
    "    Describes all users.",
    "LOG [<count> | RESET]",
    "    Shows what was refused, or forgets it.",
    "SETUSER <username> <rule> [<rule> ...]",
    "    Makes or changes a user.",
    "USERS",
    "    Returns the names of users.",
    "WHOAMI",
    "    Returns the name of who asks.",
    "HELP",
    "    Prints this help.",
];

fn generate(call: &mut Call<'_>) -> Outcome {
    let bits = if call.args.len() == 3 { call.integer(2).unwrap_or(0) } else { 256 };
    if !(1..=PASSWORD_BITS_MAX).contains(&bits) {
        return Err(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096"
                .into(),
        );
    }
    let bits = usize::try_from(bits).unwrap_or(0);
    let mut bytes = vec![0; bits.div_ceil(8)];
    call.database.environment().randomness.fill(&mut bytes);
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    call.reply().text(&text[..bits.div_ceil(4)]);
    Ok(())
}

fn categories(call: &mut Call<'_>) -> Outcome {
    let names: Vec<&str> = match call.args.get(2).map(|name| String::from_utf8_lossy(name).to_ascii_lowercase()) {
        None => all_categories(),
        Some(wanted) if all_categories().contains(&wanted.as_str()) => {
            all_names().filter(|name| categories_of(name).any(|known| known == wanted)).collect()
        }
        Some(_) => {
            return Err(format!("ERR Unknown category '{}'", String::from_utf8_lossy(call.args[2])).into());
        }
    };
    let mut reply = call.reply();
    reply.array(names.len());
    names.iter().for_each(|name| reply.text(name));
    Ok(())
}

/// Drops users one by one. Errors: one of them cannot be dropped; those before it are gone.
fn delete(call: &mut Call<'_>) -> Outcome {
    let mut count = 0;
    let done = call.args[2..].iter().try_for_each(|name| {
        let values = ask(call, &[b"delete", name])?;
        count += i64::from(matches!(values.first(), Some(Value::Bool(true))));
        Ok(())
    });
    renew(call.shared, call.database);
    done.map(|()| call.reply().integer(count))
}

pub(super) fn acl(call: &mut Call<'_>) -> Outcome {
    match (call.args[1].to_ascii_lowercase().as_slice(), call.args.len()) {
        (b"whoami", 2) => {
            let user = call.database.catalog.user_name(call.connection.session().user.get());
            call.reply().text(&user);
        }
        (b"cat", 2 | 3) => categories(call)?,
        (b"genpass", 2 | 3) => generate(call)?,
        (b"help", 2) => help(call, HELP),
        (b"users", 2) => {
            let names = all(call)?;
            let mut reply = call.reply();
            reply.array(names.len());
            names.iter().for_each(|name| reply.text(name));
        }
        (b"list", 2) => {
            let mut lines = Vec::new();
            for name in all(call)? {
                if let Some(user) = get(call, name.as_bytes())? {
                    lines.push(line(&name, &user));
                }
            }
            let mut reply = call.reply();
            reply.array(lines.len());
            lines.iter().for_each(|line| reply.bulk(line));
        }
        (b"getuser", 3) => show(call, call.args[2])?,
        (b"setuser", 3..) => set(call)?,
        (b"deluser", 3..) => delete(call)?,
        (b"dryrun", 4..) => dryrun(call)?,
        (b"log", 2 | 3) => refusals::log(call)?,
        (b"load" | b"save", 2) => {
            return Err("ERR This Redis instance is not configured to use an ACL file: users are rows of the database, and kept when they are changed".into());
        }
        _ => {
            let known = [
                "whoami", "cat", "genpass", "users", "list", "getuser", "setuser", "deluser", "dryrun", "log", "load",
                "save", "help",
            ];
            return Err(unknown_subcommand(call, "acl", &known));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    fn user(rules: &str) -> Outcome<User> {
        let mut user = User::default();
        rules.split(' ').try_for_each(|rule| apply(&mut user, rule.as_bytes())).map(|()| user)
    }

    #[test]
    fn users_are_made_in_the_words_of_redis() {
        let made = user("on >secret ~* &* +@all -@write").unwrap();
        assert!(made.is_on && made.rules.grants() == (true, false));
        assert_eq!(made.password.as_deref(), Some(b"secret".as_slice()));
        assert_eq!(line("bob", &made), b"user bob on ~* &* +@all -@write");
        assert_eq!(user("on +@all reset").unwrap(), User::default());
    }

    #[test]
    fn a_user_has_one_password() {
        for rule in ["nopass", "resetpass", "#abc", "<secret", "!abc", ">", "nothing"] {
            assert!(user(rule).is_err(), "{rule}");
        }
    }
}
