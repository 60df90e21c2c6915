//! Paths into documents: PostgreSQL's `jsonpath`, as far as it is lax, and MySQL's.

use super::Json;
use super::value::{order_numbers, place_of};
use crate::error::{Condition, Error, Result};
use crate::run::Run;
use std::cmp::Ordering;
use std::rc::Rc;

/// Bytes of a path.
const LENGTH_MAX: usize = 64 << 10;
/// Parentheses and filters within each other.
const DEPTH_MAX: usize = 32;

/// Tests that are tried while a path is read.
const TRIES_MAX: usize = 10_000;

/// A path.
#[derive(Debug)]
pub(crate) struct Path {
    node: Node,
}

#[derive(Debug)]
enum Node {
    Root,
    Current,
    Variable(String),
    Literal(Json),
    Steps(Box<Node>, Vec<Step>),
    Arithmetic(char, Box<Node>, Box<Node>),
    Is(Box<Test>),
}

#[derive(Debug)]
enum Step {
    Member(String),
    AnyMember,
    /// Elements, from one to another; those below zero count from behind, -1 being the last one.
    Elements(Vec<(i64, i64)>),
    AnyElement,
    /// The value and all that is within it.
    Deep,
    Filter(Test),
    Method(String),
}

#[derive(Debug)]
enum Test {
    Compare(String, Node, Node),
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
    Not(Box<Test>),
    Exists(Node),
    StartsWith(Node, Node),
    Matches(Node, Rc<crate::regexes::Pattern>),
    IsUnknown(Box<Test>),
}

fn wrong(text: &str) -> Error {
    Error::new(Condition::Syntax, format!("syntax error in jsonpath: \"{text}\""))
}

struct Parser<'t> {
    text: &'t str,
    rest: &'t str,
    depth: usize,
    /// Tests that were tried: what stands in parentheses may be one or a value.
    tries: usize,
    is_mysql: bool,
}

impl<'t> Parser<'t> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, wanted: &str) -> bool {
        self.space();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn word(&mut self, wanted: &str) -> bool {
        self.space();
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        if self.rest[..end].eq_ignore_ascii_case(wanted) {
            self.rest = &self.rest[end..];
            return true;
        }
        false
    }

    fn error<T>(&self) -> Result<T> {
        Err(match self.is_mysql {
            true => Error::new(
                Condition::InvalidArgument,
                format!(
                    "Invalid JSON path expression. The error is around character position {}.",
                    self.text.len() - self.rest.len()
                ),
            )
            .mysql(3143),
            false => wrong(self.text),
        })
    }

    fn name(&mut self) -> Result<String> {
        if self.rest.starts_with('"') {
            return self.quoted();
        }
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(self.rest.len());
        if end == 0 {
            return self.error();
        }
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(name.to_string())
    }

    fn quoted(&mut self) -> Result<String> {
        let mut end = 1;
        let bytes = self.rest.as_bytes();
        while end < bytes.len() && bytes[end] != b'"' {
            end += 1 + usize::from(bytes[end] == b'\\');
        }
        match self.rest.get(..=end).and_then(Json::parse) {
            Some(Json::Text(text)) => {
                self.rest = &self.rest[end + 1..];
                Ok(text)
            }
            _ => self.error(),
        }
    }

    fn index(&mut self) -> Result<i64> {
        if self.word("last") {
            if self.take("-") {
                return Ok(-1 - self.digits()?);
            }
            return Ok(-1);
        }
        self.digits()
    }

    fn digits(&mut self) -> Result<i64> {
        self.space();
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let Ok(number) = self.rest[..end].parse::<u32>() else { return self.error() };
        self.rest = &self.rest[end..];
        Ok(i64::from(number))
    }

    fn steps(&mut self) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        loop {
            if self.is_mysql && self.take("**") {
                steps.push(Step::Deep);
                if !self.rest.trim_start().starts_with(['.', '[']) {
                    return self.error();
                }
            } else if self.take(".**") {
                steps.push(Step::Deep);
            } else if self.take(".*") {
                steps.push(Step::AnyMember);
            } else if self.take(".") {
                self.space();
                let is_quoted = self.rest.starts_with('"');
                let name = self.name()?;
                if !is_quoted && !self.is_mysql && self.take("(") {
                    if !self.take(")") {
                        return self.error();
                    }
                    steps.push(Step::Method(name));
                } else {
                    steps.push(Step::Member(name));
                }
            } else if self.take("[*]") {
                steps.push(Step::AnyElement);
            } else if self.take("[") {
                let mut ranges = Vec::new();
                loop {
                    let from = self.index()?;
                    let to = if self.word("to") { self.index()? } else { from };
                    ranges.push((from, to));
                    if self.is_mysql || !self.take(",") {
                        break;
                    }
                }
                if !self.take("]") {
                    return self.error();
                }
                steps.push(Step::Elements(ranges));
            } else if !self.is_mysql && self.take("?") {
                if !self.take("(") {
                    return self.error();
                }
                let test = self.test()?;
                if !self.take(")") {
                    return self.error();
                }
                steps.push(Step::Filter(test));
            } else {
                return Ok(steps);
            }
        }
    }

    fn deeper(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Error::new(Condition::LimitExceeded, "the path is nested too deep"));
        }
        Ok(())
    }

    fn primary(&mut self) -> Result<Node> {
        self.space();
        let node = match self.rest.chars().next() {
            Some('$') => {
                self.rest = &self.rest[1..];
                match self.rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '"') {
                    true => Node::Variable(self.name()?),
                    false => Node::Root,
                }
            }
            Some('@') => {
                self.rest = &self.rest[1..];
                Node::Current
            }
            Some('"') => Node::Literal(Json::Text(self.quoted()?)),
            Some('-') => {
                self.rest = &self.rest[1..];
                self.deeper()?;
                let zero = Node::Literal(Json::Number("0".to_string()));
                let negated = Node::Arithmetic('-', Box::new(zero), Box::new(self.primary()?));
                self.depth -= 1;
                negated
            }
            Some('(') => {
                self.rest = &self.rest[1..];
                self.deeper()?;
                let node = self.sum()?;
                self.depth -= 1;
                if !self.take(")") {
                    return self.error();
                }
                node
            }
            Some(c) if c.is_ascii_digit() => {
                let end = self
                    .rest
                    .char_indices()
                    .find(|(at, c)| {
                        let is_exponent =
                            matches!(c, 'e' | 'E') || matches!(c, '+' | '-') && self.rest[..*at].ends_with(['e', 'E']);
                        !c.is_ascii_digit() && *c != '.' && !is_exponent
                    })
                    .map_or(self.rest.len(), |(at, _)| at);
                match Json::parse(&self.rest[..end]) {
                    Some(number) => {
                        self.rest = &self.rest[end..];
                        Node::Literal(number)
                    }
                    None => return self.error(),
                }
            }
            _ if self.word("true") => Node::Literal(Json::Bool(true)),
            _ if self.word("false") => Node::Literal(Json::Bool(false)),
            _ if self.word("null") => Node::Literal(Json::Null),
            _ => return self.error(),
        };
        let steps = self.steps()?;
        Ok(if steps.is_empty() { node } else { Node::Steps(Box::new(node), steps) })
    }

    fn product(&mut self) -> Result<Node> {
        let mut left = self.primary()?;
        loop {
            let operator = match () {
                () if self.take("*") => '*',
                () if self.take("/") => '/',
                () if self.take("%") => '%',
                () => return Ok(left),
            };
            left = Node::Arithmetic(operator, Box::new(left), Box::new(self.primary()?));
        }
    }

    fn sum(&mut self) -> Result<Node> {
        let mut left = self.product()?;
        loop {
            let operator = match () {
                () if self.take("+") => '+',
                () if self.take("-") => '-',
                () => return Ok(left),
            };
            left = Node::Arithmetic(operator, Box::new(left), Box::new(self.product()?));
        }
    }

    fn test(&mut self) -> Result<Test> {
        self.deeper()?;
        let mut left = self.conjunction()?;
        while self.take("||") {
            left = Test::Or(Box::new(left), Box::new(self.conjunction()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Test> {
        let mut left = self.plain_test()?;
        while self.take("&&") {
            left = Test::And(Box::new(left), Box::new(self.plain_test()?));
        }
        Ok(left)
    }

    fn plain_test(&mut self) -> Result<Test> {
        self.tries += 1;
        if self.tries > TRIES_MAX {
            return Err(Error::new(Condition::LimitExceeded, "the path is nested too deep"));
        }
        if self.take("!") {
            if !self.take("(") {
                return self.error();
            }
            let test = self.test()?;
            return if self.take(")") { Ok(Test::Not(Box::new(test))) } else { self.error() };
        }
        if self.word("exists") {
            if !self.take("(") {
                return self.error();
            }
            let node = self.sum()?;
            return if self.take(")") { Ok(Test::Exists(node)) } else { self.error() };
        }
        let (before, depth) = (self.rest, self.depth);
        if self.take("(")
            && let Ok(test) = self.test()
            && self.take(")")
        {
            if self.word("is") && self.word("unknown") {
                return Ok(Test::IsUnknown(Box::new(test)));
            }
            return Ok(test);
        }
        (self.rest, self.depth) = (before, depth);
        let left = self.sum()?;
        if self.word("starts") {
            if !self.word("with") {
                return self.error();
            }
            return Ok(Test::StartsWith(left, self.primary()?));
        }
        if self.word("like_regex") {
            self.space();
            let pattern = self.quoted()?;
            let mut folds_case = false;
            if self.word("flag") {
                self.space();
                folds_case = self.quoted()?.contains('i');
            }
            let compiled = crate::regexes::Pattern::of_postgres(&pattern, if folds_case { "i" } else { "" })?;
            return Ok(Test::Matches(left, Rc::new(compiled)));
        }
        for operator in ["==", "!=", "<>", "<=", ">=", "<", ">"] {
            if self.take(operator) {
                return Ok(Test::Compare(operator.to_string(), left, self.sum()?));
            }
        }
        self.error()
    }
}

impl Path {
    /// From a text. Errors: it is none.
    pub(crate) fn parse(text: &str) -> Result<Path> {
        Self::parse_as(text, false)
    }

    /// The same in MySQL's form.
    pub(crate) fn parse_mysql(text: &str) -> Result<Path> {
        Self::parse_as(text, true)
    }

    fn parse_as(text: &str, is_mysql: bool) -> Result<Path> {
        if text.len() > LENGTH_MAX {
            return Err(Error::new(Condition::LimitExceeded, format!("a path has at most {LENGTH_MAX} bytes")));
        }
        let mut parser = Parser { text, rest: text, depth: 0, tries: 0, is_mysql };
        if is_mysql {
            if !parser.take("$") {
                return parser.error();
            }
            let steps = parser.steps()?;
            parser.space();
            return match parser.rest.is_empty() {
                true => Ok(Path { node: Node::Steps(Box::new(Node::Root), steps) }),
                false => parser.error(),
            };
        }
        if parser.word("strict") {
            return Err(Error::unsupported("a strict jsonpath"));
        }
        parser.word("lax");
        let before = parser.rest;
        let node = parser.sum();
        parser.space();
        if let (Ok(node), true) = (node, parser.rest.is_empty()) {
            return Ok(Path { node });
        }
        (parser.rest, parser.depth) = (before, 0);
        let test = parser.test()?;
        parser.space();
        match parser.rest.is_empty() {
            true => Ok(Path { node: Node::Is(Box::new(test)) }),
            false => Err(wrong(text)),
        }
    }

    /// What of a document it means. Errors: operands that are no numbers.
    pub(crate) fn find(&self, run: &mut Run<'_>, root: &Json, variables: Option<&Json>) -> Result<Vec<Json>> {
        let search = Search { root, variables };
        let before = run.memory_taken();
        let found = search.values(run, &self.node, root);
        run.give_back_to(before);
        found
    }

    /// Whether what it says is so; none: that is not known.
    pub(crate) fn is_true(&self, run: &mut Run<'_>, root: &Json, variables: Option<&Json>) -> Result<Option<bool>> {
        Ok(match self.find(run, root, variables)?.as_slice() {
            [Json::Bool(value)] => Some(*value),
            _ => None,
        })
    }

    /// The steps of a path that means one place.
    pub(crate) fn places(&self) -> Option<Vec<Place>> {
        let Node::Steps(_, steps) = &self.node else { return Some(Vec::new()) };
        steps
            .iter()
            .map(|step| match step {
                Step::Member(name) => Some(Place::Member(name.clone())),
                Step::Elements(ranges) => match ranges.as_slice() {
                    [(from, to)] if from == to => Some(Place::Element(*from)),
                    _ => None,
                },
                _ => None,
            })
            .collect()
    }

    /// True if it means one place.
    pub(crate) fn is_single(&self) -> bool {
        self.places().is_some()
    }
}

/// A step to one place.
pub(crate) enum Place {
    Member(String),
    Element(i64),
}

struct Search<'a> {
    root: &'a Json,
    variables: Option<&'a Json>,
}

impl Search<'_> {
    fn values(&self, run: &mut Run<'_>, node: &Node, current: &Json) -> Result<Vec<Json>> {
        run.tick()?;
        Ok(match node {
            Node::Root => {
                run.look()?;
                vec![self.root.clone()]
            }
            Node::Current => vec![current.clone()],
            Node::Literal(value) => vec![value.clone()],
            Node::Variable(name) => match self.variables.and_then(|variables| variables.member(name)) {
                Some(value) => vec![value.clone()],
                None => {
                    let what = format!("could not find jsonpath variable \"{name}\"");
                    return Err(Error::new(Condition::UndefinedObject, what));
                }
            },
            Node::Steps(from, steps) => {
                let mut values = self.values(run, from, current)?;
                for step in steps {
                    values = self.after(run, step, values)?;
                }
                values
            }
            Node::Arithmetic(operator, left, right) => {
                let (left, right) = (self.values(run, left, current)?, self.values(run, right, current)?);
                vec![arithmetic(*operator, &left, &right)?]
            }
            Node::Is(test) => vec![self.test(run, test, current)?.map_or(Json::Null, Json::Bool)],
        })
    }

    fn after(&self, run: &mut Run<'_>, step: &Step, values: Vec<Json>) -> Result<Vec<Json>> {
        let mut found = Vec::new();
        let mut counted = 0;
        for value in values {
            run.tick()?;
            while counted < found.len() {
                run.take(weight(&found[counted]))?;
                counted += 1;
            }
            match step {
                Step::Member(name) => match value {
                    Json::Array(elements) => {
                        found.extend(elements.iter().filter_map(|element| element.member(name)).cloned());
                    }
                    value => found.extend(value.member(name).cloned()),
                },
                Step::AnyMember => match value {
                    Json::Object(members) => found.extend(members.into_iter().map(|(_, value)| value)),
                    Json::Array(elements) => {
                        for element in elements {
                            if let Json::Object(members) = element {
                                found.extend(members.into_iter().map(|(_, value)| value));
                            }
                        }
                    }
                    _ => {}
                },
                Step::AnyElement => match value {
                    Json::Array(elements) => found.extend(elements),
                    other => found.push(other),
                },
                Step::Elements(ranges) => {
                    let elements = match value {
                        Json::Array(elements) => elements,
                        // A plain value is an array of one.
                        other => vec![other],
                    };
                    let count = elements.len() as i64;
                    let place = |number: i64| if number < 0 { count + number } else { number };
                    for (from, to) in ranges {
                        let (from, to) = (place(*from).max(0), place(*to).min(count - 1));
                        for number in from..=to {
                            found.push(elements[number as usize].clone());
                        }
                    }
                }
                Step::Deep => {
                    deep(run, &value, &mut found)?;
                    counted = found.len();
                }
                Step::Filter(test) => {
                    let candidates = match value {
                        Json::Array(elements) => elements,
                        other => vec![other],
                    };
                    for candidate in candidates {
                        if self.test(run, test, &candidate)? == Some(true) {
                            found.push(candidate);
                        }
                    }
                }
                Step::Method(name) => found.push(method(name, value)?),
            }
        }
        Ok(found)
    }

    fn test(&self, run: &mut Run<'_>, test: &Test, current: &Json) -> Result<Option<bool>> {
        Ok(match test {
            Test::And(a, b) => match (self.test(run, a, current)?, self.test(run, b, current)?) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Test::Or(a, b) => match (self.test(run, a, current)?, self.test(run, b, current)?) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Test::Not(a) => self.test(run, a, current)?.map(|value| !value),
            Test::IsUnknown(a) => Some(self.test(run, a, current)?.is_none()),
            Test::Exists(node) => Some(!self.values(run, node, current)?.is_empty()),
            Test::StartsWith(a, b) => {
                let start = self.values(run, b, current)?;
                let Some(Json::Text(start)) = start.first() else { return Ok(None) };
                let values = unwrapped(self.values(run, a, current)?);
                Some(values.iter().any(|value| matches!(value, Json::Text(text) if text.starts_with(start))))
            }
            Test::Matches(node, regex) => {
                let values = unwrapped(self.values(run, node, current)?);
                for value in &values {
                    run.tick()?;
                    if matches!(value, Json::Text(text) if regex.is_match(run, text)?) {
                        return Ok(Some(true));
                    }
                }
                Some(false)
            }
            Test::Compare(operator, a, b) => {
                let (a, b) = (unwrapped(self.values(run, a, current)?), unwrapped(self.values(run, b, current)?));
                let mut known = Some(false);
                for a in &a {
                    for b in &b {
                        run.tick()?;
                        match compare(operator, a, b) {
                            Some(true) => return Ok(Some(true)),
                            Some(false) => {}
                            None => known = None,
                        }
                    }
                }
                known
            }
        })
    }
}

/// Bytes that a value takes, about.
pub(super) fn weight(value: &Json) -> usize {
    32 + match value {
        Json::Null | Json::Bool(_) => 0,
        Json::Number(text) | Json::Text(text) => text.len(),
        Json::Array(elements) => elements.iter().map(weight).sum(),
        Json::Object(members) => members.iter().map(|(name, value)| 24 + name.len() + weight(value)).sum(),
    }
}

fn unwrapped(values: Vec<Json>) -> Vec<Json> {
    let mut all = Vec::new();
    for value in values {
        match value {
            Json::Array(elements) => all.extend(elements),
            other => all.push(other),
        }
    }
    all
}

/// A value and all those within it. May wait. Errors: as [`Run::take`] and [`Run::tick`].
fn deep(run: &mut Run<'_>, value: &Json, found: &mut Vec<Json>) -> Result<()> {
    run.tick()?;
    run.take(weight(value))?;
    found.push(value.clone());
    match value {
        Json::Array(elements) => elements.iter().try_for_each(|element| deep(run, element, found)),
        Json::Object(members) => members.iter().try_for_each(|(_, member)| deep(run, member, found)),
        _ => Ok(()),
    }
}

fn compare(operator: &str, a: &Json, b: &Json) -> Option<bool> {
    let order = match (a, b) {
        (Json::Number(a), Json::Number(b)) => order_numbers(a, b),
        (Json::Text(a), Json::Text(b)) => a.cmp(b),
        (Json::Bool(a), Json::Bool(b)) => a.cmp(b),
        (Json::Null, Json::Null) => Ordering::Equal,
        (Json::Null, _) | (_, Json::Null) => return Some(matches!(operator, "!=" | "<>")),
        _ => return None,
    };
    Some(match operator {
        "==" => order == Ordering::Equal,
        "!=" | "<>" => order != Ordering::Equal,
        "<" => order == Ordering::Less,
        "<=" => order != Ordering::Greater,
        ">" => order == Ordering::Greater,
        _ => order != Ordering::Less,
    })
}

fn arithmetic(operator: char, left: &[Json], right: &[Json]) -> Result<Json> {
    use crate::arithmetic::{Arithmetic, Manner, calculate};
    let operand = |values: &[Json]| match values {
        [Json::Number(digits)] => digits.parse::<tuple::decimal::Decimal>().ok().map(crate::Value::decimal),
        _ => None,
    };
    let (Some(left), Some(right)) = (operand(left), operand(right)) else {
        let what = format!("operand of jsonpath operator {operator} is not a single numeric value");
        return Err(Error::new(Condition::InvalidArgument, what));
    };
    let operation = match operator {
        '+' => Arithmetic::Add,
        '-' => Arithmetic::Subtract,
        '*' => Arithmetic::Multiply,
        '/' => Arithmetic::Divide,
        _ => Arithmetic::Remainder,
    };
    let manner = Manner { zero_gives_null: false, short_quotients: false };
    let ty = crate::Type::of(crate::Base::Decimal);
    let value = calculate(operation, ty, manner, &left, &right)?;
    Ok(Json::Number(value.display(crate::Dialect::Postgres)))
}

fn method(name: &str, value: Json) -> Result<Json> {
    let refused =
        |what: &str| Err(Error::new(Condition::InvalidArgument, format!("jsonpath item method .{name}() {what}")));
    Ok(match (name, &value) {
        ("type", value) => Json::Text(value.kind().to_string()),
        ("size", Json::Array(elements)) => Json::Number(elements.len().to_string()),
        ("size", _) => Json::Number("1".to_string()),
        ("double", Json::Number(_)) => value,
        ("double", Json::Text(text)) => match Json::parse(text.trim()) {
            Some(number @ Json::Number(_)) => number,
            _ => return refused("can only be applied to a string or numeric value"),
        },
        ("abs", Json::Number(digits)) => Json::Number(digits.trim_start_matches('-').to_string()),
        ("floor" | "ceiling", Json::Number(digits)) => {
            let number = digits.parse::<f64>().unwrap_or(0.0);
            let number = if name == "floor" { number.floor() } else { number.ceil() };
            Json::Number(number.to_string())
        }
        ("abs" | "floor" | "ceiling" | "double", _) => return refused("can only be applied to a numeric value"),
        _ => return Err(Error::unsupported(format!("jsonpath item method .{name}()"))),
    })
}

/// Changes the value at a place: `change` gets what is there, if there is any, and gives what will be; none removes it.
///
/// Steps that lead nowhere change nothing; the last one may make a new member or element.
pub(crate) fn change_at(value: &mut Json, places: &[Place], change: &mut dyn FnMut(Option<Json>) -> Option<Json>) {
    let Some((place, rest)) = places.split_first() else {
        let before = std::mem::replace(value, Json::Null);
        *value = change(Some(before)).unwrap_or(Json::Null);
        return;
    };
    match (value, place) {
        (Json::Object(members), Place::Member(name)) => {
            let at = members.binary_search_by(|(known, _)| super::value::order_names(known, name));
            match (at, rest.is_empty()) {
                (Ok(at), false) => change_at(&mut members[at].1, rest, change),
                (Ok(at), true) => {
                    let (name, before) = members.remove(at);
                    if let Some(after) = change(Some(before)) {
                        members.insert(at, (name, after));
                    }
                }
                (Err(at), true) => {
                    if let Some(after) = change(None) {
                        members.insert(at, (name.clone(), after));
                    }
                }
                (Err(_), false) => {}
            }
        }
        (Json::Array(elements), Place::Element(number)) => match (place_of(*number, elements.len()), rest.is_empty()) {
            (Some(at), false) => change_at(&mut elements[at], rest, change),
            (Some(at), true) => {
                let before = elements.remove(at);
                if let Some(after) = change(Some(before)) {
                    elements.insert(at, after);
                }
            }
            (None, true) => {
                if let Some(after) = change(None) {
                    elements.insert(if *number < 0 { 0 } else { elements.len() }, after);
                }
            }
            (None, false) => {}
        },
        // In MySQL's paths a plain value is an array of one.
        (plain, Place::Element(0 | -1)) => change_at(plain, rest, change),
        (plain, Place::Element(_)) if rest.is_empty() => {
            if let Some(after) = change(None) {
                let before = std::mem::replace(plain, Json::Null);
                *plain = Json::Array(vec![before, after]);
            }
        }
        _ => {}
    }
}
