//! A row that is being updated: opened as far as operations have gone into it.
//!
//! Values that nobody has looked into stay the bytes they are. An array that was opened is a list of pieces: runs of elements of the
//! row, and nodes, one for each element that an operation has touched or put in. A map that was opened is its bytes and a list of the keys
//! that operations have named. So an operation costs the steps of its path and the pieces it passes, of which there are at most two for
//! each operation before it; the bytes of the row are passed over once, by [`Array::offset_of`] and [`Map::scan`].
//!
//! Which operations meet the same value, and are refused for it, follows Tarantool, where it depends on the order of operations: a
//! [`Mark`] says what it would say. A path that goes into a value nobody has touched makes it a *bar*: the value with one change
//! inside. The next path into it that leaves the bar's somewhere, and is not the beginning or the continuation of it, opens the container
//! where they part; from then on that one is updated like the row itself. What both have in common becomes a *route*.

use super::UpdateError;
use super::operation::Operation;
use super::scalar;
use crate::field::FieldType;
use crate::format::Format;
use crate::msgpack::{self, Kind as Msgpack, Reader};
use crate::path::Step;
use std::collections::BTreeMap;
use std::ops::Range;

/// Elements of an array, and bytes, between two places of it that are remembered.
const PLACE_ELEMENTS: usize = 64;
const PLACE_BYTES: usize = 512;

/// Number of a node in its document.
type NodeId = usize;

/// The row is the first node.
const ROOT: NodeId = 0;

struct Node<'a> {
    value: Value<'a>,
    mark: Mark,
}

enum Value<'a> {
    /// Bytes of the row or of an operation.
    Raw(&'a [u8]),
    /// What an operation has made of a value.
    Made(Vec<u8>),
    Array(Array<'a>),
    Map(Map<'a>),
}

/// Some steps of the path of an operation.
#[derive(Clone)]
struct Trail {
    operation: usize,
    steps: Range<usize>,
}

/// What operations have done to a value, as those behind them see it.
#[derive(Clone)]
enum Mark {
    /// Nothing, or it was put in: anything may be done to it.
    Untouched,
    /// It was changed as a whole.
    Changed,
    /// One operation has changed something inside, at the end of the trail.
    Bar(Trail),
    /// All that was changed lies behind the trail, where an open container is.
    Route(Trail),
    /// An open container.
    Open,
}

/// A key of a map. Steps that are numbers find keys that are integers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    Number(u64),
    Name(&'a [u8]),
}

impl<'a> Key<'a> {
    fn of(step: Step<'a>) -> Self {
        match step {
            Step::Key(name) => Key::Name(name),
            Step::Index(index) => Key::Number(u64::from(index) + 1),
            Step::Any => Key::Name(&[]),
        }
    }
}

/// Elements of an array in the row, or an element of its own.
enum Piece {
    Run { elements: Range<usize>, bytes: Range<usize> },
    Node(NodeId),
}

impl Piece {
    fn element_count(&self) -> usize {
        match self {
            Piece::Run { elements, .. } => elements.len(),
            Piece::Node(_) => 1,
        }
    }
}

struct Array<'a> {
    /// The elements as they were.
    source: &'a [u8],
    /// Where some of them begin: element, byte. Ascending.
    places: Vec<(usize, usize)>,
    pieces: Vec<Piece>,
    element_count: usize,
}

impl<'a> Array<'a> {
    /// `bytes` are a checked array, from its header to its end.
    fn new(bytes: &'a [u8]) -> Self {
        let mut reader = Reader::new(bytes);
        let element_count = reader.read_array().unwrap_or(0) as usize;
        let source = reader.rest();
        let mut pieces = Vec::new();
        if element_count > 0 {
            pieces.push(Piece::Run { elements: 0..element_count, bytes: 0..source.len() });
        }
        Array { source, places: Vec::new(), pieces, element_count }
    }

    /// The byte at which an element of the source begins. Passes over each byte of the source once in all, and over a short stretch
    /// behind a remembered place each time.
    fn offset_of(&mut self, element: usize) -> usize {
        let known = self.places.partition_point(|place| place.0 <= element);
        let is_ahead = known == self.places.len();
        let mut last = known.checked_sub(1).map_or((0, 0), |at| self.places[at]);
        let (mut at, mut offset) = last;
        while at < element {
            offset += msgpack::skip(&self.source[offset..]);
            at += 1;
            if is_ahead && (at - last.0 >= PLACE_ELEMENTS || offset - last.1 >= PLACE_BYTES) {
                last = (at, offset);
                self.places.push(last);
            }
        }
        offset
    }

    /// The piece that element `position` begins, which splits the run that it is in. The number of pieces for the end.
    fn piece_at(&mut self, position: usize) -> usize {
        let mut before = 0;
        let mut at = 0;
        while at < self.pieces.len() {
            let count = self.pieces[at].element_count();
            if before == position {
                return at;
            }
            if position < before + count {
                break;
            }
            before += count;
            at += 1;
        }
        let Some(Piece::Run { elements, bytes }) = self.pieces.get(at) else { return at };
        let (elements, bytes) = (elements.clone(), bytes.clone());
        let element = elements.start + (position - before);
        let offset = self.offset_of(element);
        self.pieces[at] = Piece::Run { elements: elements.start..element, bytes: bytes.start..offset };
        self.pieces.insert(at + 1, Piece::Run { elements: element..elements.end, bytes: offset..bytes.end });
        at + 1
    }

    fn insert(&mut self, position: usize, node: NodeId) {
        let at = self.piece_at(position);
        self.pieces.insert(at, Piece::Node(node));
        self.element_count += 1;
    }

    fn remove(&mut self, position: usize, count: usize) {
        let count = count.min(self.element_count - position);
        let start = self.piece_at(position);
        let end = self.piece_at(position + count);
        self.pieces.drain(start..end);
        self.element_count -= count;
    }
}

/// A pair of a map in the row.
#[derive(Clone, Copy)]
struct Pair {
    start: usize,
    value: usize,
    end: usize,
}

/// A pair that an operation has named.
struct Entry<'a> {
    key: Key<'a>,
    /// Where it was in the row.
    pair: Option<Pair>,
    /// `None`: it is not there any more.
    node: Option<NodeId>,
}

struct Map<'a> {
    /// The pairs as they were.
    source: &'a [u8],
    source_count: usize,
    /// Pairs whose keys are in paths of operations, by the number of the key among them. The first of several with one key.
    named: Option<BTreeMap<usize, Pair>>,
    entries: Vec<Entry<'a>>,
}

impl<'a> Map<'a> {
    /// `bytes` are a checked map, from its header to its end.
    fn new(bytes: &'a [u8]) -> Self {
        let mut reader = Reader::new(bytes);
        let source_count = reader.read_map().unwrap_or(0) as usize;
        Map { source: reader.rest(), source_count, named: None, entries: Vec::new() }
    }

    /// Finds all pairs that operations name, in one pass.
    fn scan(source: &[u8], count: usize, keys: &[Key<'_>]) -> BTreeMap<usize, Pair> {
        let mut named = BTreeMap::new();
        let mut reader = Reader::new(source);
        for _ in 0..count {
            let start = reader.position();
            let mut key_reader = reader;
            let key = match reader.kind() {
                Ok(Msgpack::Str) => key_reader.read_str().ok().map(Key::Name),
                Ok(Msgpack::Uint) => key_reader.read_uint().ok().map(Key::Number),
                _ => None,
            };
            reader.skip_checked();
            let value = reader.position();
            reader.skip_checked();
            if let Some(number) = key.and_then(|key| keys.binary_search(&key).ok()) {
                named.entry(number).or_insert(Pair { start, value, end: reader.position() });
            }
        }
        named
    }

    /// The entry of a key, if the map has or had it.
    fn entry(&mut self, key: Key<'a>, keys: &[Key<'a>]) -> Option<usize> {
        if let Some(at) = self.entries.iter().position(|entry| entry.key == key) {
            return Some(at);
        }
        let number = keys.binary_search(&key).ok()?;
        let named = self.named.get_or_insert_with(|| Self::scan(self.source, self.source_count, keys));
        let pair = *named.get(&number)?;
        self.entries.push(Entry { key, pair: Some(pair), node: None });
        Some(self.entries.len() - 1)
    }
}

/// A row and what operations have made of it so far.
pub(super) struct Document<'a> {
    operations: &'a [Operation<'a>],
    nodes: Vec<Node<'a>>,
    /// Keys that paths name, ascending.
    keys: Vec<Key<'a>>,
}

impl<'a> Document<'a> {
    pub(super) fn new(row: &'a [u8], operations: &'a [Operation<'a>]) -> Self {
        let steps = operations.iter().flat_map(|operation| operation.steps.iter());
        let mut keys: Vec<Key<'a>> = steps.map(|step| Key::of(*step)).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut nodes = Vec::with_capacity(operations.len() + 1);
        nodes.push(Node { value: Value::Array(Array::new(row)), mark: Mark::Open });
        Document { operations, nodes, keys }
    }

    fn add(&mut self, bytes: &'a [u8]) -> NodeId {
        self.nodes.push(Node { value: Value::Raw(bytes), mark: Mark::Untouched });
        self.nodes.len() - 1
    }

    /// Makes pieces of a container.
    fn open(&mut self, node: NodeId) -> &mut Value<'a> {
        let value = &mut self.nodes[node].value;
        if let Value::Raw(bytes) = value {
            match Reader::new(bytes).kind() {
                Ok(Msgpack::Array) => *value = Value::Array(Array::new(bytes)),
                Ok(Msgpack::Map) => *value = Value::Map(Map::new(bytes)),
                _ => {}
            }
        }
        value
    }

    fn array(&mut self, node: NodeId) -> Option<&mut Array<'a>> {
        match self.open(node) {
            Value::Array(array) => Some(array),
            _ => None,
        }
    }

    /// An element of an array as a node.
    fn element(&mut self, parent: NodeId, position: usize) -> Option<NodeId> {
        let next = self.nodes.len();
        let array = self.array(parent)?;
        if position >= array.element_count {
            return None;
        }
        let at = array.piece_at(position);
        let (elements, bytes) = match &array.pieces[at] {
            Piece::Node(node) => return Some(*node),
            Piece::Run { elements, bytes } => (elements.clone(), bytes.clone()),
        };
        let end = match elements.len() {
            1 => bytes.end,
            _ => bytes.start + msgpack::skip(&array.source[bytes.start..]),
        };
        let value = &array.source[bytes.start..end];
        array.pieces[at] = Piece::Node(next);
        if elements.len() > 1 {
            array
                .pieces
                .insert(at + 1, Piece::Run { elements: elements.start + 1..elements.end, bytes: end..bytes.end });
        }
        Some(self.add(value))
    }

    /// The value of a key of a map as a node.
    fn pair(&mut self, parent: NodeId, key: Key<'a>) -> Option<NodeId> {
        self.open(parent);
        let next = self.nodes.len();
        let Value::Map(map) = &mut self.nodes[parent].value else { return None };
        let known = map.entries.len();
        let at = map.entry(key, &self.keys)?;
        if at < known {
            return map.entries[at].node;
        }
        map.entries[at].node = Some(next);
        let pair = map.entries[at].pair?;
        let value = &map.source[pair.value..pair.end];
        Some(self.add(value))
    }

    fn child(&mut self, parent: NodeId, step: Step<'a>) -> Option<NodeId> {
        match (self.open(parent), step) {
            (Value::Array(_), Step::Index(index)) => self.element(parent, index as usize),
            (Value::Map(_), Step::Key(_) | Step::Index(_)) => self.pair(parent, Key::of(step)),
            _ => None,
        }
    }

    fn insert_element(&mut self, parent: NodeId, position: usize, value: &'a [u8]) {
        let node = self.add(value);
        if let Some(array) = self.array(parent) {
            array.insert(position, node);
        }
    }

    /// Gives a map a key that it does not have.
    fn insert_pair(&mut self, parent: NodeId, key: Key<'a>, value: &'a [u8]) {
        let node = self.add(value);
        if let Value::Map(map) = &mut self.nodes[parent].value {
            match map.entry(key, &self.keys) {
                Some(at) => map.entries[at].node = Some(node),
                None => map.entries.push(Entry { key, pair: None, node: Some(node) }),
            }
        }
    }

    fn remove_pair(&mut self, parent: NodeId, key: Key<'a>) {
        if let Value::Map(map) = &mut self.nodes[parent].value
            && let Some(at) = map.entry(key, &self.keys)
        {
            map.entries[at].node = None;
        }
    }

    /// Applies operation `at`. A refused one has changed nothing that can be seen in the row.
    pub(super) fn apply(&mut self, at: usize) -> Result<(), UpdateError> {
        let operation = &self.operations[at];
        let field_no = operation.field_no.get();
        if operation.ends_at(0) {
            return self.end_in_array(operation, ROOT, field_no);
        }
        let count = self.array(ROOT).map_or(0, |array| array.element_count) as i64;
        let position = if field_no < 0 { field_no + count } else { field_no };
        let position = usize::try_from(position).map_err(|_| operation.no_such_field())?;
        let node = self.element(ROOT, position).ok_or_else(|| operation.no_such_field())?;
        self.descend(at, node)
    }

    /// Follows the path of an operation into a field of the row.
    fn descend(&mut self, at: usize, mut node: NodeId) -> Result<(), UpdateError> {
        let operation = &self.operations[at];
        let mut step_at = 0;
        loop {
            match self.nodes[node].mark.clone() {
                Mark::Untouched => {
                    self.change_inside(operation, node, step_at)?;
                    let steps = step_at..operation.steps.len();
                    self.nodes[node].mark = Mark::Bar(Trail { operation: at, steps });
                    return Ok(());
                }
                Mark::Changed => return Err(operation.updated_twice()),
                Mark::Bar(trail) => (node, step_at) = self.part(operation, node, step_at, &trail, true)?,
                Mark::Route(trail) => {
                    let common = &self.operations[trail.operation].steps[trail.steps.clone()];
                    if operation.steps[step_at..].starts_with(common) {
                        for step in common {
                            node = self.child(node, *step).ok_or_else(|| operation.no_such_field())?;
                        }
                        step_at += common.len();
                    } else {
                        (node, step_at) = self.part(operation, node, step_at, &trail, false)?;
                    }
                }
                Mark::Open => {
                    let is_array = matches!(self.open(node), Value::Array(_));
                    let step = operation.steps.get(step_at).copied();
                    match (step, operation.malformed_at) {
                        (None, Some(position)) => return Err(operation.malformed(position)),
                        (None, None) => return Err(operation.no_such_field()),
                        (Some(Step::Index(index)), _) if is_array => {
                            if operation.ends_at(step_at + 1) {
                                return self.end_in_array(operation, node, i64::from(index));
                            }
                        }
                        (Some(Step::Key(name)), _) if !is_array => {
                            if operation.ends_at(step_at + 1) {
                                return self.end_in_map(operation, node, Key::Name(name));
                            }
                        }
                        _ if is_array => return Err(operation.refused("can't update an array by a non-numeric index")),
                        _ => return Err(operation.refused("can't update a map by not a string key")),
                    }
                    let step = step.ok_or_else(|| operation.no_such_field())?;
                    node = self.child(node, step).ok_or_else(|| operation.no_such_field())?;
                    step_at += 1;
                }
            }
        }
    }

    /// Opens the container where the path of an operation leaves `trail`, which was taken into `node` before. Returns the container and
    /// the step that the operation takes in it.
    fn part(
        &mut self,
        operation: &Operation<'a>,
        node: NodeId,
        step_at: usize,
        trail: &Trail,
        is_bar: bool,
    ) -> Result<(NodeId, usize), UpdateError> {
        let old = &self.operations[trail.operation].steps[trail.steps.clone()];
        let mut container = node;
        let mut common = 0;
        let (old_step, new_step) = loop {
            let new_step = operation.steps.get(step_at + common).copied();
            if let (None, Some(position)) = (new_step, operation.malformed_at) {
                return Err(operation.malformed(position));
            }
            let Some(&old_step) = old.get(common) else { return Err(operation.updated_twice()) };
            if new_step != Some(old_step) {
                break (old_step, new_step);
            }
            common += 1;
            if common < old.len() {
                container = self.child(container, old_step).ok_or_else(|| operation.no_such_field())?;
            }
        };
        match (self.open(container), new_step) {
            (Value::Array(_), Some(Step::Index(_))) | (Value::Map(_), Some(Step::Key(_))) => {}
            (Value::Array(_), _) => return Err(operation.refused("can not update array by non-integer index")),
            (Value::Map(_), _) => return Err(operation.refused("can not update map by non-string key")),
            _ => return Err(operation.no_such_field()),
        }
        let rest = Trail { operation: trail.operation, steps: trail.steps.start + common + 1..trail.steps.end };
        if !rest.steps.is_empty()
            && let Some(child) = self.child(container, old_step)
        {
            self.nodes[child].mark = if is_bar { Mark::Bar(rest) } else { Mark::Route(rest) };
        }
        if common > 0 {
            let steps = trail.steps.start..trail.steps.start + common;
            self.nodes[node].mark = Mark::Route(Trail { operation: trail.operation, steps });
        }
        self.nodes[container].mark = Mark::Open;
        Ok((container, step_at + common))
    }

    /// The end of a path in an array that is updated like the row itself. `field_no` may be negative in the row.
    fn end_in_array(&mut self, operation: &Operation<'a>, node: NodeId, field_no: i64) -> Result<(), UpdateError> {
        let count = self.array(node).map_or(0, |array| array.element_count) as i64;
        // `=` behind the last element inserts.
        let is_insert = operation.code == '!' || operation.code == '=' && field_no == count;
        let bound = if is_insert { count + 1 } else { count };
        let position = if field_no < 0 { field_no + bound } else { field_no };
        if position < 0 || position >= bound {
            return Err(operation.no_such_field());
        }
        if operation.path.is_none() {
            // Messages name the field that a negative number means.
            operation.field_no.set(position);
        }
        let position = position as usize;
        if is_insert {
            self.insert_element(node, position, operation.value());
            return Ok(());
        }
        if operation.code == '#' {
            if let Some(array) = self.array(node) {
                array.remove(position, operation.delete_count() as usize);
            }
            return Ok(());
        }
        let element = self.element(node, position).ok_or_else(|| operation.no_such_field())?;
        self.end_at(operation, element)
    }

    /// Sets or changes a value as a whole.
    fn end_at(&mut self, operation: &Operation<'a>, node: NodeId) -> Result<(), UpdateError> {
        let node = &mut self.nodes[node];
        if operation.code == '=' {
            *node = Node { value: Value::Raw(operation.value()), mark: Mark::Changed };
            return Ok(());
        }
        if !matches!(node.mark, Mark::Untouched) {
            return Err(operation.updated_twice());
        }
        let old = match &node.value {
            Value::Raw(bytes) => bytes,
            Value::Made(bytes) => &bytes[..],
            // Containers are nothing that these operations could change.
            Value::Array(_) => &[0x90],
            Value::Map(_) => &[0x80],
        };
        let mut made = Vec::with_capacity(9);
        scalar::change(operation, old, &mut made)?;
        *node = Node { value: Value::Made(made), mark: Mark::Changed };
        Ok(())
    }

    /// The end of a path in an open map.
    fn end_in_map(&mut self, operation: &Operation<'a>, node: NodeId, key: Key<'a>) -> Result<(), UpdateError> {
        let present = self.pair(node, key);
        match (operation.code, present) {
            ('!', Some(_)) => return Err(operation.refused("the key exists already")),
            ('!' | '=', None) => self.insert_pair(node, key, operation.value()),
            ('#', _) if operation.delete_count() != 1 => {
                return Err(operation.refused("can delete only 1 field from a map in a row"));
            }
            // As Tarantool: there is nothing to remove in a map that others have changed, too.
            ('#', None) => {}
            ('#', Some(_)) => self.remove_pair(node, key),
            (_, None) => return Err(operation.no_such_field()),
            (_, Some(value)) => return self.end_at(operation, value),
        }
        Ok(())
    }

    /// Applies an operation inside a value that no other has touched.
    fn change_inside(&mut self, operation: &Operation<'a>, node: NodeId, from: usize) -> Result<(), UpdateError> {
        let steps = &operation.steps[from..];
        let Some((last, before)) = steps.split_last() else {
            return Err(operation.malformed_at.map_or_else(|| operation.no_such_field(), |at| operation.malformed(at)));
        };
        let mut parent = node;
        for step in before {
            parent = self.child(parent, *step).ok_or_else(|| operation.no_such_field())?;
        }
        let may_be_new = matches!(operation.code, '=' | '!');
        if let Some(position) = operation.malformed_at {
            let is_there = may_be_new || self.child(parent, *last).is_some();
            return Err(if is_there { operation.malformed(position) } else { operation.no_such_field() });
        }
        match (self.open(parent), *last) {
            (Value::Array(array), Step::Index(index)) => {
                let (position, count) = (index as usize, array.element_count);
                let is_insert = position == count && may_be_new || position < count && operation.code == '!';
                if is_insert {
                    self.insert_element(parent, position, operation.value());
                } else if position >= count {
                    return Err(operation.no_such_field());
                } else if operation.code == '#' {
                    array.remove(position, operation.delete_count() as usize);
                } else {
                    let element = self.element(parent, position).ok_or_else(|| operation.no_such_field())?;
                    return self.end_at(operation, element);
                }
                Ok(())
            }
            (Value::Map(_), Step::Key(_) | Step::Index(_)) => {
                let key = Key::of(*last);
                if self.pair(parent, key).is_none() {
                    match key {
                        _ if !may_be_new => return Err(operation.no_such_field()),
                        Key::Number(_) => return Err(operation.refused("can not access by index a non-array field")),
                        Key::Name(_) => {}
                    }
                }
                self.end_in_map(operation, parent, key)
            }
            (_, Step::Index(_)) if may_be_new => Err(operation.refused("can not access by index a non-array field")),
            (_, Step::Key(_)) if may_be_new => Err(operation.refused("can not access by key a non-map field")),
            _ => Err(operation.no_such_field()),
        }
    }

    /// Appends the row as it is now.
    pub(super) fn write(&self, format: Option<&Format>, out: &mut Vec<u8>) {
        let Value::Array(root) = &self.nodes[ROOT].value else { return };
        msgpack::encode_array(out, root.element_count as u32);
        let mut position = 0;
        for piece in &root.pieces {
            match piece {
                Piece::Run { bytes, .. } => out.extend_from_slice(&root.source[bytes.clone()]),
                Piece::Node(node) => {
                    let is_double = || format.is_some_and(|format| format.type_of(position) == FieldType::Double);
                    let at = out.len();
                    self.write_node(*node, out);
                    if matches!(self.nodes[*node].value, Value::Made(_)) {
                        scalar::widen(out, at, is_double);
                    }
                }
            }
            position += piece.element_count();
        }
    }

    /// Goes as deep as paths have gone, which is bounded by the nesting of a row.
    fn write_node(&self, node: NodeId, out: &mut Vec<u8>) {
        match &self.nodes[node].value {
            Value::Raw(bytes) => out.extend_from_slice(bytes),
            Value::Made(bytes) => out.extend_from_slice(bytes),
            Value::Array(array) => {
                msgpack::encode_array(out, array.element_count as u32);
                for piece in &array.pieces {
                    match piece {
                        Piece::Run { bytes, .. } => out.extend_from_slice(&array.source[bytes.clone()]),
                        Piece::Node(node) => self.write_node(*node, out),
                    }
                }
            }
            Value::Map(map) => self.write_map(map, out),
        }
    }

    /// New pairs first, as Tarantool has them; the others where they were.
    fn write_map(&self, map: &Map<'a>, out: &mut Vec<u8>) {
        let is_new = |entry: &&Entry<'_>| entry.pair.is_none() && entry.node.is_some();
        let new_count = map.entries.iter().filter(is_new).count();
        let mut changed: Vec<(Pair, Option<NodeId>)> =
            map.entries.iter().filter_map(|entry| Some((entry.pair?, entry.node))).collect();
        let removed_count = changed.iter().filter(|(_, node)| node.is_none()).count();
        changed.sort_unstable_by_key(|(pair, _)| pair.start);
        msgpack::encode_map(out, (map.source_count + new_count - removed_count) as u32);
        for entry in map.entries.iter().rev().filter(is_new) {
            match entry.key {
                Key::Name(name) => msgpack::encode_str(out, name),
                Key::Number(number) => msgpack::encode_uint(out, number),
            }
            if let Some(node) = entry.node {
                self.write_node(node, out);
            }
        }
        let mut written = 0;
        for (pair, node) in changed {
            out.extend_from_slice(&map.source[written..pair.start]);
            if let Some(node) = node {
                out.extend_from_slice(&map.source[pair.start..pair.value]);
                self.write_node(node, out);
            }
            written = pair.end;
        }
        out.extend_from_slice(&map.source[written..]);
    }
}
