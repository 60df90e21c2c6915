//! What a user may do at this door, in Redis' words: commands, keys by patterns, channels by patterns. See `ACL SETUSER`.
//!
//! Rules are a list of words that is applied in order: `-@all +@read -mget ~cache:*`. What they come to is kept beside them, a bit for each command and
//! subcommand. A user has a list of its own and further ones in parentheses; a command may run if one of the lists allows the whole of it.
//!
//! Who has no rules may do here what its grants on the spaces allow (`acl`).
//!
//! Invariant: the text of rules gives the same rules when it is read again. What cannot be read allows nothing.

use super::commands::{all_categories, all_names, categories_of};
use super::glob::matches;
use super::places::{Access, access_of, channel_places, key_places};
use super::table::{Flag, Spec, find};
use hashbrown::HashMap;
use std::sync::LazyLock;

/// Bytes of the rules of one user.
pub(super) const RULE_BYTES_MAX: usize = 64 << 10;

/// Words of 64 bits that commands and subcommands take.
const BIT_WORDS: usize = 8;

/// A bit for each command and subcommand.
type Bits = [u64; BIT_WORDS];

/// Commands and subcommands by their names, each with its number.
static NUMBERS: LazyLock<HashMap<&'static str, usize>> =
    LazyLock::new(|| all_names().enumerate().map(|(number, name)| (name, number)).collect());

/// The commands and subcommands of each category.
static CATEGORIES: LazyLock<HashMap<&'static str, Bits>> = LazyLock::new(|| {
    let bits_of = |category: &'static str| {
        let mut bits = Bits::default();
        let members = NUMBERS.iter().filter(|(name, _)| categories_of(name).any(|of| of == category));
        members.for_each(|(_, number)| bits[number / 64] |= 1 << (number % 64));
        (category, bits)
    };
    all_categories().into_iter().map(bits_of).collect()
});

const UNKNOWN: &str = "Unknown command or category name in ACL";
const MALFORMED: &str = "Syntax error";
const BEHIND_ALL_KEYS: &str = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns";
const BEHIND_ALL_CHANNELS: &str = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels";
const TOO_DEEP: &str = "Allowing first-arg of a subcommand is not supported";

/// Keys that may be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    access: Access,
    glob: Vec<u8>,
}

impl Pattern {
    fn allows(&self, wanted: Access) -> bool {
        (self.access.reads || !wanted.reads) && (self.access.writes || !wanted.writes)
    }

    fn show(&self) -> Vec<u8> {
        let mark: &[u8] = match (self.access.reads, self.access.writes) {
            (true, true) => b"~",
            (true, false) => b"%R~",
            _ => b"%W~",
        };
        [mark, &self.glob].concat()
    }
}

/// One list of rules, and what it comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct List {
    allowed: Bits,
    /// Commands that are allowed with certain first arguments only.
    first_words: Vec<(&'static str, Vec<u8>)>,
    /// It begins with all commands rather than none.
    begins_with_all: bool,
    /// The rules of commands behind that, none of which another has made void.
    said: Vec<String>,
    keys: Vec<Pattern>,
    has_all_keys: bool,
    channels: Vec<Vec<u8>>,
    has_all_channels: bool,
}

/// Why a command may not run: by its name, or by the place of the first of its arguments that may not be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Denied {
    Command,
    Key(usize),
    Channel(usize),
}

impl Denied {
    /// Redis' answer.
    pub(super) fn text(self, name: &str) -> String {
        match self {
            Denied::Command => format!("NOPERM this user has no permissions to run the '{name}' command"),
            Denied::Key(_) => {
                "NOPERM this user has no permissions to access one of the keys used as arguments".to_string()
            }
            Denied::Channel(_) => {
                "NOPERM this user has no permissions to access one of the channels used as arguments".to_string()
            }
        }
    }

    /// The same where a script has asked.
    pub(super) fn text_for_script(self) -> &'static str {
        match self {
            Denied::Command => "ERR The user executing the script can't run this command or subcommand",
            Denied::Key(_) => {
                "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments"
            }
            Denied::Channel(_) => {
                "ERR The user executing the script can't publish to the channel mentioned in the command"
            }
        }
    }

    /// The same of a command that was allowed when a transaction took it.
    pub(super) fn text_in_exec(self) -> String {
        let reason = match self {
            Denied::Command => "no permission to execute the command or subcommand",
            Denied::Key(_) => "no permission to touch the specified keys",
            Denied::Channel(_) => "no permission to access one of the channels used as argument to the command",
        };
        format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: {reason}"
        )
    }
}

/// The name by which a command is allowed: that of its subcommand, if it is one that is known.
pub(super) fn name_of(spec: &Spec, args: &[&[u8]]) -> &'static str {
    let full = args.get(1).filter(|word| word.len() < 64).map(|word| {
        let word = String::from_utf8_lossy(word).to_ascii_lowercase();
        format!("{}|{word}", spec.name)
    });
    let known = full.and_then(|full| NUMBERS.get_key_value(full.as_str()).map(|(name, _)| *name));
    known.unwrap_or(spec.name)
}

impl List {
    fn set(&mut self, number: usize, is_allowed: bool) {
        let bit = 1 << (number % 64);
        if is_allowed {
            self.allowed[number / 64] |= bit;
        } else {
            self.allowed[number / 64] &= !bit;
        }
    }

    fn has(&self, name: &str) -> bool {
        NUMBERS.get(name).is_some_and(|number| is_set(&self.allowed, *number))
    }

    fn set_all(&mut self, is_allowed: bool) {
        (0..NUMBERS.len()).for_each(|number| self.set(number, is_allowed));
        self.begins_with_all = is_allowed;
        self.said.clear();
        self.first_words.clear();
    }

    /// Notes a rule; those about the same command, or its subcommands, are void from now on.
    fn say(&mut self, sign: char, name: &str) {
        self.said.retain(|rule| {
            let known = &rule[1..];
            !(known == name || known.strip_prefix(name).is_some_and(|rest| rest.starts_with('|')))
        });
        self.said.push(format!("{sign}{name}"));
    }

    fn apply_command(&mut self, is_allowed: bool, name: &str) -> Result<(), &'static str> {
        let (sign, name) = (if is_allowed { '+' } else { '-' }, name.to_ascii_lowercase());
        if let Some(category) = name.strip_prefix('@') {
            let members = CATEGORIES.get(category).ok_or(UNKNOWN)?;
            for (allowed, members) in self.allowed.iter_mut().zip(members) {
                *allowed = if is_allowed { *allowed | members } else { *allowed & !members };
            }
            self.first_words.retain(|(command, _)| !is_set(members, NUMBERS[command]));
            self.say(sign, &name);
            return Ok(());
        }
        if let Some(number) = NUMBERS.get(name.as_str()) {
            self.set(*number, is_allowed);
            let subcommands = NUMBERS.iter().filter(|(known, _)| is_subcommand(known, &name));
            subcommands.for_each(|(_, number)| self.set(*number, is_allowed));
            self.first_words.retain(|(command, _)| *command != name);
            self.say(sign, &name);
            return Ok(());
        }
        // What is left are first arguments of a command that has no subcommands. They are allowed, and never taken away.
        let (command, word) = name.rsplit_once('|').filter(|_| is_allowed).ok_or(UNKNOWN)?;
        if command.contains('|') && NUMBERS.contains_key(command) {
            return Err(TOO_DEEP);
        }
        let spec = find(command.as_bytes()).ok_or(UNKNOWN)?;
        if word.is_empty() {
            return Err(MALFORMED);
        }
        if NUMBERS.keys().any(|known| is_subcommand(known, command)) {
            return Err(UNKNOWN);
        }
        let first = (spec.name, word.as_bytes().to_vec());
        if !self.first_words.contains(&first) {
            self.first_words.push(first);
        }
        self.say(sign, &name);
        Ok(())
    }

    fn apply(&mut self, rule: &[u8]) -> Result<(), &'static str> {
        let has_blanks = rule.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0);
        match (rule.to_ascii_lowercase().as_slice(), rule) {
            (b"allkeys" | b"~*", _) => {
                self.has_all_keys = true;
                self.keys.clear();
            }
            (b"resetkeys", _) => {
                self.has_all_keys = false;
                self.keys.clear();
            }
            (b"allchannels" | b"&*", _) => {
                self.has_all_channels = true;
                self.channels.clear();
            }
            (b"resetchannels", _) => {
                self.has_all_channels = false;
                self.channels.clear();
            }
            (b"allcommands" | b"+@all", _) => self.set_all(true),
            (b"nocommands" | b"-@all", _) => self.set_all(false),
            _ if has_blanks => return Err(MALFORMED),
            (_, [b'~' | b'%', ..]) if self.has_all_keys => return Err(BEHIND_ALL_KEYS),
            (_, [b'~', glob @ ..]) => self.add_keys(Access { writes: true, reads: true }, glob),
            (_, [b'%', rest @ ..]) => {
                // Redis takes one without a pattern for one of nothing.
                let end = rest.iter().position(|byte| *byte == b'~').unwrap_or(rest.len());
                let access = match rest[..end].to_ascii_uppercase().as_slice() {
                    b"R" => Access { writes: false, reads: true },
                    b"W" => Access { writes: true, reads: false },
                    b"RW" | b"WR" => Access { writes: true, reads: true },
                    _ => return Err(MALFORMED),
                };
                self.add_keys(access, rest.get(end + 1..).unwrap_or_default());
            }
            (_, [b'&', glob @ ..]) => {
                if self.has_all_channels {
                    return Err(BEHIND_ALL_CHANNELS);
                }
                if !self.channels.iter().any(|known| known == glob) {
                    self.channels.push(glob.to_vec());
                }
            }
            (_, [sign @ (b'+' | b'-'), name @ ..]) => {
                let name = std::str::from_utf8(name).map_err(|_| UNKNOWN)?;
                self.apply_command(*sign == b'+', name)?;
            }
            _ => return Err(MALFORMED),
        }
        Ok(())
    }

    fn add_keys(&mut self, access: Access, glob: &[u8]) {
        match self.keys.iter_mut().find(|known| known.glob == glob) {
            Some(known) => {
                known.access.reads |= access.reads;
                known.access.writes |= access.writes;
            }
            None => self.keys.push(Pattern { access, glob: glob.to_vec() }),
        }
    }

    fn may_reach(&self, key: &[u8], access: Access) -> bool {
        self.has_all_keys || self.keys.iter().any(|pattern| pattern.allows(access) && matches(&pattern.glob, key))
    }

    /// True if all keys may be reached.
    fn may_reach_all(&self, access: Access) -> bool {
        self.has_all_keys || self.keys.iter().any(|pattern| pattern.allows(access) && pattern.glob == b"*")
    }

    fn may_use_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.has_all_channels
            || self.channels.iter().any(|known| if is_pattern { known == channel } else { matches(known, channel) })
    }

    fn may_run(&self, spec: &Spec, args: &[&[u8]]) -> bool {
        let has_word = |(command, word): &(&str, Vec<u8>)| {
            *command == spec.name && args.get(1).is_some_and(|first| first.eq_ignore_ascii_case(word))
        };
        // Whoever is to log in cannot be kept from it.
        spec.is(Flag::NoLogin) || self.has(name_of(spec, args)) || self.first_words.iter().any(has_word)
    }

    fn check(&self, spec: &Spec, args: &[&[u8]]) -> Result<(), Denied> {
        if !self.may_run(spec, args) {
            return Err(Denied::Command);
        }
        let has_keys = !self.has_all_keys && spec.family != "pubsub";
        let places = if has_keys { key_places(spec, args) } else { Vec::new() };
        for (number, place) in places.into_iter().enumerate() {
            if !self.may_reach(args[place], access_of(spec, number, args)) {
                return Err(Denied::Key(place));
            }
        }
        let (channels, are_patterns) = channel_places(spec, args.len());
        match channels.into_iter().find(|place| !self.may_use_channel(args[*place], are_patterns)) {
            Some(place) => Err(Denied::Channel(place)),
            None => Ok(()),
        }
    }

    /// The rules of commands, as `ACL GETUSER` shows them.
    fn commands(&self) -> String {
        let base = if self.begins_with_all { "+@all" } else { "-@all" };
        std::iter::once(base).chain(self.said.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
    }

    /// Those of keys, and those of channels.
    fn reach(&self) -> [Vec<Vec<u8>>; 2] {
        let keys = match self.has_all_keys {
            true => vec![b"~*".to_vec()],
            false => self.keys.iter().map(Pattern::show).collect(),
        };
        let channels = match self.has_all_channels {
            true => vec![b"&*".to_vec()],
            false => self.channels.iter().map(|glob| [b"&", glob.as_slice()].concat()).collect(),
        };
        [keys, channels]
    }

    /// All of it, in words that give the same list again.
    fn words(&self) -> Vec<Vec<u8>> {
        let [mut words, channels] = self.reach();
        if !self.has_all_keys {
            // As it is shown it would be the rule that no pattern may come behind.
            words.iter_mut().filter(|word| *word == b"~*").for_each(|word| *word = b"%RW~*".to_vec());
        }
        if !self.has_all_channels {
            words.push(b"resetchannels".to_vec());
        }
        words.extend(channels);
        words.extend(self.commands().split(' ').map(|word| word.as_bytes().to_vec()));
        words
    }

    /// True if every command of a category may be run on every key.
    fn covers(&self, category: &str, access: Access) -> bool {
        self.may_reach_all(access)
            && all_names().filter(|name| categories_of(name).any(|of| of == category)).all(|name| self.has(name))
    }
}

fn is_set(bits: &Bits, number: usize) -> bool {
    bits[number / 64] & 1 << (number % 64) != 0
}

fn is_subcommand(name: &str, command: &str) -> bool {
    name.strip_prefix(command).is_some_and(|rest| rest.starts_with('|'))
}

/// Words with those in parentheses as one. Errors: the word that opens a parenthesis which is not closed.
pub(super) fn joined(words: &[&[u8]]) -> Result<Vec<Vec<u8>>, String> {
    let mut joined: Vec<Vec<u8>> = Vec::new();
    let mut open: Option<Vec<u8>> = None;
    let mut first = String::new();
    for word in words {
        let word = match open.take() {
            Some(mut before) => {
                before.push(b' ');
                before.extend_from_slice(word);
                before
            }
            None => {
                first = String::from_utf8_lossy(word).into_owned();
                word.to_vec()
            }
        };
        match word.first() == Some(&b'(') && word.last() != Some(&b')') {
            true => open = Some(word),
            false => joined.push(word),
        }
    }
    if open.is_some() { Err(first) } else { Ok(joined) }
}

/// One list as it is shown.
pub(super) struct Shown {
    pub(super) commands: String,
    pub(super) keys: Vec<u8>,
    pub(super) channels: Vec<u8>,
}

/// The rules of a user. Nothing is allowed by those that are new.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    own: List,
    more: Vec<List>,
}

impl Rules {
    /// Those that grants come to: all keys and channels, and commands by what they do to keys.
    pub(super) fn of_grants(reads: bool, writes: bool) -> Self {
        let mut rules = Rules::default();
        let words: &[&[u8]] = match (reads, writes) {
            (true, true) => &[b"~*", b"&*", b"+@all"],
            (true, false) => &[b"~*", b"&*", b"+@all", b"-@write"],
            (false, true) => &[b"~*", b"&*", b"+@all", b"-@read"],
            (false, false) => &[b"&*"],
        };
        words.iter().for_each(|word| rules.own.apply(word).expect("words that are known"));
        rules
    }

    /// Applies a rule of keys, channels or commands, or a list of them in parentheses. Errors: it is none.
    pub(super) fn apply(&mut self, rule: &[u8]) -> Result<(), &'static str> {
        if rule.eq_ignore_ascii_case(b"clearselectors") {
            self.more.clear();
            return Ok(());
        }
        if let [b'(', inner @ .., b')'] = rule {
            // It has to be found again among the words that are kept.
            if inner.iter().any(|byte| matches!(byte, b'(' | b')')) {
                return Err(MALFORMED);
            }
            let mut list = List::default();
            let words = inner.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
            words.into_iter().try_for_each(|word| list.apply(word))?;
            self.more.push(list);
            return Ok(());
        }
        self.own.apply(rule)
    }

    fn lists(&self) -> impl Iterator<Item = &List> {
        std::iter::once(&self.own).chain(&self.more)
    }

    /// Errors: why no list allows a command, what comes nearest to it.
    pub(super) fn check(&self, spec: &Spec, args: &[&[u8]]) -> Result<(), Denied> {
        let mut nearest = Denied::Command;
        for list in self.lists() {
            match list.check(spec, args) {
                Ok(()) => return Ok(()),
                Err(denied) => nearest = nearest.max(denied),
            }
        }
        Err(nearest)
    }

    /// True if a command may read all keys: those that it finds, and nobody names.
    pub(super) fn may_read_all(&self, spec: &Spec, args: &[&[u8]]) -> bool {
        let access = Access { writes: false, reads: true };
        self.lists().any(|list| list.may_reach_all(access) && list.may_run(spec, args))
    }

    /// True if a key may be read by some command.
    pub(super) fn may_read(&self, key: &[u8]) -> bool {
        self.lists().any(|list| list.may_reach(key, Access { writes: false, reads: true }))
    }

    /// True if a channel, or exactly this pattern, may be listened to.
    pub(super) fn may_listen(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.lists().any(|list| list.may_use_channel(channel, is_pattern))
    }

    /// True if they allow everything that there is.
    pub(super) fn are_all(&self) -> bool {
        let own = &self.own;
        own.has_all_keys && own.has_all_channels && own.begins_with_all && own.said.is_empty()
    }

    /// What may be granted on the spaces without allowing more than they do: to read, and to write.
    pub(super) fn grants(&self) -> (bool, bool) {
        let reads = self.lists().any(|list| list.covers("read", Access { writes: false, reads: true }));
        (reads, self.lists().any(|list| list.covers("write", Access { writes: true, reads: true })))
    }

    /// A text that gives the same rules again.
    pub(super) fn text(&self) -> Vec<u8> {
        let mut words = self.own.words();
        words.extend(self.more.iter().map(|list| [b"(", list.words().join(&b' ').as_slice(), b")"].concat()));
        words.join(&b' ')
    }

    /// Rules of a text that was kept. What is not understood any more, or longer than `ACL SETUSER` takes, allows nothing.
    pub(super) fn of_text(text: &[u8]) -> Self {
        if text.len() > RULE_BYTES_MAX {
            return Rules::default();
        }
        let words: Vec<&[u8]> = text.split(|byte| *byte == b' ').collect();
        let mut rules = Rules::default();
        let read = joined(&words)
            .map_err(|_| MALFORMED)
            .and_then(|words| words.iter().filter(|word| !word.is_empty()).try_for_each(|word| rules.apply(word)));
        if read.is_ok() { rules } else { Rules::default() }
    }

    /// The lists as they are shown, the user's own first.
    pub(super) fn shown(&self) -> Vec<Shown> {
        let show = |list: &List| {
            let [keys, channels] = list.reach();
            Shown { commands: list.commands(), keys: keys.join(&b' '), channels: channels.join(&b' ') }
        };
        self.lists().map(show).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    fn rules(text: &str) -> Rules {
        let mut rules = Rules::default();
        text.split(' ').for_each(|rule| rules.apply(rule.as_bytes()).unwrap());
        rules
    }

    fn ask(rules: &Rules, command: &str) -> Result<(), Denied> {
        let args: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        rules.check(find(args[0]).unwrap(), &args)
    }

    #[test]
    fn the_last_rule_about_a_command_counts() {
        let made = rules("+@all -@write +set -mget +config|get ~* &*");
        for (command, wanted) in [("get a", true), ("set a b", true), ("del a", false), ("mget a", false)] {
            assert_eq!(ask(&made, command).is_ok(), wanted, "{command}");
        }
        let made = rules("-@all +config -config|set +select|0 ~*");
        for (command, wanted) in [
            ("config get x", true),
            ("config set x y", false),
            ("select 0", true),
            ("select 1", false),
            ("auth x", true),
            ("ping", false),
        ] {
            assert_eq!(ask(&made, command).is_ok(), wanted, "{command}");
        }
    }

    #[test]
    fn keys_are_reached_by_what_is_done_to_them() {
        let made = rules("+@all ~own:* %R~read:* %W~put:*");
        for (command, wanted) in [
            ("get own:1", true),
            ("get read:1", true),
            ("set read:1 x", false),
            ("set put:1 x", true),
            ("set put:1 x get", false),
            ("strlen put:1", true),
            ("get put:1", false),
            ("get other", false),
            ("copy read:1 put:1", true),
            ("copy put:1 read:1", false),
            ("sunionstore put:1 read:1 other", false),
            ("sort read:1 store put:1", true),
            ("sort read:1 store read:2", false),
            ("sort read:1 store other by store put:1", false),
            ("sort read:1 by store put:1", true),
            ("georadius read:1 1 1 1 km store put:1 storedist other", false),
            ("xreadgroup group streams read:1 streams other >", false),
            ("eval x 1 read:1", false),
            ("eval_ro x 1 read:1", true),
            ("xread count 1 streams read:1 other 0 0", false),
            ("bitfield read:1 get u8 0", true),
            ("bitfield read:1 set u8 0 1", false),
        ] {
            assert_eq!(ask(&made, command).is_ok(), wanted, "{command}");
        }
        assert_eq!(ask(&made, "mget own:1 other"), Err(Denied::Key(2)));
    }

    #[test]
    fn a_pattern_of_channels_is_listened_to_as_it_is() {
        let made = rules("+@all ~* &news:*");
        for (command, wanted) in [
            ("publish news:1 x", true),
            ("publish other x", false),
            ("subscribe news:1 news:2", true),
            ("psubscribe news:*", true),
            ("psubscribe news:1*", false),
            ("ssubscribe other", false),
            ("unsubscribe other", true),
        ] {
            assert_eq!(ask(&made, command).is_ok(), wanted, "{command}");
        }
    }

    #[test]
    fn one_list_has_to_allow_all_of_a_command() {
        let mut made = rules("-@all +get ~a:*");
        made.apply(b"(+set ~b:* )").unwrap();
        for (command, wanted) in [("get a:1", true), ("set b:1 x", true), ("get b:1", false), ("set a:1 x", false)] {
            assert_eq!(ask(&made, command).is_ok(), wanted, "{command}");
        }
        assert_eq!(ask(&made, "get b:1"), Err(Denied::Key(1)), "nearer than a command that is not allowed");
    }

    #[test]
    fn a_text_gives_the_same_rules_again() {
        let mut made = rules("+@all -@dangerous +config|get +select|1 -get ~a:* %R~b:* &c");
        made.apply(b"(~x +get)").unwrap();
        assert_eq!(Rules::of_text(&made.text()), made);
        assert_eq!(Rules::of_text(b"~* +@all +what"), Rules::default(), "a rule that is unknown allows nothing");
        assert_eq!(made.shown()[0].commands, "+@all -@dangerous +config|get +select|1 -get");
        assert_eq!(rules("+config|get +config|set +config").shown()[0].commands, "-@all +config");
        let all_by_pattern = rules("+get %R~* %W~* ~a:*");
        assert_eq!(Rules::of_text(&all_by_pattern.text()), all_by_pattern);
        assert_eq!(all_by_pattern.shown()[0].keys, b"~* ~a:*");
        assert_eq!(Rules::of_text(&[b"+@all ~*".as_slice(), &vec![b' '; RULE_BYTES_MAX]].concat()), Rules::default());
    }

    #[test]
    fn the_text_of_any_rules_gives_them_again() {
        let words = [
            "~a:*",
            "%R~b:*",
            "%W~b:*",
            "%RW~*",
            "%R~*",
            "%W~*",
            "~*",
            "allkeys",
            "resetkeys",
            "&a",
            "&*",
            "resetchannels",
            "+@all",
            "-@all",
            "+@read",
            "-@read",
            "+@write",
            "-@dangerous",
            "+get",
            "-get",
            "+client",
            "-client",
            "+client|id",
            "-client|id",
            "+select|0",
            "+select|1",
            "-select",
            "+select",
            "(+get ~a)",
            "(%RW~* ~x +@all -@admin)",
            "()",
        ];
        let mut state = 1u64;
        for _ in 0..5000 {
            let mut made = Rules::default();
            for _ in 0..8 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // A pattern behind all keys is refused, and changes nothing.
                let _ = made.apply(words[(state >> 33) as usize % words.len()].as_bytes());
            }
            let text = made.text();
            let (again, shown) = (Rules::of_text(&text), String::from_utf8_lossy(&text));
            assert_eq!(again.text(), text, "{shown}");
            for command in
                ["get a:1", "set b:1 x", "client id", "client list", "select 0", "select 1", "keys x", "publish a x"]
            {
                assert_eq!(ask(&again, command), ask(&made, command), "{command} by {shown}");
            }
        }
    }

    #[test]
    fn many_words_take_no_long_time() {
        let words = vec![b"a".as_slice(); 1_000_000];
        assert_eq!(joined(&[&[b"(".as_slice()], words.as_slice()].concat()), Err("(".to_string()));
        assert!(all_names().count() <= BIT_WORDS * 64);
    }

    #[test]
    fn grants_are_no_more_than_rules() {
        assert_eq!(rules("+@all ~* &*").grants(), (true, true));
        assert_eq!(rules("-@all +@read ~*").grants(), (true, false));
        assert_eq!(rules("+@all -get ~*").grants(), (false, true));
        assert_eq!(rules("+@all ~a:*").grants(), (false, false));
        assert_eq!(rules("+@all %R~*").grants(), (true, false));
        assert!(rules("+@all ~* &*").are_all() && !rules("+@all ~*").are_all() && !rules("+@all -get ~* &*").are_all());
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for rule in [
            "+nothing",
            "+@nothing",
            "~",
            "%~x",
            "%X~x",
            "%RR~x",
            "%RWR~x",
            "+config|nothing",
            "+config|get|x",
            "+get|",
            "x",
            "-select|0",
            "-config|get|x",
            "& ",
        ] {
            let refused = Rules::default().apply(rule.as_bytes());
            assert_eq!(refused.is_err(), rule != "~", "{rule}");
        }
        for (rule, wanted) in
            [("+config|get|x", TOO_DEEP), ("+select|0|1", UNKNOWN), ("-config|get|x", UNKNOWN), ("+config|", MALFORMED)]
        {
            assert_eq!(Rules::default().apply(rule.as_bytes()), Err(wanted), "{rule}");
        }
        assert_eq!(rules("~*").clone().apply(b"~a"), Err(BEHIND_ALL_KEYS));
        assert_eq!(rules("~*").clone().apply(b"%X~a"), Err(BEHIND_ALL_KEYS));
        assert_eq!(rules("&*").clone().apply(b"&a"), Err(BEHIND_ALL_CHANNELS));
    }

    #[test]
    fn every_key_of_a_command_is_looked_at() {
        // Those that look at keys which nobody names, or at none.
        let without = [
            "keys",
            "scan",
            "randomkey",
            "dbsize",
            "flushall",
            "flushdb",
            "swapdb",
            "wait",
            "migrate",
            "lolwut",
            "function",
        ];
        for spec in super::super::table::COMMANDS {
            let names = std::iter::once(spec.name).chain(super::super::commands::subcommands_of(spec.name));
            let is_of_keys = names.flat_map(categories_of).any(|of| matches!(of, "read" | "write" | "keyspace"));
            let count = usize::try_from(spec.arity.unsigned_abs()).unwrap().max(4);
            let mut args: Vec<&[u8]> = vec![b"2"; count.max(6)];
            args[0] = spec.name.as_bytes();
            if matches!(spec.name, "xread" | "xreadgroup") {
                args[2] = b"streams";
            }
            if is_of_keys && !without.contains(&spec.name) {
                assert!(!key_places(spec, &args).is_empty(), "{}", spec.name);
            }
        }
    }
}
