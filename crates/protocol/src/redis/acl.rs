//! `ACL`: users and rights are those of the whole server, and here they are in Redis' words. A user may read the keys, write them, or both; what Redis says
//! beyond that (some commands, some keys, several passwords) no grant can say, and it is refused.
//!
//! All of it is done with the rights of who asks: who may not change users is told so by the database.

use super::call::Call;
use super::commands::{all_categories, all_names, categories_of};
use super::failure::{Failure, Outcome};
use super::scripts::{help, unknown_subcommand};
use super::table::{Flag, find};
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
    /// All keys are its own to reach.
    has_keys: bool,
    reads: bool,
    writes: bool,
    /// A password that it is to get.
    password: Option<Vec<u8>>,
}

enum Value {
    Text(String),
    Bool(bool),
}

/// Runs the script with the rights of who asks. Returns what it returns.
fn ask(call: &Call<'_>, words: &[&[u8]]) -> Outcome<Vec<Value>> {
    call.go_into_fiber()?;
    let context = fiber::local::<Context>().ok_or("ERR ACL is for clients")?;
    let mut arguments = Vec::new();
    msgpack::encode_array(&mut arguments, words.len() as u32);
    words.iter().for_each(|word| msgpack::encode_str(&mut arguments, word));
    let mut out = Vec::new();
    let count = call.database.eval(&context, SOURCE, &arguments, &mut out)?;
    let mut reader = Reader::new(&out);
    let mut values = Vec::new();
    for _ in 0..count {
        values.push(match reader.kind() {
            Ok(Kind::Str) => Value::Text(String::from_utf8_lossy(reader.read_str().unwrap_or_default()).into_owned()),
            Ok(Kind::Bool) => Value::Bool(reader.read_bool().unwrap_or(false)),
            _ => return Err("ERR users cannot be read".into()),
        });
    }
    Ok(values)
}

fn get(call: &Call<'_>, name: &[u8]) -> Outcome<Option<User>> {
    let values = ask(call, &[b"get", name])?;
    let is = |at: usize| matches!(values.get(at), Some(Value::Bool(true)));
    Ok((values.len() == 5).then(|| User {
        has_password: is(1),
        is_on: is(2),
        has_keys: is(3) || is(4),
        reads: is(3),
        writes: is(4),
        password: None,
    }))
}

fn all(call: &Call<'_>) -> Outcome<Vec<String>> {
    let values = ask(call, &[b"all", b""])?;
    let name = |value| match value {
        Value::Text(name) => Some(name),
        Value::Bool(_) => None,
    };
    Ok(values.into_iter().filter_map(name).collect())
}

/// What a user may run, in Redis' words.
fn commands_of(user: &User) -> &'static str {
    match (user.reads, user.writes) {
        (true, true) => "+@all",
        (true, false) => "+@all -@write",
        (false, true) => "+@all -@read",
        (false, false) => "-@all",
    }
}

fn refused(rule: &str, why: &str) -> Failure {
    format!("ERR Error in ACL SETUSER modifier '{rule}': {why}").into()
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
    let rule = String::from_utf8_lossy(rule).into_owned();
    match rule.to_ascii_lowercase().as_str() {
        "on" => user.is_on = true,
        "off" => user.is_on = false,
        "~*" | "allkeys" | "%rw~*" => user.has_keys = true,
        "resetkeys" => user.has_keys = false,
        // Channels are everybody's.
        "&*" | "allchannels" | "sanitize-payload" | "clearselectors" => {}
        "+@all" | "allcommands" => (user.reads, user.writes) = (true, true),
        "-@all" | "nocommands" => (user.reads, user.writes) = (false, false),
        "+@read" => user.reads = true,
        "-@read" => user.reads = false,
        "+@write" => user.writes = true,
        "-@write" => user.writes = false,
        "reset" => *user = User { has_password: user.has_password, ..User::default() },
        "nopass" | "resetpass" => {
            return Err(refused(&rule, "a user has one password here: '>' with a new one replaces it"));
        }
        _ => {
            return Err(refused(
                &rule,
                "no grant of the database says it. Here are: on, off, >password, ~*, resetkeys, &*, reset, and + or - with @all, @read, @write",
            ));
        }
    }
    Ok(())
}

fn set(call: &mut Call<'_>) -> Outcome {
    let name = call.args[2];
    if name.is_empty() || name.iter().any(|byte| *byte <= b' ' || *byte == 127) {
        return Err("ERR Usernames can't contain spaces or null characters".into());
    }
    let mut user = get(call, name)?.unwrap_or_default();
    call.args[3..].iter().try_for_each(|rule| apply(&mut user, rule))?;
    let yes = |is: bool| if is { b"yes".as_slice() } else { b"no".as_slice() };
    let password = user.password.clone().unwrap_or_default();
    let (reads, writes) = (user.reads && user.has_keys, user.writes && user.has_keys);
    ask(call, &[b"set", name, &password, yes(user.is_on), yes(reads), yes(writes)])?;
    call.reply().ok();
    Ok(())
}

fn show(call: &mut Call<'_>, name: &[u8]) -> Outcome {
    let Some(user) = get(call, name)? else {
        call.reply().null();
        return Ok(());
    };
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
    reply.text("commands");
    reply.text(commands_of(&user));
    reply.text("keys");
    reply.text(if user.has_keys { "~*" } else { "" });
    reply.text("channels");
    reply.text("&*");
    reply.text("selectors");
    reply.array(0);
    Ok(())
}

/// Tells whether a user might run a command: by its rights on the spaces of keys.
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
    let may = match (spec.is(Flag::Write), spec.is(Flag::Read)) {
        (true, _) => user.writes,
        (false, true) => user.reads,
        _ => true,
    };
    if may {
        call.reply().ok();
    } else {
        let text = format!("This user has no permissions to run the '{}' command", spec.name);
        call.reply().text(&text);
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
        Some(wanted) => return Err(format!("ERR Unknown category '{wanted}'").into()),
    };
    let mut reply = call.reply();
    reply.array(names.len());
    names.iter().for_each(|name| reply.text(name));
    Ok(())
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
                    let (on, keys) = (if user.is_on { "on" } else { "off" }, if user.has_keys { " ~*" } else { "" });
                    lines.push(format!("user {name} {on}{keys} &* {}", commands_of(&user)));
                }
            }
            let mut reply = call.reply();
            reply.array(lines.len());
            lines.iter().for_each(|line| reply.text(line));
        }
        (b"getuser", 3) => show(call, call.args[2])?,
        (b"setuser", 3..) => set(call)?,
        (b"deluser", 3..) => {
            let mut count = 0;
            for name in &call.args[2..] {
                let values = ask(call, &[b"delete", name])?;
                count += i64::from(matches!(values.first(), Some(Value::Bool(true))));
            }
            call.reply().integer(count);
        }
        (b"dryrun", 4..) => dryrun(call)?,
        (b"log", 2 | 3) if call.args.len() == 2 || !call.is_word(2, "reset") => {
            // Who was refused is in the log of the server.
            call.check_writer()?;
            call.reply().array(0);
        }
        (b"log", 3) => {
            call.check_writer()?;
            call.reply().ok();
        }
        (b"load" | b"save", 2) => {
            return Err("ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration.".into());
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
    fn rules_are_read_as_redis_reads_them() {
        let made = user("on >secret ~* &* +@all -@write").unwrap();
        assert!(made.is_on && made.has_keys && made.reads && !made.writes);
        assert_eq!(made.password.as_deref(), Some(b"secret".as_slice()));
        assert_eq!(commands_of(&made), "+@all -@write");
        assert_eq!(user("on +@all reset").unwrap(), User::default());
    }

    #[test]
    fn what_no_grant_says_is_refused() {
        for rule in ["nopass", "~cached:*", "+get", "-@dangerous", "%R~*", "&news", "#abc", "<secret", ">", "(+get)"] {
            assert!(user(rule).is_err(), "{rule}");
        }
    }
}
