//! What was given for options, wherever it came from.

use super::{Cfg, Field, Kind, OPTIONS, Spec, find};
use crate::Config;
use crate::txn::TxnIsolation;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use tuple::msgpack::{self, Reader};
use wal::WalMode;

/// Whole numbers up to here are what they say as a double.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
/// Addresses that a server listens at.
const ADDRESSES_MAX: usize = 1000;
/// The data directory, if none is named.
const WORK_DIR_DEFAULT: &str = "data";

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text, or a size as it was written.
    Text(String),
    /// Addresses, one at least.
    List(Vec<String>),
    /// A file or directory.
    Path(PathBuf),
    /// A whole number.
    Whole(u64),
    /// A number.
    Fraction(f64),
    /// On or off.
    Switch(bool),
}

impl Value {
    /// Appends the value as msgpack.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Value::Text(text) => msgpack::encode_str(out, text.as_bytes()),
            Value::List(list) => {
                if list.len() > 1 {
                    msgpack::encode_array(out, list.len() as u32);
                }
                list.iter().for_each(|text| msgpack::encode_str(out, text.as_bytes()));
            }
            Value::Path(path) => msgpack::encode_str(out, path.display().to_string().as_bytes()),
            Value::Whole(number) => msgpack::encode_uint(out, *number),
            Value::Fraction(number) => msgpack::encode_f64(out, *number),
            Value::Switch(is_on) => msgpack::encode_bool(out, *is_on),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.write_str(text),
            Value::List(list) => f.write_str(&list.join(", ")),
            Value::Path(path) => write!(f, "{}", path.display()),
            Value::Whole(number) => write!(f, "{number}"),
            Value::Fraction(number) => write!(f, "{number}"),
            Value::Switch(is_on) => write!(f, "{is_on}"),
        }
    }
}

/// Values by the names of the table; what was not given is absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    given: BTreeMap<&'static str, Value>,
}

impl Values {
    /// The value of an option, if it was given.
    pub fn get(&self, name: &str) -> Option<&Value> {
        debug_assert!(find(name).is_some(), "there is no option {name}");
        self.given.get(name)
    }

    /// Gives an option a value.
    pub fn set(&mut self, spec: &'static Spec, value: Value) {
        self.given.insert(spec.name, value);
    }

    /// Takes over what was not given here.
    pub fn fill_from(&mut self, other: Values) {
        for (name, value) in other.given {
            // An option that is on stays on.
            let is_off = self.given.get(name) == Some(&Value::Switch(false));
            if is_off || !self.given.contains_key(name) {
                self.given.insert(name, value);
            }
        }
    }

    /// With the defaults of `lycosa serve`.
    pub fn for_serve(&self) -> Self {
        let mut values = self.clone();
        let listen = find("listen").and_then(|spec| spec.flag?.default).unwrap_or_default();
        values.given.entry("listen").or_insert_with(|| Value::List(vec![listen.to_string()]));
        values.given.entry("work_dir").or_insert_with(|| Value::Path(PathBuf::from(WORK_DIR_DEFAULT)));
        values
    }

    /// A text, if it was given.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Addresses, if any were given.
    pub fn list(&self, name: &str) -> &[String] {
        match self.get(name) {
            Some(Value::List(list)) => list,
            _ => &[],
        }
    }

    /// A text, or its default.
    pub fn text_or_default(&self, name: &str) -> &str {
        let default = || find(name).and_then(|spec| spec.flag?.default);
        self.text(name).or_else(default).unwrap_or_default()
    }

    /// A file or directory, if it was given.
    pub fn path(&self, name: &str) -> Option<&Path> {
        match self.get(name)? {
            Value::Path(path) => Some(path),
            _ => None,
        }
    }

    /// A number that the process obeys, or its default. Errors: a size that is none.
    pub fn number(&self, name: &str) -> Result<f64, String> {
        let default = || find(name).and_then(|spec| spec.flag?.default);
        match self.get(name) {
            Some(Value::Whole(number)) => Ok(*number as f64),
            Some(Value::Fraction(number)) => Ok(*number),
            Some(Value::Text(text)) => Ok(size(name, text)? as f64),
            _ => Ok(default().and_then(parse_size).unwrap_or(0) as f64),
        }
    }

    /// The values with what `box.cfg` was given over them: a msgpack map by Tarantool's names, nil for "no longer". Names that have nothing to
    /// act on here are passed over. Errors: name and reason.
    pub fn with_changes(&self, changes: &[u8]) -> Result<Self, (String, String)> {
        let mut values = self.clone();
        let malformed = |_| ("options".to_string(), "malformed".to_string());
        let mut reader = Reader::new(changes);
        for _ in 0..reader.read_map().map_err(malformed)? {
            let name = String::from_utf8_lossy(reader.read_str().map_err(malformed)?).into_owned();
            if find(&name).is_some_and(|spec| spec.kind == Kind::Addresses) && reader.kind() == Ok(msgpack::Kind::Array)
            {
                let list = read_list(&mut reader)
                    .ok_or_else(|| (name.clone(), "should be a list of addresses".to_string()))?;
                values.set_list(&name, list);
                continue;
            }
            let Some(text) = read_text(&mut reader).map_err(malformed)? else { continue };
            let Some((spec, cfg)) = find(&name).and_then(|spec| Some((spec, spec.cfg?))) else { continue };
            match text.map(|text| cfg_value(spec, &cfg, text)).transpose().map_err(|reason| (name, reason))?.flatten() {
                Some(value) => values.set(spec, value),
                None => {
                    values.given.remove(spec.name);
                }
            }
        }
        Ok(values)
    }

    fn set_list(&mut self, name: &str, list: Vec<String>) {
        if let Some(spec) = find(name) {
            match list.is_empty() {
                true => self.given.remove(spec.name),
                false => self.given.insert(spec.name, Value::List(list)),
            };
        }
    }

    /// What `box.cfg` shows of a server that `lycosa serve` has started: a msgpack map by Tarantool's names.
    pub fn shown(&self) -> Vec<u8> {
        let mut shown: Vec<(&str, Value)> = Vec::new();
        let config = self.config().unwrap_or_default();
        for spec in OPTIONS {
            let Some(cfg) = spec.cfg else { continue };
            // Directories are shown as they are reached from here, so where that began is not.
            let given = || self.given.get(spec.name).filter(|_| spec.name != "work_dir").cloned();
            let value = match spec.value_in(&config) {
                Some(Value::Whole(0)) if cfg.unit > 1 => None,
                Some(Value::Whole(number)) => Some(Value::Whole(number / cfg.unit)),
                other => other.or_else(given),
            };
            shown.extend(value.map(|value| (spec.name, value)));
        }
        let mut out = Vec::new();
        msgpack::encode_map(&mut out, shown.len() as u32);
        for (name, value) in shown {
            msgpack::encode_str(&mut out, name.as_bytes());
            value.encode(&mut out);
        }
        out
    }

    /// The database's part. Errors: a size that is none, a value out of its bounds.
    pub fn config(&self) -> Result<Config, String> {
        let dir = self.path("work_dir").unwrap_or(Path::new(WORK_DIR_DEFAULT)).to_path_buf();
        let mut config = Config { wal_dir: dir.clone(), memtx_dir: dir.clone(), vinyl_dir: dir, ..Config::default() };
        for spec in OPTIONS {
            if let (Some(field), Some(value)) = (spec.field, self.given.get(spec.name)) {
                set_field(field(&mut config), spec.name, value)?;
            }
        }
        for spec in OPTIONS {
            if let Some(Err(wrong)) = spec.check.map(|check| check(&config)) {
                return Err(format!("Incorrect value for option '{}': {wrong}", spec.name));
            }
        }
        Ok(config)
    }
}

/// Every value as text: the names know what they are. Outer none: no plain value; inner none: nil.
fn read_text(reader: &mut Reader<'_>) -> Result<Option<Option<String>>, msgpack::MsgpackError> {
    use msgpack::Kind;
    Ok(Some(match reader.kind()? {
        Kind::Nil => {
            reader.read_nil()?;
            None
        }
        Kind::Str => Some(String::from_utf8_lossy(reader.read_str()?).into_owned()),
        Kind::Bool => Some(reader.read_bool()?.to_string()),
        Kind::Uint | Kind::Int => Some(reader.read_i128()?.to_string()),
        Kind::Float | Kind::Double => Some(reader.read_double()?.to_string()),
        _ => {
            reader.skip_checked();
            return Ok(None);
        }
    }))
}

/// A list of texts. None: it is another one, or longer than any.
fn read_list(reader: &mut Reader<'_>) -> Option<Vec<String>> {
    let count = reader.read_array().ok()?;
    if count as usize > ADDRESSES_MAX {
        return None;
    }
    (0..count).map(|_| Some(String::from_utf8_lossy(reader.read_str().ok()?).into_owned())).collect()
}

/// The addresses of a text with commas between them.
pub fn split_addresses(text: &str) -> Vec<String> {
    text.split(',').map(|part| part.trim().to_string()).collect()
}

/// A value that `box.cfg` was given. None stands for "not given". Errors: the reason.
fn cfg_value(spec: &Spec, cfg: &Cfg, text: String) -> Result<Option<Value>, String> {
    let number = || match text.parse::<f64>() {
        Ok(number) if number >= 0.0 => Ok(number),
        _ => Err("must be a number that is not negative".to_string()),
    };
    Ok(Some(match spec.kind {
        Kind::Inert(_) => return Ok(None),
        Kind::Path => Value::Path(PathBuf::from(text)),
        Kind::Text | Kind::OneOf(_) => Value::Text(text),
        Kind::Word | Kind::Addresses if text.is_empty() => return Ok(None),
        Kind::Addresses => Value::List(split_addresses(&text)),
        Kind::Word => Value::Text(text),
        Kind::Switch => Value::Switch(text == "true"),
        Kind::Size | Kind::Number => Value::Whole((number()? as u64).saturating_mul(cfg.unit)),
        Kind::Whole => match text.parse::<f64>() {
            Ok(number) if number.fract() != 0.0 || number > WHOLE_MAX => {
                return Err("must be a whole number".to_string());
            }
            _ => Value::Whole(number()? as u64),
        },
        Kind::Fraction => match text.parse::<f64>() {
            Ok(number) if number > 0.0 => Value::Fraction(number),
            _ => return Err("must be a number above zero".to_string()),
        },
        Kind::Seconds => Value::Fraction(text.parse().map_err(|_| "must be a number".to_string())?),
    }))
}

fn set_field(field: Field<'_>, name: &str, value: &Value) -> Result<(), String> {
    let wrong = || Err(format!("Incorrect value for option '{name}': '{value}'"));
    match (field, value) {
        (Field::Number(to), Value::Text(text)) => *to = size(name, text)?,
        (Field::Number(to), Value::Whole(number)) => *to = *number,
        (Field::Count(to), Value::Whole(number)) => *to = *number as usize,
        (Field::Fraction(to), Value::Fraction(number)) => *to = *number,
        (Field::Seconds(to), Value::Fraction(seconds)) => *to = (*seconds * 1e9) as u64,
        (Field::Switch(to), Value::Switch(is_on)) => *to = *is_on,
        (Field::Path(to), Value::Path(path)) => to.clone_from(path),
        (Field::Text(to), Value::Text(text)) => *to = Some(text.clone()),
        (Field::Isolation(to), Value::Text(text)) => *to = TxnIsolation::from_name(text).unwrap_or_default(),
        (Field::WalMode(to), Value::Text(text)) => {
            *to = match text.as_str() {
                "fsync" => WalMode::Fsync,
                "write" => WalMode::Write,
                "none" => WalMode::None,
                _ => return wrong(),
            }
        }
        _ => return wrong(),
    }
    Ok(())
}

fn size(name: &str, text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| format!("Incorrect value for option '{name}': '{text}' is not a size"))
}

/// `1048576`, `1MiB`, `1.5 GB`.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let number: f64 = text[..split].trim().parse().ok()?;
    let factor: f64 = match text[split..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "kb" => 1e3,
        "m" | "mib" => 1024.0 * 1024.0,
        "mb" => 1e6,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "gb" => 1e9,
        _ => return None,
    };
    (number >= 0.0 && number.is_finite()).then_some((number * factor) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::Randomness;

    #[test]
    fn any_change_is_taken_or_refused_in_words() {
        let random = runtime::SeededRandomness::new(3);
        let mut changes = Vec::new();
        msgpack::encode_map(&mut changes, 3);
        for (name, value) in [("memtx_memory", &b"\xce\x10\0\0\0"[..]), ("listen", b"\xa43301"), ("read_only", b"\xc3")]
        {
            msgpack::encode_str(&mut changes, name.as_bytes());
            changes.extend_from_slice(value);
        }
        assert!(Values::default().with_changes(&changes).is_ok());
        for _ in 0..20_000 {
            let mut bytes = changes.clone();
            for _ in 0..1 + random.next_u64() % 3 {
                let at = random.next_u64() as usize % bytes.len();
                bytes[at] = random.next_u64() as u8;
            }
            if let Ok(values) = Values::default().with_changes(&bytes) {
                assert!(values.config().err().is_none_or(|text| !text.is_empty()));
                assert!(!values.shown().is_empty());
            }
        }
    }

    /// The text of the refusal of one value.
    fn refusal(name: &str, value: Value) -> String {
        let mut values = Values::default();
        values.set(find(name).expect("it is in the table"), value);
        values.config().err().unwrap_or_default()
    }

    #[test]
    fn bounds_of_the_disk_engine_are_refused_by_name() {
        for (name, value, words) in [
            ("vinyl_page_size", Value::Whole(0), "must be greater than 0 and less than or equal to vinyl_range_size"),
            ("vinyl_page_size", Value::Whole(16_777_217), "must be at most 16777216"),
            (
                "vinyl_range_size",
                Value::Whole(4095),
                "must be greater than 0 and less than or equal to vinyl_range_size",
            ),
            ("vinyl_run_count_per_level", Value::Whole(0), "must be greater than 0"),
            ("vinyl_run_count_per_level", Value::Whole(1_000_001), "must be at most 1000000"),
            ("vinyl_run_size_ratio", Value::Fraction(1.0), "must be greater than 1"),
            ("vinyl_run_size_ratio", Value::Fraction(1e7), "must be at most 1000000"),
            ("vinyl_bloom_fpr", Value::Fraction(1.1), "must be greater than 0 and less than or equal to 1"),
            ("vinyl_write_threads", Value::Whole(0), "must be greater than 0"),
            ("vinyl_memory", Value::Text("1023k".into()), "must be at least 1 MiB"),
            ("vinyl_max_tuple_size", Value::Text("1023".into()), "must be at least 1 KiB"),
            ("vinyl_memory", Value::Text("much".into()), "'much' is not a size"),
        ] {
            let text = refusal(name, value.clone());
            assert!(
                text.starts_with("Incorrect value for option 'vinyl_") && text.ends_with(words),
                "{name} {value}: {text}"
            );
        }
        for (name, value) in [
            ("vinyl_page_size", Value::Whole(16_777_216)),
            ("vinyl_range_size", Value::Whole(4096)),
            ("vinyl_run_count_per_level", Value::Whole(1_000_000)),
            ("vinyl_run_size_ratio", Value::Fraction(1_000_000.0)),
            ("vinyl_bloom_fpr", Value::Fraction(1.0)),
            ("vinyl_memory", Value::Text("1MiB".into())),
        ] {
            assert_eq!(refusal(name, value.clone()), "", "{name} {value}");
        }
    }

    #[test]
    fn what_may_change_is_what_the_table_says() {
        let mut values = Values::default();
        for (name, value) in [("vinyl_cache", Value::Whole(65536)), ("wal_max_size", Value::Whole(65536))] {
            values.set(find(name).expect("it is in the table"), value);
        }
        let mut config = Config::default();
        super::super::change(&mut config, &values.config().expect("the values are good"));
        assert_eq!((config.vinyl_cache, config.wal_max_size), (65536, Config::default().wal_max_size));
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("256MiB"), Some(256 << 20));
        assert_eq!(parse_size("1.5 GB"), Some(1_500_000_000));
        assert_eq!(parse_size("77"), Some(77));
        assert_eq!(parse_size("many"), None);
    }
}
