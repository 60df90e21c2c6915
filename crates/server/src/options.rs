//! Options of the command line, the environment and a TOML file, all made from [`database::options::OPTIONS`].
//!
//! A flag wins over the environment, the environment over the file, the file over the default.

use crate::logging;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use database::Config;
use database::options::{Kind, OPTIONS, Spec, Value, Values, find, split_addresses};
use protocol::Place;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tuple::msgpack;

/// Values of options.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Options(Values);

impl Deref for Options {
    type Target = Values;

    fn deref(&self) -> &Values {
        &self.0
    }
}

/// What `--help` says of an option.
fn help_of(spec: &Spec, help: &str) -> String {
    match spec.flag_default() {
        Some(default) if default != "none" => format!("{help} [default: {default}]"),
        _ => help.to_string(),
    }
}

/// What the variables of the environment begin with.
pub(crate) const VARIABLE_PREFIX: &str = "LYCOSA_";

/// The flag and the variable of each option of the table, made once: clap keeps references.
fn names() -> &'static [(String, String)] {
    static NAMES: OnceLock<Vec<(String, String)>> = OnceLock::new();
    let of = |spec: &Spec| (spec.name.replace('_', "-"), format!("{VARIABLE_PREFIX}{}", spec.name.to_uppercase()));
    NAMES.get_or_init(|| OPTIONS.iter().map(of).collect())
}

fn argument(spec: &'static Spec, (flag, variable): &'static (String, String)) -> Option<Arg> {
    let help = help_of(spec, spec.flag?.help);
    let value_name = &variable[VARIABLE_PREFIX.len()..];
    let arg = Arg::new(spec.name).long(flag.as_str()).env(variable.as_str()).value_name(value_name).help(help);
    Some(match spec.kind {
        Kind::Switch => arg.action(ArgAction::SetTrue),
        Kind::OneOf(words) => arg.value_parser(PossibleValuesParser::new(words)),
        Kind::Path => arg.value_parser(value_parser!(PathBuf)),
        Kind::Number | Kind::Whole => arg.value_parser(value_parser!(u64)),
        Kind::Fraction | Kind::Seconds => arg.value_parser(value_parser!(f64)),
        Kind::Addresses => arg.action(ArgAction::Append),
        Kind::Text | Kind::Word | Kind::Size | Kind::Inert(_) => arg,
    })
}

impl Args for Options {
    fn augment_args(command: Command) -> Command {
        command.args(OPTIONS.iter().zip(names()).filter_map(|(spec, names)| argument(spec, names)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The value of a flag or a variable.
fn value_of(spec: &Spec, matches: &ArgMatches) -> Option<Value> {
    let name = spec.name;
    match spec.kind {
        // Who says nothing has not said that it is off.
        Kind::Switch => matches.get_flag(name).then_some(Value::Switch(true)),
        Kind::Path => matches.get_one(name).cloned().map(Value::Path),
        Kind::Addresses => {
            let texts = matches.get_many::<String>(name)?;
            Some(Value::List(texts.flat_map(|text| split_addresses(text)).collect()))
        }
        Kind::Number | Kind::Whole => matches.get_one(name).copied().map(Value::Whole),
        Kind::Fraction | Kind::Seconds => matches.get_one(name).copied().map(Value::Fraction),
        Kind::Text | Kind::Word | Kind::OneOf(_) | Kind::Size | Kind::Inert(_) => {
            matches.get_one(name).cloned().map(Value::Text)
        }
    }
}

impl FromArgMatches for Options {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut options = Options::default();
        options.update_from_arg_matches(matches)?;
        Ok(options)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for spec in OPTIONS.iter().filter(|spec| spec.flag.is_some()) {
            if let Some(value) = value_of(spec, matches) {
                self.0.set(spec, value);
            }
        }
        Ok(())
    }
}

/// A text; a number in the file is what it says.
#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrNumber {
    Text(String),
    Whole(i64),
    Fraction(f64),
}

impl fmt::Display for TextOrNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextOrNumber::Text(text) => f.write_str(text),
            TextOrNumber::Whole(number) => write!(f, "{number}"),
            TextOrNumber::Fraction(number) => write!(f, "{number}"),
        }
    }
}

/// Addresses in the file: one, or a list whose elements may be tables.
#[derive(Deserialize)]
#[serde(untagged)]
enum Addresses {
    One(TextOrNumber),
    Table(AddressTable),
    Many(Vec<AddressEntry>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AddressEntry {
    Plain(TextOrNumber),
    Table(AddressTable),
}

/// An address and its parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddressTable {
    uri: TextOrNumber,
    #[serde(default)]
    params: BTreeMap<String, TextOrNumber>,
}

impl Addresses {
    fn into_list(self) -> Vec<String> {
        match self {
            Addresses::One(text) => split_addresses(&text.to_string()),
            Addresses::Table(table) => vec![table.into_text()],
            Addresses::Many(entries) => entries.into_iter().map(AddressEntry::into_text).collect(),
        }
    }
}

impl AddressEntry {
    fn into_text(self) -> String {
        match self {
            AddressEntry::Plain(text) => text.to_string(),
            AddressEntry::Table(table) => table.into_text(),
        }
    }
}

impl AddressTable {
    /// With the parameters behind `?`.
    fn into_text(self) -> String {
        let mut text = self.uri.to_string();
        for (name, value) in self.params {
            text.push(if text.contains('?') { '&' } else { '?' });
            text.push_str(&format!("{}={}", escaped(&name), escaped(&value.to_string())));
        }
        text
    }
}

/// What separates parameters becomes `%xx`.
fn escaped(text: &str) -> String {
    let escape = |letter: char| match letter {
        '%' | '&' | '=' | '?' | '#' | ',' => format!("%{:02X}", u32::from(letter)),
        letter => letter.to_string(),
    };
    text.chars().map(escape).collect()
}

/// Reads the name of an option. Errors: there is none of that name.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = &'static Spec;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'static Spec, D::Error> {
        static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
        let names = || OPTIONS.iter().filter(|spec| spec.flag.is_some()).map(|spec| spec.name).collect();
        let name = String::deserialize(deserializer)?;
        let spec = find(&name).filter(|spec| spec.flag.is_some());
        spec.ok_or_else(|| D::Error::unknown_field(&name, NAMES.get_or_init(names)))
    }
}

/// Reads a TOML file.
struct File;

impl<'de> Visitor<'de> for File {
    type Value = Options;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("options by their names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Options, A::Error> {
        let mut options = Options::default();
        while let Some(spec) = map.next_key_seed(Name)? {
            let value = match spec.kind {
                Kind::Switch => Value::Switch(map.next_value()?),
                Kind::Path => Value::Path(map.next_value()?),
                Kind::Addresses => Value::List(map.next_value::<Addresses>()?.into_list()),
                Kind::Number | Kind::Whole => Value::Whole(map.next_value()?),
                Kind::Fraction | Kind::Seconds => Value::Fraction(map.next_value()?),
                Kind::Text | Kind::OneOf(_) => Value::Text(map.next_value()?),
                Kind::Word | Kind::Size | Kind::Inert(_) => Value::Text(map.next_value::<TextOrNumber>()?.to_string()),
            };
            options.0.set(spec, value);
        }
        Ok(options)
    }
}

impl<'de> Deserialize<'de> for Options {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(File)
    }
}

impl Options {
    /// Adds what only the file says. Errors: the file cannot be read or has an option that does not exist.
    pub(crate) fn with_file(mut self, path: &Path) -> Result<Self, String> {
        let read = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
        let text = read_text(path).map_err(|error| read(&error))?;
        let file: Options = toml::from_str(&text).map_err(|error| read(&error))?;
        self.0.fill_from(file.0);
        Ok(self)
    }

    /// Everything that can be told of the options without starting. Errors: the first one that is wrong.
    pub(crate) fn check(&self) -> Result<Config, String> {
        let config = self.config()?;
        self.number("lua_memory")?;
        logging::level(self.text_or_default("log_level"))?;
        logging::is_json(self.text_or_default("log_format"))?;
        for address in self.list("listen") {
            Place::of(address).map_err(|error| format!("cannot listen at {address}: {error}"))?;
        }
        Ok(config)
    }

    /// Directory and sizes in a line.
    pub(crate) fn summary(&self, config: &Config) -> String {
        let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
        let dir = std::path::absolute(&config.wal_dir).unwrap_or_else(|_| config.wal_dir.clone());
        format!(
            "directory {}, wal_mode {}, memory for rows {}, write buffer of spaces on disk {}, their read cache {}, Lua {}",
            dir.display(),
            find("wal_mode").and_then(|spec| spec.value_in(config)).map_or(String::new(), |mode| mode.to_string()),
            mib(config.memtx_memory),
            mib(config.vinyl_memory),
            mib(config.vinyl_cache),
            mib(self.number("lua_memory").unwrap_or(0.0) as u64),
        )
    }

    /// With the defaults of `lycosa serve`.
    pub(crate) fn for_serve(&self) -> Self {
        Options(self.0.for_serve())
    }

    /// What `box.cfg` shows of them: see [`Values::shown`]. The level of the log is a number there.
    pub(crate) fn shown(&self) -> Vec<u8> {
        let mut values = self.0.clone();
        if let (Some(spec), Some(level)) = (find("log_level"), self.text("log_level")) {
            values.set(spec, Value::Whole(logging::number(level)));
        }
        values.shown()
    }

    /// The options with what `box.cfg` was given over them. Errors: name and reason.
    pub(crate) fn with_changes(&self, changes: &[u8]) -> Result<Self, (String, String)> {
        let options = Options(self.0.with_changes(changes)?);
        match options.text("log_level").map(logging::level) {
            Some(Err(_)) => {
                Err(("log_level".to_string(), "expected crit,warn,info,debug,syserror,verbose,fatal,error".to_string()))
            }
            _ => Ok(options),
        }
    }

    /// The options as if one of them had not been given.
    pub(crate) fn without(&self, name: &str) -> Self {
        let mut changes = Vec::new();
        msgpack::encode_map(&mut changes, 1);
        msgpack::encode_str(&mut changes, name.as_bytes());
        msgpack::encode_nil(&mut changes);
        Options(self.0.with_changes(&changes).expect("no option refuses nil"))
    }
}

/// A text file, through the runtime. Errors: it cannot be read, or is not UTF-8.
pub(crate) fn read_text(path: &Path) -> std::io::Result<String> {
    String::from_utf8(runtime::read_file(path)?).map_err(|_| std::io::Error::other("not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::Randomness;

    #[test]
    fn any_file_is_taken_or_refused_in_words() {
        let random = runtime::SeededRandomness::new(3);
        let file = "listen = '127.0.0.1:3301'\nmemtx_memory = '512MiB'\nwal_max_size = '1.5 GB'\ncheckpoint_count = 2\n\
                    force_recovery = true\nlua_slice_max = 0.5\n";
        assert!(toml::from_str::<Options>(file).is_ok());
        for _ in 0..20_000 {
            let mut bytes = file.as_bytes().to_vec();
            for _ in 0..1 + random.next_u64() % 3 {
                let at = random.next_u64() as usize % bytes.len();
                bytes[at] = random.next_u64() as u8;
            }
            match toml::from_str::<Options>(&String::from_utf8_lossy(&bytes)) {
                Ok(options) => assert!(options.config().err().is_none_or(|text| !text.is_empty())),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }

    #[test]
    fn a_name_that_is_no_option_is_refused_with_those_that_are() {
        let error = toml::from_str::<Options>("listen = 3301\nmemtx_memroy = 5\n").map_err(|error| error.to_string());
        let text = error.err().unwrap_or_default();
        assert!(
            text.contains("line 2") && text.contains("unknown field `memtx_memroy`, expected one of `listen`"),
            "{text}"
        );
        // Only for box.cfg.
        assert!(toml::from_str::<Options>("wal_dir = 'x'\n").is_err());
    }

    #[test]
    fn a_flag_wins_over_the_file_and_on_over_off() {
        let from = |text: &str| toml::from_str::<Options>(text).map(|options| options.0).unwrap_or_default();
        let mut flags = from("memtx_memory = '2MiB'\nread_only = true\n");
        flags.fill_from(from("memtx_memory = '3MiB'\nread_only = false\nforce_recovery = true\nwal_mode = 'none'\n"));
        let config = flags.config().unwrap_or_default();
        assert_eq!((config.memtx_memory, config.read_only, config.force_recovery), (2 << 20, true, true));
        assert_eq!(config.wal_mode, wal::WalMode::None);
    }
}
