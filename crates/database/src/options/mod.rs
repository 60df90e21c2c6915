//! Options: one table says of each its name, kind, default, bounds, texts, and whether it may change while the server runs.
//!
//! Whatever lists options is made from [`OPTIONS`]: flags, variables of the environment and keys of the TOML file (`server`), what
//! `box.cfg` takes and refuses (`lua`), [`Config`] and `docs/options.md`. A new option is an entry in `table.rs`, and a field of
//! [`Config`] if the database obeys it; options of the process have no field and are read by name from [`Values`].

mod table;
mod values;

pub use table::{OPTIONS, PAGE_SIZE_MAX};
pub use values::{Value, Values, parse_size, split_addresses};

use crate::Config;
use crate::txn::TxnIsolation;
use std::path::PathBuf;
use wal::WalMode;

/// What a value is, on the command line, in the file and in `box.cfg`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Free text.
    Text,
    /// Free text; a number stands for itself.
    Word,
    /// Addresses: a text with commas between them, or a list.
    Addresses,
    /// A file or directory.
    Path,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Bytes, with a unit or without one.
    Size,
    /// A number that is not negative. `box.cfg` drops a fraction, as Tarantool does.
    Number,
    /// A whole number.
    Whole,
    /// A number above zero.
    Fraction,
    /// Seconds; whoever obeys the option says what zero and less mean.
    Seconds,
    /// On or off.
    Switch,
    /// Nothing looks at it: the types that `box.cfg` takes, in Lua's words.
    Inert(&'static str),
}

impl Kind {
    /// The types that `box.cfg` takes, in Lua's words.
    pub fn lua_types(self) -> &'static str {
        match self {
            Kind::Text | Kind::Path | Kind::OneOf(_) => "string",
            Kind::Word => "number, string",
            Kind::Addresses => "string, number, table",
            Kind::Size | Kind::Number | Kind::Whole | Kind::Fraction | Kind::Seconds => "number",
            Kind::Switch => "boolean",
            Kind::Inert(types) => types,
        }
    }
}

/// A default of `box.cfg` that is not that of [`Config`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CfgDefault {
    /// That of [`Config`]; none if the option has no field there.
    OfConfig,
    /// None.
    Absent,
    /// A number.
    Number(f64),
    /// A text.
    Text(&'static str),
    /// On or off.
    Switch(bool),
}

/// When a change by `box.cfg` on a running server acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Never: it is refused.
    Refused,
    /// At once.
    AtOnce,
    /// At once; less is refused.
    OnlyMore,
    /// It is taken and acts at the next start.
    NextStart,
}

/// The side of `lycosa serve`: flag, environment, file.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// For `--help` and the page: one clause without a full stop.
    pub help: &'static str,
    /// What only the page says, in Markdown; may be empty.
    pub more: &'static str,
    /// Instead of the default of [`Config`], in words or as a value.
    pub default: Option<&'static str>,
}

/// The side of `box.cfg`.
#[derive(Clone, Copy, Debug)]
pub struct Cfg {
    /// What it is if a script does not say.
    pub default: CfgDefault,
    /// Instead of the default, in the page, in Markdown.
    pub default_text: Option<&'static str>,
    /// What may change.
    pub change: Change,
    /// Smallest and largest value, and what is said of others.
    pub bounds: Option<(f64, f64, &'static str)>,
    /// What is said of a value of another type, if it is not what is said of all.
    pub type_error: Option<&'static str>,
    /// Bytes for each unit of the number.
    pub unit: u64,
}

/// The field of [`Config`] that an option sets.
pub enum Field<'a> {
    /// Bytes or another number.
    Number(&'a mut u64),
    /// How many.
    Count(&'a mut usize),
    /// A ratio.
    Fraction(&'a mut f64),
    /// Seconds, kept as nanoseconds.
    Seconds(&'a mut u64),
    /// On or off.
    Switch(&'a mut bool),
    /// A directory.
    Path(&'a mut PathBuf),
    /// A text, if it is given.
    Text(&'a mut Option<String>),
    /// When a write is acknowledged.
    WalMode(&'a mut WalMode),
    /// A level of isolation.
    Isolation(&'a mut TxnIsolation),
}

/// Finds the field of an option.
pub type FieldOf = for<'a> fn(&'a mut Config) -> Field<'a>;
/// Looks at the value of an option. Errors: what is wrong, in words that follow `Incorrect value for option 'name': `.
pub type Check = fn(&Config) -> Result<(), String>;

/// An option.
#[derive(Clone, Copy)]
pub struct Spec {
    /// Its name in `box.cfg` and the file; `-` instead of `_` makes the flag of it, capitals the variable.
    pub name: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// None: `lycosa serve` does not take it.
    pub flag: Option<Flag>,
    /// None: `box.cfg` does not take it.
    pub cfg: Option<Cfg>,
    /// None: the process obeys it and not the database.
    pub field: Option<FieldOf>,
    /// None: every value is good.
    pub check: Option<Check>,
}

impl Spec {
    /// An option that nobody takes yet.
    const fn new(name: &'static str, kind: Kind) -> Self {
        Spec { name, kind, flag: None, cfg: None, field: None, check: None }
    }

    /// The option is a flag.
    const fn flag(mut self, help: &'static str) -> Self {
        self.flag = Some(Flag { help, more: "", default: None });
        self
    }

    /// What only the page says of the flag.
    const fn more(mut self, more: &'static str) -> Self {
        if let Some(flag) = &mut self.flag {
            flag.more = more;
        }
        self
    }

    /// The default of the flag, where it is not that of [`Config`].
    const fn default(mut self, default: &'static str) -> Self {
        if let Some(flag) = &mut self.flag {
            flag.default = Some(default);
        }
        self
    }

    /// `box.cfg` takes the option.
    const fn cfg(mut self, change: Change) -> Self {
        let default = CfgDefault::OfConfig;
        self.cfg = Some(Cfg { default, default_text: None, change, bounds: None, type_error: None, unit: 1 });
        self
    }

    /// The default of `box.cfg`, where it is not that of [`Config`].
    const fn cfg_default(mut self, default: CfgDefault) -> Self {
        if let Some(cfg) = &mut self.cfg {
            cfg.default = default;
        }
        self
    }

    /// What the page says instead of the default of `box.cfg`.
    const fn cfg_text(mut self, text: &'static str) -> Self {
        if let Some(cfg) = &mut self.cfg {
            cfg.default_text = Some(text);
        }
        self
    }

    /// Bounds that `box.cfg` has, and what it says beyond them.
    const fn cfg_bounds(mut self, min: f64, max: f64, text: &'static str) -> Self {
        if let Some(cfg) = &mut self.cfg {
            cfg.bounds = Some((min, max, text));
        }
        self
    }

    /// What `box.cfg` says of a value of another type.
    const fn cfg_type_error(mut self, text: &'static str) -> Self {
        if let Some(cfg) = &mut self.cfg {
            cfg.type_error = Some(text);
        }
        self
    }

    /// Bytes for each unit of the number in `box.cfg`.
    const fn cfg_unit(mut self, unit: u64) -> Self {
        if let Some(cfg) = &mut self.cfg {
            cfg.unit = unit;
        }
        self
    }

    /// The field of [`Config`].
    const fn field(mut self, field: FieldOf) -> Self {
        self.field = Some(field);
        self
    }

    /// What is wrong with a value.
    const fn check(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    /// The value of a configuration; none if the option has no field there or the field is empty.
    pub fn value_in(&self, config: &Config) -> Option<Value> {
        let mut config = config.clone();
        Some(match (self.field?)(&mut config) {
            Field::Number(number) => Value::Whole(*number),
            Field::Count(count) => Value::Whole(*count as u64),
            Field::Fraction(fraction) => Value::Fraction(*fraction),
            Field::Seconds(ns) => Value::Fraction(*ns as f64 / 1e9),
            Field::Switch(is_on) => Value::Switch(*is_on),
            Field::Path(path) => Value::Path(path.clone()),
            Field::Text(text) => Value::Text(text.clone()?),
            Field::WalMode(mode) => Value::Text(mode_name(*mode).to_string()),
            Field::Isolation(level) => Value::Text(level.name().to_string()),
        })
    }

    /// The default of the flag, as `--help` and the page show it. An option that is on or off has none.
    pub fn flag_default(&self) -> Option<String> {
        if let Some(text) = self.flag?.default {
            return Some(text.to_string());
        }
        Some(match self.value_in(&Config::default())? {
            Value::Whole(bytes) if self.kind == Kind::Size => size_text(bytes),
            Value::Switch(_) => return None,
            value => value.to_string(),
        })
    }

    /// The default of `box.cfg`; none if there is none.
    pub fn cfg_default_value(&self) -> Option<Value> {
        match self.cfg?.default {
            CfgDefault::Absent => None,
            CfgDefault::OfConfig => self.value_in(&Config::default()),
            CfgDefault::Number(number) => Some(Value::Fraction(number)),
            CfgDefault::Text(text) => Some(Value::Text(text.to_string())),
            CfgDefault::Switch(is_on) => Some(Value::Switch(is_on)),
        }
    }
}

/// The option of a name.
pub fn find(name: &str) -> Option<&'static Spec> {
    OPTIONS.iter().find(|spec| spec.name == name)
}

/// Copies what may change while the server runs.
pub fn change(current: &mut Config, wanted: &Config) {
    let mut wanted = wanted.clone();
    for spec in OPTIONS {
        let (Some(cfg), Some(field)) = (spec.cfg, spec.field) else { continue };
        if matches!(cfg.change, Change::AtOnce | Change::OnlyMore) {
            match (field(current), field(&mut wanted)) {
                (Field::Number(to), Field::Number(from)) | (Field::Seconds(to), Field::Seconds(from)) => *to = *from,
                (Field::Count(to), Field::Count(from)) => *to = *from,
                (Field::Fraction(to), Field::Fraction(from)) => *to = *from,
                (Field::Switch(to), Field::Switch(from)) => *to = *from,
                (Field::Path(to), Field::Path(from)) => to.clone_from(from),
                (Field::Text(to), Field::Text(from)) => to.clone_from(from),
                (Field::WalMode(to), Field::WalMode(from)) => *to = *from,
                (Field::Isolation(to), Field::Isolation(from)) => *to = *from,
                _ => {}
            }
        }
    }
}

fn mode_name(mode: WalMode) -> &'static str {
    match mode {
        WalMode::Fsync => "fsync",
        WalMode::Write => "write",
        WalMode::None => "none",
    }
}

/// `1GiB` for 1073741824; a number that is no multiple stays one.
fn size_text(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_there_once_and_everything_is_taken_somewhere() {
        for (at, spec) in OPTIONS.iter().enumerate() {
            assert!(OPTIONS[..at].iter().all(|other| other.name != spec.name), "{}", spec.name);
            assert!(spec.flag.is_some() || spec.cfg.is_some(), "{}", spec.name);
            assert!(spec.check.is_none() || spec.field.is_some(), "{}", spec.name);
        }
    }

    #[test]
    fn the_defaults_are_good_values() {
        let config = Config::default();
        for spec in OPTIONS {
            assert_eq!(spec.check.map_or(Ok(()), |check| check(&config)), Ok(()), "{}", spec.name);
        }
    }
}
