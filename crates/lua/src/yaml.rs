//! YAML text and back: libyaml's emitter and parser between values and text.
//!
//! Which style a value gets, what a plain scalar means and the error texts are Tarantool's. Tables that occur more than once are written
//! once, with an anchor, and come back as one table. Encoding goes through msgpack with marks ([`convert::EXT_NODE`]) that keep what
//! msgpack does not have: which table it was, and whether it is to stand in one line.

use crate::convert::{self, Rules};
use crate::json::{digits_at, format_number};
use crate::libyaml::{Emitter, Event, Parser, Style};
use crate::state::{Function, Raise, State, is_stack_low};
use base64::Engine;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_int;
use tuple::msgpack::{self, Kind, Reader};

type Outcome = Result<c_int, Raise>;

/// What the tag `!!` stands for.
const TAG_PREFIX: &str = "tag:yaml.org,2002:";
const TAG_BINARY: &str = "tag:yaml.org,2002:binary";

// Encoding ----------------------------------------------------------------------------------------------------------

/// A number as C's `strtod` takes it, the whole text of it.
fn parse_number(text: &str) -> Option<f64> {
    let (is_negative, magnitude) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if magnitude.starts_with(['+', '-']) {
        return None;
    }
    let value = match magnitude.strip_prefix("0x").or_else(|| magnitude.strip_prefix("0X")) {
        Some(hex) => parse_hex(hex)?,
        None => magnitude.parse().ok()?,
    };
    Some(if is_negative { -value } else { value })
}

/// Hexadecimal digits, perhaps with a fraction and a binary exponent.
fn parse_hex(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.len() + fraction.len() == 0 {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    Some(value * 2f64.powi(exponent.saturating_sub(4 * fraction.len() as i32)))
}

/// The number that a plain scalar stands for, as msgpack: whole ones end at the bounds of 64 bits.
fn plain_number(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        match text.parse::<i64>() {
            Ok(value) if value != i64::MAX => convert::encode_signed(&mut out, value),
            Err(_) if text.starts_with('-') => msgpack::encode_int(&mut out, i64::MIN),
            _ => msgpack::encode_uint(&mut out, digits.parse().unwrap_or(u64::MAX)),
        }
        return Some(out);
    }
    msgpack::encode_f64(&mut out, parse_number(text)?);
    Some(out)
}

/// True if a plain scalar of this text would be read as something else.
fn needs_quotes(text: &str) -> bool {
    matches!(text, "true" | "false" | "yes" | "no" | "null" | "~") || parse_number(text).is_some()
}

/// True if the text cannot be written as such.
fn is_binary(text: &[u8]) -> bool {
    std::str::from_utf8(text).map_or(true, |text| {
        text.chars().any(|c| matches!(c, '\u{80}'..='\u{9f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'))
    })
}

/// Writes events for checked msgpack with marks.
struct Writer {
    emitter: Emitter,
    digits: usize,
    /// The number of the anchor of each table that is referred to; none yet if it has not been written.
    anchors: HashMap<u32, Option<usize>>,
    anchors_given: usize,
    /// How many lists and maps in one line are open.
    lines_open: usize,
}

fn broken(_: msgpack::MsgpackError) -> Raise {
    Raise::from("value cannot be shown as YAML")
}

impl Writer {
    fn emit(&mut self, event: Event) -> Result<(), Raise> {
        self.emitter.emit(&event).map_err(Raise::Message)
    }

    fn plain(&mut self, text: &str) -> Result<(), Raise> {
        self.emit(Event::Scalar { tag: None, text: text.as_bytes().to_vec(), style: Style::Plain })
    }

    fn text(&mut self, text: &[u8]) -> Result<(), Raise> {
        if is_binary(text) {
            let encoded = base64::engine::general_purpose::STANDARD.encode(text);
            let tag = Some(TAG_BINARY.as_bytes().to_vec());
            return self.emit(Event::Scalar { tag, text: encoded.into_bytes(), style: Style::Any });
        }
        let text = std::str::from_utf8(text).unwrap_or_default();
        let style = if self.lines_open > 0 {
            Style::SingleQuoted
        } else if text.contains("\n\n") {
            Style::Literal
        } else if needs_quotes(text) {
            Style::SingleQuoted
        } else {
            Style::Any
        };
        self.emit(Event::Scalar { tag: None, text: text.as_bytes().to_vec(), style })
    }

    fn value(&mut self, reader: &mut Reader<'_>) -> Result<(), Raise> {
        match reader.kind().map_err(broken)? {
            Kind::Nil => {
                reader.read_nil().map_err(broken)?;
                self.plain("null")
            }
            Kind::Bool => {
                let text = if reader.read_bool().map_err(broken)? { "true" } else { "false" };
                self.plain(text)
            }
            Kind::Uint | Kind::Int => {
                let text = reader.read_i128().map_err(broken)?.to_string();
                self.plain(&text)
            }
            Kind::Float | Kind::Double => {
                let text = format_number(reader.read_double().map_err(broken)?, self.digits);
                self.plain(&text)
            }
            Kind::Str | Kind::Bin => self.text(reader.read_str_or_bin().map_err(broken)?),
            Kind::Array | Kind::Map => self.collection(reader, None, false),
            Kind::Ext => {
                let mut ahead = *reader;
                match ahead.read_ext().map_err(broken)? {
                    (convert::EXT_NODE, body) => {
                        *reader = ahead;
                        self.node(body)
                    }
                    _ => {
                        let raw = reader.read_value().map_err(broken)?;
                        let mut text = String::new();
                        msgpack::format_value(raw, &mut text);
                        self.plain(&text)
                    }
                }
            }
        }
    }

    /// A marked table: written, or referred to if it has no body.
    fn node(&mut self, marked: &[u8]) -> Result<(), Raise> {
        let Some((number, is_in_line, body)) = convert::node_parts(marked) else {
            return Err("value cannot be shown as YAML".into());
        };
        let Some(anchor) = self.anchors.get_mut(&number) else {
            return self.collection(&mut Reader::new(body), None, is_in_line);
        };
        if let (Some(anchor), true) = (*anchor, body.is_empty()) {
            return self.emit(Event::Alias(anchor.to_string().into_bytes()));
        }
        let given = self.anchors_given;
        *anchor = Some(given);
        self.anchors_given += 1;
        self.collection(&mut Reader::new(body), Some(given.to_string().into_bytes()), is_in_line)
    }

    fn collection(&mut self, reader: &mut Reader<'_>, anchor: Option<Vec<u8>>, is_in_line: bool) -> Result<(), Raise> {
        if is_stack_low() {
            return Err("stack overflow".into());
        }
        match reader.kind().map_err(broken)? {
            Kind::Array => {
                let count = reader.read_array().map_err(broken)?;
                self.emit(Event::SequenceStart { anchor, is_in_line })?;
                self.lines_open += usize::from(is_in_line);
                for _ in 0..count {
                    self.value(reader)?;
                }
                self.lines_open -= usize::from(is_in_line);
                self.emit(Event::SequenceEnd)
            }
            Kind::Map => {
                let count = reader.read_map().map_err(broken)?;
                self.emit(Event::MappingStart { anchor, is_in_line })?;
                self.lines_open += usize::from(is_in_line);
                for _ in 0..count {
                    self.value(reader)?;
                    self.value(reader)?;
                }
                self.lines_open -= usize::from(is_in_line);
                self.emit(Event::MappingEnd)
            }
            _ => self.value(reader),
        }
    }
}

/// The numbers of tables that marked msgpack refers to.
fn references(reader: &mut Reader<'_>, found: &mut HashMap<u32, Option<usize>>) -> Result<(), Raise> {
    if is_stack_low() {
        return Err("stack overflow".into());
    }
    match reader.kind().map_err(broken)? {
        Kind::Array => {
            for _ in 0..reader.read_array().map_err(broken)? {
                references(reader, found)?;
            }
        }
        Kind::Map => {
            for _ in 0..2 * u64::from(reader.read_map().map_err(broken)?) {
                references(reader, found)?;
            }
        }
        Kind::Ext => {
            if let (convert::EXT_NODE, marked) = reader.read_ext().map_err(broken)?
                && let Some((number, _, body)) = convert::node_parts(marked)
            {
                if body.is_empty() {
                    found.insert(number, None);
                } else {
                    references(&mut Reader::new(body), found)?;
                }
            }
        }
        _ => {
            reader.read_value().map_err(broken)?;
        }
    }
    Ok(())
}

/// One document of a value at 1 by the options at `options`, with a tag directive if one is given.
fn write_document(
    state: State,
    options: c_int,
    directive: Option<(String, String)>,
    is_list: bool,
) -> Result<Vec<u8>, Raise> {
    let tables = RefCell::new(HashMap::new());
    let mut bytes = Vec::new();
    // The options of depth are not for YAML.
    let rules = Rules {
        tables: Some(&tables),
        depth_max: convert::DEPTH_HARD_MAX,
        is_deep_nil: false,
        errors_as_text: true,
        ..Rules::at(state, options)
    };
    convert::encode_by(state, 1, &mut bytes, &rules)?;
    let mut anchors = HashMap::new();
    references(&mut Reader::new(&bytes), &mut anchors)?;
    let emitter = Emitter::new().ok_or("not enough memory")?;
    let mut writer = Writer { emitter, digits: digits_at(state, options), anchors, anchors_given: 0, lines_open: 0 };
    writer.emit(Event::StreamStart)?;
    writer.emit(Event::DocumentStart(None))?;
    let mut reader = Reader::new(&bytes);
    match reader.clone().read_ext() {
        // The answers of a console stand below each other, whatever holds them.
        Ok((convert::EXT_NODE, marked)) if is_list => {
            let body = convert::node_parts(marked).map_or(&[][..], |(_, _, body)| body);
            writer.collection(&mut Reader::new(body), None, false)?;
        }
        _ => writer.value(&mut reader)?,
    }
    writer.emit(Event::DocumentEnd)?;
    writer.emit(Event::StreamEnd)?;
    let mut out = writer.emitter.finish();
    if let Some((handle, prefix)) = directive {
        out.splice(0..0, format!("%TAG {handle} {prefix}\n").into_bytes());
    }
    Ok(out)
}

/// yaml_encode(value, options or nil, tag handle or nil, tag prefix) -> text
fn yaml_encode(state: State) -> Outcome {
    let directive = state.string(3).zip(state.string(4));
    let text = write_document(state, 2, directive, false)?;
    state.push_bytes(&text);
    Ok(1)
}

/// As `yaml_encode`, with the outermost list always one item a line: answers of a console.
fn yaml_encode_list(state: State) -> Outcome {
    let text = write_document(state, 2, None, true)?;
    state.push_bytes(&text);
    Ok(1)
}

// Decoding ----------------------------------------------------------------------------------------------------------

/// Reads events and pushes what they make.
struct Loader<'a> {
    parser: Parser<'a>,
    state: State,
    /// Place of the table of anchors on the Lua stack.
    anchors: c_int,
    documents: usize,
}

impl Loader<'_> {
    /// The next event. Errors: as Tarantool says them.
    fn event(&mut self) -> Result<Event, Raise> {
        let event = self.parser.next().map_err(|wrong| {
            let mut text = format!("{} at document: {}", wrong.problem, self.documents);
            match wrong.place {
                (0, 0) => text.push('\n'),
                (line, column) => text += &format!(", line: {}, column: {}\n", line + 1, column + 1),
            }
            if let Some((context, line, column)) = wrong.context {
                text += &format!("{context} at line: {}, column: {}\n", line + 1, column + 1);
            }
            Raise::Message(text)
        })?;
        if let Event::DocumentStart(_) = event {
            self.documents += 1;
        }
        Ok(event)
    }

    /// Remembers the table on top under its anchor.
    fn remember(&self, anchor: Option<Vec<u8>>) {
        if let Some(anchor) = anchor {
            self.state.push_bytes(&anchor);
            self.state.push_value(-2);
            self.state.raw_set(self.anchors);
        }
    }

    /// Pushes the value that an event begins; false if the event ends what is around it.
    fn node(&mut self, event: Event) -> Result<bool, Raise> {
        if !self.state.reserve(8) || is_stack_low() {
            return Err("stack overflow".into());
        }
        let state = self.state;
        match event {
            Event::Alias(anchor) => {
                state.push_bytes(&anchor);
                state.raw_get(self.anchors);
                if state.is_nil(-1) {
                    let anchor = String::from_utf8_lossy(&anchor);
                    return Err(Raise::Message(format!("invalid reference: {anchor}")));
                }
            }
            Event::Scalar { tag, text, style } => self.scalar(tag.as_deref(), &text, style)?,
            Event::SequenceStart { anchor, .. } => {
                state.new_table(0, 0);
                let table = state.top();
                self.remember(anchor);
                let mut count = 0;
                loop {
                    let event = self.event()?;
                    if !self.node(event)? {
                        break;
                    }
                    count += 1;
                    state.raw_set_index(table, count);
                }
                convert::push_array_metatable(state);
                state.set_metatable(table);
            }
            Event::MappingStart { anchor, .. } => {
                state.new_table(0, 0);
                let table = state.top();
                self.remember(anchor);
                loop {
                    let event = self.event()?;
                    if !self.node(event)? {
                        break;
                    }
                    if state.number(-1).is_some_and(f64::is_nan) {
                        return Err("table index is NaN".into());
                    }
                    let event = self.event()?;
                    if !self.node(event)? {
                        return Err("unanticipated END event".into());
                    }
                    state.raw_set(table);
                }
                convert::push_map_metatable(state);
                state.set_metatable(table);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Pushes what a scalar stands for.
    fn scalar(&mut self, tag: Option<&[u8]>, bytes: &[u8], style: Style) -> Result<(), Raise> {
        let state = self.state;
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let tag = tag.and_then(|tag| std::str::from_utf8(tag).ok());
        match tag.and_then(|tag| tag.strip_prefix(TAG_PREFIX)) {
            Some("str") => {
                state.push_bytes(bytes);
                return Ok(());
            }
            Some("int") => {
                let length = text.len()
                    - text.trim_start_matches(['+', '-']).trim_start_matches(|c: char| c.is_ascii_digit()).len();
                let whole = text[..length].parse::<i128>().unwrap_or(0);
                state.push_number(whole.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as f64);
                return Ok(());
            }
            Some("float") => {
                let longest = (0..=text.len()).rev().filter(|end| text.is_char_boundary(*end));
                state.push_number(longest.take(400).find_map(|end| parse_number(&text[..end])).unwrap_or(0.0));
                return Ok(());
            }
            Some("bool") => {
                state.push_bool(text == "true" || text == "yes");
                return Ok(());
            }
            Some("binary") => {
                state.push_bytes(&crate::library::decode_base64(bytes));
                return Ok(());
            }
            _ => {}
        }
        if style == Style::Plain {
            match text {
                "~" | "null" => {
                    convert::push_null(state);
                    return Ok(());
                }
                "true" | "yes" => {
                    state.push_bool(true);
                    return Ok(());
                }
                "false" | "no" => {
                    state.push_bool(false);
                    return Ok(());
                }
                _ => {}
            }
            if let Some(number) = plain_number(text) {
                return convert::push_bytes_value(state, &number);
            }
        }
        state.push_bytes(bytes);
        Ok(())
    }
}

/// yaml_decode(text, true to get the tag directive alone) -> one value for each document
fn yaml_decode(state: State) -> Outcome {
    let text = state.bytes(1).ok_or("a string is expected")?;
    let is_tag_only = state.boolean(2);
    let parser = Parser::new(text).ok_or("not enough memory")?;
    state.new_table(0, 0);
    let anchors = state.top();
    let mut loader = Loader { parser, state, anchors, documents: 0 };
    let mut results = 0;
    loop {
        match loader.event()? {
            Event::StreamEnd => return Ok(results),
            Event::DocumentStart(directive) => {
                if is_tag_only {
                    let Some((handle, prefix)) = directive else {
                        state.push_nil();
                        return Ok(1);
                    };
                    state.push_bytes(&handle);
                    state.push_bytes(&prefix);
                    return Ok(2);
                }
                // Anchors are known in their own document.
                state.new_table(0, 0);
                loader.anchors = state.top();
                let event = loader.event()?;
                if !loader.node(event)? {
                    return Err("unexpected END event".into());
                }
                // The value takes the place of the anchors.
                state.replace(loader.anchors);
                results += 1;
            }
            _ => {}
        }
    }
}

/// Functions of `box.internal` for YAML.
pub(crate) const FUNCTIONS: &[(&str, Function)] =
    &[("yaml_encode", yaml_encode), ("yaml_decode", yaml_decode), ("yaml_encode_list", yaml_encode_list)];
